"""Ids and keys that meet: what two runs, two lines or two hosts could be taken for one by."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.errors import FlowInvalid
from onrecord.flows import Chain, Cooldown, Flow, FlowOptions, Flows, OnMention, OnMessage, Say, Wait
from tests.flows.playing import Play, said_by, skips, starts

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
