"""A graph of skills as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onrecord.skills.graph_plan import GraphPlan
from onrecord.skills.guards import guard_text
from onrecord.skills.matching import AllOf, Intent, Keywords, Pattern
from onrecord.skills.routes import Decide, Route, Start

__all__ = ("mermaid",)

_ENTITIES = {
    "&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "`": "#96;", "%": "#37;", "\\": "#92;",
}  # fmt: skip
"""Letters that mean something to Mermaid inside of quotes: it reads HTML, Markdown, entities and directives there."""


def mermaid(plan: GraphPlan) -> str:
    """The flowchart: starts, routes with what takes them, dashed where only the model goes; decisions as diamonds."""
    places = {id: f"s{place}" for place, id in enumerate((*plan.nodes, *plan.loose))}
    lines = ["flowchart TD", '  start(["turn begins"])']
    lines += [f'  {places[id]}["{_safe(id)}"]' for id in plan.nodes]
    lines += [f'  {places[id]}(["{_safe(id)}"])' for id in plan.loose]
    if plan.tree is not None:
        lines += _tree(plan.tree, places)
    for start in plan.starts:
        lines.append(_arrow("start", places[start.use], _start_caption(start)))
    declared = {start.use for start in plan.starts}
    lines += [_arrow("start", places[id], "", dashed=True) for id in plan.entries if id not in declared]
    lines += [
        _arrow(places[route.source], places[route.to], _route_caption(route), dashed=route.kind == "model")
        for route in plan.routes
    ]
    return "\n".join(lines) + "\n"


def _tree(tree: Decide, places: dict[str, str]) -> Iterator[str]:
    waiting: list[tuple[str, str, Decide | str]] = [("start", "", tree)]
    count = 0
    while waiting:
        source, caption, node = waiting.pop(0)
        if isinstance(node, str):
            yield _arrow(source, places[node], caption)
            continue
        name, count = f"d{count}", count + 1
        yield f'  {name}{{"{_safe(node.label) or "?"}"}}'
        yield _arrow(source, name, caption)
        waiting += [(name, "yes", node.yes), (name, "no", node.no)]


def _arrow(source: str, to: str, caption: str, *, dashed: bool = False) -> str:
    line = "-.->" if dashed else "-->"
    told = _safe(caption)
    return f'  {source} {line}|"{told}"| {to}' if told else f"  {source} {line} {to}"


def _start_caption(start: Start) -> str:
    if start.label or (start.match is None and start.only_if is None):
        return start.label
    return "if" if start.match is None else _match_caption(start.match)


def _match_caption(match: object) -> str:
    if isinstance(match, Keywords):
        return _some(match.words)
    if isinstance(match, Pattern):
        return match.regex
    if isinstance(match, Intent):
        return match.means
    return " and ".join(map(_match_caption, match.matches)) if isinstance(match, AllOf) else ""


def _route_caption(route: Route) -> str:
    if route.label:
        return route.label
    if route.guard is not None:
        return guard_text(route.guard)
    status = _some(route.on_status or ())
    return " ".join(filter(None, (route.on_tool, status))) or ("if" if route.only_if is not None else "")


def _some(words: Iterable[str]) -> str:
    held = list(words)
    return ", ".join(held[:3]) + (", …" if len(held) > 3 else "")


def _safe(text: str) -> str:
    """A caption that cannot break out of its quotes, on one line, and is no markup, directive or entity of its own."""
    line = " ".join(text.split())
    return "".join(_ENTITIES.get(letter, letter if letter.isprintable() else "\ufffd") for letter in line)
