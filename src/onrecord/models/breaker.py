"""A circuit breaker: a model that keeps failing is left alone for a while."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from onrecord.declared import Declared
from onrecord.errors import ConfigurationError, ErrorKind

__all__ = ("PROBING_S", "Breaker", "BreakerState", "Circuit")

BreakerState = Literal["closed", "open", "half-open"]

OWN_FAULT: frozenset[ErrorKind] = frozenset({"aborted", "invalid", "content", "context"})
"""Failures that say nothing about the provider: somebody left, or this one request could not be served."""

PROBING_S = 1.0
"""How soon to come back when a model is being tried out by others."""


class Breaker(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """When a circuit opens and closes.

    After ``threshold`` failures in a row a model is not asked for ``cooldown_s`` seconds. Then it is, on trial:
    ``successes`` replies close the circuit, one failure opens it again, and no more calls than that run at once.
    Cancelled calls, and requests that are at fault themselves, never count. ConfigurationError for a number below 1,
    or a negative cooldown.
    """

    threshold: int = 5
    cooldown_s: float = 30.0
    successes: int = 2

    def __post_init__(self) -> None:
        for name, value, least in (
            ("threshold", self.threshold, 1),
            ("cooldown_s", self.cooldown_s, 0),
            ("successes", self.successes, 1),
        ):
            if not value >= least:  # which no number is that is none
                raise ConfigurationError(f"{name} of Breaker is at least {least}, not {value}")


class Circuit:
    """What a breaker knows of one model. Times are seconds of any clock that only goes forward.

    A call enters, and says with what it got how it went. On trial only as many calls are let through at once as are
    needed to close the circuit, however many sessions wait for the model; and a call says nothing about the circuit
    any more when that opened or closed after the call had begun.
    """

    __slots__ = ("_failures", "_opened", "_period", "_settings", "_successes", "_trying", "state")

    def __init__(self, settings: Breaker) -> None:
        self._settings = settings
        self.state: BreakerState = "closed"
        self._period = 1  # since the state changed last; what a call belongs to
        self._failures = self._successes = self._trying = 0
        self._opened = 0.0

    def enter(self, now: float) -> int:
        """What a call that is let through belongs to, for its end; 0 when the model may not be asked now.

        An open circuit whose time is over lets calls through on trial.
        """
        if self.state == "open" and not self.left(now):
            self._become("half-open")
        if self.state == "open" or (self.state == "half-open" and self._is_full()):
            return 0
        self._trying += 1
        return self._period

    def left(self, now: float) -> float:
        """Seconds until a call may be let through; 0 when one is now. A second where calls on trial still run."""
        if self.state == "open":
            self._opened = min(self._opened, now)  # a clock that was set back after all costs one cooldown at most
            return max(0.0, self._opened + self._settings.cooldown_s - now)
        return PROBING_S if self.state == "half-open" and self._is_full() else 0.0

    def succeeded(self, period: int) -> None:
        """The model answered."""
        if not self._leaves(period):
            return
        self._failures = 0
        if self.state == "half-open":
            self._successes += 1
            if self._successes >= self._settings.successes:
                self._become("closed")

    def failed(self, period: int, kind: ErrorKind, now: float) -> None:
        """The model failed in this way."""
        if not self._leaves(period) or kind in OWN_FAULT:
            return
        self._failures += 1
        if self.state == "half-open" or self._failures >= self._settings.threshold:
            self._opened = now
            self._become("open")

    def broke_off(self, period: int) -> None:
        """The call was cut short, which says nothing: on trial another one may take its place."""
        self._leaves(period)

    def _leaves(self, period: int) -> bool:
        """Whether a call that ends has something to say about the circuit as it is now."""
        if period != self._period:
            return False
        self._trying -= 1
        return True

    def _is_full(self) -> bool:
        return self._trying + self._successes >= self._settings.successes

    def _become(self, state: BreakerState) -> None:
        self.state = state
        self._period += 1
        self._failures = self._successes = self._trying = 0
