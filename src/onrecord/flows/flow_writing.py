"""to_spec: a flow as JSON, which `from_spec` reads back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from msgspec import NODEFAULT

from onrecord.flows.field_specs import Field
from onrecord.flows.flow import Flow
from onrecord.flows.flow_shape import check_shape, flow_place, step_place, trigger_place
from onrecord.flows.invalid import invalid
from onrecord.flows.steps import Chain, Collect, Do, Goto, If, Say, Step, Wait, WaitEvent
from onrecord.flows.triggers import Cooldown, OnEvent, OnMention, OnMessage, OnSilence
from onrecord.jsonio import Json, dumps, loads
from onrecord.timing import duration_text

__all__ = ("to_spec",)

_IN_JSON: Mapping[tuple[type, str], str] = {
    (Flow, "while_"): "while", (Say, "text"): "say", (Do, "action"): "do", (Do, "args"): "with",
    (Wait, "duration"): "wait", (Wait, "else_"): "else", (WaitEvent, "else_"): "else", (If, "only_if"): "if",
    (If, "else_"): "else", (OnSilence, "after"): "silence", (OnEvent, "name"): "event",
    (OnMessage, "phrases"): "message", (OnMention, "phrases"): "mention", (Collect, "fields"): "collect",
}  # fmt: skip
_GATES = ("only_if", "while_")
_TOLD_ALWAYS = ("phrases", "name")
_USUAL: Mapping[type, object] = {kind: kind() for kind in (Collect, OnMessage, OnMention)}


def to_spec(flow: Flow) -> dict[str, Json]:
    """The flow as JSON. What has its default is left out; there is no null in it, and its values are its own.

    Raises FlowInvalid for a flow of a wrong shape, for a gate that is a function, and for values that JSON cannot keep.
    """
    check_shape(flow)
    where = flow_place(flow)
    told = _written(flow, where, always=("id", "name", "steps"))
    if flow.on:
        told["on"] = [
            _written(trigger, trigger_place(flow, number), always=_TOLD_ALWAYS)
            for number, trigger in enumerate(flow.on, 1)
        ]
    told["steps"] = [_step(step, step_place(flow, step.id)) for step in flow.steps]
    try:
        spec: dict[str, Json] = _without_nulls(loads(dumps(told)))
    except Exception:  # noqa: BLE001 - values of a host's own types may raise anything
        raise invalid(where, "holds what JSON cannot keep", "use texts, numbers, lists and objects") from None
    return spec


def _step(step: Step, where: str) -> dict[str, Json]:
    told = {"id": step.id, "kind": step.kind, **_written(step, where)}
    if isinstance(step, WaitEvent):
        wait = {name: told.pop(name) for name in ("event", "up_to") if name in told}
        told["wait"] = wait
    return told


def _written(value: Any, where: str, *, always: Sequence[str] = (), before: str = "") -> dict[str, Json]:
    """What a declaration says beyond its defaults, under the names that JSON has for it."""
    told: dict[str, Json] = {}
    for attribute, usual in _usual(type(value)):
        given = getattr(value, attribute)
        if attribute in always or not (given is usual or (type(given) is type(usual) and given == usual)):
            name = _IN_JSON.get((type(value), attribute), attribute)
            told[name] = _json(given, where, attribute, f"{before}{name}")
    return told


def _usual(kind: Any) -> Iterator[tuple[str, object]]:
    """Each attribute of a declaration with its default."""
    if (usual := _USUAL.get(kind)) is not None:
        yield from ((name, getattr(usual, name)) for name in kind.__slots__)
        return
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    for name, default in zip(names, [NODEFAULT] * (len(names) - len(defaults)) + list(defaults), strict=True):
        yield name, {} if name == "args" else default


def _json(given: Any, where: str, attribute: str, place: str) -> Json:
    if attribute in _GATES and callable(given):
        raise invalid(
            where,
            f"{place} is a function, which cannot be stored as JSON",
            "give it a name in conditions= and use that",
        )
    if attribute in ("branches", "instructions"):
        return [_written(one, where, before=f"{place}[{number}].") for number, one in enumerate(given)]
    if attribute == "extract":
        return {name: _written(one, where) if isinstance(one, Field) else one for name, one in given.items()}
    if isinstance(given, (Goto, Chain)):
        return _written(given, where)
    if isinstance(given, Cooldown):
        return {"cooldown": _json(given.window, where, "window", place)}
    return duration_text(given) if isinstance(given, timedelta) else given


def _without_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
