"""What is old goes: by a memory's own term, or with the turns that a host's policy lets go of."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.errors import ConfigurationError, FeatureFailed
from onrecord.memory import Episodes, Facts, Memory, PlainShelf, Recent
from onrecord.memory.ports import KeptKind, Space
from onrecord.session.erasure import Retention
from onrecord.stores import SqliteShelf
from onrecord.testing import FakeEffects, ScriptedModel
from tests.host.hosting import hosted
from tests.memory.files import holding
from tests.memory.remembering import ana, remembering, session, shown_data, told

pytestmark = pytest.mark.integration

HERS = Space(owner=ana)
DAY = timedelta(days=1)


async def held(shelf: Any, kind: KeptKind = "message", space: Space = HERS) -> list[str]:
    """What is on a shelf of hers."""
    return [one.text for one in await shelf.newest(space, kind, limit=99)]


async def test_what_is_older_than_its_term_is_neither_shown_nor_kept() -> None:
    """Not from the day on which it is that old, though nothing else was done; it goes when a turn settles."""
    shelf = PlainShelf()
    agent, model, _ = remembering(Recent(9), Facts(), Episodes(), answers=["a", "b"], shelf=shelf, keep_for=10 * DAY)
    await told(agent, "My name is Ana", session("one"))
    assert await held(shelf, "fact") == ["name: Ana"]
    await told(agent, "My name?", session("two"), day=11)
    assert shown_data(model.requests[1]) == []
    assert [await held(shelf, kind) for kind in ("message", "fact")] == [["My name?", "b"], []]


async def test_a_term_longer_than_the_calendar_lets_nothing_go() -> None:
    """Of the memory, and of the host."""
    shelf = PlainShelf()
    agent, model, _ = remembering(Recent(9), answers=["a", "b"], shelf=shelf, keep_for=timedelta.max)
    await told(agent, "My name is Ana", session("one"))
    await told(agent, "My name?", session("two"), day=11)
    assert "My name is Ana" in str(shown_data(model.requests[1]))
    features = [Memory(shelf, (Recent(9),), name="memory")]
    async with hosted(Agent(ScriptedModel("ok"), features=features)) as host:
        await host.expire(Retention(entries=timedelta.max))
    assert len(await held(shelf)) == 4


async def test_what_is_said_again_is_new_again() -> None:
    """A fact is as old as the last time that it was said."""
    shelf = PlainShelf()
    agent, _, _ = remembering(Facts(), answers=["a", "b", "c"], shelf=shelf, keep_for=10 * DAY)
    for day in (0, 9, 18):
        await told(agent, "My name is Ana" if day < 18 else "hi", session(f"s{day}"), day=day)
    assert await held(shelf, "fact") == ["name: Ana"]


@pytest.mark.parametrize(
    ("keep_for", "entries", "left"),
    [(None, DAY, 0), (None, None, 2), (9 * DAY, DAY, 2), (DAY, None, 0), (DAY, 9 * DAY, 0)],
)
async def test_a_hosts_policy_reaches_memories(
    tmp_path: Path, keep_for: timedelta | None, entries: timedelta | None, left: int
) -> None:
    """What is made of turns that are let go of goes with them, unless the memory has a term of its own."""
    shelf, clock = SqliteShelf(tmp_path / "shelf.db"), FakeEffects()
    memory = Memory(shelf, (Recent(9),), keep_for=keep_for)
    async with hosted(Agent(ScriptedModel("ok"), features=[memory]), effects=clock) as host:
        await host.turn("s", "a secret of old")
        assert len(await held(shelf, space=Space(session="s"))) == 2
        clock.advance(days=5)
        await host.expire(Retention(entries=entries))
        assert len(await held(shelf, space=Space(session="s"))) == left
        assert bool(holding(tmp_path, b"a secret of old")) == bool(left)
    await shelf.close()


async def test_memories_of_agents_below_are_reached_too() -> None:
    """They keep what they were told, under their own name; each is asked once."""
    asked: list[str] = []

    class Telling(PlainShelf):
        async def expire(self, before: datetime, of: Space | str, /) -> int:
            asked.append(str(of))
            return await super().expire(before, of)

    memory = Memory(Telling(), (Recent(9),), name="below")
    below = Agent(ScriptedModel("x"), name="helper", features=[memory])
    above = Agent(ScriptedModel("x"), tools=[below.as_tool(id="one"), below.as_tool(id="two")])
    async with hosted(above) as host:
        await host.expire(Retention(entries=DAY))
    assert asked == ["below"]


async def test_one_that_fails_is_told_after_all_were_asked() -> None:
    """With its name; to be done again."""

    class Broken(PlainShelf):
        async def expire(self, before: datetime, of: Space | str, /) -> int:
            raise OSError("no room")

    other = PlainShelf()
    features = [Memory(Broken(), (Recent(9),), name="broken"), Memory(other, (Recent(9),), name="well")]
    clock = FakeEffects()
    async with hosted(Agent(ScriptedModel("ok"), features=features), effects=clock) as host:
        await host.turn("s", "hello")
        clock.advance(days=5)
        with pytest.raises(FeatureFailed, match="broken") as caught:
            await host.expire(Retention(entries=DAY))
    assert "expire once more" in (caught.value.hint or "")
    assert await other.newest(Space(session="s", memory="well"), "message", limit=9) == []


@pytest.mark.parametrize("term", [timedelta(), -DAY, 30])
def test_a_term_that_is_none_is_refused(term: Any) -> None:
    """It would keep nothing at all."""
    with pytest.raises(ConfigurationError, match="keep_for"):
        Memory(PlainShelf(), (Recent(9),), keep_for=term)
