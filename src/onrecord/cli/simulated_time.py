"""Time that moves only when told, for a simulation; names and outside calls are as ever."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from onrecord.cli.failure import Wrong
from onrecord.timing import whole_ms
from onrecord.turn.effects import PlainEffects

__all__ = ("SimulatedTime", "instant_named")


class SimulatedTime(PlainEffects):
    """Effects of a world whose clock stands still at ``at`` until it is moved; ``zone`` is how it is told."""

    def __init__(self, at: datetime) -> None:
        self.zone: tzinfo | None = at.tzinfo
        self.at = whole_ms(at.astimezone(UTC))

    def now(self) -> datetime:
        return self.at

    def move(self, to: datetime) -> None:
        """Moves the clock on; never back."""
        self.at = max(self.at, whole_ms(to.astimezone(UTC)))

    def told(self, at: datetime) -> str:
        """An instant as people read it here; seconds only where there are some."""
        local = at.astimezone(self.zone)
        seconds = f":{local:%S}" if local.second else ""
        return f"{local:%Y-%m-%d %H:%M}{seconds}"


def instant_named(text: str | None) -> datetime:
    """The instant that ``--at`` names, or the present one. Wrong for what is none."""
    if text is None:
        return datetime.now().astimezone().replace(second=0, microsecond=0)
    hint = "write ISO 8601 with an offset, such as 2026-09-20T12:00Z or 2026-09-20T09:00-03:00"
    try:
        at = datetime.fromisoformat(text)
        at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Wrong(f"--at {text!r} is no instant", hint=hint) from None
    if at.tzinfo is None:
        raise Wrong(f"--at {text!r} has no UTC offset", hint=hint)
    return at
