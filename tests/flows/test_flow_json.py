"""Flows as JSON: what is read is what was written, and the other way round."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given

from onrecord.errors import FlowInvalid
from onrecord.flows.fields import Field
from onrecord.flows.flow import Flow, FlowInstruction
from onrecord.flows.flow_json import from_spec, to_spec
from onrecord.flows.predicates import PredContext
from onrecord.flows.steps import Branch, Chain, Collect, Do, Goto, If, Say, Talk, Wait, WaitEvent
from onrecord.flows.triggers import Cooldown, OnEvent, OnMention, OnMessage, OnSilence
from onrecord.flows.validate import validate_flow
from onrecord.jsonio import Json, dumps, loads
from tests.flows.declared import EVERYTHING, KNOWN, PROMPT, spec
from tests.flows.drawing import flows

pytestmark = pytest.mark.unit


def test_what_is_read_is_written_back() -> None:
    """Q18: for a flow with every kind of step and trigger, in which nothing has its default."""
    assert to_spec(from_spec(EVERYTHING)) == EVERYTHING


UNSET = {
    "steps": ("description", "while", "tools"), "message": ("repeat", "only_if"), "prompt": ("label", "then", "ui"),
    "do": ("label", "on_fail", "ui"), "wait": ("then", "ui"), "when": ("only_if",), "cooldown": ("x",),
}  # fmt: skip
"""Keys that may be null beside another one."""


def with_nulls(value: Json) -> Json:
    """The same, with nulls for what it does not say."""
    if isinstance(value, list):
        return [with_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    unset = dict.fromkeys(key for name in value for key in UNSET.get(name, ()))
    return {**unset, **{name: with_nulls(item) for name, item in value.items()}}


def test_null_says_that_something_is_not_set() -> None:
    """Q18: at any depth, so that a model may be made to write every key; nulls of a list stay."""
    assert dumps(with_nulls(EVERYTHING)).count(b"null") > 20
    assert from_spec(with_nulls(EVERYTHING)) == from_spec(EVERYTHING)
    step = {"id": "a", "do": "notify", "with": {"text": "x", "none": None, "tags": ["a", None]}}
    assert to_spec(from_spec(spec(step)))["steps"][0]["with"] == {"text": "x", "tags": ["a", None]}


def test_a_flow_reads_as_the_value_it_is_in_python() -> None:
    """Each key where it belongs."""
    flow = from_spec(EVERYTHING)
    assert flow.on == (
        OnMessage("asks price", "!only thanks", repeat="always"),
        OnMessage(),
        OnMention("names a rival", extract={"quote": {"type": "string"}}, only_if="vip"),
        OnSilence("24h", business_hours=True, repeat=Cooldown("7d")),
        OnEvent("ping", after="1h", business_hours=True, only_if={"vip": "gold"}),
    )
    assert flow.steps == (
        Talk(
            "Greet.", id="a", tools=[],
            instructions=[
                FlowInstruction("Be brief.", kind="must", when=["asks", "!thanks"]),
                FlowInstruction("No prices.", kind="never", when="asks", only_if={"known": ["name"]}, id="i2"),
            ],
            branches=[
                Branch("wants a person", then=Chain("other", input={"a": [1]})),
                Branch(only_if={"equals": {"size": "1-10"}}, then="end"),
            ],
        ),
        Collect(
            "name", "ok", id="b", label="Who", prompt="Find out.", ask={"name": "Your name?"}, question="Who are you?",
            max_asks=2, tools=["price"], branches=[Branch("does not want to", then="c")], ui={"x": 1, "y": [2]},
        ),
        Say("Hi {{data.name}}", id="c", media="logo", once=True, after_ms=5, then=Goto("b", clear=["ok"])),
        Do("notify", id="d", args={"text": "{{data.name}}", "tags": ["new"]}, on_fail="end", then="w"),
        Wait("2d", id="w", business_hours=True, else_="e", branches=[Branch(only_if="vip", then="end")]),
        WaitEvent("booked", id="e", up_to="3d", else_="i"),
        WaitEvent("ping", id="e2"),
        If({"equals": {"ok": True}}, id="i", then=Goto("a", clear=["ok"]), else_="end"),
    )  # fmt: skip
    assert (flow.anchor, flow.while_, flow.on_end, flow.tools) == ("lead", {"silenced": False}, "stay", ("book",))
    assert flow.instructions == (FlowInstruction("Say you."),)


def test_what_has_its_default_is_not_written() -> None:
    """Written out it is understood and read as the same flow; the name is always written, and the kind of a step."""
    short = {"id": "f", "name": "f", "steps": [PROMPT]}
    usual = {
        "id": "f", "description": "", "on": [], "anchor": "session", "collect": [], "clear_on_start": [],
        "steps": [{"id": "a", "prompt": "Ask how to help.", "branches": [], "collect": [], "instructions": []}],
        "on_end": "end", "instructions": [],
    }  # fmt: skip
    assert to_spec(from_spec(usual)) == short
    assert from_spec(usual) == from_spec(short)


def test_values_of_python_are_written_as_json_has_them() -> None:
    """Lengths of time as text, fields as objects, and nothing shared with the flow."""
    args: dict[str, Any] = {"text": ["x"], "at": timedelta(hours=1), "none": None}
    flow = Flow(
        "f",
        on=[
            OnMention("a", extract={"q": Field(about="Quote")}),
            OnSilence(timedelta(hours=24), repeat=Cooldown(timedelta(days=7))),
        ],
        steps=[Wait(timedelta(milliseconds=1500)), WaitEvent("e", up_to=timedelta(days=1)), Do("notify", args=args)],
    )
    made = to_spec(flow)
    assert made["on"] == [
        {"mention": ["a"], "extract": {"q": {"about": "Quote"}}},
        {"silence": "86400s", "repeat": {"cooldown": "604800s"}},
    ]
    assert [step.get("wait") for step in made["steps"]] == ["1.5s", {"event": "e", "up_to": "86400s"}, None]
    assert made["steps"][2]["with"] == {"text": ["x"], "at": "PT3600S"}
    made["steps"][2]["with"]["text"].append("y")
    assert args["text"] == ["x"]


def gate(ctx: PredContext) -> bool:
    """A gate in code."""
    return ctx.run is None


@pytest.mark.parametrize(
    ("flow", "told"),
    [
        (Flow("f", steps=[If(gate, id="i")]), 'flow "f", step "i": if is a function'),
        (Flow("f", while_=gate), 'flow "f": while is a function'),
        (Flow("f", on=[OnMessage(only_if=gate)]), 'flow "f", trigger #1: only_if is a function'),
        (
            Flow("f", steps=[Talk("x", branches=[Branch(only_if=gate, then="end")])]),
            'flow "f", step "talk": branches[0].only_if is a function',
        ),
        (
            Flow("f", instructions=[FlowInstruction("x"), FlowInstruction("x", only_if=gate)]),
            'flow "f": instructions[1].only_if is a function',
        ),
    ],
)
def test_a_gate_that_is_a_function_cannot_be_written(flow: Flow, told: str) -> None:
    """Q18: it says where, and what to do instead."""
    with pytest.raises(FlowInvalid) as caught:
        to_spec(flow)
    assert str(caught.value) == f"{told}, which cannot be stored as JSON"
    assert "conditions=" in caught.value.hint


@pytest.mark.parametrize(
    ("flow", "told"),
    [
        (Flow("f", steps=[Talk("")]), "does nothing"),
        (Flow("f", steps=[Collect()]), "does nothing"),
        (Flow("f", steps=[Do("x", args={"a": object()})]), "holds what JSON cannot keep"),
        (Flow("f", steps=[Do("x", args={"a": "\ud800"})]), "holds what JSON cannot keep"),
        (Flow(""), "has no id"),
    ],
)
def test_what_could_not_be_read_is_not_written(flow: Flow, told: str) -> None:
    """A step that does nothing, and values that are no JSON."""
    with pytest.raises(FlowInvalid, match=told):
        to_spec(flow)


@given(flows())
def test_every_flow_survives_json(flow: Flow) -> None:
    """Q18: written, stored, and read it is equal; written again it is the same JSON."""
    made = to_spec(flow)
    again = from_spec(loads(dumps(made)))
    assert again == flow
    assert to_spec(again) == made


@given(flows())
def test_a_flow_and_its_json_are_judged_alike(flow: Flow) -> None:
    """The same warnings, and no refusal of either."""
    assert validate_flow(to_spec(flow), KNOWN) == validate_flow(flow, KNOWN)
