"""Who gets the floor when a customer writes: pure, from scores and from who is eligible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

__all__ = ("MARGIN", "MINIMUM", "Route", "is_lone", "route")

MINIMUM = 40
"""The score from which a flow is begun at all."""

MARGIN = 15
"""How far above the flow that asks another one must be to take the floor from it."""


class Route(Struct, frozen=True):
    """The flow that takes the message, and whether it does so because nothing better matched."""

    flow: str
    catch_all: bool = False


def is_lone(eligible: Sequence[str], *, asking: bool, catch_all: str | None, idle: bool, score: bool) -> bool:
    """Whether the one eligible flow starts without being scored.

    With ``score`` that is so only where nobody else could take the message: no catch-all, and nobody idle who speaks.
    """
    if asking or len(eligible) != 1:
        return False
    return not score or (catch_all is None and not idle)


def route(
    eligible: Sequence[str], scores: Mapping[str, float], *, asker: str | None, catch_all: str | None, lone: bool
) -> Route | None:
    """The flow that takes the message; None: whoever asks goes on, or nobody takes it.

    ``eligible`` are flow ids in the agent's order, which breaks ties; ``asker`` is the flow that holds the floor.
    """
    if lone:
        return Route(eligible[0])
    best, top = None, float(MINIMUM)
    for flow in eligible:
        score = scores.get(flow, 0.0)
        if flow != asker and score >= MINIMUM and (best is None or score > top):
            best, top = flow, score
    if asker is not None:
        return Route(best) if best is not None and top >= scores.get(asker, 0.0) + MARGIN else None
    if best is not None:
        return Route(best)
    return None if catch_all is None else Route(catch_all, catch_all=True)
