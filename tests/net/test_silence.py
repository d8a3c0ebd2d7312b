"""One timer watches over all waits of a loop, and each is noticed in its own time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onrecord.net.silence import Alarm, Silence, Watch

pytestmark = pytest.mark.integration


class Stream:
    """A body that keeps what it failed with."""

    def __init__(self) -> None:
        self.failed: list[BaseException] = []

    def set_exception(self, exc: BaseException, /) -> None:
        """Fails."""
        self.failed.append(exc)


def waiting(alarm: Alarm, limit: float) -> tuple[Watch, Stream]:
    """A watch over a body for which somebody waits."""
    watch, stream = Watch(alarm, limit), Stream()
    watch.answered(stream)
    watch.touch()
    return watch, stream


async def test_many_waits_have_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal limits set no timer but the first; ended waits leave none to look at."""
    loop = asyncio.get_running_loop()
    set_: list[float] = []
    real = loop.call_at

    def call_at(when: float, *args: Any, **named: Any) -> asyncio.TimerHandle:
        set_.append(when)
        return real(when, *args, **named)

    monkeypatch.setattr(loop, "call_at", call_at)
    alarm = Alarm(loop)
    watches = [Watch(alarm, 60) for _ in range(100)]
    assert len(set_) == 1
    for watch in watches:
        watch.stop()
    assert not alarm._watches
    alarm.stop()


async def test_each_is_noticed_in_its_own_time() -> None:
    """A short wait behind a long one is found, one that moves is not, one lowered is found sooner."""
    alarm = Alarm(asyncio.get_running_loop())
    _, long = waiting(alarm, 60)
    short, found = waiting(alarm, 0.05)
    moving, spared = waiting(alarm, 0.05)
    lowered, sooner = waiting(alarm, 60)
    lowered.lower(0.05)
    ended, quiet = waiting(alarm, 0.05)
    ended.stop()
    ended.lower(0.01)  # says nothing after its end
    for _ in range(8):
        await asyncio.sleep(0.02)
        moving.touch()
    assert [type(error) for error in found.failed + sooner.failed] == [Silence, Silence]
    assert not long.failed
    assert not spared.failed
    assert not quiet.failed
    assert short.expired
    alarm.stop()
    waiting(alarm, 0.01)  # looked at alone
    await asyncio.sleep(0.1)
    assert not spared.failed
