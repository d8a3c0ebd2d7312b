"""What a flow may name, and what is warned of; what a whole agent is checked for."""

import pytest

from onrecord.errors import FlowInvalid, ToolInvalid
from onrecord.flows.flow import Flow, FlowInstruction, Idle
from onrecord.flows.flow_json import from_spec
from onrecord.flows.steps import Branch, Chain, Collect, Goto, If, Say, Talk, Wait
from onrecord.flows.validate import Registries, check_instructions, check_tools, check_unique, validate_flow
from onrecord.jsonio import Json
from onrecord.tools.tool import Tool
from tests.flows.declared import EVERYTHING, KNOWN, NOTIFY, PROMPT, done, refusal, spec

pytestmark = pytest.mark.unit

LATER = {"id": "z", "say": "Bye."}


def test_a_flow_of_everything_is_fine() -> None:
    """Every kind of step and trigger, as JSON and as a value, without a warning."""
    assert validate_flow(EVERYTHING, KNOWN) == ()
    assert validate_flow(from_spec(EVERYTHING), KNOWN) == ()


# ---- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flow", "told", "hint"),
    [
        pytest.param(
            spec({"id": "a", "collect": ["nope"]}), 'step "a": unknown field "nope" in collect', "there are", id="Q3",
        ),
        (spec({"id": "a", "collect": ["naame"]}), 'step "a": unknown field "naame" in collect', 'did you mean "name"?'),
        (spec(PROMPT, collect=["nope"]), 'flow "f": unknown field "nope" in collect', ""),
        (spec(PROMPT, clear_on_start=["nope"]), 'flow "f": unknown field "nope" in clear_on_start', ""),
        (spec({"id": "a", "collect": ["name"], "ask": {"nope": "?"}}), 'unknown field "nope" in ask', ""),
        (spec(PROMPT | {"then": {"step": "z", "clear": ["nope"]}}, LATER), 'unknown field "nope" in clear', ""),
        (spec({"id": "a", "if": {"equals": {"nope": 1}}}), 'step "a": unknown field "nope" in equals', ""),
        (spec({"id": "a", "if": {"known": ["nope"]}}), 'step "a": unknown field "nope" in known', ""),
        pytest.param(
            spec({"id": "a", "do": "ghost"}), 'step "a": unknown action "ghost"', 'there are "notify"', id="Q5",
        ),
        (spec(PROMPT, on=[{"event": "pong"}]), 'trigger #1: unknown event "pong"', 'did you mean "ping"?'),
        (spec({"id": "a", "wait": {"event": "pong"}}), 'step "a": unknown event "pong"', 'did you mean "ping"?'),
        (spec({"id": "a", "if": "vpi"}), 'step "a": unknown condition "vpi" in if', 'did you mean "vip"?'),
        (spec(PROMPT, **{"while": {"nope": 1}}), 'flow "f": unknown condition "nope" in while', ""),
        (spec(PROMPT, on=[{"message": [], "only_if": "nope"}]), 'trigger #1: unknown condition "nope" in only_if', ""),
        (
            spec(PROMPT | {"branches": [{"when": "x", "then": "end"}, {"only_if": "nope", "then": "end"}]}),
            'unknown condition "nope" in branches[1].only_if', "",
        ),
        (
            spec({"id": "a", "wait": "1d", "branches": [{"only_if": "nope", "then": "end"}]}),
            'unknown condition "nope" in branches[0].only_if', "",
        ),
        (
            spec(PROMPT, instructions=[{"prompt": "x", "only_if": "nope"}]),
            'flow "f": unknown condition "nope" in instructions[0].only_if', "",
        ),
        (
            spec(PROMPT | {"instructions": [{"prompt": "x", "only_if": "nope"}]}),
            'step "a": unknown condition "nope" in instructions[0].only_if', "",
        ),
        (spec(PROMPT | {"tools": ["prise"]}), 'step "a": unknown tool "prise"', 'did you mean "price"?'),
        (spec(PROMPT, tools=["x"]), 'flow "f": unknown tool "x"', ""),
        pytest.param(
            spec(PROMPT | {"then": "x"}), 'step "a": then points at step "x", which does not exist', "", id="Q4",
        ),
        (spec({"id": "a", "if": "vip", "else": "x"}), 'else points at step "x", which does not exist', ""),
        (spec({"id": "a", "do": "close", "on_fail": {"step": "x"}}), 'on_fail points at step "x"', ""),
        (spec({"id": "a", "wait": "1d", "else": "aa"}), 'else points at step "aa"', 'did you mean "a"?'),
        (spec({"id": "a", "wait": {"event": "ping"}, "else": "x"}), 'else points at step "x"', ""),
        (
            spec(PROMPT | {"branches": [{"when": "q", "then": "x"}]}),
            'branches[0].then points at step "x", which does not exist', "",
        ),
    ],
)  # fmt: skip
def test_a_name_that_nothing_has_is_refused_with_its_place(flow: Json, told: str, hint: str) -> None:
    """And with the nearest right one, or those there are."""
    message, help_with = refusal(flow)
    assert told in message
    assert message.startswith('flow "f"')
    assert hint in help_with


def test_names_that_are_not_known_yet_are_not_checked() -> None:
    """Tools and flows of an agent are known last; everything else is."""
    flow = Flow("f", steps=[Talk("x", tools=["later"], then=Chain("later"))], tools=["too"])
    assert validate_flow(flow, Registries()) == ()
    assert "unknown tool" in refusal(flow, Registries(tools=frozenset()))[0]


# ---- warnings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flow", "told"),
    [
        (spec(PROMPT, {"id": "b", "say": "x", "then": "a"}), 'step "b": then goes back to "a" and clears nothing'),
        (spec(PROMPT | {"then": "a"}), 'step "a": then goes back to "a" and clears nothing'),
        (spec(PROMPT, {"id": "b", "if": "vip", "else": {"step": "a"}}), 'step "b": else goes back to "a"'),
        (spec(PROMPT, {"id": "b", "do": "close", "on_fail": "a"}), 'step "b": on_fail goes back to "a"'),
        (
            spec(PROMPT | {"branches": [{"when": "x", "then": "a"}]}),
            'step "a": branches[0].then goes back to "a"',
        ),
        (spec({"id": "a", "collect": ["model"]}), 'step "a": nothing says how to ask'),
        (spec(PROMPT, collect=["name", "ok"]), 'collect has "ok", which is taken only where asked'),
        (
            spec({"id": "a", "wait": "1d", "branches": [{"when": "x", "then": "end"}]}),
            'step "a": a when branch of a wait is never judged',
        ),
        (spec(PROMPT | {"then": {"flow": "othr"}}), 'then starts flow "othr", which this agent does not have'),
    ],
)
def test_what_works_but_is_hardly_meant_is_told(flow: Json, told: str) -> None:
    """Once, with its place; nothing is refused."""
    (warning,) = validate_flow(flow, KNOWN)
    assert warning.startswith('flow "f"')
    assert told in warning


@pytest.mark.parametrize(
    "flow",
    [
        spec(PROMPT, {"id": "b", "say": "x", "then": {"step": "a", "clear": ["ok"]}}),
        spec(PROMPT | {"then": "b"}, {"id": "b", "say": "x"}),
        spec({"id": "a", "collect": ["model", "name"]}),
        spec({"id": "a", "collect": ["model"], "ask": {"model": "Which?"}}),
        spec({"id": "a", "collect": ["model"], "prompt": "Ask."}),
        spec({"id": "a", "collect": ["model"], "question": "Which?"}),
        spec({"id": "a", "collect": ["ok"]}, collect=["ok", "name"]),
        spec({"id": "a", "wait": "1d", "branches": [{"only_if": "vip", "then": "end"}]}),
        spec(PROMPT | {"then": {"flow": "other"}}),
        spec(PROMPT | {"then": {"flow": "{{data.model}}"}}),
        spec(PROMPT, {"id": "b", "if": "vip", "then": {"step": "a", "clear": ["ok"]}, "else": "end"}),
    ],
)
def test_what_is_meant_is_not_warned_of(flow: Json) -> None:
    """The other side of every warning."""
    assert validate_flow(flow, KNOWN) == ()


def test_warnings_come_all_and_in_the_order_of_the_flow() -> None:
    """Unlike refusals, which end the checking."""
    flow = spec({"id": "a", "collect": ["model"], "then": "a"}, {"id": "b", "wait": "1d", "then": "b"}, collect=["ok"])
    told = validate_flow(flow, KNOWN)
    assert ["collect has" in told[0], "how to ask" in told[1], 'step "a": then' in told[2], 'step "b"' in told[3]] == [
        True
    ] * 4
    assert len(told) == 4


# ---- a whole agent ---------------------------------------------------------------------------------------------------


def test_two_flows_with_one_id_are_refused() -> None:
    """Q1: with the id, so that one can be renamed."""
    check_unique([Flow("x"), Flow("y")])
    with pytest.raises(FlowInvalid, match='flow "x" is declared twice') as caught:
        check_unique([Flow("x"), Flow("y"), Flow("x")])
    assert caught.value.hint == "Rename one of them."


def test_parameters_that_are_no_object_schema_are_refused_by_the_tool_itself() -> None:
    """Q13: a map of parameters is no JSON Schema; the message names the tool."""
    with pytest.raises(ToolInvalid, match="'weather'"):
        Tool("weather", done, parameters={"city": {"type": "string"}})


TOOLS = {"price": NOTIFY}


def test_tools_are_checked_when_all_are_known() -> None:
    """Q14: those of the idle speaker, of a flow and of a step."""
    check_tools(Flow("f", steps=[Talk("x", tools=["price"]), Say("x")]), Idle(tools=["price"]), TOOLS, open=False)
    check_tools(None, "silent", TOOLS, open=False)
    for flow, idle, told in (
        (None, Idle(tools=["x"]), 'idle: unknown tool "x"'),
        (Flow("f", tools=["x"]), None, 'flow "f": unknown tool "x"'),
        (Flow("f", steps=[Collect("a", tools=["x"])]), None, 'flow "f", step "collect": unknown tool "x"'),
    ):
        with pytest.raises(FlowInvalid) as caught:
            check_tools(flow, idle, TOOLS, open=False)
        assert str(caught.value) == told
        check_tools(flow, idle, TOOLS, open=True)


def test_instructions_of_an_agent_are_checked_like_those_of_a_flow() -> None:
    """Their gates, too: one that names nothing would silently never apply."""
    check_instructions([FlowInstruction("x", only_if="vip")], KNOWN, "agent")
    with pytest.raises(FlowInvalid) as caught:
        check_instructions([FlowInstruction("x", only_if="vpi")], KNOWN, "agent")
    assert str(caught.value) == 'agent: unknown condition "vpi" in instructions[0].only_if'
    with pytest.raises(FlowInvalid, match="idle: instructions"):
        check_instructions(["x"], KNOWN, "idle")  # type: ignore[list-item] # a mistake


def test_a_flow_written_in_python_may_go_back_on_purpose() -> None:
    """With a gate that has an else, with what it forgets, and by a branch; all in one."""
    flow = Flow(
        "f",
        steps=[
            Collect("name", branches=[Branch("asks to start over", then=Goto("collect", clear=["name"]))]),
            Wait("1d", else_="collect2"),
            Collect("ok", id="collect2"),
            If({"equals": {"ok": True}}, then=Goto("collect", clear=["ok"]), else_="end"),
        ],
    )
    assert validate_flow(flow, KNOWN) == ()
