"""The shape of a flow: lists are lists, texts are texts, and every word is one of its list. Names are checked apart.

A flow may be written by hand, by an editor or by a model. What is wrong is told with its place, in the words of the
JSON form, and before anything is done with the flow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, cast, get_args

from onrecord.flows.flow import Flow, FlowInstruction, Idle, OnEnd
from onrecord.flows.instructions import InstructionKind
from onrecord.flows.invalid import got, invalid, nearest, quoted, text_problem
from onrecord.flows.steps import END, Branch, Chain, Collect, Do, Goto, If, Say, Talk, Wait, WaitEvent
from onrecord.flows.triggers import Cooldown, OnEvent, OnMention, OnMessage, OnSilence
from onrecord.jsonio import is_json

__all__ = (
    "check_idle_shape", "check_instruction_shapes", "check_shape", "flow_place", "step_place", "targets_of",
    "trigger_place",
)  # fmt: skip

Rule = Callable[[Any], str]
"""What is wrong with a value, as ``must be text, got integer``; empty when nothing is."""


def flow_place(flow: Flow) -> str:
    """How errors name a flow."""
    return f"flow {quoted(flow.id)}"


def trigger_place(flow: Flow, number: int) -> str:
    """How errors name a trigger, by its number from 1."""
    return f"{flow_place(flow)}, trigger #{number}"


def step_place(flow: Flow, id: str) -> str:
    """How errors name a step."""
    return f"{flow_place(flow)}, step {quoted(id)}"


def check_shape(flow: Flow) -> None:
    """Raises FlowInvalid for the first thing that is not what it must be."""
    if not isinstance(held := cast("object", flow), Flow):
        raise invalid("flow", f"must be a Flow, {got(held)}", "from_spec makes one of JSON")
    given: Any = flow.id
    if not isinstance(given, str) or not given:
        raise invalid("flow", "has no id", "give it one that stays: it is part of every key")
    if problem := _text(given):
        raise invalid("flow", f"id {problem}")
    where = flow_place(flow)
    _all_hold(where, flow, _FLOW)
    if not _is_one_of(flow.on_end, OnEnd):
        raise invalid(where, f"unknown on_end {quoted(flow.on_end)}", nearest(flow.on_end, get_args(OnEnd)))
    check_instruction_shapes(flow.instructions, where)
    for number, trigger in enumerate(flow.on, 1):
        _trigger(trigger_place(flow, number), trigger)
    seen = set[str]()
    for number, step in enumerate(flow.steps, 1):
        _step(flow, number, step, seen)


def check_idle_shape(idle: Idle) -> None:
    """Raises FlowInvalid for an idle speaker that is not what it must be."""
    _all_hold("idle", idle, _IDLE)
    check_instruction_shapes(idle.instructions, "idle")


def check_instruction_shapes(instructions: Any, where: str) -> None:
    """Raises FlowInvalid for an instruction that is none."""
    for place, one in enumerate(instructions):
        at = f"instructions[{place}]"
        if not isinstance(one, FlowInstruction):
            raise invalid(where, f"{at} must be a FlowInstruction, {got(one)}")
        _all_hold(where, one, _INSTRUCTION, f"{at}.")
        if not _is_one_of(one.kind, InstructionKind):
            kinds = get_args(InstructionKind)
            raise invalid(where, f"unknown kind {quoted(one.kind)} in {at}", nearest(one.kind, kinds))


def _trigger(where: str, trigger: Any) -> None:
    rules = _TRIGGERS.get(type(trigger))
    if rules is None:
        raise invalid(where, "names no trigger kind", "it is one of message, mention, silence and event")
    _all_hold(where, trigger, rules)
    repeat: Any = trigger.repeat
    if isinstance(repeat, Cooldown):
        if problem := _length(repeat.window):
            raise invalid(where, f"repeat.cooldown {problem}")
    elif not (isinstance(repeat, str) and repeat in ("once", "always")):
        raise invalid(where, f"unknown repeat {quoted(repeat)}", 'it is "once", "always" or a cooldown')


def _step(flow: Flow, number: int, step: Any, seen: set[str]) -> None:
    where = f"{flow_place(flow)}, step #{number}"
    rules = _STEPS.get(type(step))
    if rules is None:
        raise invalid(where, f"is no step, {got(step)}")
    if not isinstance(step.id, str) or not step.id:
        raise invalid(where, "has no id")
    if problem := _text(step.id):
        raise invalid(where, f"id {problem}")
    if step.id == END:
        raise invalid(where, f"uses the reserved id {quoted(END)}", "it is the target that finishes a flow")
    if step.id in seen:
        raise invalid(where, f"has the id {quoted(step.id)}, which an earlier step has", "rename one of them")
    seen.add(step.id)
    where = step_place(flow, step.id)
    _all_hold(where, step, rules)
    check_instruction_shapes(getattr(step, "instructions", ()), where)
    for place, branch in enumerate(getattr(step, "branches", ())):
        _branch(where, f"branches[{place}]", branch)
    if problem := _nothing_to_do(step):
        raise invalid(where, problem)


def _nothing_to_do(step: Any) -> str:
    if isinstance(step, (Talk, Collect)):
        if not step.fields and step.question:
            return "has a question, but collects nothing"
        return "" if step.fields or step.prompt.strip() else "does nothing: it has no prompt and collects no field"
    if isinstance(step, Say):
        return "" if step.text.strip() else "does nothing: what it says is empty"
    if isinstance(step, Do):
        return "" if step.action else "does nothing: it names no action"
    return "waits for an event, but names none" if isinstance(step, WaitEvent) and not step.event else ""


def _branch(where: str, at: str, branch: Any) -> None:
    if not isinstance(branch, Branch):
        raise invalid(where, f"{at} must be a Branch, {got(branch)}")
    _all_hold(where, branch, _BRANCH, f"{at}.")
    asked, gated = bool(branch.when.strip()), branch.only_if is not None
    if asked == gated:
        raise invalid(where, f"{at} has {'both' if asked else 'neither'} when {'and' if asked else 'nor'} only_if")


def _all_hold(where: str, value: Any, rules: Mapping[str, Rule], before: str = "") -> None:
    for attribute, rule in rules.items():
        if problem := rule(getattr(value, attribute)):
            raise invalid(where, f"{before}{_NAMES.get((type(value), attribute), attribute)} {problem}")


def _is_one_of(value: Any, words: Any) -> bool:
    return isinstance(value, str) and value in get_args(words)


def _text(value: Any) -> str:
    return text_problem(value)


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else f"must be a boolean, {got(value)}"


def _list(value: Any) -> str:
    return "" if isinstance(value, tuple) else f"must be a list, {got(value)}"


def _texts(value: Any) -> str:
    if not isinstance(value, tuple):
        return f"must be a list, {got(value)}"
    return next((f"has an item that {problem}" for item in value if (problem := _text(item))), "")


def _text_or_texts(value: Any) -> str:
    return _text(value) if isinstance(value, str) else _texts(value)


def _object(value: Any) -> str:
    if not isinstance(value, Mapping):
        return f"must be an object, {got(value)}"
    return next((f"has a name that {problem}" for name in value if (problem := _text(name))), "")


def _wordings(value: Any) -> str:
    return _object(value) or next((f"has an item that {p}" for item in value.values() if (p := _text(item))), "")


def _pred(value: Any) -> str:
    if isinstance(value, Mapping):
        return _object(value)
    told = isinstance(value, str) or callable(value)
    return "" if told else f"must be a function, a condition's name or an object, {got(value)}"


def _length(value: Any) -> str:
    return "" if isinstance(value, (str, timedelta)) else f"must be a duration, {got(value)}"


def _target(value: Any) -> str:
    if isinstance(value, Goto):
        problem = _text(value.step)
        return f"step {problem}" if problem else f"clear {problem}" if (problem := _texts(value.clear)) else ""
    if isinstance(value, Chain):
        if problem := _text(value.flow):
            return f"flow {problem}"
        return "" if is_json(value.input) else "input holds what JSON cannot keep"
    return "" if isinstance(value, str) else f'must be a step, "end", {{step, clear}} or {{flow, input}}, {got(value)}'


LONGEST_MS = 50 * 365 * 86_400_000
"""The longest delay of a line, fifty years: an outbox takes no longer ones."""


def _whole(least: int, most: int | None = None) -> Rule:
    def rule(value: Any) -> str:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            return f"must be a whole number of at least {least}"
        return "" if most is None or value <= most else f"must be a whole number of at most {most}"

    return rule


def _maybe(rule: Rule) -> Rule:
    return lambda value: "" if value is None else rule(value)


def _named(*pairs: tuple[str, Rule]) -> Mapping[str, Rule]:
    return dict(pairs)


_FLOW = _named(
    ("name", _text), ("description", _text), ("on", _list), ("steps", _list), ("anchor", _text),
    ("while_", _maybe(_pred)), ("collect", _texts), ("clear_on_start", _texts), ("instructions", _list),
    ("tools", _maybe(_texts)),
)  # fmt: skip
_INSTRUCTION = _named(("prompt", _text), ("when", _text_or_texts), ("only_if", _maybe(_pred)), ("id", _text))
_IDLE = _named(("prompt", _text), ("tools", _maybe(_texts)), ("instructions", _list))
_BRANCH = _named(("when", _text), ("only_if", _maybe(_pred)), ("then", _target))
_TRIGGERS: Mapping[type, Mapping[str, Rule]] = {
    OnMessage: _named(("phrases", _texts), ("only_if", _maybe(_pred))),
    OnMention: _named(("phrases", _texts), ("extract", _object), ("only_if", _maybe(_pred))),
    OnSilence: _named(("after", _length), ("business_hours", _flag), ("only_if", _maybe(_pred))),
    OnEvent: _named(
        ("name", _text), ("after", _maybe(_length)), ("business_hours", _flag), ("only_if", _maybe(_pred))
    ),
}  # fmt: skip
_ANY_STEP = (("label", _text), ("then", _maybe(_target)))
_TALKS = (("prompt", _text), ("tools", _maybe(_texts)), ("instructions", _list), ("branches", _list))
_STEPS: Mapping[type, Mapping[str, Rule]] = {
    Talk: _named(*_ANY_STEP, *_TALKS),
    Collect: _named(
        *_ANY_STEP, ("fields", _texts), *_TALKS, ("ask", _wordings), ("question", _text), ("max_asks", _whole(1))
    ),
    Say: _named(
        *_ANY_STEP, ("text", _text), ("media", _maybe(_text)), ("once", _flag), ("after_ms", _whole(0, LONGEST_MS))
    ),
    Do: _named(*_ANY_STEP, ("action", _text), ("args", _object), ("on_fail", _maybe(_target))),
    Wait: _named(
        *_ANY_STEP, ("duration", _length), ("business_hours", _flag), ("else_", _maybe(_target)), ("branches", _list)
    ),
    WaitEvent: _named(*_ANY_STEP, ("event", _text), ("up_to", _length), ("else_", _maybe(_target))),
    If: _named(*_ANY_STEP, ("only_if", _pred), ("else_", _maybe(_target))),
}  # fmt: skip
# Where JSON, and therefore an error, has another word than Python.
_NAMES: Mapping[tuple[type, str], str] = dict(
    _pair
    for _pair in (
        ((Flow, "while_"), "while"), ((OnMessage, "phrases"), "message"), ((OnMention, "phrases"), "mention"),
        ((OnSilence, "after"), "silence"), ((OnEvent, "name"), "event"), ((Collect, "fields"), "collect"),
        ((Say, "text"), "say"), ((Do, "action"), "do"), ((Do, "args"), "with"), ((Wait, "duration"), "wait"),
        ((Wait, "else_"), "else"), ((WaitEvent, "event"), "wait.event"), ((WaitEvent, "up_to"), "wait.up_to"),
        ((WaitEvent, "else_"), "else"), ((If, "only_if"), "if"), ((If, "else_"), "else"),
    )
)  # fmt: skip


def targets_of(step: Any) -> Iterator[tuple[str, Any]]:
    """Every way out of a step that is written down, with the name that JSON has for it."""
    for attribute in ("then", "else_", "on_fail"):
        if (target := getattr(step, attribute, None)) is not None:
            yield attribute.rstrip("_"), target
    for place, branch in enumerate(getattr(step, "branches", ())):
        yield f"branches[{place}].then", branch.then
