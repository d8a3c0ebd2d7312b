"""What holds of every record, whatever happened: drawn talks of many turns."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onrecord.record.entry import Entry
from onrecord.record.fold import takes
from onrecord.record.jsonl import EntryCodec
from onrecord.record.kinds import ModelRequested, TurnClosed, TurnPaused
from onrecord.record.record import Record
from onrecord.session import refold
from onrecord.session.codec import dumps_session
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session, SlotState
from onrecord.turn.receipt import rebuild
from tests.record.talks import Talk

pytestmark = pytest.mark.unit

drawn = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


seeds = st.tuples(st.integers(0, 2**32), st.integers(4, 12))


def talk(seed: tuple[int, int], act: Callable[[Talk], Awaitable[None]], *, history: bool, store: bool = False) -> Talk:
    """A drawn talk, after each step of which everything holds that must."""
    held = Talk(seed[0], MemoryStore() if store else None)
    if history:
        held.may_change_history()

    async def run() -> None:
        for _ in range(seed[1]):
            await held.step()
        await act(held)

    asyncio.run(run())
    return held


async def nothing(talk: Talk) -> None:
    """The steps were enough."""


@drawn
@given(seed=seeds)
def test_the_record_folds_to_the_session_after_every_take(seed: tuple[int, int]) -> None:
    """Answers, batches, questions, drafts, denials, failures, interruptions, ignored inputs, changes of history."""
    talk(seed, nothing, history=True)


@drawn
@given(seed=seeds)
def test_stored_sessions_go_on_like_kept_ones(seed: tuple[int, int]) -> None:
    """The same through a store: every change is one that it takes, and what is loaded is what was made."""

    async def loads(held: Talk) -> None:
        if held.session is not None and held.store is not None:
            found = await held.store.load("s")
            assert found is not None
            assert dumps_session(found) == dumps_session(held.session)
            assert [e async for e in held.store.entries("s")] == held.entries

    talk(seed, loads, history=True, store=True)


def without_unfinished(entries: list[Entry]) -> list[Entry]:
    """The entries of takes that closed or paused."""
    whole = (TurnClosed, TurnPaused)
    return [entry for take in takes(entries) if isinstance(take[-1].body, whole) for entry in take]


@drawn
@given(seed=seeds)
def test_unfinished_takes_change_only_what_unfinished_folds_read(seed: tuple[int, int]) -> None:
    """Folding with the takes that were interrupted or failed gives the data and slots of folding without them."""
    held = talk(seed, nothing, history=False)
    if held.session is None:
        return
    folds = held.agent.plan.folds
    with_all = refold(held.session.key, held.entries, folds)
    without = refold(held.session.key, without_unfinished(held.entries), folds)
    assert with_all.data == without.data
    begun = SlotState(1, [])
    assert with_all.slots.get("returned", begun) == without.slots.get("returned", begun)


@drawn
@given(seed=seeds)
def test_a_record_survives_json_lines(seed: tuple[int, int]) -> None:
    """Entry for entry equal, and folding to the same session."""
    held = talk(seed, nothing, history=True)
    codec = EntryCodec()
    lines = list(codec.lines(held.entries))
    assert list(codec.read(lines)) == held.entries
    assert list(codec.lines(codec.read(lines))) == lines


def replayed(held: Talk) -> Record[Session]:
    """The record of a talk, with its folds."""
    session, folds = held.held, held.agent.plan.folds
    return Record(held.entries, lambda part: refold(session.key, part, folds, digest_key=session.digest_key))


@settings(drawn, max_examples=25)
@given(seed=seeds)
def test_every_request_can_be_rebuilt(seed: tuple[int, int]) -> None:
    """Each receipt of each request, with every digest verified and no gap."""
    held = talk(seed, nothing, history=True)
    if held.session is None:
        return
    record = replayed(held)
    for entry in held.entries:
        if isinstance(entry.body, ModelRequested) and entry.turn not in held.outside:
            assert rebuild(record, entry.seq).gaps == ()


@settings(drawn, max_examples=25)
@given(seed=seeds)
def test_every_entry_has_its_reasons(seed: tuple[int, int]) -> None:
    """Causes lead back to where the take began, in its own turn and never forward."""
    held = talk(seed, nothing, history=True)
    if held.session is None:
        return
    record = replayed(held)
    for entry in held.entries:
        why = record.why(entry.seq)
        assert why[-1] is entry
        assert why[0].cause is None
        assert [e.n for e in why] == sorted({e.n for e in why})
        assert {e.turn for e in why} == {entry.turn}
    last = held.entries[-1].seq
    assert record.state_at(last).conversation == held.session.conversation
