"""Following a session: entries by number, running text by offset, without a gap or a repeat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from onrecord import Agent
from onrecord.conversation.inputs import Interruption
from onrecord.conversation.messages import AssistantMessage
from onrecord.conversation.outgoing import CallDelta, TextDelta
from onrecord.errors import ModelError
from onrecord.host import Committed, Gone, LiveItem, Progress
from onrecord.host.live import Draft, Place, _progress
from onrecord.record.entry import kind_of
from onrecord.testing import FakeEffects, ScriptedModel, raises
from tests.host.hosting import hosted
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration


class Following:
    """A reader of a session that keeps what came."""

    def __init__(self, items: AsyncGenerator[LiveItem, None]) -> None:
        self.items = items
        self.got: list[LiveItem] = []

    async def until(self, is_so: Any) -> list[LiveItem]:
        """Reads on until an item is so."""
        async with asyncio.timeout(5):
            async for item in self.items:
                self.got.append(item)
                if is_so(item):
                    break
        return self.got

    @property
    def text(self) -> str:
        """The running text so far."""
        return "".join(item.text for item in self.got if isinstance(item, Progress))

    @property
    def numbers(self) -> list[int]:
        """The numbers of the entries that came."""
        return [item.entry.seq for item in self.got if isinstance(item, Committed)]


def is_end(kind: str) -> Callable[[LiveItem], bool]:
    """Whether an item is the end of a turn, of this kind."""
    return lambda item: isinstance(item, Committed) and kind_of(item.entry.body) == kind


is_closed = is_end("turn.closed")


async def test_text_comes_while_it_is_said_and_entries_once_they_are_stored() -> None:
    """First what is running, then the whole turn, in order."""
    model = Halting(("Hel", "lo", WAIT, " there."))
    async with hosted(Agent(model)) as host, aclosing(host.live("s")) as items:
        reader = Following(items)
        ticket = asyncio.ensure_future(reader.until(is_closed))
        await asyncio.sleep(0)
        await host.send("s", "Hi")
        await model.waiting.wait()
        model.gate.set()
        await ticket
        assert reader.text == "Hello there."
        assert reader.numbers == list(range(len(reader.numbers)))
        assert isinstance(reader.got[0], Progress)


async def test_who_comes_late_gets_all_that_was_said_so_far_in_one_piece() -> None:
    """Entries first, then one Progress, then what follows."""
    model = Halting(("One.",), ("So ", "far", WAIT, ", so good."))
    async with hosted(Agent(model)) as host:
        await host.turn("s", "1")
        ticket = await host.send("s", "2")
        await model.waiting.wait()
        async with aclosing(host.live("s")) as items:
            reader = Following(items)
            got = await reader.until(lambda item: isinstance(item, Progress))
            assert [type(item) for item in got[:-1]] == [Committed] * (len(got) - 1)
            assert (got[-1].text, got[-1].at) == ("So far", 0)  # type: ignore[union-attr]  # the last one is a Progress
            model.gate.set()
            await reader.until(lambda item: is_closed(item) and item.entry.seq > got[-2].entry.seq)  # type: ignore[union-attr]  # as above
            assert reader.text == "So far, so good."
        await ticket.result()


async def test_a_reader_that_reconnects_misses_nothing_and_reads_nothing_twice() -> None:
    """With the last number and place; in mid-word too."""
    model = Halting(("One.",), ("So ", "far", WAIT, ", so good."))
    async with hosted(Agent(model)) as host:
        await host.turn("s", "1")
        ticket = await host.send("s", "2")
        await model.waiting.wait()
        async with aclosing(host.live("s")) as items:
            first = Following(items)
            await first.until(lambda item: isinstance(item, Progress))
        progress = first.got[-1]
        assert isinstance(progress, Progress)
        model.gate.set()
        await ticket.result()
        async with aclosing(host.live("s", after=first.numbers[-1], place=progress.place)) as items:
            second = Following(items)
            await second.until(is_closed)
        assert first.numbers + second.numbers == list(range(len(first.numbers) + len(second.numbers)))


async def test_a_place_inside_a_piece_is_kept() -> None:
    """Only the rest of the piece comes."""
    model = Halting(("So far", WAIT, "."))
    async with hosted(Agent(model)) as host:
        ticket = await host.send("s", "1")
        await model.waiting.wait()
        async with aclosing(host.live("s")) as items:
            seen = await Following(items).until(lambda item: isinstance(item, Progress))
        place = seen[-1].place  # type: ignore[union-attr]  # the last one is a Progress
        async with aclosing(host.live("s", place=type(place)(place.turn, place.take, 3))) as items:
            rest = await Following(items).until(lambda item: isinstance(item, Progress))
        assert (rest[-1].text, rest[-1].at) == ("far", 3)  # type: ignore[union-attr]  # as above
        model.gate.set()
        await ticket.result()


async def test_text_that_was_read_is_kept_when_the_model_fails() -> None:
    """The turn ended, with what people saw of it: it is not said again."""
    model = Halting(("So far", WAIT, ModelError("down", kind="overload")))
    async with hosted(Agent(model)) as host, aclosing(host.live("s")) as items:
        reader = Following(items)
        ticket = await host.send("s", "1")
        await model.waiting.wait()
        await reader.until(lambda item: isinstance(item, Progress))
        model.gate.set()
        with pytest.raises(ModelError) as told:
            await ticket.result()
        assert told.value.result is not None
        await reader.until(is_end("turn.failed"))
        assert not any(isinstance(item, Gone) for item in reader.got)


async def test_text_that_nobody_read_was_not_shown() -> None:
    """The provider failed in mid-sentence and nobody listened: the input is simply taken again."""
    model = Halting(("So far", ModelError("down", kind="overload")))
    async with hosted(Agent(model)) as host:
        with pytest.raises(ModelError) as told:
            await host.turn("s", "1")
        assert told.value.result is None
        assert [row.rung for row in await host.store.rows("in")] == [1]


async def test_a_turn_that_was_set_aside_is_told_at_once() -> None:
    """Its one entry is committed here, so a reader does not wait for the next look at the store."""
    agent = Agent(ScriptedModel(raises("invalid")))
    async with hosted(agent, poll_s=600) as host, aclosing(host.live("s")) as items:
        reading = asyncio.ensure_future(Following(items).until(is_end("turn.failed")))
        await asyncio.sleep(0)
        with pytest.raises(ModelError):
            await host.turn("s", "Hi")
        assert len(await reading) == 1


async def test_a_take_whose_lease_was_lost_is_left() -> None:
    """The model is asked no further, readers learn that it came to nothing, and the row is somebody else's."""
    model, effects = Halting(("So far", WAIT)), FakeEffects()
    async with hosted(Agent(model), effects=effects, lease_s=0.06) as host, aclosing(host.live("s")) as items:
        reader = Following(items)
        ticket = await host.send("s", "1")
        await model.waiting.wait()
        await reader.until(lambda item: isinstance(item, Progress))
        effects.advance(seconds=1)
        (row,) = await host.store.lease("in", "somebody else", ttl=60)
        await reader.until(lambda item: isinstance(item, Gone))
        assert (model.closed, ticket.is_done) == (["CancelledError"], False)
        assert await host.pending("s") == [row]


async def test_any_number_may_follow_and_a_slow_one_delays_nobody() -> None:
    """One that stops reading costs the model nothing, and then reads in one piece what others read in many."""
    words = tuple(f"{n} " for n in range(300))
    model = Halting(("First ", WAIT, *words))
    async with hosted(Agent(model)) as host, aclosing(host.live("s")) as quick, aclosing(host.live("s")) as slow:
        readers = Following(quick), Following(slow)
        ticket = await host.send("s", "1")
        await model.waiting.wait()
        for reader in readers:
            await reader.until(lambda item: isinstance(item, Progress))
        model.gate.set()
        reading = asyncio.ensure_future(readers[0].until(is_closed))
        result = await ticket.result()
        await reading
        await readers[1].until(is_closed)
        assert readers[0].text == readers[1].text == result.text == "First " + "".join(words)
        assert readers[1].numbers == [entry.seq for entry in result.entries]
        assert sum(isinstance(item, Progress) for item in readers[1].got) == 2


async def test_an_interrupted_turn_is_stored_as_it_was_read() -> None:
    """Its entries follow its text."""
    model = Halting(("So far", WAIT))
    async with hosted(Agent(model)) as host, aclosing(host.live("s")) as items:
        reader = Following(items)
        ticket = await host.send("s", "1")
        await model.waiting.wait()
        await reader.until(lambda item: isinstance(item, Progress))
        await host.interrupt("s", Interruption(id="i"))
        await reader.until(is_end("turn.interrupted"))
        assert (await ticket.result()).status == "interrupted"


async def test_what_another_process_commits_comes_too() -> None:
    """Here: another host on the same store. Its running text does not come, its entries do."""
    async with (
        hosted(Agent(ScriptedModel())) as host,
        hosted(Agent(ScriptedModel("Hello.")), store=host.store) as other,
        aclosing(host.live("s")) as items,
    ):
        reader = Following(items)
        following = asyncio.ensure_future(reader.until(is_closed))
        await asyncio.sleep(0)
        await other.turn("s", "Hi")
        await following
        assert (reader.text, reader.numbers) == ("", list(range(len(reader.numbers))))


async def test_readers_end_with_the_host() -> None:
    """They do not hang."""
    async with hosted(Agent(ScriptedModel())) as host:
        following = asyncio.ensure_future(Following(host.live("s")).until(lambda _: False))
        await asyncio.sleep(0.01)
        await host.close()
        assert await asyncio.wait_for(following, 5) == []


async def test_a_stream_left_early_lets_the_turn_go_on() -> None:
    """The reader is gone; the turn is stored whole."""
    model = Halting(("So far", WAIT, " and on."))
    async with hosted(Agent(model)) as host:
        async with host.turn_stream("s", "Hi") as stream, aclosing(stream.text) as text:
            assert await anext(text) == "So far"
        ticket = await host.send("s", "Hi", busy="queue")
        model.replies.append(("Next.",))
        model.gate.set()
        assert (await stream.result()).text == "So far and on."
        assert (await ticket.result()).text == "Next."
        held = await host.store.load("s")
        assert held is not None
        said = held.conversation.messages[1]
        assert isinstance(said, AssistantMessage)
        assert said.text == "So far and on."


async def test_a_streamed_turn_ends_with_its_result() -> None:
    """As of an agent, with the session stored."""
    async with hosted(Agent(ScriptedModel(["Hel", "lo."]))) as host:
        stream = host.turn_stream("s", "Hi")
        assert [text async for text in stream.text] == ["Hel", "lo."]
        result = await stream.result()
        assert (result.text, result.session) == ("Hello.", await host.store.load("s"))


async def test_a_take_that_showed_nothing_is_not_told_to_be_gone() -> None:
    """There is nothing that a reader would have to take back."""
    async with hosted(Agent(ScriptedModel(raises("overload"), "Hello.")), retry=(0.0,)) as host:
        reader = Following(host.live("s"))
        task = asyncio.ensure_future(reader.until(is_closed))
        with pytest.raises(ModelError):
            await host.turn("s", "Hi")
        assert not any(isinstance(item, Gone) for item in await task)


def test_the_place_of_a_call_is_behind_the_words_before_it() -> None:
    """A reader that was told of a call, and of no words, comes back and reads none of them again."""
    draft = Draft()
    draft.turn, draft.take = "t", 1
    draft.add(TextDelta("Let me see. "))
    draft.add(CallDelta(id="c", name="look", status="asked"))
    told, stop = _progress(draft, 1, None)
    assert told is not None
    assert (told.place, stop) == (Place("t", 1, 12), 2)
    draft.add(TextDelta("Three.", 12))
    again, _ = _progress(draft, 0, told.place)
    assert again is not None
    assert (again.text, again.at, again.place) == ("Three.", 12, Place("t", 1, 18))
    nothing, _ = _progress(Draft(), 0, None)
    assert nothing is None
