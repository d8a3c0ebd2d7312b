"""Sessions that are kept ready, and options that travel with their row."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw, Struct

from onrecord import Agent, ModelError, Session, SessionKey, UsageError
from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import ContextMessage
from onrecord.host import Given
from onrecord.host.hot import HotSessions
from onrecord.host.row_options import decode_options, encode_options
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel, raises
from onrecord.turn.director import Stage
from onrecord.turn.moments import Hooks
from onrecord.turn.options import Silenced
from onrecord.turn.turn import Turn
from tests.host.hosting import hosted, settled
from tests.turn.acting import Named
from tests.turn.directing import Directed

pytestmark = pytest.mark.integration


def session(name: str, messages: int = 0) -> Session:
    """A session with that many messages."""
    held = [
        ContextMessage(id=str(n), turn="t", content=(Text("x"),), authority="data", writer="w") for n in range(messages)
    ]
    return Session(key=SessionKey(name), conversation=Conversation.of(held))


def test_the_sessions_used_last_stay() -> None:
    """The least used one makes room."""
    hot = HotSessions(2)
    for name in "ab":
        hot.put(session(name))
    assert hot.get(SessionKey("a")) is not None
    hot.put(session("c"))
    assert [hot.get(SessionKey(name)) is not None for name in "abc"] == [True, False, True]


def test_long_sessions_count_for_more() -> None:
    """The bound is on messages too; one session beyond it is not kept at all."""
    hot = HotSessions(10, messages=100)
    for name in "abc":
        hot.put(session(name, 40))
    assert [hot.get(SessionKey(name)) is not None for name in "abc"] == [False, True, True]
    hot.put(session("b", 30))
    hot.put(session("d", 30))
    assert len(hot) == 3
    hot.put(session("e", 101))
    assert len(hot) == 0


def test_a_session_that_is_dropped_frees_its_room() -> None:
    """And dropping what is not there is nothing."""
    hot = HotSessions(10, messages=50)
    hot.put(session("a", 40))
    hot.drop(SessionKey("a"))
    hot.drop(SessionKey("a"))
    hot.put(session("b", 40))
    assert len(hot) == 1


class Mood(Struct, frozen=True):
    """An option of a made-up feature."""

    word: str = ""


def test_options_come_back_as_they_were() -> None:
    """By the names of their types."""
    given: list[object] = [Silenced("a person has the floor", understand=True), Mood("calm")]
    assert decode_options(encode_options(given), [Mood, Silenced]) == given
    assert decode_options(encode_options([]), []) == []


def test_options_that_are_no_data_are_refused() -> None:
    """Before anything is accepted."""
    with pytest.raises(UsageError) as told:
        encode_options([object()])
    assert told.value.code == "option-invalid"


@pytest.mark.parametrize("raw", [b'[{"option":"Gone","value":{}}]', b'[{"option":"Mood","value":{"word":5}}]'])
def test_options_that_nobody_reads_are_told(raw: bytes) -> None:
    """Without their values."""
    with pytest.raises(UsageError) as told:
        decode_options(Raw(raw), [Mood])
    assert "5" not in str(told.value)


async def test_options_survive_in_their_row() -> None:
    """The next process takes the turn with them."""
    effects, store = FakeEffects(), MemoryStore()
    store = MemoryStore(clock=effects.now)
    model = ScriptedModel(raises("overload"))
    async with hosted(Agent(model), effects=effects, store=store, turns=1) as host:
        ticket = await host.send("s", "Hi", options=[Silenced("muted")])
        result = await ticket.result()
        assert (result.status, model.requests) == ("silent", [])
    await store.put(await row_with(store, [Silenced("muted")]))
    other: Any = Agent(ScriptedModel())
    async with hosted(other, effects=effects, store=store) as host, host:
        await settled(lambda: two(host))


@pytest.mark.parametrize("accepted", ["here", "elsewhere"])
async def test_an_option_of_the_input_stands_before_a_given_one(accepted: str) -> None:
    """Whoever takes it: `given` fills in options that the input did not come with, and is no second voice."""
    seen: list[Silenced | None] = []

    class Sees:
        async def direct(self, turn: Turn, stage: Stage) -> None:
            seen.append(turn.option(Silenced))

    async def given(session: SessionKey, input: object) -> Given[None]:
        return Given(options=(Silenced("given"),))

    effects = FakeEffects()
    store = MemoryStore(clock=effects.now)
    async with hosted(Agent("offline", director=Sees()), effects=effects, store=store, given=given) as host:
        if accepted == "here":
            await host.turn("s", "Again", options=[Silenced("own")])
        else:
            await store.put(await row_with(store, [Silenced("own")]))
        await host.work(once=True)
        await host.turn("s", "And again")
        assert await host.pending("s") == []
    assert seen == [Silenced("own"), Silenced("given")]


async def row_with(store: MemoryStore, options: list[object]) -> Any:
    """A message with options, accepted by somebody who is gone."""
    from onrecord.conversation.inputs import Said
    from onrecord.session.inbox import Row

    return Row(session=SessionKey("s"), box="in", key="said::2", body=Said("Again"), options=encode_options(options))


async def two(host: Any) -> bool:
    """Whether two messages are in the conversation, none of them an answer."""
    held = await host.store.load("s")
    return [m.text for m in held.conversation.messages] == ["Hi", "Again"]


async def test_options_of_the_sender_win_over_given_ones_at_every_take() -> None:
    """Here and in the next process: of one type the sender's counts, of the others the host's come too."""
    effects = FakeEffects()

    async def given(key: SessionKey, input: Any) -> Given[Any]:
        return Given(options=(Silenced("given"), Mood("given")))

    seen = list[tuple[Any, Any]]()

    async def direct(turn: Turn, stage: Stage) -> None:
        seen.append((turn.option(Silenced), turn.option(Mood)))
        if len(seen) == 1:
            raise ModelError("told by a test", kind="overload")

    agent = Agent(ScriptedModel(), director=Directed(direct), features=[Named("mood", Hooks(options=(Mood,)))])
    async with hosted(agent, effects=effects, given=given) as host:
        with pytest.raises(ModelError):
            await host.turn("s", "Hi", options=[Silenced("mine")])
        effects.advance(minutes=1)
        await host.work(once=True)
        assert await host.pending("s") == []
    assert seen == [(Silenced("mine"), Mood("given"))] * 2


async def test_an_option_without_an_owner_is_refused_at_the_door() -> None:
    """Nothing is accepted."""
    async with hosted(Agent(ScriptedModel())) as host:
        with pytest.raises(UsageError):
            await host.send("s", "Hi", options=[Mood("calm")])
        assert await host.pending("s") == []
