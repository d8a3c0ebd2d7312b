"""Cases N of the specification: a model that could not answer, and when the step speaks again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from onrecord.conversation.usage import Usage
from onrecord.errors import ErrorKind, ModelError
from onrecord.flows import Collect, Flow, Say, Talk
from onrecord.testing import call, raises, reply
from onrecord.tools.tool import Tool
from tests.flows.playing import Play, Result, after, ends, keys, line, lines, said_by, says, wakes

pytestmark = pytest.mark.unit

FLOW = Flow("f", steps=[Collect("name", id="q")])


def fails(kind: ErrorKind, **how: Any) -> ModelError:
    """A failure of a provider, with what it says about trying again."""
    return ModelError(f"scripted {kind}", kind=kind, provider="scripted", **how)


async def failed(answer: Any) -> tuple[Play, Result]:
    """A start whose first answer fails."""
    play = Play(FLOW)
    return play, await play.started("f", speak=[answer])


def check_over(play: Play, result: Result, code: str) -> None:
    """The step failed, the run is over, and no timer is armed."""
    assert lines(result) == [("q", "collect", "failed", code)]
    assert ends(result) == [("f#k", "failed")]
    assert (wakes(result), result.messages, play.state.runs) == ([], (), ())


def check_parked(play: Play, result: Result, code: str, at: datetime) -> None:
    """The step is deferred and speaks again at this time."""
    assert lines(result) == [("q", "collect", "deferred", code)]
    deferred = line(result, code)
    assert (deferred.key, deferred.until) == ("f#k:q:1", at)
    assert wakes(result) == [(f"f#k:q:1:retry:{int(at.timestamp() * 1000)}", at)]
    assert (play.statuses, result.messages, result.status) == ({"f": "waiting"}, (), "deferred")


@pytest.mark.parametrize("kind", ["auth", "entitlement"])
async def test_n2_auth(kind: ErrorKind) -> None:
    """No waiting mends a refused key."""
    check_over(*await failed(fails(kind)), "provider-auth")


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("context", "provider-context"),
        ("invalid", "provider-invalid"),
        ("model", "provider-invalid"),
        ("content", "provider-invalid"),
        ("aborted", "provider-unavailable"),
    ],
)
async def test_n3_context_invalid_model_content(kind: ErrorKind, code: str) -> None:
    """Nor a request that the provider will refuse again."""
    check_over(*await failed(fails(kind)), code)


@pytest.mark.parametrize("kind", ["timeout", "network", "overload", "rate", "unknown"])
async def test_n3_what_may_pass(kind: ErrorKind) -> None:
    """Trouble that may pass is waited for, a minute at first."""
    check_parked(*await failed(fails(kind)), "provider-unavailable", after(minutes=1))


async def test_n4_quota() -> None:
    """A spent quota is worth waiting for only until a time that the provider states."""
    check_over(*await failed(fails("quota")), "provider-quota")
    check_parked(*await failed(fails("quota", reset_at=after(hours=5))), "provider-quota", after(hours=5))
    check_parked(*await failed(fails("quota", reset_at=after(hours=-1))), "provider-quota", after(minutes=1))


async def test_n5_stated_retry() -> None:
    """A provider that says whether to try again is believed, in both directions."""
    check_over(*await failed(fails("overload", status=503, should_retry=False)), "provider-unavailable")
    check_parked(*await failed(fails("auth", should_retry=True)), "provider-auth", after(minutes=1))


@pytest.mark.parametrize("message", ["", "  \n", None])
async def test_n6_empty_message(message: str | None) -> None:
    """A reply without words is none."""
    check_parked(*await failed(says(message)), "provider-unavailable", after(minutes=1))


async def test_n9_say_before_failure() -> None:
    """What was said before the failure goes out; the step behind it waits."""
    play = Play(Flow("f", steps=[Say("A", id="s"), Collect("name", id="q")]))
    result = await play.started("f", speak=[raises("network")])
    assert said_by(result) == [("A", "verbatim", "f#k:s:1")]
    assert lines(result) == [("s", "say", "ok", None), ("q", "collect", "deferred", "provider-unavailable")]
    assert (play.statuses, result.changed) == ({"f": "waiting"}, True)


async def test_n10_usage() -> None:
    """Rounds that succeeded are counted; where nobody counted there is no count, and no zero."""
    used = Usage(input_tokens=10, output_tokens=5)
    play = Play(FLOW, tools=[Tool("price", lambda *_: 1)])
    first = reply(*says("Let me see").chunks, call("price"), usage=used)
    result = await play.started("f", speak=[first, raises("network")])
    assert (result.usage, result.llm_calls) == (used, 2)
    _, result = await failed(raises("network"))
    assert result.usage is None


async def test_n_six_failures_in_a_row() -> None:
    """The waits grow: 1 m, 5 m, 15 m, 1 h, 6 h, always under the key of the same visit; the sixth failure ends it."""
    play = Play(FLOW)
    result = await play.started("f", speak=[raises("overload")])
    for minutes in (1, 5, 15, 60, 360):
        play.clock.advance(minutes=minutes)
        check_parked_for(result, timedelta(minutes=minutes), play.clock.at)
        result = await play.woke(wakes(result)[0][0], speak=[raises("overload")])
    check_over(play, result, "provider-unavailable")


def check_parked_for(result: Result, wait: timedelta, due: datetime) -> None:
    """Deferred by so long, until now."""
    ((key, at),) = wakes(result)
    assert (at, key.rsplit(":", 1)) == (due, ["f#k:q:1:retry", str(int(due.timestamp() * 1000))])
    assert line(result, "provider-unavailable").at == due - wait


async def test_n_the_retry_speaks() -> None:
    """The wake speaks the step again, without running what stands before it, under the first attempt's key."""
    play = Play(Flow("f", steps=[Say("A", id="s"), Collect("name", id="q")]))
    result = await play.started("f", speak=[raises("network")])
    play.clock.advance(minutes=1)
    again = await play.woke(wakes(result)[0][0], speak=[says("Name?")])
    assert said_by(again) == [("Name?", "ai", "f#k:q:1")]
    assert (play.statuses, dict(play.run("f").asked), dict(play.run("f").visits)) == (
        {"f": "asking"}, {"name": 1}, {"s": 1, "q": 1}
    )  # fmt: skip


async def test_n_failures_are_counted_in_a_row() -> None:
    """A step that has spoken begins its waits anew."""
    play = Play(Flow("f", steps=[Collect("ok", id="q"), Talk("Thank them.", id="t")]))
    result = await play.started("f", speak=[raises("network")])
    play.clock.advance(minutes=1)
    await play.woke(wakes(result)[0][0], speak=[says("Right?")])
    result = await play.said(speak=[raises("network")])
    assert [at for _, at in wakes(result)] == [play.clock.at + timedelta(minutes=1)]


async def test_n_idle() -> None:
    """The idle speaker has no run to park: one line, and no timer."""
    play = Play()
    result = await play.said(speak=[raises("network")])
    assert lines(result) == [(None, "idle", "deferred", "provider-unavailable")]
    deferred = line(result, "provider-unavailable")
    assert (deferred.key, deferred.llm_calls, wakes(result), keys(result)) == (None, 1, [], [])
