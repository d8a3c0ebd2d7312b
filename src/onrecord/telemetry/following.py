"""Following a take from its first entry to its end, many at once.

What a watcher keeps about a take hangs in the context of the task that runs it and goes away with it: entries name
their turn, but not their tenant, and two tenants may name their turns alike. A take below another one, such as that
of a sub-agent inside a tool, hangs below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar

__all__ = ("Followed", "all_followed", "follow", "followed", "unfollow")


class Followed:
    """A take that ``by`` follows, and its ``state``; ``above`` is what was followed where it began."""

    __slots__ = ("above", "by", "over", "state", "turn")

    def __init__(self, by: object, turn: str, state: object, above: Followed | None) -> None:
        self.by, self.turn, self.state, self.above = by, turn, state, above
        self.over = False


_innermost: ContextVar[Followed | None] = ContextVar("onrecord_followed", default=None)


def follow(by: object, turn: str, state: object) -> None:
    """Begins to follow a take, in the task that runs it."""
    _innermost.set(Followed(by, turn, state, next(all_followed(), None)))


def followed(by: object, turn: str) -> object | None:
    """What is kept about the take of this turn that runs here."""
    return next((one.state for one in all_followed() if one.by is by and one.turn == turn), None)


def unfollow(by: object, turn: str) -> None:
    """The take is over."""
    for one in all_followed():
        if one.by is by and one.turn == turn:
            one.over = True
            break
    _innermost.set(next(all_followed(), None))


def all_followed() -> Iterator[Followed]:
    """Everything followed here, innermost first."""
    one = _innermost.get()
    while one is not None:
        if not one.over:
            yield one
        one = one.above
