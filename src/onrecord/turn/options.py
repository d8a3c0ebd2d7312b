"""Options: typed values for one turn, declared by the feature that owns them; and the core's own, `Silenced`."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from onrecord.errors import UsageError
from onrecord.jsonio import writable

__all__ = ("Silenced", "checked_options")


class _Reason(Struct, frozen=True):
    reason: str = ""


class Silenced(_Reason, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="silenced"):
    """Nobody speaks in this turn, whatever the director would like; its mere presence decides.

    ``understand`` still lets silent model calls run; ``skip`` is for flows that should pass their talk steps.
    """

    understand: bool = False
    skip: bool = False

    def __post_init__(self) -> None:
        """The reason is filed, so what could not be read again is refused where it is made."""
        given: object = self.reason
        if not isinstance(given, str) or writable(given) != given:
            raise UsageError("the reason of Silenced is a text", hint='such as Silenced("a person answers")')
        flags: tuple[object, ...] = (self.understand, self.skip)
        if not all(isinstance(flag, bool) for flag in flags):
            raise UsageError("understand= and skip= of Silenced are true or false")


def checked_options(options: Iterable[object], owned: frozenset[type]) -> dict[type, object]:
    """Options by type. UsageError for a value whose type no mounted feature owns, or given twice."""
    held: dict[type, object] = {}
    for option in options:
        kind = type(option)
        if kind not in owned:
            names = ", ".join(sorted(t.__name__ for t in owned))
            raise UsageError(f"option {kind.__name__!r} has no owner in this agent", hint=f"it takes {names}")
        if kind in held:
            raise UsageError(f"option {kind.__name__!r} is given twice")
        held[kind] = option
    return held
