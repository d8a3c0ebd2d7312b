"""Projection without lanes: every unit encoded anew, entries grouped by kind. What lanes are compared with."""

from __future__ import annotations

from itertools import groupby

from msgspec.structs import replace

from onrecord.conversation.content import Part, Text
from onrecord.conversation.messages import ContextMessage, Round, Unit, UserMessage
from onrecord.conversation.render import context_text
from onrecord.models.lanes import Run
from onrecord.models.projection import Projection
from onrecord.models.request import Request, Span
from onrecord.models.unit_bytes import in_words

Shown = tuple[Unit, int | None]


def fresh_body(wire: Projection, request: Request) -> bytes:
    """The body of a request."""
    pieces = sorted(request.pieces, key=lambda piece: piece.rank)
    by_place: dict[str, list[str]] = {"system": [], "turn": [], "trailing": []}
    for piece in pieces:
        by_place[piece.place] += [piece.text] if piece.text.strip() else []
    system, runs = by_place["system"], list[Run]()
    shown, turn_at = _shown(request)
    leading = wire.hoists
    for at, (unit, index) in enumerate([*shown, (None, None)]):
        if at == turn_at and (parts := _turn_parts(request, by_place["turn"])):
            leading = False
            runs += wire.user(in_words(parts, wire) if request.view.stand_ins else parts)
        if unit is None:
            break
        if leading and isinstance(unit, ContextMessage) and unit.authority != "data":
            system += [text] if (text := context_text(unit)) else []
            continue
        if index is not None or not isinstance(unit, ContextMessage) or context_text(unit):
            leading = False
        if index is None or index != request.carries:
            runs += _runs(wire, request, unit, index)
    runs += [wire.context("data", text) for text in by_place["trailing"]]
    return _body(wire, request, system, runs)


def _shown(request: Request) -> tuple[list[Shown], int]:
    units = list(request.conversation.units)
    shown: list[Shown] = []
    turn_at: int | None = None
    for span in request.view.spans:
        if not isinstance(span, Span):
            shown.append((span, None))
            continue
        for index in range(span.start, span.stop):
            if index >= request.own and turn_at is None:
                turn_at = len(shown)
            shown.append((units[index], index))
    return shown, len(shown) if turn_at is None else turn_at


def _turn_parts(request: Request, turn: list[str]) -> list[Part]:
    parts: list[Part] = [Text("\n\n".join(turn))] if turn else []
    if request.carries is not None and isinstance(carried := request.conversation.units[request.carries], UserMessage):
        parts += [part for part in carried.content if not isinstance(part, Text)]
    return parts


def _runs(wire: Projection, request: Request, unit: Unit, index: int | None) -> list[Run]:
    for swap in request.view.swaps:
        if swap.unit == index and isinstance(unit, Round) and unit.calls[swap.call].status != "asked":
            swapped = replace(unit.calls[swap.call], result=swap.shows, notes=())
            unit = replace(unit, calls=(*unit.calls[: swap.call], swapped, *unit.calls[swap.call + 1 :]))
    runs = list(wire.runs(_worded(wire, request, unit), request.scope))
    if index in request.view.marks and runs and runs[-1][0] != wire.model_kind:
        runs[-1] = (runs[-1][0], wire.mark(runs[-1][1]))
    return runs


def _worded(wire: Projection, request: Request, unit: Unit) -> Unit:
    if not request.view.stand_ins or isinstance(unit, ContextMessage):
        return unit
    if isinstance(unit, UserMessage):
        return replace(unit, content=in_words(unit.content, wire))
    calls = (c if c.result is None else replace(c, result=in_words(c.result, wire)) for c in unit.calls)
    return replace(unit, calls=tuple(calls))


def _body(wire: Projection, request: Request, system: list[str], runs: list[Run]) -> bytes:
    entries = wire.entries
    if runs and entries.first and runs[0][0] != entries.first:
        runs.insert(0, wire.filler(leads=True))
    if runs and entries.last and runs[-1][0] not in entries.last:
        runs.append(wire.filler(leads=False))
    bodies = [
        entries.opening.get(kind, b"") + b",".join(body for _, body in group) + entries.end
        for kind, group in groupby(runs, key=lambda run: run[0])
    ]
    if not entries.opening:
        bodies = [body for _, body in runs]
    head, tail = wire.frame(request, system, empty=not runs)
    return head + b",".join(bodies) + tail
