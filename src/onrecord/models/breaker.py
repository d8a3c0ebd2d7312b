"""A circuit breaker: a model that keeps failing is left alone for a while."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from onrecord.errors import ConfigurationError, ErrorKind

__all__ = ("Breaker", "BreakerState", "Circuit")

BreakerState = Literal["closed", "open", "half-open"]

OWN_FAULT: frozenset[ErrorKind] = frozenset({"aborted", "invalid", "content", "context"})
"""Failures that say nothing about the provider: somebody left, or this one request could not be served."""


class Breaker(Struct, frozen=True, kw_only=True):
    """When a circuit opens and closes.

    After ``threshold`` failures in a row a model is not asked for ``cooldown_s`` seconds. Then it is, on trial:
    ``successes`` replies close the circuit, one failure opens it again. Cancelled calls, and requests that are at
    fault themselves, never count. ConfigurationError for a number below 1, or a negative cooldown.
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
    """What a breaker knows of one model. Times are seconds of any clock that only goes forward."""

    __slots__ = ("_failures", "_opened", "_settings", "_successes", "state")

    def __init__(self, settings: Breaker) -> None:
        self._settings = settings
        self.state: BreakerState = "closed"
        self._failures = self._successes = 0
        self._opened = 0.0

    def admits(self, now: float) -> bool:
        """Whether the model may be asked now; an open circuit whose time is over lets calls through on trial."""
        if self.state == "open" and now - self._opened >= self._settings.cooldown_s:
            self.state, self._successes = "half-open", 0
        return self.state != "open"

    def left(self, now: float) -> float:
        """Seconds until an open circuit lets a call through; 0 when it does now."""
        return max(0.0, self._opened + self._settings.cooldown_s - now) if self.state == "open" else 0.0

    def succeeded(self) -> None:
        """The model answered. What began before the circuit opened does not close it."""
        self._failures = 0
        if self.state == "half-open":
            self._successes += 1
            if self._successes >= self._settings.successes:
                self.state = "closed"

    def failed(self, kind: ErrorKind, now: float) -> None:
        """The model failed in this way."""
        if kind in OWN_FAULT or self.state == "open":
            return
        self._failures += 1
        if self.state == "half-open" or self._failures >= self._settings.threshold:
            self.state, self._opened, self._failures = "open", now, 0
