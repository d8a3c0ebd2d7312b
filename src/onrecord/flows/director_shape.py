"""The shape of what `Flows` is given: every argument is of its kind, before anything is compiled from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from onrecord.flows.flow import Direction, Event, Flow, Idle
from onrecord.flows.flow_shape import check_idle_shape, check_instruction_shapes, check_shape, step_place
from onrecord.flows.invalid import got, invalid, nearest, quoted, text_problem
from onrecord.flows.knowledge import knowledge_section
from onrecord.flows.predicates import Condition, check_conditions
from onrecord.flows.steps import Say
from onrecord.flows.validate import check_unique
from onrecord.jsonio import Json
from onrecord.tools.tool import Tool

__all__ = ("LONE", "actions_of", "check_director", "check_flows", "conditions_of", "events_of")

LONE = ("start", "score")


def check_flows(flows: Sequence[Flow]) -> None:
    """Raises FlowInvalid for a flow that is none or has a wrong shape, and for two with one id."""
    for flow in flows:
        given: object = flow  # as a host wrote it
        if not isinstance(given, Flow):
            hint = (
                "give them one by one: Flows(*flows)" if isinstance(given, (list, tuple)) else 'write Flow("id", ...)'
            )
            raise invalid("", f"Flows takes flows, {got(given)}", hint)
        check_shape(flow)
    check_unique(flows)
    _check_said_once(flows)


def _check_said_once(flows: Sequence[Flow]) -> None:
    """What is said once is remembered by flow and step; with colons in their ids two lines could be taken for one."""
    places: dict[str, str] = {}
    for flow in flows:
        for step in flow.steps:
            if isinstance(step, Say) and step.once:
                where, name = step_place(flow, step.id), f"{flow.id}:{step.id}"
                if name in places:
                    raise invalid(
                        where, f"is said once, and so is {places[name]}, under the same key", "write ids without colons"
                    )
                places[name] = where


def check_director(
    *, name: Any, persona: Any, goal: Any, knowledge: Any, instructions: Any, idle: Any, business_hours: Any,
    lone_flow: Any,
) -> None:  # fmt: skip
    """Raises FlowInvalid for the first argument that is not of its kind."""
    for what, text in (("name", name), ("persona", persona), ("goal", goal)):
        if problem := text_problem(text):
            raise invalid("", f"{what} {problem}", f'write {what}="..."')
    if not name:
        raise invalid("", "name is empty", "leave it out, unless several agents share a session")
    if not isinstance(lone_flow, str) or lone_flow not in LONE:
        raise invalid("", f"lone_flow must be start or score, got {quoted(lone_flow)}", nearest(lone_flow, LONE))
    if business_hours is not None and not callable(business_hours):
        told = "give a function of (at, context) that returns the instant to use"
        raise invalid("", f"business_hours must be a function, {got(business_hours)}", told)
    if not isinstance(instructions, (list, tuple)):
        raise invalid("", f"instructions must be a list, {got(instructions)}", "write [FlowInstruction(...)]")
    check_instruction_shapes(instructions, "agent")
    if isinstance(idle, str) and idle == "silent":
        _knowledge(knowledge)
        return
    if not isinstance(idle, Idle):
        shown = quoted(idle) if isinstance(idle, str) else got(idle).removeprefix("got ")
        raise invalid("", f'idle must be an Idle or "silent", got {shown}', 'write Idle("...") or "silent"')
    check_idle_shape(idle)
    _knowledge(knowledge)


def _knowledge(knowledge: Any) -> None:
    if knowledge is None or (isinstance(knowledge, str) and not text_problem(knowledge)):
        return
    if not isinstance(knowledge, Mapping):
        raise invalid("", f"knowledge must be an object, {got(knowledge)}", 'write {"breakfast": "7 to 10"}')
    try:
        told = knowledge_section(knowledge)
    except Exception:  # noqa: BLE001 - whatever stands in it, it cannot be told to a model
        told = None
    if told is None or text_problem(told):
        raise invalid("", "knowledge holds what JSON cannot keep", "facts are texts, numbers, lists and objects")


def actions_of(given: Any) -> dict[str, Tool]:
    """Actions by id. FlowInvalid for what is no tool, and for two with one id."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise invalid("", f"actions must be a list of tools, {got(given)}", "write actions=[...], also for one")
    named: dict[str, Tool] = {}
    for action in given:
        if not isinstance(action, Tool):
            hint = "decorate the function with @tool" if callable(action) else "an action is a Tool"
            raise invalid("", f"actions must be tools, {got(action)}", hint)
        if action.id in named:
            raise invalid("", f"action {quoted(action.id)} is given twice", "rename one of them")
        named[action.id] = action
    return named


def events_of(given: Any) -> dict[str, Event]:
    """Events by name. FlowInvalid for a name that is no text, and for an event that is none."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise invalid("", f"events must be a list of names or an object, {got(given)}", 'write events=["paid"]')
    named = dict(given) if isinstance(given, Mapping) else [(name, Event()) for name in given]
    events: dict[str, Event] = {}
    for name, event in named.items() if isinstance(named, dict) else named:
        if text_problem(name) or not name:
            raise invalid("", f"an event is named by a text that is not empty, got {quoted(name)}")
        where = f"event {quoted(name)}"
        if not isinstance(event, Event):
            raise invalid(
                where, f"must be an Event, {got(event)}", 'write Event(direction="inbound"), or its name alone'
            )
        _event(event, where)
        events[name] = event
    return events


def _event(event: Event, where: str) -> None:
    direction: object = event.direction
    allowed = get_args(Direction)
    if direction is not None and not (isinstance(direction, str) and direction in allowed):
        raise invalid(where, f"unknown direction {quoted(direction)}", nearest(direction, allowed))
    if problem := text_problem(event.about):
        raise invalid(where, f"about {problem}")


def conditions_of(given: Mapping[str, Condition] | None) -> dict[str, Condition]:
    """Conditions by name. FlowInvalid for one that cannot be called as one."""
    held: Json = given  # as a host wrote it
    if held is not None and not isinstance(held, Mapping):
        raise invalid("", f"conditions must be an object of functions, {got(held)}", 'write {"vip": is_vip}')
    conditions = dict(held or {})
    check_conditions(conditions)
    return conditions
