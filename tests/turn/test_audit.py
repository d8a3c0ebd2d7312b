"""A whole record in one walk: every receipt proved, and the same record with fresh digests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.outgoing import TextDelta
from onrecord.errors import RecordInvalid
from onrecord.governance.rules import after_tool, before_tool
from onrecord.record.entry import Entry
from onrecord.record.kinds import ModelReplied, ModelRequested, PieceFiled, ToolReturned, VerdictFiled
from onrecord.record.record import Record
from onrecord.session.folding import NO_FOLDS, refold
from onrecord.session.session import Session
from onrecord.session.walking import resalted, walk
from onrecord.testing import FakeEffects, ScriptedModel, call, raises
from onrecord.turn.audit import audit
from onrecord.turn.moments import Allow, Deny, Returned
from onrecord.turn.receipt import rebuild
from tests.turn.acting import tool

pytestmark = pytest.mark.unit


@before_tool
async def never_write(turn: Any, asked: Any) -> Any:
    """Denies one tool, for a verdict with a digest."""
    return Deny("read only") if asked.name == "write" else Allow()


@after_tool
async def shorter(turn: Any, returned: Returned) -> Any:
    """Changes what is read of a call, for a verdict with two digests."""
    return Allow(replace(returned, content=returned.content[:1]), "shortened")


async def lived() -> tuple[Session, list[Entry]]:
    """A session with calls, denials, an interruption and a failure in it, and its entries."""
    model = ScriptedModel(
        ["Let me see.", call("lookup")], "Found.", "A long answer that nobody waits for.", ["Half", raises("network")],
        [call("write"), call("lookup")], "Done.",
    )  # fmt: skip
    agent: Agent[Any, Any] = Agent(
        model, instructions="Look things up.", tools=[tool(), tool("write")], features=[never_write, shorter]
    )
    effects, entries = FakeEffects(), list[Entry]()
    session: Session | str = "s"
    for said in ("one", "left", "fails", "two"):
        stream = agent.turn_stream(said, session=session, effects=effects)
        try:
            async for delta in stream:
                if said == "left" and isinstance(delta, TextDelta):
                    break
            await stream.leave()
            result = await stream.result()
        except Exception as error:
            held = getattr(error, "result", None)
            if held is None:
                raise
            result = held
        entries += result.entries
        assert result.session is not None
        session = result.session
    assert isinstance(session, Session)
    return session, entries


def walked(session: Session, entries: Sequence[Entry], key: str | None = None) -> list[Any]:
    """The walk from a fresh session of the same name."""
    start = Session(key=session.key, digest_key=session.digest_key if key is None else key)
    return list(walk(start, entries, NO_FOLDS))


async def test_a_walk_ends_in_the_session_that_folding_gives() -> None:
    """Take by take, with interrupted and failed ones among them; a last take without an end too."""
    session, entries = await lived()
    assert walked(session, entries)[-1].session == refold(session.key, entries, digest_key=session.digest_key)
    for size in range(1, len(entries)):
        part = entries[:size]
        assert walked(session, part)[-1].session == refold(session.key, part, digest_key=session.digest_key)


async def test_every_receipt_is_proved_and_rebuild_agrees() -> None:
    """No gap in a record as it was written; with another key nothing can be proved, by either way."""
    session, entries = await lived()
    assert list(audit(walked(session, entries), session.digest_key)) == []
    for key, expected in ((session.digest_key, 0), ("another", 1)):
        record = Record(entries, lambda some: refold(session.key, some, digest_key=key))  # noqa: B023  # used at once
        gaps = [seq for seq, gap in audit(walked(session, entries, key), key) if not gap.what.startswith("text filed")]
        rebuilt = [
            entry.seq for entry in entries if isinstance(entry.body, ModelRequested) and rebuild(record, entry.seq).gaps
        ]
        assert sorted(set(gaps)) == rebuilt
        assert bool(rebuilt) is bool(expected)


@pytest.mark.parametrize("kind", [PieceFiled, ModelRequested, ModelReplied, ToolReturned])
async def test_a_changed_entry_leaves_a_gap(kind: type[Any]) -> None:
    """A text, a receipt, a reply or a result that later requests have shown."""
    session, entries = await lived()
    place = next(n for n, e in enumerate(entries) if isinstance(e.body, kind))
    body = entries[place].body
    if isinstance(body, PieceFiled):
        changed: Any = replace(body, text=body.text + "!")
    elif isinstance(body, ModelRequested):
        assert body.receipt is not None
        changed = replace(body, receipt=replace(body.receipt, units=body.receipt.units + 1))
    elif isinstance(body, ModelReplied):
        changed = replace(body, round=replace(body.round, content=()))
    else:
        assert isinstance(body, ToolReturned)
        changed = replace(body, result=())
    entries[place] = replace(entries[place], body=changed)
    assert list(audit(walked(session, entries), session.digest_key))


async def test_a_record_that_does_not_fold_names_the_entry() -> None:
    """Entries that belong together are missing, or name what is not there."""
    session, entries = await lived()
    place = next(n for n, e in enumerate(entries) if isinstance(e.body, ModelReplied))
    with pytest.raises(RecordInvalid, match=r"entry \d+ \(.*\) does not fold: ") as caught:
        walked(session, entries[:place] + entries[place + 1 :])
    assert caught.value.hint


def _marks(entries: Sequence[Entry]) -> list[str]:
    found: list[str] = []
    for entry in entries:
        body = entry.body
        if isinstance(body, PieceFiled):
            found.append(body.digest)
        elif isinstance(body, VerdictFiled):
            found += [body.before, body.after]
        elif isinstance(body, ModelRequested) and body.receipt is not None:
            receipt = body.receipt
            found += [*(p.digest for p in receipt.pieces), *(s.chain for s in receipt.spans), receipt.offers]
    return found


async def test_fresh_digests_prove_the_same_and_keep_none_of_the_old_ones() -> None:
    """What was equal stays equal, what was proved is proved under the new key alone, and the old one proves nothing."""
    session, entries = await lived()
    fresh = [entry for entry, _ in resalted(walked(session, entries), session.digest_key, "new")]
    assert list(audit(walked(session, fresh, "new"), "new")) == []
    assert list(audit(walked(session, fresh), session.digest_key))
    old, new = _marks(entries), _marks(fresh)
    assert len(old) == len(new)
    assert not set(old) & set(new) - {""}
    assert len(dict(zip(old, new, strict=True))) == len(set(zip(old, new, strict=True))) == len(set(new))
    assert [replace(e, body=None) for e in entries] == [replace(e, body=None) for e in fresh]


async def test_fresh_digests_do_not_heal_what_was_changed() -> None:
    """A text that its digest did not vouch for is not vouched for afterwards; nor is a history."""
    session, entries = await lived()
    for kind in (PieceFiled, ToolReturned):
        place = next(n for n, e in enumerate(entries) if isinstance(e.body, kind))
        body: Any = entries[place].body
        changed = replace(body, text="other") if kind is PieceFiled else replace(body, result=())
        tampered = [*entries[:place], replace(entries[place], body=changed), *entries[place + 1 :]]
        before = list(audit(walked(session, tampered), session.digest_key))
        fresh = [entry for entry, _ in resalted(walked(session, tampered), session.digest_key, "new")]
        after = list(audit(walked(session, fresh, "new"), "new"))
        assert before
        assert [(seq, gap.what) for seq, gap in after] == [(seq, gap.what) for seq, gap in before]
