"""Drawing: flows as a diagram. The diagram is a value; Mermaid and DOT are two ways to write it down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from onrecord.flows.captions import ELSEWHERE, cut, step_caption, trigger_caption, way_caption
from onrecord.flows.flow import Flow
from onrecord.flows.steps import END, Step
from onrecord.flows.ways import ways_out

__all__ = ("Arrow", "Box", "BoxKind", "Drawing", "Frame", "drawn", "to_dot", "to_mermaid")

BoxKind = Literal[
    "trigger", "prompt", "collect", "say", "do", "wait", "wait_event", "if", "end", "flow", "missing"
]  # fmt: skip
"""What a box stands for: a trigger, a step by its kind, the end of a flow, another flow, a step that there is not."""

TITLE = 60

_JOINERS = "\u200c\u200d"
"""Invisible, and yet part of how words and emoji are written."""


class Box(Struct, frozen=True):
    """Something in a drawing; ``id`` is made of letters and digits, ``lines`` are its text as it was declared."""

    id: str
    kind: BoxKind
    lines: tuple[str, ...]


class Arrow(Struct, frozen=True):
    """From one box to another. ``is_start``: where it ends, another run begins."""

    source: str
    target: str
    text: str = ""
    is_start: bool = False


class Frame(Struct, frozen=True):
    """A flow: its boxes, and the arrows between them."""

    id: str
    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


class Drawing(Struct, frozen=True):
    """Flows as boxes and arrows. ``boxes`` are flows that are named and not drawn, ``arrows`` lead out of a flow."""

    frames: tuple[Frame, ...]
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def to_mermaid(flows: Iterable[Flow]) -> str:
    """A Mermaid flowchart of the flows, which stays one whatever their names and texts hold."""
    return "\n".join(_mermaid(drawn(flows))) + "\n"


def to_dot(flows: Iterable[Flow]) -> str:
    """The same in the language of Graphviz, ready for ``dot -Tsvg``."""
    return "\n".join(_dot(drawn(flows))) + "\n"


# ---- the drawing -----------------------------------------------------------------------------------------------------


def drawn(flows: Iterable[Flow]) -> Drawing:
    """The drawing of flows, in their order: triggers, steps, and every way from one to another."""
    return _Drawer(tuple(flows)).drawing()


class _Drawer:
    """Draws flows one after the other; what leads out of them is kept until all have been drawn."""

    def __init__(self, flows: Sequence[Flow]) -> None:
        self.flows = flows
        self.entries = {flow.id: f"f{at}s0" for at, flow in enumerate(flows) if flow.steps}
        self.others = dict[str, Box]()
        self.starts = list[Arrow]()

    def drawing(self) -> Drawing:
        frames = tuple(self.frame(flow, f"f{at}") for at, flow in enumerate(self.flows))
        return Drawing(frames, tuple(self.others.values()), tuple(self.starts))

    def frame(self, flow: Flow, id: str) -> Frame:
        boxes, arrows = list(_entry_boxes(flow, id)), list[Arrow]()
        first = f"{id}s0"
        if flow.steps:
            arrows += [Arrow(box.id, first) for box in boxes]
        places = {step.id: f"{id}s{at}" for at, step in reversed(tuple(enumerate(flow.steps)))}
        missing = dict[str, Box]()
        for at, step in enumerate(flow.steps):
            boxes.append(Box(f"{id}s{at}", step.kind, _step_lines(step)))
            arrows += self.ways(flow, step, f"{id}s{at}", places | {END: f"{id}z"}, missing)
        if any(arrow.target == f"{id}z" for arrow in arrows):
            boxes.append(Box(f"{id}z", "end", (_END_LINES[flow.on_end],)))
            if flow.on_end == "reset":
                arrows.append(Arrow(f"{id}z", first, is_start=True))
        return Frame(id, flow.name or flow.id, (*boxes, *missing.values()), tuple(arrows))

    def ways(
        self, flow: Flow, step: Step, source: str, places: dict[str, str], missing: dict[str, Box]
    ) -> Iterator[Arrow]:
        for way in ways_out(flow, step):
            text = way_caption(step, way)
            if way.flow:
                self.starts.append(Arrow(source, self.entry(way.flow), text, is_start=True))
                continue
            if way.to not in places:
                missing[way.to] = Box(f"{places[END]}{len(missing)}", "missing", (f"there is no step {way.to}",))
                places[way.to] = missing[way.to].id
            yield Arrow(source, places[way.to], text)

    def entry(self, flow: str) -> str:
        """Where a run of another flow begins."""
        if flow in self.entries:
            return self.entries[flow]
        if flow not in self.others:
            self.others[flow] = Box(f"x{len(self.others)}", "flow", (f"flow {flow}",))
        return self.others[flow].id


_END_LINES = {"end": "end", "reset": "begins again", "stay": "stays with its last talk"}


def _entry_boxes(flow: Flow, id: str) -> Iterator[Box]:
    for at, trigger in enumerate(flow.on):
        yield Box(f"{id}t{at}", "trigger", (trigger_caption(trigger),))
    if not flow.on:
        yield Box(f"{id}t0", "trigger", (ELSEWHERE,))


def _step_lines(step: Step) -> tuple[str, ...]:
    return (step.label or step.id, step_caption(step))


# ---- Mermaid ---------------------------------------------------------------------------------------------------------

_MERMAID: dict[BoxKind, tuple[str, str]] = {
    "trigger": ("([", "])"),
    "prompt": ("(", ")"),
    "collect": ("[/", "/]"),
    "say": ("[", "]"),
    "do": ("[[", "]]"),
    "wait": ("{{", "}}"),
    "wait_event": (">", "]"),
    "if": ("{", "}"),
    "end": ("((", "))"),
    "flow": ("[/", "\\]"),
    "missing": ("[", "]"),
}


def _mermaid(drawing: Drawing) -> Iterator[str]:
    yield "flowchart TD"
    for frame in drawing.frames:
        yield f'  subgraph {frame.id}["{_mermaid_text((frame.title,), TITLE)}"]'
        for box in frame.boxes:
            yield f"    {_mermaid_box(box)}"
        for arrow in frame.arrows:
            yield f"    {_mermaid_arrow(arrow)}"
        yield "  end"
    for box in drawing.boxes:
        yield f"  {_mermaid_box(box)}"
    for arrow in drawing.arrows:
        yield f"  {_mermaid_arrow(arrow)}"


def _mermaid_box(box: Box) -> str:
    before, behind = _MERMAID[box.kind]
    return f'{box.id}{before}"{_mermaid_text(box.lines)}"{behind}'


def _mermaid_arrow(arrow: Arrow) -> str:
    line = "-.->" if arrow.is_start else "-->"
    text = f'|"{_mermaid_text((arrow.text,))}"|' if arrow.text else ""
    return f"{arrow.source} {line}{text} {arrow.target}"


# Outside of these a character can mean something to Mermaid, to the Markdown it reads labels as, or to HTML.
_PLAIN = frozenset(" ,'()?!/+-.…“”·—→¿¡")
# At the start of a line Markdown sees a list; a dot inside a word can make it a link; an underscore at its edge slants.
_MARKDOWN = re.compile(r"^[-+]|^\d+[.)]|\.(?=\w)")
_UNDERSCORE = re.compile(r"(?<=[^\W_])_(?=[^\W_])")


def _mermaid_text(lines: Sequence[str], limit: int = 0) -> str:
    """Lines as a quoted label holds them; what is not plain stands there by its number."""
    return "<br/>".join(_mermaid_line(_shown(line, limit)) for line in lines)


def _mermaid_line(line: str) -> str:
    kept = {found.start() for found in _UNDERSCORE.finditer(line)}
    coded = {found.end() - 1 for found in _MARKDOWN.finditer(line)}
    return "".join(
        char if at not in coded and (char.isalnum() or char in _PLAIN or at in kept) else f"#{ord(char)};"
        for at, char in enumerate(line)
    )


# ---- Graphviz --------------------------------------------------------------------------------------------------------

_DOT: dict[BoxKind, str] = {
    "trigger": "shape=oval",
    "prompt": 'shape=box, style="rounded"',
    "collect": "shape=parallelogram",
    "say": "shape=box",
    "do": "shape=component",
    "wait": "shape=hexagon",
    "wait_event": "shape=cds",
    "if": "shape=diamond",
    "end": "shape=circle",
    "flow": "shape=tab",
    "missing": 'shape=box, style="dashed"',
}


def _dot(drawing: Drawing) -> Iterator[str]:
    yield "digraph flows {"
    yield '  graph [rankdir=TB, fontname="Helvetica"];'
    yield '  node [fontname="Helvetica"];'
    yield '  edge [fontname="Helvetica"];'
    for frame in drawing.frames:
        yield f"  subgraph cluster_{frame.id} {{"
        yield f"    label={_dot_text((frame.title,), TITLE)};"
        yield from (f"    {_dot_box(box)}" for box in frame.boxes)
        yield from (f"    {_dot_arrow(arrow)}" for arrow in frame.arrows)
        yield "  }"
    yield from (f"  {_dot_box(box)}" for box in drawing.boxes)
    yield from (f"  {_dot_arrow(arrow)}" for arrow in drawing.arrows)
    yield "}"


def _dot_box(box: Box) -> str:
    return f"{box.id} [{_DOT[box.kind]}, label={_dot_text(box.lines)}];"


def _dot_arrow(arrow: Arrow) -> str:
    told = [f"label={_dot_text((arrow.text,))}"] if arrow.text else []
    told += ["style=dashed"] if arrow.is_start else []
    return f"{arrow.source} -> {arrow.target} [{', '.join(told)}];"


def _dot_text(lines: Sequence[str], limit: int = 0) -> str:
    r"""Lines as a quoted string: no quote, no escape such as ``\N``, and no entity such as ``&lt;`` is left in them."""
    text = r"\n".join(_shown(line, limit).replace("\\", r"\\").replace('"', r"\"") for line in lines)
    return f'"{text.replace("&", "&amp;")}"'


def _shown(line: str, limit: int) -> str:
    """A line of a label, cut, and without what would steer a screen or break the line."""
    return "".join(char if char.isprintable() or char in _JOINERS else "\ufffd" for char in cut(line, limit or TITLE))
