"""Redaction: the record keeps everything; what leaves it does not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Image, Text
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Input, Said
from onrecord.conversation.messages import Round
from onrecord.conversation.transcript import messages_from
from onrecord.conversation.usage import Usage
from onrecord.errors import ConfigurationError, FeatureConflict, MessageDenied
from onrecord.governance import Redaction, after_tool, before_tool, on_input, on_output
from onrecord.jsonio import loads
from onrecord.record.entry import Entry, UnknownBody
from onrecord.record.jsonl import EntryCodec
from onrecord.record.kinds import DataPatched, ToolReturned, ToolStarted, TurnInput, TurnPaused, VerdictFiled
from onrecord.record.leaving import body_leaving, leaving
from onrecord.session import refold
from onrecord.session.history import edit_result, import_messages
from onrecord.session.session import Session
from onrecord.testing import ScriptedModel, call
from onrecord.turn.moments import ALLOW, Allow, Answer, Deny, Returned, Watch
from onrecord.turn.turn import Turn
from tests.prompt.windows import looked
from tests.turn.acting import Result, bodies, kinds, tool, turn
from tests.turn.pausing.asking import answered, asks, sizes

pytestmark = pytest.mark.unit

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
CARD = re.compile(r"\b\d{4} \d{4}\b")


@on_input
def masked(turn: Turn, given: Input) -> Allow[Input]:
    """Masks in a message."""
    if isinstance(given, Said) and isinstance(given.content, str) and "ssn" in given.content:
        return Allow(replace(given, content=given.content.replace("ssn 1", "ssn [x]")), "masked")
    return ALLOW


@after_tool
def hidden(turn: Turn, returned: Returned) -> Allow[Returned]:
    """Hides what a tool said."""
    return Allow(replace(returned, content=(Text("hidden"),)), "hidden")


@on_output
def shorter(turn: Turn, answer: Answer) -> Allow[Answer]:
    """Rewrites an answer."""
    return Allow(replace(answer, text="Short."), "shortened")


async def acted(*features: Any, said: str = "my ssn 1", **given: Any) -> tuple[Result, list[Entry]]:
    """One turn with a call, and what a watcher saw of it."""
    seen: list[Entry] = []
    model = ScriptedModel([call("pay", card="1234 5678", to="Ana")], "Paid from 1234 5678.")
    pay = tool("pay", lambda *_: {"card": "1234 5678", "ok": True})
    agent: Agent[Any, Any] = Agent(model, tools=[pay], features=[*features, Watch(seen.append)])
    return await turn(agent, said, **given), seen


def text_of(entries: list[Entry]) -> str:
    """All there is in entries."""
    return "".join(msgspec.json.encode(entry).decode() for entry in entries)


async def test_verdicts_keep_what_stood_before_and_after_in_the_record_alone() -> None:
    """As text, or JSON; a watcher and an export get rule, reason and digests."""
    result, seen = await acted(masked, hidden, shorter)
    held = [(v.moment, v.before_text, v.after_text) for v in bodies(result, VerdictFiled)]
    assert [(moment, "ssn 1" in before, "ssn [x]" in after) for moment, before, after in held] == [
        ("input", True, True), ("after_tool", False, False), ("output", False, False),
    ]  # fmt: skip
    assert "1234 5678" in held[1][1]
    assert json.loads(held[1][2])[0]["text"] == "hidden"
    assert held[2][1:] == ("Paid from 1234 5678.", "Short.")
    assert [entry.seq for entry in seen] == [entry.seq for entry in result.entries]
    left = [entry.body for entry in seen if isinstance(entry.body, VerdictFiled)]
    assert [(v.before_text, v.after_text, bool(v.before), bool(v.after)) for v in left] == [("", "", True, True)] * 3
    assert [leaving(entry) for entry in result.entries] == seen
    assert "ssn 1" not in repr(bodies(result, VerdictFiled))


async def test_a_denial_keeps_what_was_denied_and_its_error_does_not() -> None:
    """What an auditor needs is on the record; what reaches a caller or a log never holds it."""
    denies = on_input(lambda *_: Deny("not here"))
    with pytest.raises(MessageDenied) as refused:
        await acted(denies, said="canary")
    result = refused.value.result
    assert result is not None
    assert "canary" in bodies(result, VerdictFiled)[0].before_text
    assert "canary" not in f"{refused.value!r} {refused.value} {refused.value.hint}"


@pytest.mark.parametrize("make", [on_input, before_tool, after_tool, on_output])
async def test_a_rule_about_secrets_keeps_no_texts(make: Any) -> None:
    """Its digests still prove what it did."""
    seen: list[str] = []

    def rule(turn: Turn, judged: Any) -> Allow[Any] | Deny:
        if make is before_tool:
            return Allow({**judged.args, "card": "0"}, "masked")
        if isinstance(judged, Said):
            return Allow(replace(judged, content="hello"), "masked")
        if isinstance(judged, Returned):
            return Allow(replace(judged, content=(Text("hidden"),)), "masked")
        return Allow(replace(judged, text="Short."), "masked") if isinstance(judged, Answer) else ALLOW

    result, _ = await acted(make(keeps_text=False)(rule))
    (verdict,) = bodies(result, VerdictFiled)
    assert (verdict.why, verdict.before_text, verdict.after_text) == ("masked", "", "")
    assert verdict.before != verdict.after
    assert seen == []


async def test_patterns_and_names_are_taken_out_of_all_that_leaves() -> None:
    """Of arguments, results, answers and messages; the record, and so the session, keeps all of it."""
    result, seen = await acted(Redaction(patterns=[CARD, r"ssn \d"], names=["TO"]))
    assert "1234 5678" in text_of(list(result.entries))
    left = text_of(seen)
    for canary in ("1234 5678", "ssn 1", "Ana"):
        assert canary not in left
    (started,) = [entry.body for entry in seen if isinstance(entry.body, ToolStarted)]
    assert started.args == {"card": "[redacted]", "to": "[redacted]"}
    assert [entry.seq for entry in seen] == [entry.seq for entry in result.entries]


async def test_texts_of_verdicts_leave_by_no_redaction() -> None:
    """Called by hand, for an export of ones own, it takes them out whatever it is set to."""
    result, _ = await acted(masked)
    (entry,) = [entry for entry in result.entries if isinstance(entry.body, VerdictFiled)]
    leaves = Redaction(patterns=["xyz"])(entry).body
    assert isinstance(leaves, VerdictFiled)
    assert (leaves.why, leaves.before_text, leaves.after_text, bool(leaves.before)) == ("masked", "", "", True)


async def test_texts_may_go_altogether() -> None:
    """What is left says what happened: kinds, tools, counts, ids; and it can be read again."""
    redaction = Redaction(texts=False, word="-")
    result, seen = await acted(redaction)
    left = text_of(seen)
    for canary in ("1234", "ssn", "Paid", "Ana"):
        assert canary not in left
    assert [entry.body.name for entry in seen if isinstance(entry.body, ToolStarted)] == ["pay"]
    codec = EntryCodec()
    assert list(codec.read(codec.lines(seen))) == seen
    assert [redaction(entry) for entry in result.entries] == seen


async def test_what_is_redacted_still_folds() -> None:
    """Ids and names stay, over a pause as well: what was done is kept as bytes, and is redacted there too."""
    redaction = Redaction(patterns=["canary"])
    agent: Agent[Any, Any] = Agent(
        ScriptedModel([call("form", size="canary"), call("look")], "canary"),
        tools=[tool("form", asks("canary?")), tool("look", lambda *_: "canary", read_only=True)],
        features=[redaction],
    )
    paused = await turn(agent, "canary")
    done = await answered(agent, paused, value="canary")
    entries = [redaction(entry) for entry in (*paused.entries, *done.entries)]
    assert "canary" not in text_of(entries)
    assert done.session is not None
    told = refold(done.session.key, entries, digest_key=done.session.digest_key)
    assert [m.id for m in told.conversation.messages] == [m.id for m in done.session.conversation.messages]


async def test_a_history_that_was_changed_by_hand_is_redacted_and_still_folds() -> None:
    """What was imported, and a result that was put in the place of another: their values are JSON of types of ours."""
    redaction = Redaction(patterns=["canary"], names=["card"])
    held: list[dict[str, Any]] = [{"role": "user", "content": "canary"}, *looked("c1", '{"card": "4111"}')]
    messages = messages_from([*held, {"role": "assistant", "content": "ok"}])
    first = import_messages(Session(key=SessionKey("s")), messages, by="t", at=AT)
    round_ = next(unit for unit in first.session.conversation.units if isinstance(unit, Round))
    message = first.session.conversation.messages[-1].id
    second = edit_result(first.session, message, round_.calls[0].id, (Text("a canary"),), by="t", at=AT)
    entries = [*first.entries, *second.entries]
    left = [redaction(entry) for entry in entries]
    assert all(word in text_of(entries) for word in ("canary", "4111"))
    assert not any(word in text_of(left) for word in ("canary", "4111"))
    told = refold(SessionKey("s"), left, digest_key=second.session.digest_key)
    assert [m.id for m in told.conversation.messages] == [m.id for m in second.session.conversation.messages]


async def test_what_need_not_change_is_the_same_entry() -> None:
    """Nothing is copied for nothing."""
    redaction = Redaction(patterns=["canary"], media=True)
    result, seen = await acted(redaction)
    assert all(one is other for one, other in zip(result.entries, seen, strict=True))


async def test_pictures_leave_without_their_bytes() -> None:
    """Unless it says otherwise."""
    said: Any = Said((Image(data=b"canary", media="image/png"), Text("look")))
    for redaction, size in ((Redaction(), 0), (Redaction(media=True, patterns=["x"]), 6)):
        _, seen = await acted(redaction, said=said)
        (given,) = [entry.body.input for entry in seen if isinstance(entry.body, TurnInput)]
        assert isinstance(given, Said)
        picture: Any = given.content[0]
        assert len(picture.data) == size


async def test_json_in_a_text_has_names_too() -> None:
    """Arguments as a model wrote them, and results; what only looks like JSON is text."""
    redaction = Redaction(names=["card"], patterns=["x"])
    texts: Mapping[str, str] = {
        '{"card":"1","b":[{"card":2}]}': '{"card":"[redacted]","b":[{"card":"[redacted]"}]}',
        "{cards: 1x}": "{cards: 1[redacted]}",
        '{"b":1}': '{"b":1}',
        '{"a":"x","a":"y","b":"\\n"}': '{"a":"[redacted]","a":"y","b":"\\n"}',
    }
    for text, left in texts.items():
        result, _ = await acted(said=text)
        entry = next(e for e in result.entries if isinstance(e.body, TurnInput))
        body = redaction(entry).body
        assert isinstance(body, TurnInput)
        assert isinstance(body.input, Said)
        assert body.input.content == left


class Broken(Redaction, frozen=True, kw_only=True):
    """Cannot redact anything."""

    def __call__(self, entry: Entry) -> Entry:
        raise RuntimeError("canary")


async def test_what_cannot_be_redacted_is_shown_to_nobody() -> None:
    """The turn goes on, and the record says that it failed."""
    result, seen = await acted(Broken())
    assert (seen, result.status) == ([], "answered")
    assert "note" in kinds(result)
    assert "RuntimeError: canary" not in text_of(list(result.entries))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"media": True}, "takes nothing out"),
        ({"patterns": ["("]}, "no regular expression"),
        ({"patterns": "a"}, "take several"),
        ({"names": "a"}, "take several"),
        ({"names": ["a", "\u200b"]}, "no letters"),
        ({"patterns": [re.compile(b"a")]}, "about bytes"),
    ],
)
def test_a_redaction_that_does_nothing_is_refused(given: dict[str, Any], problem: str) -> None:
    """When it is made; and one agent has one."""
    with pytest.raises(ConfigurationError, match=problem):
        Redaction(**given)
    with pytest.raises((ConfigurationError, FeatureConflict)):
        Agent(ScriptedModel(), features=[Redaction(), Redaction(texts=False)])


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        ('{"city":"Rome","card":"4111 x"', '{"city":"Rome","card":"[x]"'),
        ('{"city":"Rome","card": "4111', '{"city":"Rome","card": "[x]"'),
        (r'{"card":"4\"11","city":"Ro', '{"card":"[x]","city":"Ro'),
        ('{"card":4111,"city":"Ro', '{"card":"[x]","city":"Ro'),
        ('{"Card":{"number":"4111","more":[1', '{"Card":"[x]"'),
        ("[Context] no card at hand", "[Context] no card at hand"),
    ],
)
def test_json_that_was_cut_short_has_names_too(text: str, leaves: str) -> None:
    """A result that a ceiling cut is no JSON any more, and what has to go may stand in what is left of it."""
    redaction = Redaction(names=["card"], word="[x]")
    held = TurnInput(input=Said(text), now=AT)
    body = body_leaving(held, redaction)
    assert isinstance(body, TurnInput)
    assert isinstance(body.input, Said)
    assert body.input.content == leaves


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        ("{'city': 'Rome', 'card': '4111 x'}", "{'city': 'Rome', 'card': '[x]'}"),
        ("{'card': \"it's\", 'n': 1}", "{'card': '[x]', 'n': 1}"),
        ("{'card': 4111, 'n': 1}", "{'card': '[x]', 'n': 1}"),
        ("{'card': ['4111'], 'n': 1}", "{'card': '[x]'"),
        ("Payment(card='41 11', euros=3)", "Payment(card=[x], euros=3)"),
        ("pay?a=1&card=4111&b=2", "pay?a=1&card=[x]&b=2"),
        ("CARD=4111\nCITY=Rome", "CARD=[x]\nCITY=Rome"),
        ("city: Rome\n  card: 41 11\nn: 1", "city: Rome\n  card: [x]\nn: 1"),
        ('Paid: {"card":"4111","n":1}', 'Paid: {"card":"[x]","n":1}'),
        ("<pay><card kind='v'>4111</card></pay>", "<pay><card kind='v'>[x]</card></pay>"),
        (r'"{\"card\":\"4111\"}"', r'"{\"card\":\"[x]\"}"'),
        ("my card is lost, and postcard=nice", "my card is lost, and postcard=nice"),
    ],
)
def test_values_behind_names_go_however_a_text_writes_them(text: str, leaves: str) -> None:
    """A tool may return what `str` made of a value, a form or a header: that is not JSON, and as secret."""
    assert _leaves(Redaction(names=["card"], word="[x]"), text) == leaves


def test_numbers_and_names_of_json_have_patterns_too() -> None:
    """An account may be a number, and an address the name that something stands under; code's own names stay."""
    redaction = Redaction(patterns=[r"\b4111\d*\b", r"\w+@\w+"], word="[x]")
    held = DataPatched(
        patch={"ana@home": {"n": 41112, "f": 4111.5, "some": [41113, 5, True]}, "left": 4}, drop=("a@b",)
    )
    body = body_leaving(held, redaction)
    assert isinstance(body, DataPatched)
    assert body.patch == {"[x]": {"n": "[x]", "f": "[x]", "some": ["[x]", 5, True]}, "left": 4}
    assert _leaves(redaction, r'{"ana@home":"\u0041","n":41112}') == '{"[x]":"A","n":"[x]"}'


def _leaves(redaction: Redaction, text: str) -> Any:
    """A message as it leaves."""
    held = TurnInput(input=Said(text), now=AT)
    body = body_leaving(held, redaction)
    assert isinstance(body, TurnInput)
    assert isinstance(body.input, Said)
    return body.input.content


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        (r'{"to":"Jos\u00e9","n":1}', '{"to":"[x]","n":1}'),
        (r' {"to":"Jos\u00e9"', ' {"to":"[x]"'),
        (r'{"c\u0061rd":"4111"}', '{"card":"[x]"}'),
        (r'{"c\u0061rd":"4111", "to', '{"card":"[x]", "to'),
        (r'{"to":"\ud83d\ude00"}', '{"to":"[x]"}'),
        (r'{"to":"\ud83d\ude00', '{"to":"[x]'),
        (r'{"to":"An\u0061"}', r'{"to":"An\u0061"}'),
        (r'{"to":"An\u0061', r'{"to":"An\u0061'),
    ],
)
def test_what_json_writes_by_numbers_is_found_too(text: str, leaves: str) -> None:
    """Many libraries escape every letter beyond ASCII, and a model may escape any."""
    redaction = Redaction(names=["card"], patterns=["José", "\N{GRINNING FACE}"], word="[x]")
    held = TurnInput(input=Said(text), now=AT)
    body = body_leaving(held, redaction)
    assert isinstance(body, TurnInput)
    assert isinstance(body.input, Said)
    assert body.input.content == leaves


async def test_digests_of_what_was_redacted_cannot_be_tried_out() -> None:
    """The key of an effect is a digest of its arguments that anybody can make; it goes where they go."""
    model = ScriptedModel([call("look"), call("form", card="1234")], "x")
    looks = tool("look", lambda *_: "x", read_only=True)
    agent: Agent[Any, Any] = Agent(model, tools=[tool("form", sizes), looks])
    first = await turn(agent, "x")
    second = await answered(agent, first, value="canary")
    whole, redaction = [*first.entries, *second.entries], Redaction(names=["card"], patterns=["canary"])
    left = [redaction(entry) for entry in whole]
    told = [re.findall(r"/(form|look):[0-9a-f]{24}", text_of(entries)) for entries in (whole, left)]
    assert ({*told[0]}, {*told[1]}) == ({"form", "look"}, {"look"})  # nothing was taken out of the other call
    asked, shown = (
        [len(e.body.pending.done) for e in entries if isinstance(e.body, TurnPaused)] for entries in (whole, left)
    )
    assert asked == shown == [0, 1]


def test_a_body_that_nobody_declares_is_redacted_and_still_says_its_kind() -> None:
    """Exports and the command line meet bodies of features that they do not know."""
    raw = Raw(b'{"kind":"desk.canary","words":"canary 1","held":{"card":"2"},"n":3}')
    entry = Entry(
        seq=0, n=0, turn="t", take=0, where="main", at=AT, cause=None, body=UnknownBody(was="desk.canary", raw=raw)
    )
    for redaction, words in (
        (Redaction(patterns=["canary"], names=["card"], word="-"), "- 1"),
        (Redaction(texts=False, word="-"), "-"),
    ):
        body = redaction(entry).body
        assert isinstance(body, UnknownBody)
        assert loads(bytes(body.raw)) == {"kind": "desk.canary", "words": words, "held": {"card": "-"}, "n": 3}
        assert EntryCodec().decode(EntryCodec().encode(redaction(entry))).body == body
    assert Redaction(patterns=["none"])(entry) is entry


def test_names_that_are_keys_stay() -> None:
    """Whoever reads what a sub-agent used asks by the names of models; the values beside them are looked at."""
    used = {"scripted:script": Usage(input_tokens=1)}
    body = ToolReturned(call="c", round="r", name="ask", status="returned", result=(Text("script"),), uses=used)
    left = body_leaving(body, Redaction(patterns=["script"]))
    assert isinstance(left, ToolReturned)
    assert (left.uses, left.result) == (used, (Text("[redacted]"),))
