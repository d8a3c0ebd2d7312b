"""The check-up of a graph: what can be proved wrong with it when it is made, and what looks like a slip."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from onrecord.skills.graph_plan import GraphPlan
from onrecord.skills.guards import unsatisfiable
from onrecord.skills.routes import Route
from onrecord.skills.skill import Skill

__all__ = ("Finding", "body_findings", "structure_findings")

Severity = Literal["error", "warning"]

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every vendor takes as the name of a tool."""

MENTIONED = re.compile(r"`([A-Za-z_][A-Za-z0-9_-]*+)(\(\)?)?[^`]*+`")


class Finding(Struct, frozen=True, kw_only=True):
    """Something about a graph: its code, whether it can never work (``error``) or only looks wrong (``warning``).

    ``where`` names the skill, start or route, ``message`` says what is wrong with it.
    """

    code: str
    severity: Severity
    where: str
    message: str


def error(code: str, where: str, message: str) -> Finding:
    """Something that holds whatever is said and done."""
    return Finding(code=code, severity="error", where=where, message=message)


def warning(code: str, where: str, message: str) -> Finding:
    """Something that is right in some graphs, and a slip in most."""
    return Finding(code=code, severity="warning", where=where, message=message)


def structure_findings(plan: GraphPlan, known_tools: frozenset[str] | None) -> Iterator[Finding]:
    """What the skills, routes and tools of a graph say by themselves."""
    yield from _tool_names({**plan.nodes, **plan.loose})
    yield from _artifacts({**plan.nodes, **plan.loose})
    if plan.tree is not None:
        return
    if not plan.entries:
        yield error("no-entry", "start", "no turn can begin anywhere: give start= or entries=")
    yield from _reach(plan)
    yield from _routes(plan, known_tools)
    yield from _partition(plan)


def _reach(plan: GraphPlan) -> Iterator[Finding]:
    seen, waiting = set(plan.entries), list(plan.entries)
    while waiting:
        for to in plan.successors.get(waiting.pop(), ()):
            if to not in seen:
                seen.add(to)
                waiting.append(to)
    if plan.entries:
        for id in plan.nodes:
            if id not in seen:
                yield error("unreachable-skill", id, "no start and no route leads to it: add one, or move it to loose=")
    coded = {route.to for route in plan.routes if route.kind != "model"} | set(plan.entries)
    for id in plan.nodes:
        if id in seen and id not in coded:
            yield warning("model-edge-only", id, "only the model can go there, by read_skill")


def _routes(plan: GraphPlan, known: frozenset[str] | None) -> Iterator[Finding]:
    for route in plan.routes:
        where = f"{route.source} -> {route.to}"
        if route.source == route.to:
            yield error("self-loop", where, "it leads to where it comes from")
        if route.guard is not None and (why := unsatisfiable(route.guard, route.source, known)):
            yield error("guard-unsatisfiable", where, f"its guard can never hold: {why}")
    seen: dict[tuple[object, ...], Route] = {}
    for route in plan.routes:
        if route.kind == "model":
            continue
        guard = None if route.guard is None else repr(sorted(route.guard.items()))
        key = (route.source, route.kind, route.on_tool, tuple(sorted(route.on_status or ())), route.only_if, guard)
        other = seen.setdefault(key, route)
        if other is not route and other.to != route.to:
            yield warning(
                "ambiguous-routes", f"{route.source} -> {route.to}",
                f"the route to {other.to!r} is taken by the same results, and stands before it",
            )  # fmt: skip


def _partition(plan: GraphPlan) -> Iterator[Finding]:
    skills = list(plan.nodes.values())
    if len(skills) >= 5 and len(plan.routes) < len(skills) // 2:
        yield warning(
            "few-declared-edges", "routes", f"{len(plan.routes)} routes between {len(skills)} skills: is it a graph?"
        )
    entered = {route.to for route in plan.routes}
    left = {route.source for route in plan.routes}
    for id in plan.entries if len(plan.entries) > 1 else ():
        if id in left and id not in entered and plan.strictness == "rails":
            yield warning("one-way-entries", id, "a turn can begin there and leave, and nothing leads back")
    for skill in skills:
        if len(skill.tools) == 1 and len(skill.text) < 200 and not skill.steps:
            yield warning("skill-wraps-one-tool", skill.id, "one tool and few words: the tool's description may do")
    prefixes: dict[str, str] = {}
    for skill in skills:
        shared = {tool.id.split("_", 1)[0] for tool in skill.tools if "_" in tool.id}
        if len(skill.tools) < 2 or len(shared) != 1 or not all("_" in tool.id for tool in skill.tools):
            continue
        other = prefixes.setdefault(prefix := shared.pop(), skill.id)
        if other != skill.id:
            yield warning("tools-share-prefix", skill.id, f"all its tools begin with {prefix!r}, as those of {other!r}")


def _tool_names(skills: Mapping[str, Skill]) -> Iterator[Finding]:
    for skill in skills.values():
        for tool in skill.tools:
            if not TOOL_NAME.fullmatch(tool.id):
                yield error("unusable-tool-name", skill.id, f"vendors take no tool with the name {tool.id!r}")


def _artifacts(skills: Mapping[str, Skill]) -> Iterator[Finding]:
    makers: Sequence[tuple[str, str]] = [
        (made, skill.id)
        for skill in skills.values()
        for made in (skill.produces, *(s.produces for s in skill.steps or ()))
    ]
    made = {kind for kind, _ in makers if kind}
    for skill in skills.values():
        for kind in (skill.consumes, *(step.consumes for step in skill.steps or ())):
            if kind and kind not in made:
                yield warning("artifact-kind-unsatisfied", skill.id, f"it consumes {kind!r}, which nothing produces")


def body_findings(
    plan: GraphPlan, scoped: frozenset[str], known: frozenset[str], *, closed: bool
) -> Iterator[Finding]:  # fmt: skip
    """Tools that a skill's text names, in backticks, against those that can be called while it is in use; and routes.

    ``known`` are all registered tools; without ``closed`` there may be more, so that an unknown one proves nothing.
    """
    skills = {**plan.nodes, **plan.loose}
    owners: dict[str, list[str]] = {}
    for skill in skills.values():
        for tool in skill.tools:
            owners.setdefault(tool.id, []).append(skill.id)
    for route in plan.routes if closed else ():
        if route.on_tool and route.on_tool not in known | owners.keys() and "absent" not in (route.on_status or ()):
            yield error(
                "route-unknown-tool", f"{route.source} -> {route.to}",
                f"it waits for {route.on_tool!r}, and there is no such tool",
            )  # fmt: skip
    free = known - _only_in(owners, scoped, plan)
    for skill in skills.values():
        own = {tool.id for tool in skill.tools}
        for name, called in _mentions(skill.text):
            if name in own or name in free:
                continue
            if name in owners:
                yield error(
                    "body-foreign-tool", skill.id,
                    f"its text names the tool {name!r}, which is only offered with {owners[name][0]!r}",
                )  # fmt: skip
            elif called and closed:
                yield error("body-unknown-tool", skill.id, f"its text calls {name!r}, and there is no such tool")


def _only_in(owners: Mapping[str, Iterable[str]], scoped: frozenset[str], plan: GraphPlan) -> frozenset[str]:
    """Tools that are never offered but with a skill of the graph: two of those are never in use at once."""
    always = {tool.id for id in plan.always for tool in plan.nodes[id].tools}
    return frozenset(
        tool for tool, ids in owners.items()
        if tool not in always and all(id in scoped and id in plan.nodes for id in ids)
    )  # fmt: skip


def _mentions(text: str) -> Iterator[tuple[str, bool]]:
    """Names in backticks, and whether they are written as calls."""
    for found in MENTIONED.finditer(text):
        yield found[1], bool(found[2])
