"""The key formats of the specification (section 13), each as a turn makes it.

Hosts keep these keys in queues and databases, so they are exact. Where a case makes the same key with a name for a
reason of its own, it is tested there too.
"""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.flows import (
    Chain,
    Collect,
    Defer,
    Do,
    Flow,
    OnEvent,
    OnMention,
    OnMessage,
    OnSilence,
    Say,
    Talk,
    Wait,
    WaitEvent,
)
from onrecord.testing import raises
from onrecord.timing import iso_ms, to_ms
from onrecord.tools.tool import Tool
from tests.flows.playing import T0, Play, after, keys, said_by, says, skips, starts, wakes

pytestmark = pytest.mark.unit

MS = 1789898400000
NOTIFY = Do("notify", id="n")
CATCH = Flow("f", on=[OnMessage()], steps=[Talk("Answer.", id="t")])


def test_the_instants() -> None:
    """Epoch milliseconds in decimal, and ISO 8601 in UTC with three digits and a Z."""
    assert (to_ms(T0), iso_ms(T0)) == (MS, "2026-09-20T10:00:00.000Z")


# ---- trigger keys, by way of run ids: {flow}#{trigger key} -----------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "trigger"),
    [
        ({"key": "wamid.1"}, "wamid.1"),
        ({"key": "wamid.1", "at": after(minutes=-1)}, "wamid.1"),
        ({"key": None, "at": after(minutes=-1)}, "2026-09-20T09:59:00.000Z"),
        ({"key": None}, "2026-09-20T10:00:00.000Z"),
    ],
    ids=["id", "id before at", "at", "now"],
)
async def test_trigger_key_of_a_message(how: dict[str, Any], trigger: str) -> None:
    """Its id; without one when it was received; without that now. So it is for mentions."""
    play = Play(CATCH, Flow("m", on=[OnMention()], steps=[NOTIFY]))
    result = await play.said(speak=[says("Hello")], **how)
    assert sorted(map(str, starts(result))) == [f"f#{trigger}", f"m#{trigger}"]
    assert [key for key, _, _ in play.notified] == [f"m#{trigger}:n:1"]


async def test_trigger_key_of_a_silence() -> None:
    """When the assistant spoke last, in milliseconds."""
    play = Play(Flow("s", on=[OnSilence("1h")], steps=[NOTIFY]))
    await play.said(speak=[says("Hello")])
    play.clock.advance(hours=1)
    assert starts(await play.woke(f"silence:s:s1:{MS}")) == [f"s#{MS}"]


async def test_trigger_key_of_events_and_starts() -> None:
    """The host's own key."""
    play = Play(Flow("e", on=[OnEvent("ping")], steps=[NOTIFY]), events=["ping"])
    assert starts(await play.happened("ping", key="order:7")) == ["e#order:7"]
    assert starts(await play.started("e", key="order:8")) == ["e#order:8"]


async def test_trigger_key_of_a_chain() -> None:
    """The key of the step that chained."""
    play = Play(Flow("a", steps=[Do("notify", id="n", then=Chain("b"))]), Flow("b", steps=[NOTIFY]))
    assert starts(await play.started("a", key="k")) == ["a#k", "b#a#k:n:1"]


async def test_trigger_key_of_a_reset() -> None:
    """The key of the flow's last step in the run that was over."""
    play = Play(Flow("f", steps=[WaitEvent("go", id="w"), NOTIFY], on_end="reset"), events=["go"])
    await play.started("f", key="k")
    result = await play.happened("go", key="e1")
    assert starts(result) == ["f#f#k:n:1"]
    fresh = play.run("f")
    assert (fresh.trigger_kind, fresh.trigger_key, fresh.hop) == ("flow", "f#k:n:1", 1)


# ---- step keys: {run}:{step}:{visit} ---------------------------------------------------------------------------------


async def test_step_key() -> None:
    """A message, an action and a line of one step share the key of its visit."""
    play = Play(Flow("f", steps=[NOTIFY, Say("A", id="a"), Talk("B.", id="b")]))
    result = await play.started("f", speak=[says("B")])
    assert [key for key, _, _ in play.notified] == ["f#k:n:1"]
    assert keys(result) == ["f#k:a:1", "f#k:b:1"]
    assert [each.key for each in result.outcomes] == ["f#k:n:1", "f#k:a:1", "f#k:b:1"]


async def test_second_message_of_a_visit() -> None:
    """The step key with ``/2``."""
    flow = Flow("f", steps=[Collect("model", id="m"), Collect("name", id="q", question="Name?")])
    play = Play(flow)
    await play.started("f", speak=[says("Which?")])
    result = await play.said(judge={"fields": {"model": "X"}, "asks": True}, speak=[says("So much.")])
    assert said_by(result) == [("So much.", "ai", "f#k:q:1"), ("Name?", "verbatim", "f#k:q:1/2")]


async def test_later_messages_of_a_visit() -> None:
    """A step that asks again in a later turn is at the same visit: ``/2``, then ``/3``; its lines keep the step key."""
    play = Play(Flow("f", steps=[Collect("ok", id="q")]))
    sent = [await play.started("f", speak=[says("Right?")])]
    sent += [await play.said(key=key, speak=[says("Right?")]) for key in ("m1", "m2")]
    assert [keys(result) for result in sent] == [["f#k:q:1"], ["f#k:q:1/2"], ["f#k:q:1/3"]]
    assert [each.key for result in sent for each in result.outcomes] == ["f#k:q:1"] * 3


@pytest.mark.parametrize(("key", "shown"), [("m1", "idle:m1"), (None, "idle:2026-09-20T10:00:00.000Z")])
async def test_idle_message_key(key: str | None, shown: str) -> None:
    """``idle:`` and the trigger key."""
    assert keys(await Play().said(key=key, speak=[says("Hello")])) == [shown]


# ---- wakes -----------------------------------------------------------------------------------------------------------


async def test_wake_of_a_timer_wait() -> None:
    """``{run}:{step}:{ms}``, when it is over."""
    play = Play(Flow("f", steps=[Wait("90m", id="w"), NOTIFY]))
    assert wakes(await play.started("f")) == [("f#k:w:1789903800000", after(minutes=90))]


async def test_wake_of_an_event_wait() -> None:
    """The same, when it gives up."""
    play = Play(Flow("f", steps=[WaitEvent("go", id="w", up_to="10m"), NOTIFY]), events=["go"])
    assert wakes(await play.started("f")) == [("f#k:w:1789899000000", after(minutes=10))]


async def test_wake_of_a_deferred_action() -> None:
    """The same, when it runs again."""
    later = Tool("later", lambda *_: Defer("10m"))
    play = Play(Flow("f", steps=[Do("later", id="d")]), actions=[later])
    assert wakes(await play.started("f")) == [("f#k:d:1789899000000", after(minutes=10))]


async def test_wake_of_a_delayed_trigger() -> None:
    """``{run}:start:{ms}``."""
    play = Play(Flow("f", on=[OnEvent("ping", after="10m")], steps=[NOTIFY]), events=["ping"])
    assert wakes(await play.happened("ping", key="e1")) == [("f#e1:start:1789899000000", after(minutes=10))]


async def test_wake_of_a_retry() -> None:
    """``{step key}:retry:{ms}``."""
    play = Play(Flow("f", steps=[Talk("Hi.", id="t")]))
    result = await play.started("f", speak=[raises("network")])
    assert wakes(result) == [("f#k:t:1:retry:1789898460000", after(minutes=1))]


@pytest.mark.parametrize(("flow", "session"), [("s", "s1"), ("crm:nudge", "s1"), ("a:s1:b", "s1"), ("s", "wa:+55:1")])
async def test_wake_of_a_silence(flow: str, session: str) -> None:
    """``silence:{flow}:{session}:{ms}``; it finds its flow again also where ids hold colons."""
    play = Play(Flow(flow, on=[OnSilence("1h")], steps=[NOTIFY]), id=session)
    result = await play.said(speak=[says("Hello")])
    assert wakes(result) == [(f"silence:{flow}:{session}:{MS}", after(hours=1))]
    play.clock.advance(hours=1)
    assert starts(await play.woke(f"silence:{flow}:{session}:{MS}")) == [f"{flow}#{MS}"]


async def test_silence_of_a_flow_that_is_gone() -> None:
    """Its wake is skipped by that name, and is not taken for another's."""
    play = Play(Flow("s", on=[OnSilence("1h")], steps=[NOTIFY]))
    await play.said(speak=[says("Hello")])
    edited = Play(Flow("t", on=[OnSilence("1h")], steps=[NOTIFY]), session=play.kept, at=after(hours=1))
    result = await edited.woke(f"silence:s:s1:{MS}")
    assert [(flow, code) for flow, _, code in skips(result)] == [("s", "flow-gone")]
    assert edited.notified == []


# ---- claims: {flow}:{anchor}:{nonce} ---------------------------------------------------------------------------------


async def test_dedupe_key() -> None:
    """The nonce is the trigger key of what always repeats, and empty for the rest."""
    play = Play(
        Flow("once", on=[OnMention()], steps=[NOTIFY]), Flow("often", on=[OnMention(repeat="always")], steps=[NOTIFY])
    )
    await play.said(key="m1", speak=[says("Hello")])
    assert [dedupe for _, dedupe, _ in play.notified] == ["once:s1:", "often:s1:m1"]
    assert [*play.claims] == ["once:s1:", "often:s1:m1"]


async def test_claim_of_a_line_said_once() -> None:
    """``{flow}:{step}:{session}``."""
    play = Play(Flow("f", steps=[Say("A", id="a", once=True)]))
    await play.started("f", key="k")
    assert play.claims == {"f:s1:k": T0, "f:a:s1": T0}


# ---- replays ---------------------------------------------------------------------------------------------------------


async def test_a_replay_makes_the_same_keys() -> None:
    """The same input on the same session gives the same keys and the same result."""
    flow = Flow("f", on=[OnMessage()], steps=[NOTIFY, Talk("Answer.", id="t"), Wait("1h", id="w"), Say("B", id="b")])
    play = Play(flow)
    first = await play.said(key="m1", speak=[says("Hello")])
    play.session = None
    second = await play.said(key="m1", speak=[says("Hello")])
    assert keys(first) == keys(second) == ["f#m1:t:1"]
    assert wakes(first) == wakes(second) == [("f#m1:w:1789902000000", after(hours=1))]
    assert [key for key, _, _ in play.notified] == ["f#m1:n:1"] * 2
