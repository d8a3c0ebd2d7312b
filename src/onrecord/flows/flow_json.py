"""Flows as JSON: read from what an editor, a store or a model wrote."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from onrecord.flows.flow import Flow, FlowInstruction
from onrecord.flows.flow_shape import check_shape
from onrecord.flows.flow_writing import to_spec
from onrecord.flows.invalid import got, invalid, nearest, quoted, unknown
from onrecord.flows.steps import Branch, Chain, Collect, Do, Goto, If, Next, Say, Step, StepKind, Talk, Wait, WaitEvent
from onrecord.flows.triggers import Cooldown, OnEvent, OnMention, OnMessage, OnSilence, Trigger
from onrecord.jsonio import Json

__all__ = ("from_spec", "to_spec")

DEEPEST = 40
MOST_PARTS = 100_000
"""Values in one flow, at all depths: more than any editor shows."""
_SMALLEST, _LARGEST = -(2**63), 2**64

_FLOW = (
    "id", "name", "description", "on", "anchor", "while", "collect", "clear_on_start", "steps", "on_end",
    "instructions", "tools",
)  # fmt: skip
_TRIGGERS = {
    "message": ("repeat", "only_if"),
    "mention": ("extract", "repeat", "only_if"),
    "silence": ("business_hours", "repeat", "only_if"),
    "event": ("after", "business_hours", "repeat", "only_if"),
}
_COMMON = ("id", "kind", "label", "then", "ui")
_TALK = ("prompt", "tools", "instructions", "branches")
_COLLECT = ("ask", "question", "max_asks")
_STEPS: Mapping[StepKind, Sequence[str]] = {
    "prompt": (*_TALK, "collect"),
    "collect": (*_TALK, "collect", *_COLLECT),
    "say": ("say", "media", "once", "after_ms"),
    "do": ("do", "with", "on_fail"),
    "wait": ("wait", "business_hours", "else", "branches"),
    "wait_event": ("wait", "else"),
    "if": ("if", "else"),
}
_BODIES = ("prompt", "collect", "say", "do", "wait", "if")
_IN_PYTHON = {"while": "while_", "else": "else_", "with": "args", "say": "text", "do": "action", "if": "only_if"}
_IN_JSON = {"only_if": "if", "fields": "collect"} | {word: key for key, word in _IN_PYTHON.items() if key != "if"}


def from_spec(spec: Json) -> Flow:
    """The flow that a JSON object describes. A null says that something is not set, however deep it stands.

    Only the shape is checked; `validate_flow` checks the names. Raises FlowInvalid, and nothing else, for whatever is
    no flow: its message names the place.
    """
    told = _Reading().clean(spec, 0)
    if not isinstance(told, dict):
        raise invalid("flow", f"must be an object, {got(told)}")
    id = told.get("id")
    if not isinstance(id, str) or not id:
        raise invalid("flow", "has no id", "give it one that stays: it is part of every key")
    where = f"flow {quoted(id)}"
    _known_keys(told, _FLOW, where)
    if "steps" not in told:
        raise invalid(where, "has no steps", "write a list of steps; it may be empty")
    triggers = [_trigger(one, f"{where}, trigger #{n}") for n, one in _numbered(told, "on", where)]
    steps = [_step(one, where, n) for n, one in _numbered(told, "steps", where)]
    rest = _in_python(told, "on", "steps", "instructions")
    flow = Flow(**rest, on=triggers, steps=steps, instructions=_instructions(told, where))
    check_shape(flow)
    return flow


class _Reading:
    """One JSON value being cleaned: nulls go, and what no JSON text could have said is refused."""

    def __init__(self) -> None:
        self.left = MOST_PARTS

    def clean(self, value: Json, depth: int) -> Json:
        self.left -= 1
        if depth > DEEPEST or self.left < 0:
            raise invalid("flow", f"is {'nested too deeply' if self.left >= 0 else 'too large'}")
        if isinstance(value, dict):
            for name in value:
                if not isinstance(name, str):
                    raise invalid("flow", f"an object has a name that must be text, {got(name)}")
                self.clean(name, depth)
            return {name: self.clean(item, depth + 1) for name, item in value.items() if item is not None}
        if isinstance(value, (list, tuple)):
            return [self.clean(item, depth + 1) for item in value]
        if not _is_plain(value):
            raise invalid("flow", f"holds what JSON cannot keep, {got(value)}")
        return value


def _is_plain(value: Json) -> bool:
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, int):
        return _SMALLEST <= value < _LARGEST
    return isinstance(value, float) and math.isfinite(value)


def _known_keys(told: Mapping[str, Json], keys: Iterable[str], where: str, place: str = "") -> None:
    names = tuple(keys)
    for name in told:
        if name not in names and (here := _IN_JSON.get(name)) in names:
            raise invalid(where, f"unknown key {quoted(name)}", f"in JSON it is {quoted(here)}")
        if name not in names:
            raise unknown(where, "key", name, names, place)


def _in_python(told: Mapping[str, Json], *but: str) -> dict[str, Any]:
    return {_IN_PYTHON.get(name, name): value for name, value in told.items() if name not in but}


def _numbered(told: Mapping[str, Json], name: str, where: str) -> Iterable[tuple[int, Json]]:
    return enumerate(_listed(told, name, where), 1)


def _listed(told: Mapping[str, Json], name: str, where: str) -> list[Json]:
    items = told.get(name, [])
    if not isinstance(items, list):
        raise invalid(where, f"{name} must be a list, {got(items)}")
    return items


def _trigger(told: Json, where: str) -> Trigger:
    if not isinstance(told, dict):
        raise invalid(where, f"must be an object, {got(told)}")
    kinds = [kind for kind in _TRIGGERS if kind in told]
    if not kinds:
        others = [name for name in told if all(name not in options for options in _TRIGGERS.values())]
        meant = nearest(others[0], _TRIGGERS) if others else 'write it as its own key, such as "message": [...]'
        raise invalid(where, "names no trigger kind", meant)
    if len(kinds) > 1:
        raise invalid(where, f"mixes {' and '.join(kinds)}", "write one trigger for each")
    kind = kinds[0]
    _known_keys(told, (kind, *_TRIGGERS[kind]), where)
    rest = {name: value for name, value in told.items() if name != kind}
    if isinstance(repeat := rest.get("repeat"), dict):
        if repeat.keys() != {"cooldown"}:
            raise invalid(where, "repeat must be once, always or {cooldown}")
        rest["repeat"] = Cooldown(repeat["cooldown"])
    if kind == "message":
        return OnMessage(*_listed(told, kind, where), **rest)
    if kind == "mention":
        return OnMention(*_listed(told, kind, where), **rest)
    return OnSilence(told[kind], **rest) if kind == "silence" else OnEvent(told[kind], **rest)


def _step(told: Json, flow: str, number: int) -> Step:
    where = f"{flow}, step #{number}"
    if not isinstance(told, dict):
        raise invalid(where, f"must be an object, {got(told)}")
    id = told.get("id")
    if not isinstance(id, str) or not id:
        raise invalid(where, "has no id")
    where = f"{flow}, step {quoted(id)}"
    kind = _kind(told, where)
    _known_keys(told, (*_COMMON, *_STEPS[kind]), where)
    rest = _in_python(told, "kind", "collect", "wait", "instructions", "branches", "then", "else", "on_fail")
    for name in ("then", "else", "on_fail"):
        if name in told:
            rest[_IN_PYTHON.get(name, name)] = _target(told[name], where, name)
    if "branches" in told:
        rest["branches"] = [
            _branch(one, where, f"branches[{n}]") for n, one in enumerate(_listed(told, "branches", where))
        ]
    if "instructions" in told:
        rest["instructions"] = _instructions(told, where)
    if kind == "collect":
        return Collect(*told["collect"], **rest)
    if kind == "wait_event":
        return WaitEvent(**_event_wait(told["wait"], where), **rest)
    if kind == "wait":
        return Wait(told["wait"], **rest)
    made: Step = {"prompt": Talk, "say": Say, "do": Do, "if": If}[kind](**rest)
    return made


def _kind(told: Mapping[str, Json], where: str) -> StepKind:
    bodies = ["talk" if name in ("prompt", "collect") else name for name in _BODIES if name in told]
    kinds = list(dict.fromkeys(bodies))
    if len(kinds) > 1:
        talk = "prompt" if "prompt" in told else "collect"
        named = [talk if name == "talk" else name for name in kinds]
        raise invalid(where, f"mixes {' and '.join(named)}", "write one step for each")
    collects = bool(_listed(told, "collect", where))
    for name in _COLLECT:
        if name in told and not collects and kinds in ([], ["talk"]):
            raise invalid(where, f"has {name}, but collects nothing", "name the fields in collect, or leave it out")
    if not kinds:
        raise invalid(where, "does nothing", f"give it one of {', '.join(_BODIES)}")
    kind: StepKind
    if kinds[0] == "talk":
        kind = "collect" if collects else "prompt"
    elif kinds[0] == "wait" and isinstance(told["wait"], dict):
        kind = "wait_event"
    else:
        kind = next(one for one in get_args(StepKind) if one == kinds[0])
    given = told.get("kind", kind)
    if given not in get_args(StepKind):
        raise invalid(where, f"unknown kind {quoted(given)}", nearest(given, get_args(StepKind)))
    if given != kind:
        raise invalid(where, f"kind {quoted(given)} disagrees with its body, which makes it a {kind} step")
    return kind


def _event_wait(told: Mapping[str, Json], where: str) -> dict[str, Any]:
    _known_keys(told, ("event", "up_to"), where, "wait")
    return {"event": "", **told}


def _target(told: Json, where: str, place: str) -> Next:
    if isinstance(told, str):
        return told
    if isinstance(told, dict) and "step" in told and told.keys() <= {"step", "clear"}:
        return Goto(**told)
    if isinstance(told, dict) and "flow" in told and told.keys() <= {"flow", "input"}:
        return Chain(**told)
    if isinstance(told, dict):
        raise invalid(where, f"{place} must be {{step, clear}} or {{flow, input}}")
    raise invalid(where, f'{place} must be a step, "end", {{step, clear}} or {{flow, input}}, {got(told)}')


def _branch(told: Json, where: str, place: str) -> Branch:
    if not isinstance(told, dict):
        raise invalid(where, f"{place} must be an object, {got(told)}")
    _known_keys(told, ("when", "only_if", "then"), where, place)
    if "then" not in told:
        raise invalid(where, f"{place} has no then")
    return Branch(**{**told, "then": _target(told["then"], where, f"{place}.then")})


def _instructions(told: Mapping[str, Json], where: str) -> list[FlowInstruction]:
    made = list[FlowInstruction]()
    for place, one in enumerate(_listed(told, "instructions", where)):
        if not isinstance(one, dict):
            raise invalid(where, f"instructions[{place}] must be an object, {got(one)}")
        _known_keys(one, ("id", "kind", "when", "only_if", "prompt"), where, f"instructions[{place}]")
        if "prompt" not in one:
            raise invalid(where, f"instructions[{place}] has no prompt")
        made.append(FlowInstruction(**one))
    return made
