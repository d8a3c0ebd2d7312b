"""Where in a long conversation a window may not cut: kept beside the log of units, never a walk per request."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from threading import Lock

from onrecord.conversation.log import Log
from onrecord.conversation.messages import ContextMessage, Round, Unit, UserMessage
from onrecord.turn.warm import SLICE

__all__ = ("Outline", "outline_of", "reason_to_stay")


def reason_to_stay(unit: Unit) -> str:
    """Why this unit is never removed, whatever stands around it; empty for most.

    An instruction of the application is the envelope of everything else. A call without a result is a question whose
    answer may still come.
    """
    if isinstance(unit, ContextMessage):
        return "" if unit.authority == "data" else "system-envelope"
    if isinstance(unit, Round):
        if any(message.authority != "data" for message in unit.before):
            return "system-envelope"
        if any(call.status == "asked" for call in unit.calls):
            return "unresolved-tool-call"
    return ""


class Outline:
    """Places of people's messages, of rounds with results, and of what stays, parallel to a log of units.

    Extended by what is new, never invalidated. ``stop`` is the first unit that was not looked at.
    """

    __slots__ = ("_lock", "_places", "people", "results", "stay", "stop")

    def __init__(self, stop: int = 0) -> None:
        self.people, self.results, self.stay = array("q"), array("q"), array("q")
        self.stop = stop
        self._places: dict[str, int] | None = None
        self._lock = Lock()  # a session may take turns in several threads at once

    def cut(self, size: int) -> Outline:
        """See `Beside`: what is known of the first ``size`` units of the log."""
        with self._lock:
            held = Outline(min(self.stop, size))
            for name in ("people", "results", "stay"):
                places = getattr(self, name)
                setattr(held, name, places[: bisect_left(places, size)])
            return held

    def extend(self, units: Log[Unit], stop: int) -> None:
        """Looks at what is new up to before unit ``stop``."""
        with self._lock:
            for place, unit in enumerate(units.since(self.stop)[: max(0, stop - self.stop)], self.stop):
                if isinstance(unit, UserMessage):
                    if unit.notice is None:
                        self.people.append(place)
                elif reason_to_stay(unit):
                    self.stay.append(place)
                if isinstance(unit, Round) and unit.calls:
                    self.results.append(place)
                if self._places is not None:
                    self._places[unit.id] = place
                self.stop = place + 1

    def last_person(self, size: int) -> int | None:
        """Where the newest of the first ``size`` units stands that a person wrote."""
        at = bisect_left(self.people, size) - 1
        return self.people[at] if at >= 0 else None

    def between(self, units: Log[Unit], start: int, stop: int, most: int) -> list[Round]:
        """The newest rounds with calls among these units, at most so many, the newest first."""
        places = self.results[bisect_left(self.results, start) : bisect_left(self.results, stop)]
        rounds = (units[place] for place in reversed(places[-most:]))
        return [held for held in rounds if isinstance(held, Round)]

    def place_of(self, units: Log[Unit], id: str, size: int) -> int | None:
        """Where the unit with this id stands; the first question for one walks the log, once."""
        with self._lock:
            if self._places is None:
                self._places = {unit.id: place for place, unit in enumerate(units[: self.stop])}
        place = self._places.get(id)
        return place if place is not None and place < size else None


async def outline_of(units: Log[Unit]) -> Outline:
    """The outline beside this log, up to its end. One that was just loaded is read in slices: other turns run too."""
    held = units.beside.get("outline")
    if not isinstance(held, Outline):
        held = units.beside["outline"] = Outline()
    while len(units) - held.stop > SLICE:
        held.extend(units, held.stop + SLICE)
        await asyncio.sleep(0)
    if held.stop < len(units):
        held.extend(units, len(units))
    return held
