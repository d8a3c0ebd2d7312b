"""Ids and keys that meet: what two runs, two lines or two hosts could be taken for one by."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.errors import FlowInvalid
from onrecord.flows import Chain, Cooldown, Flow, FlowOptions, Flows, OnMention, OnMessage, OnSilence, Say, Wait
from tests.flows.playing import Play, said_by, skips, starts, wakes

pytestmark = pytest.mark.unit

PARKED: list[Any] = [Say("Hi.", id="s"), Wait("1d", id="w"), Say("Bye.", id="b")]


def lead(key: str) -> list[Any]:
    """The options of a turn for one lead."""
    return [FlowOptions(anchors={"lead": key})]


async def test_one_key_starts_one_run_whatever_its_anchor() -> None:
    """Runs are named after flow and key, so a second one could not be told from the first."""
    play = Play(Flow("f", anchor="lead", steps=PARKED), idle="silent")
    await play.started("f", key="k", options=lead("A"))
    second = await play.started("f", key="k", options=lead("B"))
    assert (starts(second), skips(second)) == ([], [("f", "k", "already-running")])
    assert [(run.id, run.anchor) for run in play.state.runs] == [("f#k", "A")]
    assert starts(await play.started("f", key="k2", options=lead("B"))) == ["f#k2"]


async def test_flows_whose_ids_run_into_keys_do_not_share_a_run() -> None:
    """``a#b`` with key ``k`` and ``a`` with key ``b#k`` would both be ``a#b#k``."""
    play = Play(Flow("a", steps=PARKED), Flow("a#b", steps=PARKED), idle="silent")
    assert starts(await play.started("a#b", key="k")) == ["a#b#k"]
    assert skips(await play.started("a", key="b#k")) == [("a", "b#k", "already-running")]
    assert [run.flow_id for run in play.state.runs] == ["a#b"]


def test_lines_said_once_under_one_key_are_refused() -> None:
    """``a`` / ``b:c`` and ``a:b`` / ``c`` have one claim: whoever spoke second would be silent for ever."""
    with pytest.raises(FlowInvalid) as caught:
        Flows(Flow("a", steps=[Say("x", id="b:c", once=True)]), Flow("a:b", steps=[Say("y", id="c", once=True)]))
    assert str(caught.value) == (
        'flow "a:b", step "c": is said once, and so is flow "a", step "b:c", under the same key'
    )
    Flows(Flow("a", steps=[Say("x", id="b:c", once=True)]), Flow("a:b", steps=[Say("y", id="c")]))


@pytest.mark.parametrize("hop", [-1, -300, -(2**63)])
async def test_flows_that_chain_in_circles_stop_whatever_depth_the_host_tells(hop: int) -> None:
    """A depth below nothing is none."""
    there = Flow("there", steps=[Say("There.", id="s", then=Chain("back"))])
    back = Flow("back", steps=[Say("Back.", id="s", then=Chain("there"))])
    play = Play(there, back, idle="silent")
    result = await play.started("there", hop=hop)
    assert len(said_by(result)) == 5
    assert [code for _, _, code in skips(result)] == ["hop-limit"]


@pytest.mark.parametrize("hop", [5, 10**9, 2**63 - 1])
async def test_a_start_from_too_deep_is_skipped(hop: int) -> None:
    """However deep that is."""
    play = Play(Flow("f", steps=PARKED), idle="silent")
    assert skips(await play.started("f", hop=hop)) == [("f", "k", "hop-limit")]


async def test_one_message_starts_a_flow_once_by_whatever_it_lists() -> None:
    """Its mention and its message have one key, and so would their runs."""
    triggers: list[Any] = [OnMention(repeat=Cooldown("0s")), OnMessage(repeat=Cooldown("0s"))]
    play = Play(Flow("f", on=triggers, steps=[Say("Hi.", id="s")]), idle="silent")
    result = await play.said(key="m1")
    assert (starts(result), said_by(result)) == (["f#m1"], [("Hi.", "verbatim", "f#m1:s:1")])
    assert skips(result) == [("f", "m1", "already-running")]
    assert starts(await play.said(key="m2")) == ["f#m2"]


@pytest.mark.parametrize(
    "key", ["a:b", "a#b", "100%", "é😀", "\u202e", "x" * 10_000, "idle:x", "silence:f:s1:1", "m1/2"]
)
async def test_keys_of_messages_may_be_anything(key: str) -> None:
    """A channel's ids are its own affair: each is taken once."""
    play = Play(Flow("f", on=[OnMessage(repeat="always")], steps=[Say("Hi.", id="s")]), idle="silent")
    result = await play.said(key=key)
    assert said_by(result) == [("Hi.", "verbatim", f"f#{key}:s:1")]
    assert (await play.said(key=key)).status == "ignored"


async def test_a_flow_named_like_a_silence_wakes() -> None:
    """Its timers begin with the word that silences have, and are its own all the same."""
    flow = Flow("silence:nudge", steps=PARKED)
    play = Play(flow, Flow("nudge", on=[OnSilence("1h")], steps=[Say("Still there?", id="s")]), idle="silent")
    timer, silence = (key for key, _ in wakes(await play.started("silence:nudge")))
    assert (timer.startswith("silence:nudge#k:w:"), silence.startswith("silence:nudge:s1:")) == (True, True)
    play.clock.advance(hours=1)
    assert [text for text, _, _ in said_by(await play.woke(silence))] == ["Still there?"]
    play.clock.advance(hours=23)
    assert [text for text, _, _ in said_by(await play.woke(timer))] == ["Bye."]


@pytest.mark.parametrize(
    "key",
    [
        "silence:", "silence:nudge", "silence:nudge:", "silence::1789898400000", "silence:nudge:s1:", "x", ":::",
        "silence:nudge:s1:-5", f"silence:nudge:s1:{'9' * 5000}", "silence:nudge:s1:1789898400001", "nudge#",
        "silence:nudge:s1:1789898400000 ", "silence:nudge:s1:\u0661\u0662", "hello#k:w:1:2",
        f"silence:{'x' * 100_000}:s1:1789898400000",
    ],
)  # fmt: skip
async def test_a_forged_wake_starts_nothing(key: str) -> None:
    """Nobody waits for it, or no such silence was kept: nothing is said."""
    nudge = Flow("nudge", on=[OnSilence("1h")], steps=[Say("Still there?", id="s")])
    play = Play(nudge, Flow("hello", steps=PARKED), idle="silent")
    await play.started("hello")
    before = play.kept.slots
    result = await play.woke(key)
    assert (said_by(result), starts(result)) == ([], [])
    assert [line.code for line in result.lines] in (["stale-wake"], ["silence-broken"], ["flow-gone"])
    assert play.kept.slots == before


async def test_a_wake_of_another_session_is_not_taken_for_ours() -> None:
    """Its key names that session, and its silence was another one."""
    play = Play(Flow("nudge", on=[OnSilence("1h")], steps=[Say("Still there?", id="s")]), Flow("hello", steps=PARKED))
    await play.started("hello")
    other = f"silence:nudge:s2:{1789898400000 + 5}"
    assert (await play.woke(other)).status == "ignored"
    assert said_by(await play.woke("hello#k2:w:1789984800000")) == []
