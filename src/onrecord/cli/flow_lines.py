"""Flows on the screen: what is in them, and what is wrong with them."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from onrecord.agent import Agent
from onrecord.cli.failure import FAILED, OK, Wrong, meant
from onrecord.cli.loading import agent_named
from onrecord.cli.terminal import Screen, cut, plural, wide_enough
from onrecord.flows.captions import ELSEWHERE, gate_caption, step_caption, trigger_caption, way_caption
from onrecord.flows.direct import Flows
from onrecord.flows.drawing import to_dot, to_mermaid
from onrecord.flows.flow import Flow
from onrecord.flows.steps import Collect, Do, Step, Talk
from onrecord.flows.triggers import OnMessage
from onrecord.flows.ways import Way, dead_steps, ways_out

__all__ = ("check", "draw", "flows_of")

ENDS = {"end": "ends", "reset": "begins again", "stay": "stays with the talk it took last"}


def flows_of(agent: Agent[Any, Any], name: str) -> Flows:
    """The flows of an agent. Wrong where it has none."""
    director = agent.plan.director
    if not isinstance(director, Flows):
        raise Wrong(f"{name} is an agent without flows", hint="give it director=Flows(...)")
    return director


def _log_nothing() -> None:
    """What an agent would log of its flows when it is built is for `check` to print, and no part of a drawing."""
    logging.getLogger("onrecord").addHandler(logging.NullHandler())


# ---- draw ------------------------------------------------------------------------------------------------------------


def draw(args: argparse.Namespace) -> int:
    """Prints the flows that are named, or all, as a diagram."""
    _log_nothing()
    declared = {flow.id: flow for flow in flows_of(agent_named(args.agent), args.agent).declared}
    for id in args.flows:
        if id not in declared:
            there = f"there are {', '.join(map(repr, declared))}" if declared else "it has none"
            raise Wrong(f"{args.agent} has no flow {id!r}", hint=meant(id, declared, otherwise=there))
    chosen = [declared[id] for id in dict.fromkeys(args.flows)] or list(declared.values())
    text = to_dot(chosen) if args.format == "dot" else to_mermaid(chosen)
    Screen().drawn(text.removesuffix("\n"))
    return OK


# ---- check -----------------------------------------------------------------------------------------------------------


def check(args: argparse.Namespace) -> int:
    """Prints every flow, warnings, and steps that cannot be reached."""
    _log_nothing()
    agent = agent_named(args.agent)
    flows, screen = flows_of(agent, args.agent), Screen()
    screen.line(f"{agent.name}: {plural(len(flows.declared), 'flow')}", bold=True)
    for flow in flows.declared:
        screen.line()
        screen.line(flow.id if flow.name == flow.id else f"{flow.id}: {cut(flow.name, 0)}", bold=True)
        for head, lines in _about(flow, agent, flows):
            for at, line in enumerate(lines):
                screen.line(f"  {wide_enough('' if at else head, 9)} {line}")
    dead = [f'flow "{flow.id}", step "{id}": no run can reach it' for flow in flows.declared for id in dead_steps(flow)]
    screen.line()
    for warning in flows.warnings:
        screen.line(f"warning  {warning}")
    for told in dead:
        screen.line(f"problem  {told}", bold=True)
    is_well = not dead and not (args.strict and flows.warnings)
    screen.line(_sum(len(flows.warnings), len(dead)), bold=True)
    return OK if is_well else FAILED


def _sum(warnings: int, problems: int) -> str:
    told = [plural(count, word) for count, word in ((problems, "problem"), (warnings, "warning")) if count]
    return " and ".join(told) or "all is well"


def _about(flow: Flow, agent: Agent[Any, Any], flows: Flows) -> Iterator[tuple[str, list[str]]]:
    """What is in a flow: a heading for each kind of thing, and its lines."""
    if flow.description:
        yield "about", [cut(flow.description, 0)]
    alone = (
        ["any message while nobody asks, for no other flow begins with one: see lone_flow"]
        if _is_alone(flow, flows)
        else []
    )
    yield "starts", [trigger_caption(trigger, 0) for trigger in flow.on] + alone or [ELSEWHERE]
    if flow.while_ is not None:
        yield "while", [gate_caption(flow.while_, 0)]
    yield "steps", list(_step_lines(flow))
    if asked := list(dict.fromkeys(field for step in flow.steps if isinstance(step, Collect) for field in step.fields)):
        yield "asks", [", ".join(asked)]
    if told := [field for field in flow.collect if field not in asked]:
        yield "takes", [f"{', '.join(told)} (when told)"]
    if flow.clear_on_start:
        yield "forgets", [f"{', '.join(flow.clear_on_start)} (when it starts)"]
    if actions := dict.fromkeys(step.action for step in flow.steps if isinstance(step, Do)):
        yield "actions", [", ".join(actions)]
    if tools := _tools(flow, [tool.id for tool in agent.spec.tools]):
        yield "tools", [", ".join(tools)]
    yield "then", [ENDS[flow.on_end]]


def _is_alone(flow: Flow, flows: Flows) -> bool:
    """Whether it begins without being scored, whatever a message says: no other flow waits for what one may want."""
    wanted = [
        one for one in flows.declared if any(isinstance(trigger, OnMessage) and trigger.phrases for trigger in one.on)
    ]
    return wanted == [flow] and flows.lone_flow == "start"


def _step_lines(flow: Flow) -> Iterator[str]:
    """Each step with the ways out of it that are not simply the next step."""
    width = max((len(step.id) for step in flow.steps), default=0)
    for step in flow.steps:
        label = f"{cut(step.label, 0)}: " if step.label else ""
        yield f"{wide_enough(step.id, width)}  {label}{step_caption(step, 0)}"
        for way in ways_out(flow, step):
            if way.target is not None or way_caption(step, way):
                yield f"{' ' * width}    → {_way_text(step, way)}"


def _way_text(step: Step, way: Way) -> str:
    to = f"flow {cut(way.flow, 0)}" if way.flow else way.to
    told = way_caption(step, way, 0)
    return f"{to}: {told}" if told else to


def _tools(flow: Flow, registered: Sequence[str]) -> dict[str, None]:
    """What its talk steps may call, in the order of the steps."""
    used = dict[str, None]()
    for step in flow.steps:
        if isinstance(step, (Talk, Collect)):
            own = step.tools if step.tools is not None else flow.tools
            used |= dict.fromkeys(registered if own is None else own)
    return used
