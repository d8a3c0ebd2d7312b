"""Checks a flow against everything it names, before any run of it exists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar, cast

from msgspec import Struct

from onrecord.errors import FlowInvalid
from onrecord.flows.field_specs import FieldSpec
from onrecord.flows.fields import params_of
from onrecord.flows.flow import Event, Flow, FlowInstruction, Idle
from onrecord.flows.flow_json import from_spec
from onrecord.flows.flow_shape import (
    check_instruction_shapes,
    check_shape,
    flow_place,
    step_place,
    targets_of,
    trigger_place,
)
from onrecord.flows.invalid import got, invalid, nearest, quoted, unknown
from onrecord.flows.phrases import phrases
from onrecord.flows.predicates import Condition, Pred, compile_pred
from onrecord.flows.steps import END, Chain, Collect, Do, Goto, If, Next, Talk, Wait, WaitEvent
from onrecord.flows.triggers import Cooldown, OnEvent, OnMention, OnMessage, OnSilence, Trigger
from onrecord.flows.with_args import check_args
from onrecord.jsonio import Json
from onrecord.timing import duration
from onrecord.tools.tool import Tool

__all__ = (
    "Registries", "check_instructions", "check_registries", "check_tools", "check_unique", "validate_flow",
)  # fmt: skip

T = TypeVar("T")


class Registries(Struct, frozen=True, kw_only=True):
    """What flows may name. ``tools`` and ``flows`` are None where they are not known yet: then neither is checked."""

    fields: Mapping[str, FieldSpec] = {}
    actions: Mapping[str, Tool] = {}
    events: Mapping[str, Event] = {}
    conditions: Mapping[str, Condition] = {}
    tools: frozenset[str] | None = None
    flows: frozenset[str] | None = None

    def __post_init__(self) -> None:
        """Everything is looked up by name, so each is an object or a set of names."""
        for what, kind in (("fields", FieldSpec), ("actions", Tool), ("events", Event)):
            held = getattr(self, what)
            if not isinstance(held, Mapping) or not all(isinstance(one, kind) for one in held.values()):
                hint = "Flows(...).fields has them" if what == "fields" else ""
                raise invalid("registries", f"{what} must be an object of {kind.__name__}s", hint)
        held = cast("object", self.conditions)  # as a host gave it
        if not isinstance(held, Mapping) or not all(callable(one) for one in held.values()):
            raise invalid("registries", "conditions must be an object of functions")
        for what in ("tools", "flows"):
            names = getattr(self, what)
            if names is not None and not isinstance(names, (frozenset, set, Mapping)):
                raise invalid("registries", f"{what} must be a set of names, {got(names)}")


def check_registries(registries: object) -> None:
    """Raises FlowInvalid for what is no `Registries`."""
    if not isinstance(registries, Registries):
        raise invalid("", f"registries must be Registries, {got(registries)}", "write Registries(fields=..., ...)")


def validate_flow(flow: Flow | Mapping[str, Json], registries: Registries) -> tuple[str, ...]:
    """Warnings about what works but is hardly meant. Raises FlowInvalid for the first thing that cannot work.

    Takes a flow or its JSON form. Errors and warnings name the flow, the trigger or step, and the thing.
    """
    check_registries(registries)
    whole = flow if isinstance(flow, Flow) else from_spec(flow)
    check_shape(whole)
    return tuple(_Checking(whole, registries).warnings())


def check_unique(flows: Iterable[Flow]) -> None:
    """Raises FlowInvalid where two flows have one id."""
    seen = set[str]()
    for flow in flows:
        if flow.id in seen:
            raise FlowInvalid(
                f"{flow_place(flow)} is declared twice: flow ids must be unique", hint="Rename one of them."
            )
        seen.add(flow.id)


def check_tools(
    flow: Flow | None,
    idle: Idle | str | None,
    tools: Mapping[str, Tool],
    *,
    open: bool,  # noqa: A002 - the word for a set of tools that others may join
) -> None:
    """Raises FlowInvalid for a tool that a flow, a step of it, or the idle speaker names and nobody has.

    Called when all tools are known. ``open``: some come later, by themselves, so a name may still be right.
    """
    if open:
        return
    named = list(_tools_named(flow)) if flow is not None else []
    if isinstance(idle, Idle):
        named.append(("idle", idle.tools))
    for where, ids in named:
        for one in ids or ():
            if one not in tools:
                raise unknown(where, "tool", one, tools)


def check_instructions(instructions: Sequence[FlowInstruction], registries: Registries, where: str) -> None:
    """Raises FlowInvalid for an instruction that is none, or whose gate names what nobody has."""
    check_instruction_shapes(instructions, where)
    for place, one in enumerate(instructions):
        _gate(one.only_if, registries, where, f"instructions[{place}].only_if")


def _tools_named(flow: Flow) -> Iterator[tuple[str, Sequence[str] | None]]:
    yield flow_place(flow), flow.tools
    for step in flow.steps:
        if isinstance(step, (Talk, Collect)):
            yield step_place(flow, step.id), step.tools


def _gate(pred: Pred | None, registries: Registries, where: str, place: str) -> None:
    compile_pred(pred, conditions=registries.conditions, fields=registries.fields, where=where, place=place)


def _lasting(given: str | timedelta | None, where: str, place: str) -> None:
    if given is None:
        return
    try:
        duration(given)
    except FlowInvalid as wrong:
        told = str(wrong).removeprefix("duration ")
        raise invalid(where, f"{place} {told}", wrong.hint) from None


class _Checking:
    """One flow being checked; what it finds questionable is yielded as warnings, in the order of the flow."""

    def __init__(self, flow: Flow, registries: Registries) -> None:
        self.flow, self.known = flow, registries
        self.places = {step.id: place for place, step in enumerate(flow.steps)}

    def warnings(self) -> Iterator[str]:
        flow, known, where = self.flow, self.known, flow_place(self.flow)
        if flow.on and not flow.steps:
            raise invalid(where, "has triggers but no steps", "give it a step, or start it by nothing")
        for number, trigger in enumerate(flow.on, 1):
            self._trigger(trigger, trigger_place(flow, number))
        _gate(flow.while_, known, where, "while")
        self._fields(flow.collect, where, "collect")
        self._fields(flow.clear_on_start, where, "clear_on_start")
        check_instructions(flow.instructions, known, where)
        self._tools(flow.tools, where)
        yield from self._uncounted()
        yield from self._unasked(where)
        for place, step in enumerate(flow.steps):
            yield from self._step(step, place)

    def _trigger(self, trigger: Trigger, where: str) -> None:
        if isinstance(trigger.repeat, Cooldown):
            _lasting(trigger.repeat.window, where, "repeat.cooldown")
        if isinstance(trigger, (OnMessage, OnMention)):
            _counting(trigger, where)
        if isinstance(trigger, OnMention):
            try:
                params_of(trigger.extract)
            except FlowInvalid as wrong:
                raise invalid(where, f"extract: {wrong}", wrong.hint) from None
        if isinstance(trigger, OnSilence):
            _lasting(trigger.after, where, "silence")
            if not duration(trigger.after):  # it would fire behind every word, and behind its own
                raise invalid(where, "silence has no length", 'say how long the customer must be quiet, such as "24h"')
        if isinstance(trigger, OnEvent):
            self._event(trigger.name, where)
            _lasting(trigger.after, where, "after")
        _gate(trigger.only_if, self.known, where, "only_if")

    def _step(self, step: Any, place: int) -> Iterator[str]:
        where = step_place(self.flow, step.id)
        if isinstance(step, (Talk, Collect)):
            yield from self._talk(step, where)
        elif isinstance(step, Do):
            if step.action not in self.known.actions:
                raise unknown(where, "action", step.action, self.known.actions)
            check_args(self.known.actions[step.action], step.args, where)
        elif isinstance(step, Wait):
            _lasting(step.duration, where, "wait")
            if any(branch.when for branch in step.branches):
                yield f"{where}: a when branch of a wait is never judged; use only_if, or ask in a talk step after it"
        elif isinstance(step, WaitEvent):
            self._event(step.event, where)
            _lasting(step.up_to, where, "wait.up_to")
        elif isinstance(step, If):
            _gate(step.only_if, self.known, where, "if")
            if step.else_ is None and self._is_back(step.then, place):
                raise invalid(where, f"then jumps back to {quoted(_id(step.then))} and there is no else",
                              'say where to go when the gate is closed, such as "end"')  # fmt: skip
        for number, branch in enumerate(getattr(step, "branches", ())):
            _gate(branch.only_if, self.known, where, f"branches[{number}].only_if")
        for name, target in targets_of(step):
            yield from self._target(target, name, where, place)

    def _talk(self, step: Talk | Collect, where: str) -> Iterator[str]:
        self._fields(step.fields, where, "collect")
        self._fields(step.ask, where, "ask")
        check_instructions(step.instructions, self.known, where)
        self._tools(step.tools, where)
        worded = step.prompt or step.question or any(step.ask.get(f) or self.known.fields[f].ask for f in step.fields)
        if not worded:
            yield f"{where}: nothing says how to ask: it has no prompt, no question, and no ask on any of its fields"

    def _target(self, target: Next, name: str, where: str, place: int) -> Iterator[str]:
        if isinstance(target, Chain):
            flows = self.known.flows
            if flows is not None and "{{" not in target.flow and target.flow not in flows:
                told = nearest(target.flow, flows)
                yield f"{where}: {name} starts flow {quoted(target.flow)}, which this agent does not have ({told})"
            return
        if isinstance(target, Goto):
            self._fields(target.clear, where, "clear")
        step = _id(target)
        if step == END:
            return
        if step not in self.places:
            raise invalid(where, f"{name} points at step {quoted(step)}, which does not exist",
                          nearest(step, [*self.places, END]))  # fmt: skip
        if self._is_back(target, place) and not (isinstance(target, Goto) and target.clear):
            told = "clears nothing, so what is known is not asked again"
            yield f"{where}: {name} goes back to {quoted(step)} and {told}"

    def _is_back(self, target: Next | None, place: int) -> bool:
        step = _id(target)
        return step is not None and self.places.get(step, place + 1) <= place

    def _uncounted(self) -> Iterator[str]:
        seen = set[str]()
        for number, trigger in enumerate(self.flow.on, 1):
            if isinstance(trigger, (OnMention, OnSilence)) and trigger.kind in seen:
                place = trigger_place(self.flow, number)
                yield f"{place}: only the first {trigger.kind} trigger of a flow counts"
            seen.add(trigger.kind)

    def _unasked(self, where: str) -> Iterator[str]:
        asked = {field for step in self.flow.steps if isinstance(step, Collect) for field in step.fields}
        for field in self.flow.collect:
            if field not in asked and self.known.fields[field].extract == "asked":
                yield f"{where}: collect has {quoted(field)}, which is taken only where asked, and no step asks for it"

    def _fields(self, slugs: Iterable[str], where: str, place: str) -> None:
        for slug in slugs:
            if slug not in self.known.fields:
                raise unknown(where, "field", slug, self.known.fields, place)

    def _event(self, name: str, where: str) -> None:
        if name not in self.known.events:
            raise unknown(where, "event", name, self.known.events)

    def _tools(self, ids: Sequence[str] | None, where: str) -> None:
        if self.known.tools is not None:
            for one in ids or ():
                if one not in self.known.tools:
                    raise unknown(where, "tool", one, self.known.tools)


def _id(target: Next | None) -> str | None:
    if isinstance(target, Goto):
        return target.step
    return target if isinstance(target, str) else None


def _counting(trigger: OnMessage | OnMention, where: str) -> None:
    if not trigger.phrases or (sorted_out := phrases(trigger.phrases)).counts:
        return
    if sorted_out.excludes:
        told = f'every {trigger.kind} phrase starts with "!", so nothing can ever match it'
        raise invalid(where, told, "say what counts, too")
    raise invalid(where, f"every {trigger.kind} phrase is blank", "leave the list empty, or say what counts")
