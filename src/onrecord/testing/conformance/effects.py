"""What every `Effects` promises, as tests: subclass `EffectsConformance` and say how to make one.

```python
class TestMyEffects(EffectsConformance):
    journaled = True

    @pytest.fixture
    def make_effects(self):
        return MyEffects
```

``journaled`` says that an outside call made once is not made again. The tests are coroutines: they need
pytest-asyncio.
"""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import pairwise
from typing import ClassVar, TypeAlias

import pytest

from onrecord.agent import Agent
from onrecord.testing.scripted import ScriptedModel
from onrecord.turn.effects import Effects

__all__ = ("EffectsConformance", "MakeEffects")

MakeEffects: TypeAlias = Callable[[], Effects]


class Counted:
    """An outside call that gives the number of times it was made."""

    def __init__(self, *fails: int) -> None:
        self.made, self.fails = 0, fails

    async def __call__(self) -> int:
        self.made += 1
        if self.made in self.fails:
            raise ConnectionError("no answer")
        return self.made


@pytest.mark.asyncio
class EffectsConformance:
    """Time, names and outside calls: give a subclass the fixture ``make_effects``."""

    journaled: ClassVar[bool] = False

    async def test_now_is_an_instant(self, make_effects: MakeEffects) -> None:
        """With its offset from UTC, and never before what it said last."""
        effects = make_effects()
        told = [effects.now() for _ in range(100)]
        assert all(at.utcoffset() is not None for at in told)
        assert all(later - earlier >= timedelta(0) for earlier, later in pairwise(told))

    async def test_names_do_not_come_twice(self, make_effects: MakeEffects) -> None:
        """A thousand of them, none empty, all fit for a key."""
        effects = make_effects()
        names = {effects.nonce() for _ in range(1000)}
        assert len(names) == 1000
        assert all(name and name.isascii() and name.isprintable() for name in names)

    async def test_an_outside_call_is_made(self, make_effects: MakeEffects) -> None:
        """Its value comes back, of its type."""
        act = Counted()
        assert await make_effects().once("k", "", int, act) == 1
        assert act.made == 1

    async def test_a_call_that_failed_was_not_made(self, make_effects: MakeEffects) -> None:
        """Its error reaches the caller as it is, and the next attempt is a new one."""
        effects, act = make_effects(), Counted(1)
        with pytest.raises(ConnectionError, match="no answer"):
            await effects.once("k", "", int, act)
        assert await effects.once("k", "", int, act) == 2

    async def test_a_cancelled_call_was_not_made(self, make_effects: MakeEffects) -> None:
        """Cancelling goes through, and the next attempt is a new one."""
        effects, never = make_effects(), asyncio.Event()

        async def waits() -> int:
            await never.wait()
            return 0

        task = asyncio.ensure_future(effects.once("k", "", int, waits))
        await asyncio.sleep(0)
        task.cancel()
        ended = (await asyncio.gather(task, return_exceptions=True))[0]
        assert isinstance(ended, asyncio.CancelledError)
        assert await effects.once("k", "", int, Counted()) == 1

    async def test_another_digest_is_another_call(self, make_effects: MakeEffects) -> None:
        """Under one key, what is asked for differs: it is made again."""
        effects, act = make_effects(), Counted()
        assert await effects.once("k", "a", int, act) == 1
        assert await effects.once("k", "b", int, act) == 2

    async def test_a_journal_makes_a_call_once(self, make_effects: MakeEffects) -> None:
        """The same key and digest give what they gave; without a journal the call is simply made."""
        effects, act = make_effects(), Counted()
        given = [await effects.once("k", "d", int, act) for _ in range(3)]
        assert given == ([1, 1, 1] if self.journaled else [1, 2, 3])

    async def test_keys_have_nothing_to_do_with_each_other(self, make_effects: MakeEffects) -> None:
        """Many calls at once, and one when they are done, each with its own value."""
        effects = make_effects()

        def act(n: int) -> Callable[[], Awaitable[int]]:
            async def made() -> int:
                await asyncio.sleep(0)
                return n

            return made

        given = await asyncio.gather(*(effects.once(f"k{n}", "", int, act(n)) for n in range(50)))
        assert given == list(range(50))
        assert await effects.once("later", "", int, act(50)) == 50

    async def test_one_object_serves_many_turns(self, make_effects: MakeEffects) -> None:
        """At once; their names differ, and their clocks agree with it."""
        effects = make_effects()
        agent = Agent(ScriptedModel(*["Hello."] * 20))
        results = await asyncio.gather(*(agent.turn("hi", session="s", effects=effects) for _ in range(20)))
        assert len({result.entries[0].turn for result in results}) == 20
        assert all(entry.at <= effects.now() for result in results for entry in result.entries)
