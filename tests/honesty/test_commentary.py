"""Commentary: what is said of entries, in whose words, and what is never said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, cast, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.inputs import Said
from onrecord.conversation.outgoing import Outcome
from onrecord.errors import ConfigurationError
from onrecord.governance.redaction import Redaction
from onrecord.governance.rules import after_tool, before_tool
from onrecord.honesty import Commentary
from onrecord.honesty.commentary import Language
from onrecord.honesty.entry_facts import FACTS, VARIANTS
from onrecord.honesty.fact_readers import fields_of
from onrecord.honesty.languages import english, portuguese, spanish
from onrecord.honesty.templates import Teller
from onrecord.jsonio import dumps
from onrecord.record import kinds
from onrecord.record.entry import Body, Entry, UnknownBody, kind_of
from onrecord.record.jsonl import EntryCodec
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.testing.conformance.feature import InertFeatureConformance, MakeFeature
from onrecord.turn.moments import Allow, Deny
from tests.strategies import bodies as core_bodies
from tests.strategies import of
from tests.turn.acting import tool, turn

pytestmark = pytest.mark.unit

LANGUAGES: tuple[Language, ...] = ("en", "pt", "es")
MODULES = (
    "flows.entries", "governance.credentials", "governance.ledger", "memory.recalled", "prompt.artifact_entries",
    "prompt.buckets", "prompt.window.evicted", "skills.skill_entries",
)  # fmt: skip


def declared(base: type[Body]) -> Iterator[type[Body]]:
    """Every kind of entry that the library declares beside the core's."""
    for cls in base.__subclasses__():
        if cls.__module__.startswith("onrecord.") and not cls.__module__.startswith("onrecord.testing"):
            yield cls
        yield from declared(cls)


for module in MODULES:
    import_module(f"onrecord.{module}")
FEATURE_BODIES: tuple[type[Body], ...] = tuple(
    dict.fromkeys(cls for cls in declared(Body) if cls not in {*kinds.CORE_KINDS, UnknownBody})
)
SILENT = {"turn.opened", "round.settled", "piece.filed", "run.moved", "run.released", "run.sent_once", "run.held",
          "cost.tick", "window.stayed", "context.snapshot", "tools.effect"}  # fmt: skip
"""Kinds of which nothing is said unless a template is given: they tell people nothing new."""


def entry(body: Body) -> Entry:
    """An entry with this body."""
    at = FakeEffects().now()
    return Entry(seq=0, n=0, turn="t", take=1, where="main", at=at, cause=None, body=body)


async def talked() -> tuple[Entry, ...]:
    """A turn with two calls, one of them denied, and an answer."""

    @before_tool
    async def no_lund(turn: Any, call: Any) -> Any:
        return Deny("not Lund") if call.args.get("city") == "Lund" else Allow()

    script = [call("look", city="Porto"), call("look", city="Lund")], "It rains."
    agent = Agent(ScriptedModel(*script), tools=[tool("look")], features=[no_lund])
    return (await turn(agent, "weather?")).entries


# ---- what is said ----------------------------------------------------------------------------------------------------


async def test_a_turn_is_told_in_order() -> None:
    """Who was asked, what ran, what a rule decided, and that there was an answer."""
    assert list(Commentary(app="Vera").sentences(await talked())) == [
        "Vera got a message.",
        "scripted:script was asked.",
        "It asked for look.",
        "look ran.",
        "look returned.",
        "The rule no_lund denied the call.",
        "look was denied.",
        "scripted:script was asked again.",
        "It replied.",
        "Vera answered.",
    ]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_same_turn_is_told_in_every_language(language: Language) -> None:
    """As many sentences, none of them English where it should not be."""
    entries = await talked()
    told = list(Commentary(language=language).sentences(entries))
    assert len(told) == len(list(Commentary().sentences(entries)))
    if language != "en":
        assert set(told).isdisjoint(Commentary().sentences(entries))


def test_sentences_are_a_function_of_the_entry() -> None:
    """One entry alone is told as it is told among others."""
    commentary = Commentary()
    said = entry(kinds.TextSaid(key="k", text="hi"))
    assert commentary.sentence(said) == next(commentary.sentences([said])) == "Chatbot answered."


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", [k for k in FACTS if k not in SILENT])
def test_every_kind_has_a_sentence(language: Language, kind: str) -> None:
    """Of the core, of flows, of budgets and of windows, in every language."""
    module = {"en": english, "pt": portuguese, "es": spanish}[language]
    assert module.TEMPLATES[kind]
    assert kind in {str(b.__struct_config__.tag) for b in (*kinds.CORE_KINDS, *FEATURE_BODIES)}


def test_every_kind_of_the_core_and_its_features_has_facts() -> None:
    """A kind that comes later fails here until somebody decides what is said of it, in three languages."""
    assert {str(b.__struct_config__.tag) for b in (*kinds.CORE_KINDS, *FEATURE_BODIES)} == set(FACTS)


@pytest.mark.parametrize("module", [portuguese, spanish])
def test_languages_have_the_same_keys(module: Any) -> None:
    """What is silent in one is silent in all; the status too."""
    assert set(module.TEMPLATES) == set(english.TEMPLATES)
    assert {k for k, v in module.TEMPLATES.items() if not v} == {k for k, v in english.TEMPLATES.items() if not v}
    assert set(module.STATUS) == set(english.STATUS)
    assert set(english.WORDS) <= set(module.WORDS) | {"call.not_run"}


def test_what_a_caller_does_not_know_gets_nothing() -> None:
    """A kind that nothing here declares is passed over, also when it was read from a file."""
    assert Commentary().sentence(entry(UnknownBody(was="other.kind", raw=Raw(b'{"a":1}')))) == ""


@pytest.mark.parametrize("cls", FEATURE_BODIES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_record_reads_the_same_without_the_feature_that_filed_it(cls: type[Body], data: Any) -> None:
    """Entries of features are told by their fields, decoded or not."""
    body = data.draw(of(cls))
    line = b"".join(EntryCodec(FEATURE_BODIES).lines([entry(body)]))
    (read,) = EntryCodec().read([line])
    assert isinstance(read.body, UnknownBody)
    for language in LANGUAGES:
        commentary = Commentary(language=language)
        assert commentary.sentence(read) == commentary.sentence(entry(body))


@settings(max_examples=150, deadline=None)
@given(body=core_bodies | st.one_of([of(cls) for cls in FEATURE_BODIES]))
def test_any_entry_is_told_in_every_language(body: Body) -> None:
    """Whatever it holds, every template of its kind gives a text in one line, and no placeholder is left."""
    for language, module in (("en", english), ("pt", portuguese), ("es", spanish)):
        told = Commentary(language=cast(Language, language)).sentence(entry(body))
        assert "\n" not in told
        if "{{" not in dumps(str(body)).decode():
            assert "{{" not in told
        assert bool(told) == bool(module.TEMPLATES.get(_key(body), module.TEMPLATES[kind_of(body)]))


def _key(body: Body) -> str:
    choose = VARIANTS.get(kind_of(body))
    return f"{kind_of(body)}.{choose(body)}" if choose else kind_of(body)


@pytest.mark.parametrize("cls", [*kinds.CORE_KINDS, *FEATURE_BODIES])
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_every_fact_of_any_entry_is_a_text(cls: type[Body], data: Any) -> None:
    """A template that names all facts of a kind never fails, and shows no more than their beginnings."""
    body = data.draw(of(cls))
    names = FACTS[kind_of(body)]
    every = " ".join(f"{{{{{name}}}}}" for name in names)
    whole = Teller({kind_of(body): f"told {every}"}, english.WORDS, app="x", limit=0).told(body)
    short = Teller({kind_of(body): f"told {every}"}, english.WORDS, app="x").told(body)
    assert whole.startswith("told")
    assert len(short) <= 5 + 121 * len(names)


# ---- what is not said ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
async def test_no_content_is_shown_unless_a_template_names_it(language: Language) -> None:
    """Neither words of people or models nor arguments, results, reasons, data and context."""

    @after_tool
    async def hides(turn: Any, returned: Any) -> Any:
        return Deny("canary: why")

    script = [call("look", city="canary")], "canary"
    agent = Agent(
        ScriptedModel(*script), tools=[tool("look", lambda *_: "canary")], features=[hides], instructions="canary"
    )
    entries = (await turn(agent, "canary")).entries
    apart = [
        kinds.DataPatched(patch={"city": "canary"}),
        kinds.ContextAdded(content=(Text("canary"),)),
        kinds.Noted(by="x", text="canary"),
        kinds.OutcomeFiled(line=Outcome(kind="do", status="failed", message="canary", detail="canary")),
        kinds.Erased(was="said", why="canary", at=FakeEffects().now()),
    ]
    commentary = Commentary(language=language)
    told = [commentary.sentence(e) for e in (*entries, *map(entry, apart))]
    assert any(told)
    assert not [line for line in told if "canary" in line]


async def test_a_template_shows_what_it_names_cut_to_size() -> None:
    """One argument of a call, not the others; a long one says that it was cut."""
    started = kinds.ToolStarted(call="c", round="r", name="look", args={"city": "x" * 500, "pin": "1234"}, key="k")
    told = Commentary(templates={"tool.started": "Looking at {{args.city}} ({{args.none}})"}).sentence(entry(started))
    assert told.startswith("Looking at xxx")
    assert told.endswith("… ()")
    assert len(told) < 150
    assert "1234" not in told


def test_what_a_template_holds_besides_is_shown_as_it_is() -> None:
    """Signs of percent too, which no fact is put in place of; a NUL, which no screen shows, is left out."""
    started = kinds.ToolStarted(call="c", round="r", name="look", args={}, key="k")
    told = Commentary(templates={"tool.started": "100%\0 %s: {{tool_name}}"}).sentence(entry(started))
    assert told == "100% %s: look"


def test_what_a_fact_holds_is_never_read_as_a_template() -> None:
    """Braces and percent signs of content stand as they are."""
    commentary = Commentary(templates={"said": "100% {{text}}"})
    assert commentary.sentence(entry(kinds.TextSaid(key="k", text="{{app_name}} %s"))) == "100% {{app_name}} %s"


@pytest.mark.parametrize("language", get_args(Language))
def test_what_a_model_writes_does_not_steer_a_terminal(language: Language) -> None:
    """Models name the tools that they call, and sentences are printed: codes are shown, and not obeyed."""
    commentary = Commentary(language=language, status={"tool": "\x1b[1m{{tool_name}}\x1b[0m"})
    name = "pay\x1b[2J\x07\u202eyap\u2066\x9b31m"
    started = kinds.ToolStarted(call="c", round="r", name=name, args={}, key="k")
    assert r"pay\x1b[2J\x07\u202eyap\u2066\x9b31m" in commentary.sentence(entry(started))
    line = commentary.follow()
    line.see(entry(kinds.TurnOpened(input_kind="said", row="r", now=FakeEffects().now())))
    assert (
        line.see(entry(started)) == "\x1b[1mpay\\x1b[2J\\x07\\u202eyap\\u2066\\x9b31m\x1b[0m"
    )  # what the application wrote stays


# ---- templates -------------------------------------------------------------------------------------------------------


def test_182_a_name_stands_in_both_kinds_of_templates() -> None:
    """``{{app_name}}``, in commentary and status; Chatbot where nobody says; the one given to this Commentary."""
    templates, status = {"model.requested": "{{app_name}} thinks"}, {"idle": "{{app_name}} waits"}
    for commentary, name in (
        (Commentary(templates=templates, status=status), "Chatbot"),
        (Commentary(app="Acme Bot", templates=templates, status=status), "Acme Bot"),
    ):
        asked = kinds.ModelRequested(round="t/answer/r0", purpose="speak", model="m")
        assert commentary.sentence(entry(asked)) == f"{name} thinks"
        opened = kinds.TurnOpened(input_kind="said", row="r", now=FakeEffects().now())
        assert commentary.follow().see(entry(opened)) == f"{name} waits"


def test_183_a_template_replaces_one_and_leaves_the_others() -> None:
    """The message is shown where a template names it; every other key keeps what is shipped."""
    given = kinds.TurnInput(input=Said("hi"), now=FakeEffects().now())
    commentary = Commentary(templates={"turn.input.said": "You: {{user_prompt}}"})
    assert commentary.sentence(entry(given)) == "You: hi"
    said = entry(kinds.TextSaid(key="k", text="ho"))
    assert commentary.sentence(said) == Commentary().sentence(said)


def test_an_empty_template_says_nothing() -> None:
    """So a sentence can be left out."""
    assert list(Commentary(templates={"said": ""}).sentences([entry(kinds.TextSaid(key="k", text="hi"))])) == []


@pytest.mark.parametrize(
    ("given", "told", "hint"),
    [
        ({"templates": {"tool.begun": "x"}}, "no template 'tool.begun'", "did you mean"),
        ({"templates": {"tool.started": "{{tol_name}}"}}, "unknown fact 'tol_name'", "'tool_name'"),
        ({"templates": {"turn.input.said": "{{userPrompt}}"}}, "unknown fact 'userPrompt'", "'user_prompt'"),
        ({"templates": {"said": "{{args.city}}"}}, "unknown fact 'args.city'", "there are app_name, text, media"),
        ({"templates": {"said": "{{text"}}, "braces that name no fact", "{{tool_name}}"),
        ({"templates": {"said": 7}}, "is a text, not int", ""),
        ({"status": {"idles": "x"}}, "no status 'idles'", "'idle'"),
        ({"status": {"tool.": "x"}}, "names no tool", "tool.weather"),
        ({"status": {"idle": "{{partial}}"}}, "unknown fact 'partial'", "app_name"),
        ({"language": "pt-br"}, "no commentary in 'pt-br'", "en, pt, es"),
        ({"app": " "}, "the name that people know", ""),
    ],
)
def test_what_would_never_be_said_is_refused(given: dict[str, Any], told: str, hint: str) -> None:
    """While it is built, with the nearest right name."""
    with pytest.raises(ConfigurationError, match=re.escape(told)) as caught:
        Commentary(**given)
    assert hint in (caught.value.hint or "")


class Sold(Body, frozen=True, kw_only=True, tag="shop.sold"):
    """A kind of somebody's own."""

    what: str
    price: float


def test_kinds_of_your_own_are_told_by_their_fields() -> None:
    """Decoded or not; nothing is said of them without a template, and their facts are closed too."""
    sold = Sold(what="a lamp", price=12.5)
    commentary = Commentary(bodies=[Sold], templates={"shop.sold": "Sold {{what}} for {{price}}."})
    assert commentary.sentence(entry(sold)) == "Sold a lamp for 12.5."
    raw = UnknownBody(was="shop.sold", raw=Raw(b'{"kind":"shop.sold","what":"a lamp","price":12.5}'))
    assert commentary.sentence(entry(raw)) == "Sold a lamp for 12.5."
    assert Commentary(bodies=[Sold]).sentence(entry(sold)) == ""
    with pytest.raises(ConfigurationError, match="unknown fact 'prize'"):
        Commentary(bodies=[Sold], templates={"shop.sold": "{{prize}}"})
    assert set(fields_of(Sold)) == {"what", "price"}


# ---- as a feature ----------------------------------------------------------------------------------------------------


class TestInert(InertFeatureConformance):
    """It looks on: requests and records are those of an agent without it."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return lambda: Commentary(tell=lambda *_: None)


async def test_a_feature_tells_as_entries_are_filed() -> None:
    """The same sentences that the stored entries give afterwards."""
    told: list[tuple[str, int]] = []
    commentary = Commentary(tell=lambda sentence, entry: told.append((sentence, entry.n)))
    result = await turn(Agent(ScriptedModel([call("look")], "done"), tools=[tool("look")], features=[commentary]))
    assert [sentence for sentence, _ in told] == list(commentary.sentences(result.entries))
    assert [n for _, n in told] == sorted(n for _, n in told)


async def test_a_template_shows_a_redacted_entry_redacted() -> None:
    """What leaves the record may be read through a policy first, here as everywhere."""
    redaction = Redaction(patterns=["[0-9]{16}"])
    commentary = Commentary(templates={"said": "{{text}}"})
    said = entry(kinds.TextSaid(key="k", text="Card 4111111111111111."))
    assert "4111" not in commentary.sentence(redaction(said))
    assert "4111" in commentary.sentence(said)


async def test_a_listener_that_fails_ends_no_turn() -> None:
    """As with every watcher."""

    def fails(sentence: str, entry: Entry) -> None:
        raise ValueError(sentence)

    result = await turn(Agent(ScriptedModel("done"), features=[Commentary(tell=fails)]))
    assert result.text == "done"


def test_a_useless_feature_is_refused() -> None:
    """Nobody listens; or a status is about a tool that the agent does not have."""
    with pytest.raises(ConfigurationError, match="nobody is told"):
        Agent(ScriptedModel("x"), features=[Commentary()])
    status = {"tool.weathers": "Looking up the weather…"}
    with pytest.raises(ConfigurationError, match="a tool that the agent does not have") as caught:
        Agent(ScriptedModel("x"), tools=[tool("weather")], features=[Commentary(status=status, tell=lambda *_: None)])
    assert "'weather'" in (caught.value.hint or "")
