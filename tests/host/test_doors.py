"""What the doors of a host are not to be given is refused at the door: with an error of ours, and nothing accepted."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from onrecord import Agent
from onrecord.errors import ConfigurationError, UsageError
from onrecord.host import Host
from onrecord.session.erasure import Retention
from onrecord.testing import ScriptedModel
from tests.host.hosting import hosted, said

pytestmark = pytest.mark.integration

HALF = "a\ud800b"

DOORS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "a policy that there is not": lambda host: host.send("s", "Hi", busy="nonsense"),
    "a history of nothing": lambda host: host.turn("s", "Hi", history=5),
    "a history of no messages": lambda host: host.turn("s", "Hi", history=[{"role": "nobody"}]),
    "one key for many": lambda host: host.cancel_pending("s", "said::m1"),
    "no keys": lambda host: host.cancel_pending("s", 5),
    "keys that are no texts": lambda host: host.cancel_pending("s", [1, None]),
    "a name that is half a character": lambda host: host.send(HALF, "Hi"),
    "such a name to ask about": lambda host: host.pending(HALF),
    "such a name to read": lambda host: anext(host.live(HALF)),
    "a place that is no number": lambda host: anext(host.live("s", after="x")),
    "a reader's place that is none": lambda host: anext(host.live("s", place="x")),
    "messages that are none": lambda host: host.erase("s", messages=5, why="asked"),
    "a message that is no id": lambda host: host.erase("s", messages=[5], why="asked"),
    "a policy of what is kept that is none": lambda host: host.expire(None),
    "a reset by nobody": lambda host: host.reset("nowhere", by=""),
    "a time to drain that is none": lambda host: host.close(drain_s="x"),
    "a time to drain that never ends or begins": lambda host: host.close(drain_s=math.nan),
}


@pytest.mark.parametrize("door", DOORS)
async def test_what_a_call_cannot_mean_is_refused(door: str) -> None:
    """The host goes on, nothing waits in it, and nothing of it is kept."""
    async with hosted(Agent(ScriptedModel("Hello."))) as host:
        with pytest.raises(UsageError):
            await DOORS[door](host)
        assert await host.store.rows("in") == []
        assert (await host.turn("s", "Hi")).text == "Hello."
        assert await said(host) == ["Hi", "Hello."]


WRONG: tuple[dict[str, Any], ...] = (
    {"turns": "x"}, {"turns": 2.5}, {"turns": 0}, {"turns": True}, {"lease_s": math.nan}, {"lease_s": "x"},
    {"lease_s": 1e6}, {"poll_s": math.inf}, {"poll_s": math.nan}, {"hot": None}, {"hot": -1}, {"retry": 5},
    {"retry": ("a",)}, {"retry": (math.nan,)}, {"retry": (1e20,)}, {"retry": (-1,)}, {"agents": {"x": "y"}},
    {"agents": 5}, {"only": ""}, {"only": HALF}, {"given": 5}, {"deliver": 5},
)  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_host_that_could_not_work_is_not_made(wrong: dict[str, Any]) -> None:
    """Where it is made, not in the middle of somebody's turn."""
    with pytest.raises((ConfigurationError, UsageError)):
        Host(Agent(ScriptedModel()), **wrong)


def test_ages_that_reach_before_the_calendar_keep_everything() -> None:
    """However old one may become; and an age that is none is refused where the policy is made."""
    assert Retention(entries=timedelta.max).entries == timedelta.max
    with pytest.raises(UsageError):
        Retention(kinds={"note": None})  # type: ignore[dict-item]  # what a caller without types writes


async def test_nothing_is_older_than_the_calendar() -> None:
    """Erasing by such ages erases nothing."""
    async with hosted(Agent(ScriptedModel("Hello."))) as host:
        await host.turn("s", "Hi")
        ages = {"entries": timedelta.max, "sessions": timedelta.max, "rows": timedelta.max}
        done = await host.expire(Retention(kinds={"note": timedelta.max}, **ages))
        assert (done.sessions, done.entries) == (0, 0)
        assert await said(host) == ["Hi", "Hello."]
