"""MemoryStore: the promises of every store, and what only a store in memory can meet."""

from threading import Lock
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.messages import UserMessage
from onrecord.errors import StoreError
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import ScriptedModel
from onrecord.testing.conformance.asking import MakeStore
from onrecord.testing.conformance.store import StoreConformance
from tests.turn.acting import turn

pytestmark = pytest.mark.unit


class TestMemory(StoreConformance):
    """The store in memory keeps every promise of the suite."""

    @pytest.fixture
    def make_store(self) -> MakeStore:
        return MemoryStore


class ClosedMeanwhile:
    """A lock that is got only after another thread has closed the store."""

    def __init__(self, store: MemoryStore) -> None:
        self.store, self.lock = store, Lock()

    def __enter__(self) -> None:
        self.lock.acquire()
        self.store._closed = True

    def __exit__(self, *_: object) -> None:
        self.lock.release()


async def test_work_that_waited_while_the_store_was_closed_is_refused() -> None:
    """It is told so, and does not count as stored."""
    store: Any = MemoryStore()
    result = await turn(Agent(ScriptedModel("ok")), session="s")
    store._lock = ClosedMeanwhile(store)
    with pytest.raises(StoreError) as told:
        await store.commit(result.change())
    assert told.value.code == "store-closed"


async def test_a_message_of_wrong_types_is_an_error_of_the_store() -> None:
    """What was written and cannot be read is told by the store's own code, without its content."""
    result = await turn(Agent(ScriptedModel("ok")), session="s")
    change, store = result.change(), MemoryStore()
    wrong: Any = "canary-6"
    odd = UserMessage(id=change.messages[0].id, content=wrong)
    await store.commit(replace(change, messages=(odd, *change.messages[1:])))
    with pytest.raises(StoreError, match="does not decode") as told:
        await store.load("s")
    assert (told.value.code, wrong in str(told.value)) == ("store-corrupt", False)


@pytest.mark.parametrize("place", ["turn", "where"])
async def test_a_place_that_is_no_unicode_is_refused_as_a_change(place: str) -> None:
    """Every store writes it as it is, so it is told before any of them does."""
    change = (await turn(Agent(ScriptedModel("ok")), session="s")).change()
    odd: Any = {place: "half \ud83d"}
    with pytest.raises(StoreError, match="not valid Unicode") as told:
        await MemoryStore().commit(replace(change, entries=(replace(change.entries[0], **odd), *change.entries[1:])))
    assert told.value.code == "store-change"
