"""``record why`` in English, Portuguese and Spanish."""

from __future__ import annotations

import re
import string
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.agent import Agent
from onrecord.cli.terminal import Screen
from onrecord.cli.why import why_lines
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Ask, Woke, approved
from onrecord.governance.rules import before_tool
from onrecord.honesty.commentary import Commentary
from onrecord.honesty.languages import Language, words_of
from onrecord.honesty.sentences import brief_of
from onrecord.honesty.slices import last_answer
from onrecord.record.record import Record
from onrecord.session import Session
from onrecord.testing import ScriptedModel, call
from onrecord.turn.moments import Allow, Deny
from tests.cli.agents import Cli
from tests.strategies import takes
from tests.turn.acting import tool, turn

pytestmark = pytest.mark.integration

LANGUAGES: tuple[Language, ...] = get_args(Language)


async def told(language: Language) -> list[str]:
    """Why an answer was given for which a rule denied one call and a person approved another."""

    @before_tool
    async def careful(made: Any, call: Any) -> Any:
        return {"Lund": Deny("not Lund"), "Porto": Ask("Sure?")}.get(call.args["city"], Allow())

    script = [call("look", city="Lund")], [call("look", city="Porto")], "Rain, 9."
    agent = Agent(ScriptedModel(*script), tools=[tool("look")], features=[careful], instructions="Be brief.")
    paused = await turn(agent, "weather?")
    assert paused.question is not None
    done = await turn(agent, approved(paused.question, by="ana", note="go"), session=paused.session)
    record: Record[None] = Record([*paused.entries, *done.entries], lambda _: None)
    return list(why_lines(record, last_answer(record) or 0, Screen(), language=language))


def plain(lines: list[str]) -> list[str]:
    """The lines without numbers, digests and margins."""
    return [re.sub(r"^\s*\d*\s+", "", line) for line in lines]


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        ("pt", [
            "Uma pessoa disse “weather?”.", "scripted:script foi consultado.", "histórico: 1 unidade",
            "ferramentas que podia chamar: look", "A regra careful negou a chamada: not Lund.",
            "scripted:script foi consultado de novo, agora com o que veio de look.", "instructions: como antes",
            "histórico: 2 unidades", "careful perguntou a uma pessoa: “Sure?”", "A pessoa disse que sim: go.",
            'look(city="Porto") foi executado.', "Isto foi dito: “Rain, 9.”",
            'Ele respondeu com uma chamada: look(city="Lund").',
        ]),
        ("es", [
            "Una persona dijo “weather?”.", "Se consultó a scripted:script.", "historial: 1 unidad",
            "herramientas que podía llamar: look", "La regla careful negó la llamada: not Lund.",
            "Se volvió a consultar a scripted:script, ahora con lo que vino de look.", "instructions: como antes",
            "historial: 2 unidades", "careful preguntó a una persona: “Sure?”", "La persona dijo que sí: go.",
            'Se ejecutó look(city="Porto").', "Se dijo esto: “Rain, 9.”",
            'Respondió con una llamada: look(city="Lund").',
        ]),
    ],
)  # fmt: skip
async def test_an_answer_is_explained_in_a_language(language: Language, lines: list[str]) -> None:
    """All of it: what is the same in English are names and words of people."""
    told_so, english = plain(await told(language)), plain(await told("en"))
    assert [line for line in lines if line not in told_so] == []
    assert len(told_so) == len(english)
    assert set(told_so) & set(english) <= {"instructions: “Be brief.”"}


@pytest.mark.parametrize(
    ("language", "line"),
    [("en", "Nobody answered in time."), ("pt", "Ninguém respondeu a tempo."), ("es", "Nadie respondió a tiempo.")],
)
async def test_a_question_that_expired_was_answered_by_nobody(language: Language, line: str) -> None:
    """It counts as declined, and no person said so: neither the record's story nor the commentary claims it."""

    @before_tool
    async def careful(made: Any, call: Any) -> Any:
        return Ask("Sure?", expires_s=60)

    agent = Agent(ScriptedModel([call("look", city="Porto")], "No."), tools=[tool("look")], features=[careful])
    paused = await turn(agent, "weather?")
    done = await turn(agent, Woke(paused.wakes[0].key), session=paused.session)
    record: Record[None] = Record([*paused.entries, *done.entries], lambda _: None)
    assert line in plain(list(why_lines(record, last_answer(record) or 0, Screen(), language=language)))
    assert next(iter(Commentary(language=language).sentences(done.entries))) == line
    assert brief_of(done.entries[0].body) == "answered: nothing in time"


def test_the_command_takes_a_language(store: Path, cli: Cli) -> None:
    """And English without one; another is refused."""
    assert cli("record", "why", store, "ana", "--language", "pt").out.startswith("Por que said (")
    assert cli("record", "why", store, "ana", "--language", "es").out.startswith("Por qué said (")
    assert cli("record", "why", store, "ana").out.startswith("Why said (")
    assert cli("record", "why", store, "ana", "--language", "xx").code == 2


@pytest.mark.parametrize("language", ["pt", "es"])
def test_languages_say_as_much(language: Language) -> None:
    """The same keys with the same names in them; every kind that is told in full in English is there too."""
    english, other = words_of("en"), words_of(language)
    assert {k: fields(v) for k, v in other.WHY.items()} == {k: fields(v) for k, v in english.WHY.items()}
    assert {kind(k) for k in english.IN_FULL} == {kind(k) for k in other.IN_FULL}
    assert set(other.ANOTHER_REPLIED) == set(english.ANOTHER_REPLIED)


def fields(template: str) -> set[str]:
    """The names in a template."""
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def kind(key: str) -> str:
    """Of a template's key, so far as two words of it are a kind."""
    return ".".join(key.split(".")[: 1 if key.startswith(("verdict", "said")) else 2])


@settings(max_examples=40, deadline=None)
@given(data=st.data(), language=st.sampled_from(LANGUAGES))
def test_any_entry_is_explained(data: Any, language: Language) -> None:
    """Whatever a record holds, and whichever entry is asked for."""
    take = data.draw(takes(Session(key=SessionKey("s"), digest_key="k")))
    record: Record[None] = Record(take, lambda _: None)
    for entry in take:
        lines = list(why_lines(record, entry.seq, Screen(), language=language))
        assert len(lines) > 1
        assert all(lines)
