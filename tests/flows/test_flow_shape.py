"""The shape of a flow: every refusal that no registry could mend, with its place."""

import pytest

from onrecord.flows.flow import Flow
from onrecord.flows.steps import Collect, Do, Say, Talk, WaitEvent
from onrecord.flows.triggers import Cooldown, OnEvent, OnMention, OnMessage, OnSilence
from onrecord.flows.validate import validate_flow
from onrecord.jsonio import Json
from tests.flows.declared import KNOWN, PROMPT, refusal, spec

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("flow", "told"),
    [
        ({"steps": []}, "flow: has no id"),
        ({"id": "", "steps": []}, "flow: has no id"),
        ({"id": "f"}, 'flow "f": has no steps'),
        ({"id": "f", "steps": {}}, 'flow "f": steps must be a list, got object'),
        (spec({"prompt": "x"}), 'flow "f", step #1: has no id'),
        (spec(PROMPT, {"id": 3, "prompt": "x"}), 'flow "f", step #2: has no id'),
        pytest.param(spec({"id": "end", "prompt": "x"}), 'flow "f", step #1: uses the reserved id "end"', id="Q2"),
        (spec(PROMPT, PROMPT), 'flow "f", step #2: has the id "a", which an earlier step has'),
        pytest.param(spec(on=[{"message": []}]), 'flow "f": has triggers but no steps', id="Q16"),
        pytest.param(
            spec(PROMPT, on=[{"kind": "message", "when": ["x"]}]),
            'flow "f", trigger #1: names no trigger kind', id="Q9",
        ),
        (spec(PROMPT, on=[{"message": [], "event": "ping"}]), "trigger #1: mixes message and event"),
        pytest.param(
            spec(PROMPT, on=[{"message": []}, {"mention": ["!a", "!b"]}]),
            'trigger #2: every mention phrase starts with "!", so nothing can ever match it', id="Q11",
        ),
        (spec(PROMPT, on=[{"message": ["!a", " "]}]), 'every message phrase starts with "!"'),
        (spec(PROMPT, on=[{"message": ["", " ! "]}]), "every message phrase is blank"),
        (spec(PROMPT, on=[{"message": [], "repeat": "twice"}]), 'trigger #1: unknown repeat "twice"'),
        (spec(PROMPT, on=[{"message": [], "repeat": {"every": "1d"}}]), "repeat must be once, always or {cooldown}"),
        (spec(PROMPT, on=[{"message": [], "repeat": {"cooldown": 5}}]), "repeat.cooldown must be a duration"),
        (
            spec(PROMPT, on=[{"mention": ["a"], "extract": {"q": {"type": "x"}}}]),
            'trigger #1: extract: field "q": unknown type "x"',
        ),
        (spec({"id": "a", "if": {"equals": ["ok"]}}), "equals must be an object of fields and values, got array"),
        (spec({"id": "a", "if": {"equals": {"budget": "3"}}}), "equals.budget must be a number, got string"),
        (spec({"id": "a", "if": {"equals": {"size": "12"}}}), 'equals.size must be one of "1-10", "11-50"'),
        (spec({"id": "a", "if": {"known": "name"}}), "known must be a list of fields, got string"),
        (spec({"id": "a", "if": {"silenced": 1}}), "silenced must be a boolean, got integer"),
        pytest.param(spec({"id": "a", "wait": "5 min"}), 'step "a": wait "5 min" does not parse', id="Q7"),
        (spec({"id": "a", "wait": {"event": "ping", "up_to": "x"}}), 'wait.up_to "x" does not parse'),
        (spec(PROMPT, on=[{"silence": "1 day"}]), 'trigger #1: silence "1 day" does not parse'),
        (spec(PROMPT, on=[{"event": "ping", "after": "soon"}]), 'trigger #1: after "soon" does not parse'),
        (spec(PROMPT, on=[{"message": [], "repeat": {"cooldown": "x"}}]), 'repeat.cooldown "x" does not parse'),
        (spec({"id": "a", "wait": "99999999d"}), "is longer than a century"),
        (spec({"id": "a", "wait": {"up_to": "1d"}}), 'step "a": waits for an event, but names none'),
        (spec(PROMPT | {"branches": [{"then": "end"}]}), "branches[0] has neither when nor only_if"),
        (
            spec(PROMPT | {"branches": [{"when": "x", "only_if": "vip", "then": "end"}]}),
            "branches[0] has both when and only_if",
        ),
        (spec(PROMPT | {"branches": [{"when": "x"}]}), "branches[0] has no then"),
        pytest.param(
            spec(PROMPT, {"id": "i", "if": "vip", "then": "a"}),
            'step "i": then jumps back to "a" and there is no else', id="Q8",
        ),
        (spec({"id": "i", "if": "vip", "then": {"step": "i", "clear": ["ok"]}}), 'then jumps back to "i"'),
        pytest.param(
            spec(PROMPT | {"question": "Who?"}), 'step "a": has question, but collects nothing', id="Q12",
        ),
        (spec({"id": "a", "question": "Who?"}), 'step "a": has question, but collects nothing'),
        (spec(PROMPT | {"collect": [], "ask": {}}), 'step "a": has ask, but collects nothing'),
        pytest.param(spec({"id": "a"}), 'step "a": does nothing', id="Q10-nothing"),
        pytest.param(spec({"id": "a", "say": "x", "do": "close"}), 'step "a": mixes say and do', id="Q10-mixed"),
        (spec({"id": "a", "prompt": " "}), 'step "a": does nothing'),
        (spec({"id": "a", "say": ""}), 'step "a": does nothing'),
        (spec({"id": "a", "do": ""}), 'step "a": does nothing'),
        (spec(PROMPT | {"kind": "say"}), 'kind "say" disagrees with its body, which makes it a prompt step'),
        (spec(PROMPT | {"kind": "prompd"}), 'unknown kind "prompd"'),
        (spec(PROMPT | {"collect": "name"}), 'step "a": collect must be a list, got string'),
        (spec({"id": "a", "collect": ["name", 3]}), "collect has an item that must be text, got integer"),
        (spec({"id": "a", "collect": ["name"], "ask": {"name": 3}}), "ask has an item that must be text"),
        (spec({"id": "a", "collect": ["name"], "ask": ["name"]}), "ask must be an object, got array"),
        (spec({"id": "a", "collect": ["name"], "max_asks": 0}), "max_asks must be a whole number of at least 1"),
        (spec({"id": "a", "collect": ["name"], "max_asks": 1.5}), "max_asks must be a whole number of at least 1"),
        (spec({"id": "a", "collect": ["name"], "max_asks": True}), "max_asks must be a whole number of at least 1"),
        (spec(PROMPT | {"prompt": 3}), 'step "a": prompt must be text, got integer'),
        (spec(PROMPT | {"tools": "price"}), 'step "a": tools must be a list, got string'),
        (spec(PROMPT | {"branches": {}}), 'step "a": branches must be a list, got object'),
        (spec(PROMPT | {"branches": ["x"]}), "branches[0] must be an object, got string"),
        (spec(PROMPT | {"instructions": "x"}), "instructions must be a list, got string"),
        (spec(PROMPT | {"instructions": ["x"]}), "instructions[0] must be an object, got string"),
        (spec(PROMPT | {"instructions": [{"kind": "must"}]}), "instructions[0] has no prompt"),
        (spec(PROMPT | {"instructions": [{"prompt": "x", "kind": "may"}]}), 'unknown kind "may" in instructions[0]'),
        (spec(PROMPT | {"instructions": [{"prompt": "x", "when": 3}]}), "instructions[0].when must be a list"),
        (spec(PROMPT | {"label": []}), "label must be text, got array"),
        (spec(PROMPT | {"then": 3}), 'then must be a step, "end", {step, clear} or {flow, input}, got integer'),
        (spec(PROMPT | {"then": {"step": "a", "flow": "f"}}), "then must be {step, clear} or {flow, input}"),
        (spec(PROMPT | {"then": {"step": 1}}), "then step must be text, got integer"),
        (spec(PROMPT | {"then": {"step": "a", "clear": "ok"}}), "then clear must be a list, got string"),
        (spec(PROMPT | {"then": {"flow": 1}}), "then flow must be text, got integer"),
        (spec({"id": "a", "say": "x", "once": 1}), "once must be a boolean, got integer"),
        (spec({"id": "a", "say": "x", "after_ms": -1}), "after_ms must be a whole number of at least 0"),
        (spec({"id": "a", "say": "x", "media": {}}), "media must be text, got object"),
        (spec({"id": "a", "do": "close", "with": []}), "with must be an object, got array"),
        (spec({"id": "a", "wait": 5}), "wait must be a duration, got integer"),
        (spec({"id": "a", "if": 5}), "if must be a function, a condition's name or an object, got integer"),
        (spec(PROMPT, name=3), 'flow "f": name must be text, got integer'),
        (spec(PROMPT, on={}), 'flow "f": on must be a list, got object'),
        (spec(PROMPT, on=["message"]), "trigger #1: must be an object, got string"),
        (spec(PROMPT, on=[{"message": "x"}]), "message must be a list, got string"),
        (spec(PROMPT, on=[{"event": 3}]), "event must be text, got integer"),
        (spec(PROMPT, on_end="stop"), 'flow "f": unknown on_end "stop"'),
        (spec(PROMPT, collect="name"), 'flow "f": collect must be a list, got string'),
        (spec("a"), "step #1: must be an object, got string"),
        (spec(PROMPT | {"prompd": "x"}), 'step "a": unknown key "prompd"'),
        (spec(PROMPT, onEnd="stay"), 'flow "f": unknown key "onEnd"'),
        (spec(PROMPT, on=[{"message": [], "after": "1h"}]), 'trigger #1: unknown key "after"'),
        (spec({"id": "a", "wait": {"event": "ping", "upTo": "1d"}}), 'unknown key "upTo" in wait'),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_with_its_place(flow: Json, told: str) -> None:
    """Before any run gets there, in the words of the JSON form."""
    assert told in refusal(flow)[0]


@pytest.mark.parametrize(
    ("flow", "told", "hint"),
    [
        (spec(PROMPT, on=[{"messages": ["x"]}]), "names no trigger kind", 'did you mean "message"?'),
        (spec(PROMPT, on=[{"repeat": "once"}]), "names no trigger kind", "write it as its own key, such as"),
        (spec({"id": "a", "do": "close", "args": {}}), 'unknown key "args"', 'in JSON it is "with"'),
        (spec({"id": "a", "say": "x", "else_": "end"}), 'unknown key "else_"', 'there are "id", "kind", '),
        (spec({"id": "a", "wait": "1d", "else_": "end"}), 'unknown key "else_"', 'in JSON it is "else"'),
        (spec({"id": "a", "wait": "1d", "els": "end"}), 'unknown key "els"', 'did you mean "else"?'),
        (spec(PROMPT | {"wait": "1d"}), "mixes prompt and wait", "write one step for each"),
        (spec({"id": "a", "collect": ["name"], "say": "x"}), "mixes collect and say", "write one step for each"),
    ],
)  # fmt: skip
def test_a_key_that_there_is_not_is_told_with_the_right_one(flow: Json, told: str, hint: str) -> None:
    """Also where the word is that of the classes."""
    message, said = refusal(flow)
    assert told in message
    assert said.startswith(hint)


@pytest.mark.parametrize(
    ("flow", "told"),
    [
        (Flow(""), "flow: has no id"),
        (Flow("f", steps="abc"), "steps must be a list, got string"),  # type: ignore[arg-type] # a mistake
        (Flow("f", steps=["abc"]), "step #1: is no step, got string"),  # type: ignore[list-item] # a mistake
        (Flow("f", on=["x"], steps=[Talk("x")]), "trigger #1: names no trigger kind"),  # type: ignore[list-item] # as above
        (Flow("f", steps=[Talk("x", id=3)]), "step #1: has no id"),  # type: ignore[arg-type] # as above
        (Flow("f", on_end=None), "unknown on_end null"),  # type: ignore[arg-type] # as above
        (Flow("f", on_end=True), "unknown on_end true"),  # type: ignore[arg-type] # as above
        (Flow("f", on_end=1.5), "unknown on_end 1.5"),  # type: ignore[arg-type] # as above
        (Flow("f", on_end=10**5000), "unknown on_end a huge number"),  # type: ignore[arg-type] # as above
        (Flow("f", steps=[Talk("x", id="end")]), 'reserved id "end"'),
        (Flow("f", steps=[Talk("x", id="a"), Talk("x", id="a")]), "step #2: has the id"),
        (Flow("f", steps=[Talk("")]), 'step "talk": does nothing'),
        (Flow("f", steps=[Collect()]), 'step "collect": does nothing'),
        (Flow("f", steps=[Collect(question="Who?")]), "has a question, but collects nothing"),
        (Flow("f", steps=[Talk("x", branches=["y"])]), "branches[0] must be a Branch, got string"),  # type: ignore[list-item] # as above
        (Flow("f", steps=[Talk("x", instructions=["y"])]), "instructions[0] must be a FlowInstruction"),  # type: ignore[list-item] # as above
        (Flow("f", steps=[Talk("x", tools={"a"})]), "tools must be a list, got set"),  # type: ignore[arg-type] # as above
        (Flow("f", steps=[WaitEvent("")]), "waits for an event, but names none"),
        (Flow("f", steps=[Do("close", then=5)]), "then must be a step"),  # type: ignore[arg-type] # as above
        (Flow("f", on=[OnMessage(repeat=5)], steps=[Say("x")]), "unknown repeat 5"),  # type: ignore[arg-type] # as above
        (Flow("f", on=[OnMessage(repeat=Cooldown("x"))], steps=[Say("x")]), 'repeat.cooldown "x" does not parse'),
        (Flow("f", on=[OnSilence(5)], steps=[Say("x")]), "silence must be a duration"),  # type: ignore[arg-type] # as above
        (Flow("f", on=[OnEvent("ping", after=5)], steps=[Say("x")]), "after must be a duration"),  # type: ignore[arg-type] # as above
        (Flow("f", on=[OnMention("a", extract=[])], steps=[Say("x")]), "extract must be an object"),  # type: ignore[arg-type] # as above
        (Flow("f", on=[OnMessage(3)], steps=[Say("x")]), "message has an item that must be text"),  # type: ignore[arg-type] # as above
        (Flow("f", steps=[Do("close", args={1: 2})]), "with has a name that must be text"),  # type: ignore[dict-item] # as above
    ],
)  # fmt: skip
def test_flows_written_in_python_are_checked_alike(flow: Flow, told: str) -> None:
    """Declaring refuses nothing; checking does, and says where."""
    assert told in refusal(flow)[0]


def test_an_empty_list_of_phrases_is_the_catch_all() -> None:
    """Q11: message [] and mention [] are fine."""
    assert validate_flow(spec(PROMPT, on=[{"message": []}, {"mention": []}]), KNOWN) == ()


def test_steps_may_be_empty_where_nothing_starts_the_flow() -> None:
    """Such a flow ends as soon as it is started by hand."""
    assert validate_flow(spec(), KNOWN) == ()
