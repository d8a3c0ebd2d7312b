"""What a loop shares is made once, kept while the loop lives, and closed or set aside at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from onrecord.net.loops import PerLoop

pytestmark = pytest.mark.unit

Loop = asyncio.AbstractEventLoop


class Thing:
    """Something shared that counts its ends."""

    def __init__(self, loop: Loop) -> None:
        self.closed = self.abandoned = 0

    async def aclose(self) -> None:
        self.closed += 1

    def abandon(self) -> None:
        self.abandoned += 1


def things() -> PerLoop[Thing]:
    """A fresh registry."""

    def prepare() -> Callable[[Loop], Thing]:
        return Thing

    return PerLoop(prepare)


async def opened(shared: PerLoop[Thing]) -> Thing:
    """What the running loop shares."""
    return await shared.open(asyncio.get_running_loop())


def test_it_is_closed_with_its_loop() -> None:
    """`asyncio.run` finishes the generator that holds it."""
    shared = things()
    first, second = asyncio.run(opened(shared)), asyncio.run(opened(shared))
    assert first is not second
    assert (first.closed, second.closed, first.abandoned) == (1, 1, 0)


async def test_it_is_made_once_and_can_be_closed_early() -> None:
    """Openers that race get the same; after closing there is a new one."""
    shared = things()
    first, other = await asyncio.gather(opened(shared), opened(shared))
    loop = asyncio.get_running_loop()
    assert first is other is shared.now(loop)
    await shared.close(loop)
    await shared.close(loop)
    assert first.closed == 1
    assert shared.now(loop) is None
    assert await opened(shared) is not first
    await shared.close(loop)


def test_a_loop_that_ended_without_a_word_is_noticed() -> None:
    """Its share is given up when the next loop opens one."""
    shared = things()
    loop = asyncio.new_event_loop()
    lost = loop.run_until_complete(opened(shared))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    assert (lost.closed, lost.abandoned) == (0, 0)
    asyncio.run(opened(shared))
    assert (lost.closed, lost.abandoned) == (0, 1)
    assert shared.now(loop) is None


async def test_a_child_has_none_and_closes_none() -> None:
    """After a fork what was inherited is kept alive and never closed."""
    shared = things()
    inherited = await opened(shared)
    loop = asyncio.get_running_loop()
    shared._set_aside()
    assert shared.now(loop) is None
    await shared.close(loop)
    assert (inherited.closed, inherited.abandoned) == (0, 1)


async def test_what_is_left_at_the_end_of_the_process_is_given_up() -> None:
    """A loop may still be open then, and can no longer be run."""
    shared = things()
    left = await opened(shared)
    shared._abandon_all()
    assert left.abandoned == 1
    assert shared.now(asyncio.get_running_loop()) is None
