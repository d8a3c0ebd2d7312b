"""What a request shows the stand-in: its brief, and the conversation as lines with a speaker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.content import Audio, Part
from onrecord.conversation.display import labelled
from onrecord.conversation.messages import ContextMessage, Round, ToolCall, Unit, UserMessage
from onrecord.conversation.render import context_text
from onrecord.jsonio import Json, loads
from onrecord.models.request import Request, Span
from onrecord.models.unit_bytes import result_parts

__all__ = ("Line", "Scene", "look", "shown_units", "swaps_of")

REACH = 60
"""How many lines back the stand-in looks for values."""
LONGEST = 4000
"""Characters of a person's message that are read, so that a pasted file costs nothing."""


class Line(Struct, frozen=True, kw_only=True):
    """One line: a person's words, the model's, or a call with what it returned.

    ``own`` lines belong to the rounds of the present brief. ``value`` is the result read as JSON, or its text.
    """

    who: Literal["person", "model", "call"]
    text: str
    own: bool = False
    name: str = ""
    args: Mapping[str, Json] = {}
    value: Json = None
    status: str = ""

    @property
    def went_well(self) -> bool:
        """Whether a call came back with something that is not an error."""
        failed = isinstance(self.value, Mapping) and "error" in self.value
        return self.status in {"returned", "partial"} and not failed


class Scene(Struct, frozen=True, kw_only=True):
    """The brief's texts, the library's data texts, and the latest lines in order."""

    brief: tuple[str, ...]
    data: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def latest(self) -> str:
        """The person's latest words, or nothing when the model has spoken since."""
        for line in reversed(self.lines):
            if line.who == "person":
                return line.text
            if not line.own:
                break
        return ""

    @property
    def before(self) -> tuple[Line, ...]:
        """The lines before the person's latest words and before this brief's own rounds."""
        earlier = [line for line in self.lines if not line.own]
        return tuple(earlier[:-1] if earlier and earlier[-1].who == "person" else earlier)

    @property
    def own_calls(self) -> tuple[Line, ...]:
        """The calls this brief has already made, in order."""
        return tuple(line for line in self.lines if line.own and line.who == "call")

    @property
    def said_before(self) -> str:
        """What the model said last before the person's latest words."""
        return next((line.text for line in reversed(self.before) if line.who == "model"), "")


def look(request: Request) -> Scene:
    """Reads a request: the view in order, results as the view shows them, a person's messages in a row as one.

    Behind a call that waits for an answer they are two: the yes that led to it says nothing about what comes next.
    """
    brief = [piece.text for piece in request.pieces]
    data: list[str] = []
    lines: list[Line] = []
    waits = False
    swaps = swaps_of(request)
    for index, unit in shown_units(request):
        if isinstance(unit, ContextMessage):
            (data if unit.authority == "data" else brief).append(context_text(unit))
        elif isinstance(unit, UserMessage):
            words = "\n".join(filter(None, [unit.text, *(p.transcript for p in unit.content if isinstance(p, Audio))]))
            words = words[:LONGEST]
            if lines and lines[-1].who == "person" and not waits:
                lines[-1] = replace(lines[-1], text=f"{lines[-1].text}\n{words}"[-LONGEST:])
            else:
                lines.append(Line(who="person", text=words))
            waits = False
        else:
            waits = any(call.status == "asked" for call in unit.calls)
            data.extend(context_text(note) for note in unit.before)
            lines.extend(_round_lines(index, unit, swaps, own=0 <= request.own <= index))
    return Scene(brief=tuple(brief), data=tuple(data), lines=tuple(lines[-REACH:]))


def shown_units(request: Request) -> Iterator[tuple[int, Unit]]:
    """The units that the view shows with their index (-1 for inserts), and the one whose text the pieces carry."""
    units = request.conversation.units
    carried = request.carries
    for span in request.view.spans:
        if isinstance(span, ContextMessage):
            yield -1, span
            continue
        for index in range(span.start, min(span.stop, len(units))):
            if index == carried:
                carried = None
            yield index, units[index]
    if carried is not None and 0 <= carried < len(units) and not _covers(request.view.spans, carried):
        yield carried, units[carried]


def _covers(spans: Sequence[Span | ContextMessage], index: int) -> bool:
    return any(isinstance(span, Span) and span.start <= index < span.stop for span in spans)


def swaps_of(request: Request) -> Mapping[tuple[int, int], tuple[Part, ...]]:
    """What the view shows instead of results, by unit and call; nothing at all is something, too."""
    return {(swap.unit, swap.call): swap.shows for swap in request.view.swaps}


def _round_lines(
    index: int, held: Round, swaps: Mapping[tuple[int, int], tuple[Part, ...]], *, own: bool
) -> Iterator[Line]:
    if held.text.strip():
        yield Line(who="model", text=held.text, own=own)
    for place, call in enumerate(held.calls):
        if call.status == "asked":
            continue
        shows = swaps.get((index, place))
        words = labelled(result_parts(replace(call, notes=())) if shows is None else shows)
        yield Line(
            who="call",
            text=words,
            own=own,
            name=call.name,
            args=call.args or _arguments(call),
            value=_value(words),
            status=call.status,
        )


def _arguments(call: ToolCall) -> Mapping[str, Json]:
    value = _value(call.raw_args)
    return value if isinstance(value, dict) else {}


def _value(text: str) -> Json:
    try:
        return loads(text)
    except (msgspec.DecodeError, RecursionError):
        return text
