"""``onrecord record show`` and ``why``, ``onrecord replay``, and what cannot be read."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from gates.report import ROOT
from onrecord.agent import Agent
from onrecord.cli.terminal import Screen
from onrecord.cli.timeline import turn_lines
from onrecord.cli.why import why_lines
from onrecord.governance.rules import on_output
from onrecord.honesty.slices import last_answer
from onrecord.memory import Corpus, Document, Passage, Retrieve
from onrecord.record.entry import kind_of
from onrecord.record.record import Record
from onrecord.stores.sqlite import SqliteStore
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.testing.conformance.samples import turn
from onrecord.turn.moments import Allow, Answer, Revise
from tests.cli.agents import Cli, entries_of
from tests.turn.acting import tool

pytestmark = pytest.mark.integration

# ---- show ------------------------------------------------------------------------------------------------------------


def test_without_a_session_a_store_lists_its_sessions(store: Path, cli: Cli) -> None:
    """A line each, or JSON lines."""
    ran = cli("record", "show", store)
    assert ran.code == 0, ran
    assert ran.out.splitlines()[0] == f"2 sessions in {store}"
    assert re.match(r"  ana  \d+ messages, \d+ entries, last on 2026-09-20", ran.out.splitlines()[1])
    listed = [json.loads(line) for line in cli("record", "show", store, "--json").out.splitlines()]
    assert [(one["session"], one["version"]) for one in listed] == [("ana", 4), ("bo", 1)]


def test_names_of_sessions_stay_in_their_line(tmp_path: Path, cli: Cli) -> None:
    """Line ends, tabs and control codes are shown and not obeyed, long names are cut; JSON has them as they are."""
    names = ["long" * 30, "plain", "two\nlines\tand \x1b[2J"]

    async def fill() -> None:
        async with SqliteStore(tmp_path / "a\nb.db") as opened:
            for name in names:
                await opened.commit(turn(name))

    asyncio.run(fill())
    heading, *lines = cli("record", "show", tmp_path / "a\nb.db").out.splitlines()
    assert heading.endswith(r"a\nb.db")
    shown = ["long" * 9 + "lon…", "plain" + " " * 35, r"two\nlines\tand \x1b[2J" + " " * 17]
    assert [line[2:44] for line in lines] == [f"{name}  " for name in shown]
    listed = cli("record", "show", tmp_path / "a\nb.db", "--json").out.splitlines()
    assert [json.loads(line)["session"] for line in listed] == names


def test_a_session_is_shown_entry_by_entry_as_a_tree(store: Path, cli: Cli) -> None:
    """A heading for each take, a line for each entry, rounds and calls hanging on what they belong to."""
    lines = cli("record", "show", store, "ana").out.splitlines()
    assert sum(bool(re.match(r" +\d+ ", line)) for line in lines) == len(entries_of(store))
    assert any(re.match(r"turn 2 · 2026-09-20 12:00:00 · paused", line) for line in lines)
    assert any(re.match(r"turn 2, resumed · 2026-09-20 12:05:00 · answered", line) for line in lines)
    assert any(re.search(r'  │ └ tool.started +book\(city="Porto"\)', line) for line in lines)
    assert any(re.search(r"turn.resumed +answered: yes, “fine” \(by boss\)", line) for line in lines)
    assert any(re.search(r"turn.interrupted +left; shown until then: “Well”", line) for line in lines)


def test_only_the_last_turns_are_shown_when_asked(store: Path, cli: Cli) -> None:
    """They keep their numbers."""
    ran = cli("record", "show", store, "ana", "--turns", "1")
    assert ran.out.splitlines()[0].startswith("turn 3 · ")


def test_entries_as_json_lines_are_the_stored_ones(store: Path, cli: Cli) -> None:
    """One object a line, with its kind."""
    told = [json.loads(line) for line in cli("record", "show", store, "ana", "--json").out.splitlines()]
    assert [(one["seq"], one["body"]["kind"]) for one in told] == [(e.seq, kind_of(e.body)) for e in entries_of(store)]


def test_the_only_session_need_not_be_named(store: Path, cli: Cli, exported: Path) -> None:
    """A record file has one; a store with several says which there are."""
    assert cli("record", "show", exported).out.splitlines() == cli("record", "show", store, "ana").out.splitlines()
    ran = cli("record", "why", store)
    assert ran.code == 2
    assert "2 sessions: say which" in ran.err
    assert "it holds 'ana', 'bo'" in ran.err


# ---- why -------------------------------------------------------------------------------------------------------------


def test_why_tells_the_message_the_texts_the_calls_and_the_answer(store: Path, cli: Cli) -> None:
    """Also what stood before a pause: who asked, and what the person answered."""
    said = next(e.seq for e in reversed(entries_of(store)) if kind_of(e.body) == "said")
    ran = cli("record", "why", store, "ana", str(said))
    assert ran.code == 0, ran
    expected = [
        r"^Why said \(\d+\): “I read: booked Porto”$",
        r"A person said “book it”\.",
        r"obedient:m was asked\.",
        r"instructions: “Do as you are told\.”|history: ",
        r"tools it could call: book, form, sure",
        r"It replied with a call: book\(city=\"Porto\"\)\.",
        r"The rule careful wanted a person to decide about the call",
        r"careful asked a person: “Book a room in Porto\?”",
        r"The person answered: yes, “fine” \(by boss\)\.",
        r"book\(city=\"Porto\"\) ran\.",
        r"book returned booked Porto",
        r"obedient:m was asked again, now with what came of book\.",
        r"It replied “I read: booked Porto”\.",
        r"That was said: “I read: booked Porto”",
    ]
    at = 0
    for pattern in expected:
        found = re.compile(pattern, re.MULTILINE).search(ran.out, at)
        assert found is not None, (pattern, ran.out)
        at = found.end()


def test_why_tells_nothing_that_came_later(store: Path, cli: Cli) -> None:
    """What a rule decided about a call had no part in the request that led to the call."""
    entries = entries_of(store)
    paused = next(e for e in entries if kind_of(e.body) == "turn.paused")
    asked = next(e.seq for e in entries if e.turn == paused.turn and kind_of(e.body) == "model.requested")
    told = [
        int(seq) for seq in re.findall(r"^ *(\d+)  ", cli("record", "why", store, "ana", str(asked)).out, re.MULTILINE)
    ]
    assert told[-1] == asked
    assert told == sorted(told)


def test_why_takes_last_a_number_or_nothing(store: Path, cli: Cli, exported: Path) -> None:
    """In a record file the session is left out, and a number is an entry."""
    last = cli("record", "why", store, "ana", "last").out
    assert cli("record", "why", store, "ana").out == last
    assert cli("record", "why", exported, "last").out == last
    assert cli("record", "why", exported).out == last
    assert cli("record", "why", exported, "1").out.startswith("Why turn.input (1)")


async def test_why_tells_what_a_request_showed_besides_the_conversation() -> None:
    """What a memory, documents or a window put in is quoted under its writer, and is no unit of the history."""
    corpus = await Corpus.of([Document("house.md", "Refunds take ten days.")])
    agent: Agent[Any, Any] = Agent(ScriptedModel("Ten days."), features=[Retrieve(corpus)])
    result = await agent.turn("How long do refunds take?")
    record: Record[None] = Record(result.entries, lambda _: None)
    told = "\n".join(why_lines(record, last_answer(record) or 0, Screen()))
    assert re.search(r"^ +history: 1 unit$", told, re.MULTILINE)
    assert re.search(r"^ +retrieve: “\[Sources\].*Refunds take ten days\.", told, re.MULTILINE)


# ---- replay ----------------------------------------------------------------------------------------------------------


def test_replay_shows_the_conversation_as_it_unfolds(store: Path, cli: Cli, exported: Path) -> None:
    """Messages, calls with their results, questions, interruptions; and whether it is what is stored."""
    for source in ((store, "ana"), (exported,)):
        ran = cli("replay", *source)
        assert ran.code == 0, ran
        lines = ran.out.splitlines()
        assert lines[:4] == ["> hello", "Nothing to do.", "> book it", "? Book a room in Porto? (asked by careful)"]
        assert '  book(city="Porto"): returned booked Porto' in lines
        assert "  [interrupted]" in lines
        assert re.search(r"\d+ entries fold to \d+ messages: the (stored|exported) session", lines[-1])


def test_replay_travels_to_an_entry(store: Path, cli: Cli) -> None:
    """The state as it was then: the open question, the messages; as JSON too."""
    paused = next(e.seq for e in entries_of(store) if kind_of(e.body) == "turn.paused")
    ran = cli("replay", store, "ana", "--at", str(paused))
    assert ran.code == 0, ran
    assert f"after entry {paused}: 3 messages" in ran.out
    assert "open question, by careful: Book a room in Porto?" in ran.out
    assert "I read" not in ran.out
    state = json.loads(cli("replay", store, "ana", "--at", str(paused), "--json").out)
    assert state["pending"]["question"]["text"] == "Book a room in Porto?"
    early = cli("replay", store, "ana", "--at", str(paused - 2))
    assert "a turn is running" in early.out


# ---- what cannot be read ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "told", "hint"),
    [
        (("record", "show", "../missing"), 2, "there is no file", "name a store's file"),
        (("record", "show", "talk.dbx"), 2, "there is no file", "did you mean 'talk.db'?"),
        (("record", "show", "."), 2, "is a folder", "name the store's file"),
        (("record", "show", "empty"), 1, "is empty", "export"),
        (("record", "show", "words"), 1, "neither a store nor a record", "export"),
        (("record", "show", "other.db"), 1, "belongs to another application", "not touched|file of its own"),
        (("record", "show", "talk.db", "anna"), 2, "holds no session 'anna'", "did you mean 'ana'?"),
        (("record", "show", "talk.db", "zzz"), 2, "holds no session 'zzz'", "it holds 'ana', 'bo'"),
        (
            ("record", "show", "talk.db", "ana", "--tenant", "x"),
            2,
            "no session 'ana' of tenant 'x'",
            "leave --tenant out",
        ),
        (("record", "show", "talk.db", "an", "--tenant", "x"), 2, "no session 'an' of tenant 'x'", "onrecord chat"),
        (("record", "show", "talk.db", "ana", "--redact", "("), 2, "is no regular expression", "stand for itself"),
        (("record", "show", "talk.db", "ana", "--turns", "0"), 2, "expected a number", "--help"),
        (("record", "why", "talk.db", "ana", "999"), 2, "there is no entry 999", "it holds 0 to"),
        (("record", "why", "talk.db", "ana", "first"), 2, "'first' is no entry", "'last'"),
        (("record", "export", "ana.jsonl"), 2, "is no store", "copy it"),
        (("record", "show", ""), 2, "no file is named", "name a store's file"),
        (("record", "show", "db"), 2, "'db' is a folder", "the store's file inside it"),
        (("record", "show", "loose.db"), 2, "'loose.db' is a link that leads nowhere", "did you mean 'lose.db'?"),
        (("record", "show", "./loose.dbx"), 2, "there is no file", "did you mean 'lose.db'?"),
        (("record", "verify", "lose.db"), 2, "'lose.db' holds no sessions", "onrecord chat --store keeps sessions"),
        (("record", "why", "lose.db", "--tenant", "x"), 2, "holds no sessions of tenant 'x'", "onrecord chat --store"),
        (("record", "verify", "deep.jsonl"), 1, "line 2: a record line does not decode: nested too deeply", "changed"),
        (("record", "show", "deeper.jsonl"), 1, "neither a store nor a record", "export"),
        (("replay", "ana.jsonl", "--json"), 2, "onrecord replay: --json needs --at SEQ", "--help"),
        (("record", "show", "ana.jsonl", "bo"), 2, "holds no session 'bo'", "it holds 'ana'"),
        (("replay", "talk.db", "ana", "--at", "999"), 2, "there is no entry 999", "it holds 0 to"),
        (("record", "verify", "newer.jsonl"), 1, "has format 99", "update onrecord"),
        (("record", "verify", "header.jsonl"), 1, "line 1: its header does not decode", "export it again"),
        (("record", "verify", "broken.jsonl"), 1, "line 3: a record line does not decode", "changed"),
        (("record", "verify", "short.jsonl"), 1, "line 3: a record line does not decode: not valid JSON", "cut short"),
        (("record", "verify", "talk.db", "ana", "--agent", "nowhere.py"), 2, "there is no file", "MODULE:AGENT"),
    ],
)
def test_what_cannot_be_read_is_a_line_and_a_hint(
    store: Path, exported: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...], code: int, told: str, hint: str,
) -> None:  # fmt: skip
    """On stderr, with the exit code that the help describes, and never a traceback."""
    folder = store.parent
    monkeypatch.chdir(folder)
    (folder / "empty").touch()
    (folder / "words").write_text("not a record\n", encoding="utf-8")
    with sqlite3.connect(folder / "other.db") as other:
        other.execute("create table t(a)")
    other.close()
    (folder / "db").mkdir()
    (folder / "loose.db").symlink_to("nowhere")
    assert cli("chat", ROOT / "examples" / "hotel.py", "--store", "lose.db").code == 0
    lines = exported.read_text(encoding="utf-8").splitlines(keepends=True)
    deep = '{"a":' + "[" * 9000 + "]" * 9000 + "}\n"
    (folder / "deep.jsonl").write_text(lines[0] + deep, encoding="utf-8")
    (folder / "deeper.jsonl").write_text(deep, encoding="utf-8")
    (folder / "newer.jsonl").write_text(lines[0].replace('"format":1', '"format":99'), encoding="utf-8")
    (folder / "header.jsonl").write_text('{"onrecord":"record","format":1}\n', encoding="utf-8")
    (folder / "broken.jsonl").write_text("".join([*lines[:2], "[1]\n", *lines[3:]]), encoding="utf-8")
    (folder / "short.jsonl").write_text("".join(lines[:2]) + lines[2][:30], encoding="utf-8")
    ran = cli(*arguments)
    assert ran.code == code, ran
    assert told in ran.err, ran
    assert re.search(hint, ran.err), ran
    assert len(ran.err.splitlines()) == 2, ran
    assert "Traceback" not in ran.err


def test_reading_a_store_does_not_make_one(tmp_path: Path, cli: Cli) -> None:
    """A wrong path is told; no file appears there."""
    assert cli("record", "verify", tmp_path / "new.db", "x").code == 2
    assert list(tmp_path.iterdir()) == []


def test_rules_and_retries_and_the_rest_have_words() -> None:
    """A line and a sentence for what a rule did to an answer, and for a call of a tool that is not there."""

    @on_output
    async def shorter(turn: Any, answer: Answer) -> Any:
        return Revise("shorter, please") if len(answer.text) > 6 else Allow()

    agent: Agent[Any, Any] = Agent(
        ScriptedModel([call("nothing")], "Much too long.", "Short."), tools=[tool()], features=[shorter]
    )
    result = asyncio.run(agent.turn("hi", session="s", effects=FakeEffects()))
    text = "\n".join(turn_lines(result.entries, Screen()))
    assert "shorter: revise at output, shorter, please" in text
    assert "nothing absent" in text
    record: Record[None] = Record(result.entries, lambda _: None)
    told = "\n".join(why_lines(record, last_answer(record) or 0, Screen()))
    assert "The rule shorter sent back the answer: shorter, please." in told
    assert "nothing is not there, or found nothing:" in told


def test_what_was_recalled_for_a_request_is_told() -> None:
    """With its words, once; it is no unit of the conversation."""
    passage = Passage(id="rules#1", document="rules", text="Refunds take ten days.", start=0, stop=22)
    agent: Agent[Any, Any] = Agent(
        ScriptedModel([call("one")], "Ten days."), tools=[tool("one")], features=[Retrieve(Corpus([passage]))]
    )
    result = asyncio.run(agent.turn("refunds?", session="s", effects=FakeEffects()))
    record: Record[None] = Record(result.entries, lambda _: None)
    told = "\n".join(why_lines(record, last_answer(record) or 0, Screen(), whole=True))
    assert told.count('<source id="rules#1"> Refunds take ten days. </source>') == 1
    assert (told.count("retrieve: as before"), told.count("history: 1 unit\n")) == (1, 1)
    assert "scripted:script, 0 pieces, 1 unit, 1 insert" in "\n".join(turn_lines(result.entries, Screen()))


def test_each_request_is_told_with_what_is_new_to_it() -> None:
    """Results once, by the request that first had them; a text once, then as before."""
    agent: Agent[Any, Any] = Agent(
        ScriptedModel([call("one")], [call("two")], "Done."), tools=[tool("one"), tool("two")], instructions="Be brief."
    )
    result = asyncio.run(agent.turn("hi", session="s", effects=FakeEffects()))
    record: Record[None] = Record(result.entries, lambda _: None)
    told = "\n".join(why_lines(record, last_answer(record) or 0, Screen()))
    assert told.count("asked again, now with what came of one.") == 1
    assert told.count("asked again, now with what came of two.") == 1
    assert (told.count("instructions: “Be brief.”"), told.count("instructions: as before")) == (1, 2)
