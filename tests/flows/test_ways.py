"""Ways out of steps, and steps that nothing leads to."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from onrecord.flows.captions import gate_caption, lasting, step_caption
from onrecord.flows.flow import Flow
from onrecord.flows.predicates import PredContext
from onrecord.flows.steps import Branch, Chain, Collect, Do, Goto, If, Say, Step, Talk, Wait, WaitEvent
from onrecord.flows.ways import Way, dead_steps, ways_out

pytestmark = pytest.mark.unit


def test_the_way_on_is_the_next_step_and_behind_the_last_one_the_end() -> None:
    """Where a step does not say otherwise."""
    flow = Flow("f", steps=[Say("a", id="a"), Say("b", id="b")])
    assert ways_out(flow, flow.steps[0]) == (Way(name="then", target=None, to="b"),)
    assert ways_out(flow, flow.steps[1]) == (Way(name="then", target=None, to="end"),)


def test_ways_stand_in_the_order_in_which_they_are_tried() -> None:
    """Branches, then what follows when none was taken."""
    goes, chained = Goto("a", clear=["city"]), Chain("other")
    flow = Flow(
        "f", steps=[Collect("city", id="a", branches=[Branch("x", then=goes), Branch(only_if="y", then=chained)])]
    )
    branch, code, then = ways_out(flow, flow.steps[0])
    assert (branch.name, branch.to, branch.when, branch.clears, branch.flow) == ("branches", "a", "x", ("city",), "")
    assert (code.name, code.to, code.only_if, code.clears, code.flow) == ("branches", "", "y", (), "other")
    assert (then.name, then.to) == ("then", "end")


@pytest.mark.parametrize(
    ("step", "others"),
    [
        (Do("x", id="a"), []),
        (Do("x", id="a", on_fail="b"), [("on_fail", "b")]),
        (Wait("1d", id="a", branches=[Branch(only_if="y", then="b")]), []),
        (Wait("1d", id="a", else_="end", branches=[Branch("x", then="b"), Branch(only_if="y", then="b")]),
         [("branches", "b"), ("else", "end")]),
        (WaitEvent("paid", id="a"), [("else", "end")]),
        (WaitEvent("paid", id="a", else_="b"), [("else", "b")]),
        (If("x", id="a"), [("else", "end")]),
    ],
)  # fmt: skip
def test_each_kind_of_step_has_the_ways_it_can_take(step: Step, others: list[tuple[str, str]]) -> None:
    """A wait looks at replies only when it has an else, and never asks a model about them."""
    flow = Flow("f", steps=[step, Say("b", id="b")])
    assert [(way.name, way.to) for way in ways_out(flow, step) if way.name != "then"] == others


@pytest.mark.parametrize(
    ("steps", "dead"),
    [
        ([], ()),
        ([Say("a", id="a"), Say("b", id="b")], ()),
        ([Say("a", id="a", then="end"), Say("b", id="b"), Say("c", id="c")], ("b", "c")),
        ([Say("a", id="a", then="c"), Say("b", id="b"), Say("c", id="c")], ("b",)),
        ([Talk("a", id="a", then=Chain("x")), Say("b", id="b", then="a")], ("b",)),
        ([Talk("a", id="a", then=Chain("x"), branches=[Branch("q", then=Goto("b"))]), Say("b", id="b")], ()),
        ([If("x", id="a", then="a", else_="c"), Say("b", id="b"), Say("c", id="c", then="a")], ("b",)),
        ([Wait("1d", id="a", then="end", branches=[Branch(only_if="x", then="b")]), Say("b", id="b")], ("b",)),
        ([Do("x", id="a", then="end", on_fail="b"), Say("b", id="b")], ()),
        ([WaitEvent("x", id="a", then="a", else_="nowhere"), Say("b", id="b")], ("b",)),
    ],
)
def test_a_step_that_nothing_leads_to_is_dead(steps: list[Step], dead: tuple[str, ...]) -> None:
    """Counted from the first step, whatever points at whatever behind it."""
    assert dead_steps(Flow("f", steps=steps)) == dead


def is_member(ctx: PredContext) -> bool:
    """A gate with a name."""
    return bool(ctx.data)


class Gate:
    """A gate that is an object."""

    def __call__(self, ctx: PredContext) -> bool:
        """Open where anything is known."""
        return bool(ctx.data)


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        (is_member, "is_member"),
        (lambda _: True, "code says so"),
        (Gate(), "Gate"),
        ("is_member", "is_member"),
        ({"is_member": True}, "is_member"),
        ({"is_member": False, "silenced": None}, "not is_member"),
        ({"known": ["a", "b"], "equals": {"c": "x", "d": 3}}, "a is known and b is known and c is x and d is 3"),
        ({"older_than": 18}, "older_than 18"),
        ({"equals": "wrong", "known": "wrong"}, "equals wrong and known wrong"),
        ({"of": object()}, "of object"),
        ({}, "nothing is asked"),
    ],
)
def test_a_gate_is_told_by_what_it_looks_at(gate: Any, text: str) -> None:
    """Functions by their names, JSON in words; what could not be one is shown, not refused."""
    assert gate_caption(gate, 0) == text


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Talk(), "talks"),
        (Say("", media="photo"), "says [photo]"),
        (Say("Look", media="photo"), "says “Look” and [photo]"),
        (Wait("2d", business_hours=True), "waits 2d, in business hours"),
        (WaitEvent("paid", up_to="3d"), "waits for paid, up to 3d"),
    ],
)
def test_a_step_is_told_by_what_it_does(step: Step, text: str) -> None:
    """In a few words."""
    assert step_caption(step) == text


def test_a_length_of_time_reads_as_one_writes_it() -> None:
    """Whatever it was given as."""
    assert lasting("1.5d") == "1.5d"
    assert lasting(timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)) == "1d 2h 3m 4s 5ms"
    assert lasting(timedelta()) == "0s"
