"""What features derive from the record: live in the turn, stored with the session, mended by folding again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.log import Log
from onrecord.errors import AnswerRefused, FeatureConflict, UsageError
from onrecord.governance.rules import on_output
from onrecord.record.entry import Body
from onrecord.session import Folds, land, pack, refold, unpack
from onrecord.session.codec import slot_value
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.session.store import Store
from onrecord.stores.sqlite import SqliteStore
from onrecord.testing import ScriptedModel, call
from onrecord.turn.moments import Answer, Deny
from onrecord.turn.turn import Turn
from tests.session.folds import Listing, Seen, mounted
from tests.turn.acting import Result, tool, turn

pytestmark = pytest.mark.integration


class Booked(Body, frozen=True, kw_only=True, tag="hotel.booked"):
    """A body of a feature."""

    room: int


RETURNED = Listing("tool.returned")


def booking(*answers: Any, fold: Listing = RETURNED, **hooks: Any) -> Agent[Any, str]:
    """An agent with a tool and a fold."""
    return Agent(ScriptedModel(*answers), tools=[tool("book")], features=[mounted(fold, **hooks)])


def kept(session: Session | None, fold: Listing = RETURNED) -> list[Seen]:
    """What the fold has in a session."""
    assert session is not None
    return list(slot_value(session.slots[fold.name], fold.state))


async def test_a_fold_is_live_within_its_turn() -> None:
    """Hooks read it while the turn runs, the entry just filed included."""
    seen: list[int] = []

    async def looks(turn: Turn, request: Any) -> Any:
        seen.append(len(turn.state(RETURNED)))
        return request

    agent = booking([call("book"), call("book")], "Done.", on_request=looks)
    result = await turn(agent)
    assert (seen, [s.kind for s in kept(result.session)]) == ([0, 2], ["tool.returned"] * 2)


async def test_a_fold_reads_kinds_of_its_feature() -> None:
    """A feature's own entries fold like any other."""
    fold = Listing("hotel.booked")

    async def settles(turn: Turn) -> None:
        turn.note(Booked(room=7))

    result = await turn(booking("Done.", fold=fold, bodies=(Booked,), on_settle=settles))
    assert [s.kind for s in kept(result.session, fold)] == ["hotel.booked"]


async def test_a_fold_of_a_turn_leaves_nothing_in_the_session() -> None:
    """It begins anew in every turn."""
    seen: list[int] = []
    fold = Listing("tool.returned", scope="turn")

    async def settles(turn: Turn) -> None:
        seen.append(len(turn.state(fold)))

    agent = booking([call("book")], "Done.", [call("book"), call("book")], "Done.", fold=fold, on_settle=settles)
    first = await turn(agent)
    second = await turn(agent, session=first.session)
    assert (seen, second.session and dict(second.session.slots)) == ([1, 2], {})


@pytest.mark.parametrize("unfinished", [False, True])
async def test_only_unfinished_folds_read_a_take_that_failed(unfinished: bool) -> None:
    """The others stand where they stood before it."""

    @on_output
    async def refuses(turn: Turn, answer: Answer) -> Deny:
        return Deny("no")

    fold = Listing("tool.returned", unfinished=unfinished)
    agent = booking([call("book")], "Done.", fold=fold)
    strict = agent.with_(features=[mounted(fold), refuses])
    with pytest.raises(AnswerRefused) as told:
        await turn(strict)
    assert told.value.result is not None
    assert len(kept(told.value.result.session, fold)) == int(unfinished)


async def test_two_folds_of_one_name_are_refused() -> None:
    """A name is a place in the session."""
    with pytest.raises(FeatureConflict, match="'listing'"):
        booking("x", fold=RETURNED).with_(features=[mounted(RETURNED), mounted(Listing("said"))])


async def test_a_fold_that_is_not_mounted_keeps_its_place() -> None:
    """A session that another agent takes a turn of loses nothing."""
    first = await turn(booking([call("book")], "Done."), session="s")
    plain = await turn(Agent(ScriptedModel("Hi.")), session=first.session)
    again = await turn(booking([call("book")], "Done."), session=plain.session)
    assert len(kept(again.session)) == 2


# ---- versions --------------------------------------------------------------------------------------------------------


async def test_another_version_is_refused_and_folding_again_mends_it() -> None:
    """What the old code derived is not read by the new one; the record is, and the turn goes on."""
    first = await turn(booking([call("book")], "Done."), session="s")
    newer = Listing("tool.returned", "said", version=2)
    agent = booking("Hi.", fold=newer)
    assert first.session is not None
    with pytest.raises(UsageError, match="version 1 of 'listing'") as told:
        await turn(agent, session=first.session)
    assert "refold" in told.value.hint
    mended = refold(first.session.key, first.entries, Folds([newer]), digest_key=first.session.digest_key)
    assert [s.kind for s in kept(mended, newer)] == ["tool.returned", "said"]
    result = await turn(agent, session=mended)
    assert len(kept(result.session, newer)) == 3


async def test_a_fold_that_comes_later_starts_empty_or_is_folded_from_the_record() -> None:
    """Mounted on an old session it begins there; folding the record gives it the past."""
    first = await turn(Agent(ScriptedModel([call("book")], "Done."), tools=[tool("book")]), session="s")
    later = await turn(booking("Hi."), session=first.session)
    assert kept(later.session) == []
    assert later.session is not None
    assert len(kept(refold(later.session.key, first.entries, Folds([RETURNED])))) == 1


async def test_landing_a_take_on_a_newer_session_is_the_same_fold() -> None:
    """Entries of a take fold onto another state exactly as they did live."""
    agent = booking([call("book")], "Done.")
    result = await turn(agent, session="s")
    assert result.session is not None
    base = Session(key=result.session.key, digest_key=result.session.digest_key)
    assert land(base, result.entries, agent.plan.folds) == result.session


# ---- through stores --------------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "sqlite"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """A store of each kind."""
    return MemoryStore if request.param == "memory" else lambda: SqliteStore(tmp_path / "s.db")


async def committed(store: Store, result: Result) -> Session:
    """The session as the store gives it back."""
    stored = await store.commit(result.change())
    found = await store.load(stored.key)
    assert found is not None
    return found


async def test_a_log_in_a_slot_goes_through_stores(make_store: Callable[[], Store]) -> None:
    """Loaded, it is a log of the same values again, and goes on growing."""
    store = make_store()
    try:
        agent = booking([call("book")], "Done.", [call("book")], "Done.")
        session = await committed(store, await turn(agent, session="s"))
        assert isinstance(slot_value(session.slots["listing"], Log[Seen]), Log)
        result = await turn(agent, session=session)
        assert [type(s) for s in kept(await committed(store, result))] == [Seen, Seen]
    finally:
        await store.close()


async def test_slots_that_nobody_mounts_go_through_stores_untouched(make_store: Callable[[], Store]) -> None:
    """Byte for byte, turn after turn."""
    store = make_store()
    try:
        session = await committed(store, await turn(booking([call("book")], "Done."), session="s"))
        before = bytes(session.slots["listing"].value)
        plain = Agent(ScriptedModel("Hi.", "Hi."))
        for _ in range(2):
            session = await committed(store, await turn(plain, session=session))
        assert bytes(session.slots["listing"].value) == before
    finally:
        await store.close()


async def test_packed_slots_are_the_same() -> None:
    """A waiting session keeps what features know."""
    result = await turn(booking([call("book")], "Done."), session="s")
    assert result.session is not None
    packed = unpack(pack(result.session))
    assert kept(packed) == kept(result.session)
    assert pack(replace(packed)) == pack(result.session)
