"""A request is rebuilt from the record, and whatever was tampered with is named."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.inputs import Said
from onrecord.errors import UsageError
from onrecord.jsonio import digest
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import ModelReplied, ModelRequested, PieceFiled, Receipt, TurnInput
from onrecord.record.record import Record
from onrecord.session import refold
from onrecord.session.session import KEPT_FILED, Session
from onrecord.testing import ScriptedModel, call
from onrecord.turn.instruction import Instruction
from onrecord.turn.moments import Hooks
from onrecord.turn.receipt import Rebuilt, rebuild
from tests.turn.acting import Named, Result, tool, turn

pytestmark = pytest.mark.unit


def record_of(results: list[Result]) -> Record[Session]:
    """The record of some turns of one session."""
    session = results[-1].session
    assert session is not None
    entries = [entry for result in results for entry in result.entries]
    return replayed(session, entries)


def replayed(session: Session, entries: list[Entry]) -> Record[Session]:
    """A record that folds without features."""
    return Record(entries, lambda part: refold(session.key, part, digest_key=session.digest_key))


def requests(record: Record[Session]) -> list[Entry]:
    """Its requests."""
    return [entry for entry in record if isinstance(entry.body, ModelRequested)]


async def talked() -> tuple[Session, list[Entry]]:
    """Two turns with tools, instructions and an output type."""
    model = ScriptedModel([call("look")], '{"a": 1}', '{"a": 2}')
    agent: Agent[Any, Any] = Agent(
        model, tools=[tool("look")], instructions="Be kind.", output=dict[str, int],
        features=[Named("manners", Hooks(instructions=(Instruction("Say please."),)))],
    )  # fmt: skip
    first = await turn(agent, "one", session="s")
    second = await turn(agent, "two", session=first.session)
    assert second.session is not None
    return second.session, [*first.entries, *second.entries]


async def test_a_request_is_rebuilt_exactly() -> None:
    """Prompt texts, units, tool definitions and the shape of the answer, each proved by its digest."""
    session, entries = await talked()
    record = replayed(session, entries)
    first, second, third = (rebuild(record, entry.seq) for entry in requests(record))
    assert [r.gaps for r in (first, second, third)] == [(), (), ()]
    assert [text for _, text in third.pieces] == ["Be kind.", "Say please."]
    assert [getattr(unit, "text", "") for unit in second.shown] == ["one", ""]
    assert [getattr(unit, "text", "") for unit in third.shown] == ["one", "", '{"a": 1}', "two"]
    assert '"name":"look"' in first.offers
    assert '"answer"' in first.shape


async def test_143_the_digest_on_the_receipt_is_the_digest_of_what_was_served() -> None:
    """Of every system text and every request alike, so that equal texts are one; no text, no digest (case 143).

    The original fixes the digest of one text. Ours are keyed per session: what is fixed is that they can be made again.
    """
    session, entries = await talked()
    record = replayed(session, entries)
    texts = {e.body.digest: e.body.text for e in entries if isinstance(e.body, PieceFiled)}
    marks = [[(p.source, p.digest) for p in e.body.receipt.pieces] for e in requests(record)]  # type: ignore[attr-defined]
    assert marks[0] == marks[1] == marks[2]
    for source, mark in marks[0]:
        served = {"instructions": "Be kind.", "instruction": "Say please."}[source]
        assert texts[mark] == served
        assert digest(served.encode(), key=session.digest_key) == mark
        assert digest(served.encode(), key="another") != mark
    bare = await turn(Agent(ScriptedModel("hi")), "one", session="s")
    assert [e.body.receipt.pieces for e in requests(record_of([bare]))] == [()]  # type: ignore[attr-defined]


async def test_143_a_record_without_its_beginning_has_a_gap() -> None:
    """What the request stood on cannot be made again, and is named instead of guessed (case 143)."""
    session, entries = await talked()
    cut = [entry for entry in entries if entry.turn != entries[0].turn]
    assert rebuild(replayed(session, cut), requests(replayed(session, cut))[0].seq).gaps != ()


async def test_texts_are_filed_once_per_session() -> None:
    """The second turn sends the same instructions, tools and shape, and files none of them again."""
    _, entries = await talked()
    filed = [e.body.source for e in entries if isinstance(e.body, PieceFiled)]
    assert filed == ["instructions", "instruction", "offers", "shape"]


async def test_a_text_that_a_long_session_forgot_is_filed_again() -> None:
    """A session remembers the last digests only; what it sends again after that is filed again, and proved."""
    numbers = iter(range(1000))
    agent = Agent(
        ScriptedModel(*["ok"] * 100), instructions=lambda _: f"This is turn {next(numbers) % (KEPT_FILED + 6)}."
    )
    results = [await turn(agent, "hi", session="s")]
    for _ in range(KEPT_FILED + 6):
        results.append(await turn(agent, "hi", session=results[-1].session))
    record = record_of(results)
    assert rebuild(record, requests(record)[-1].seq).gaps == ()
    assert [text for _, text in rebuild(record, requests(record)[-1].seq).pieces] == ["This is turn 0."]


Tamper = Callable[[Body], Body | None]


def of_text(body: Body) -> Body | None:
    """Other words where a text was filed."""
    return replace(body, text="Be rude.") if isinstance(body, PieceFiled) and body.source == "instructions" else None


def of_digest(body: Body) -> Body | None:
    """Another digest where a text was filed."""
    return replace(body, digest="0" * 24) if isinstance(body, PieceFiled) and body.source == "offers" else None


def of_message(body: Body) -> Body | None:
    """Other words of the person."""
    return replace(body, input=Said("another")) if isinstance(body, TurnInput) else None


def of_reply(body: Body) -> Body | None:
    """Other words of the model."""
    if not isinstance(body, ModelReplied) or not body.round.text:
        return None
    return replace(body, round=replace(body.round, content=(Text("another"),)))


def of_receipt(**fields: Any) -> Tamper:
    """A receipt that says something else."""

    def tamper(body: Body) -> Body | None:
        if not isinstance(body, ModelRequested) or not isinstance(body.receipt, Receipt):
            return None
        return replace(body, receipt=replace(body.receipt, **fields))

    return tamper


@pytest.mark.parametrize(
    ("tamper", "named"),
    [
        (of_text, "text filed at"),
        (of_digest, "offers"),
        (of_message, "units up to"),
        (of_reply, "units up to"),
        (of_receipt(units=9), "conversation"),
        (of_receipt(offers="1" * 24), "offers"),
        (of_receipt(shape="1" * 24), "shape"),
    ],
    ids=["text", "digest", "message", "reply", "count", "tools", "shape"],
)
async def test_what_was_tampered_with_is_named(tamper: Tamper, named: str) -> None:
    """One changed text, digest or unit anywhere before a request is a gap of that request, by name."""
    session, entries = await talked()
    last = max(e.seq for e in entries if isinstance(e.body, ModelRequested))
    changed = [replace(e, body=tamper(e.body) or e.body) for e in entries]
    assert changed != entries
    gaps = rebuild(replayed(session, changed), last).gaps
    assert any(gap.what.startswith(named) for gap in gaps), gaps
    assert all(gap.why for gap in gaps)


@pytest.mark.parametrize("left_out", [PieceFiled, TurnInput])
async def test_what_is_missing_is_named(left_out: type[Body]) -> None:
    """A record without some of its entries proves nothing of them."""
    session, entries = await talked()
    last = max(e.seq for e in entries if isinstance(e.body, ModelRequested))
    kept = [e for e in entries if not isinstance(e.body, left_out)]
    assert rebuild(replayed(session, kept), last).gaps


async def test_another_key_proves_nothing() -> None:
    """Digests are keyed by the session: without its key nobody can test guesses against them."""
    session, entries = await talked()
    last = max(e.seq for e in entries if isinstance(e.body, ModelRequested))
    gaps = rebuild(replayed(replace(session, digest_key="other"), entries), last).gaps
    assert {g.what.split(" ")[0] for g in gaps} >= {"text", "units", "piece", "offers"}


async def test_only_requests_can_be_rebuilt() -> None:
    """Another entry is refused, with what to look for."""
    session, entries = await talked()
    with pytest.raises(UsageError, match="no request") as told:
        rebuild(replayed(session, entries), 0)
    assert "model.requested" in told.value.hint


async def test_a_request_over_a_callers_history_says_what_it_cannot_prove() -> None:
    """Its messages are in no entry."""
    agent = Agent(ScriptedModel("ok"))
    result = await turn(agent, "hi", session="s", history=[{"role": "user", "content": "earlier"}])
    record = record_of([result])
    made: Rebuilt = rebuild(record, requests(record)[0].seq)
    assert [gap.what for gap in made.gaps][:1] == ["conversation"]
