"""Fallback: models that stand in for each other, and what is remembered of those that failed."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from math import isnan

from msgspec.structs import replace

from onrecord.declared import declared
from onrecord.errors import ConfigurationError, ErrorKind, ModelError
from onrecord.models.breaker import PROBING_S
from onrecord.models.chunks import Attempted, Chunk, Finished
from onrecord.models.lanes import SLICE
from onrecord.models.model import Model, ModelCard, extend
from onrecord.models.raised_errors import raised_error
from onrecord.models.request import Request, Wire
from onrecord.models.rerouting import (
    Rerouted,
    answered_by,
    fitted,
    fitting_wire,
    labels_of,
    models_of,
    sent_to,
    shared_card,
)

__all__ = ("COOLDOWNS_S", "Fallback")

log = logging.getLogger("onrecord.models")

COOLDOWNS_S: Mapping[ErrorKind, float] = {
    "rate": 60.0,
    "quota": 3600.0, "auth": 3600.0, "entitlement": 3600.0, "model": 3600.0,
    "timeout": 30.0, "network": 30.0, "overload": 30.0,
}  # fmt: skip
"""How long a model is left alone after a failure of each kind; after others the next model is not asked at all."""

_NOW = partial(datetime.now, UTC)


class _Rest:
    """How long a model is left alone. Past that time one call tries it out while the others still go by."""

    __slots__ = ("_tried", "_until", "after")

    def __init__(self) -> None:
        self.after = ""  # the kind of the last failure
        self._until: float | None = None
        self._tried = False

    def left(self, now: float) -> float:
        """Seconds until a call may ask the model; 0 when it may now."""
        if self._until is None:
            return 0.0
        return max(PROBING_S if self._tried else 0.0, self._until - now)

    def take(self, now: float) -> bool | None:
        """Whether a call that asks the model now tries it out, and says then how that went; None when it may not."""
        if self.left(now):
            return None
        self._tried = self._until is not None
        return self._tried

    def failed(self, until: float | None, *, tried: bool) -> None:
        """The model is left alone until then, or (None) failed in a way that is not its own."""
        if until is None:
            self.answered(tried=tried)
        else:
            self._until = until if tried or self._until is None else max(self._until, until)

    def answered(self, *, tried: bool) -> None:
        """It answers again, if this call tried it out; one that had begun before proves nothing."""
        if tried:
            self._until = None

    def over(self, *, tried: bool) -> None:
        """The call is over, however it went; when it was cut short the next one tries the model out."""
        if tried:
            self._tried = False


@declared
class Fallback:
    """A model that asks the next of ``models`` when one fails before anything of its reply reached the caller.

    A model that failed is left alone for a while: for as long as the provider said, else for what `COOLDOWNS_S`, with
    ``cooldowns_s`` laid over it, says for that kind of failure. Calls go straight to the next one meanwhile; after
    it a single call tries the model out. Failures of other kinds are the request's own and are raised. When all
    models are left alone the call fails at once, as a ``rate`` error with the earliest time in ``retry_after`` and
    ``reset_at``.

    Models may be given by name, and wait by themselves where they are `Reliable`. The card is the first one's, with no
    more than all of them can do. ``on_cooldown(name, error, seconds)`` hears of each model that is left alone.
    ``clock`` gives seconds that only go forward, ``now`` the instant that resets are compared with.
    ConfigurationError for no model, or a cooldown that is no time.
    """

    def __init__(
        self,
        *models: Model | str,
        cooldowns_s: Mapping[ErrorKind, float] | None = None,
        on_cooldown: Callable[[str, ModelError, float], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = _NOW,
    ) -> None:
        self.models = models_of(models, "Fallback")
        self.labels = labels_of(self.models)
        self.cooldowns_s: Mapping[ErrorKind, float] = {**COOLDOWNS_S, **(cooldowns_s or {})}
        for kind, seconds in self.cooldowns_s.items():
            if not seconds >= 0:
                raise ConfigurationError(f"the cooldown for {kind!r} is a time in seconds, not {seconds}")
        self._on_cooldown, self._clock, self._now = on_cooldown, clock, now
        self._shared = shared_card(self.models)
        self._rests = tuple(_Rest() for _ in self.models)

    @property
    def name(self) -> str:
        """``fallback(a->b)``, with the names of the models."""
        return f"fallback({'->'.join(self.labels)})"

    @property
    def card(self) -> ModelCard:
        return self._shared

    @property
    def cooling(self) -> Mapping[str, float]:
        """The models that are left alone now, and for how many seconds more."""
        now = self._clock()
        return {label: rest.left(now) for label, rest in zip(self.labels, self._rests, strict=True) if rest.left(now)}

    def wire(self, request: Request, /) -> Wire:
        return fitting_wire(self, self.models, request)

    def extend(self, request: Request, /, limit: int = SLICE) -> int:
        return extend(self.models[0], request, limit)

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        latest: ModelError | None = None
        untold: Attempted | None = None
        failed = 0
        for at, (model, rest) in enumerate(zip(self.models, self._rests, strict=True)):
            if rest.left(self._clock()) or (asked := await self._asked(at, request)) is None:
                continue
            if untold is not None:
                yield untold if asked.wire is None else replace(untold, left_out=asked.wire.issues)
                untold = None
            reached, chunks = False, model.stream(asked)
            tried = rest.take(self._clock())
            if tried is None:  # another call was faster
                await chunks.aclose()
                continue
            try:
                async for chunk in chunks:
                    reached = reached or type(chunk) is not Attempted
                    yield answered_by(model.card, asked, chunk) if at and isinstance(chunk, Finished) else chunk
                rest.answered(tried=tried)
                return
            except Exception as raised:
                error = raised_error(model.card.provider, model.card.name, raised)
                self._leave_alone(at, error, tried=tried)
                if reached or error.started or error.kind not in self.cooldowns_s:
                    if error is raised:
                        raise
                    raise error from raised
                failed += 1
                latest = error
                untold = Attempted(attempt=failed, error=error.kind, status=error.status, model=self.labels[at])
            finally:
                rest.over(tried=tried)
                await chunks.aclose()
        raise latest or self._unavailable()

    async def _asked(self, at: int, request: Request) -> Request | None:
        """The request as a model gets it; None when that one cannot carry it."""
        first, wire = self.models[0].card, request.wire
        if isinstance(wire, Rerouted) and wire.by is self and at <= wire.at:
            return replace(sent_to(self.models[at], request, first), wire=wire.wire) if at == wire.at else None
        return request if at == 0 else await fitted(self.models[at], request, first)

    def _leave_alone(self, at: int, error: ModelError, *, tried: bool) -> None:
        """Remembers a failure, and tells of it."""
        rest, seconds = self._rests[at], self._seconds(error)
        rest.after = error.kind
        rest.failed(None if seconds is None else self._clock() + seconds, tried=tried)
        if seconds is not None and self._on_cooldown is not None:
            try:
                self._on_cooldown(self.labels[at], error, seconds)
            except Exception as problem:  # noqa: BLE001 - whoever listens does not decide, but is told
                log.warning("on_cooldown raised %s", type(problem).__name__)

    def _seconds(self, error: ModelError) -> float | None:
        """How long a failure lasts: what the provider says wins. None for one that is not the provider's."""
        if error.kind not in self.cooldowns_s:
            return None
        stated = [] if error.retry_after is None or isnan(error.retry_after) else [error.retry_after]
        if error.reset_at is not None:
            stated.append((error.reset_at - self._now()).total_seconds())
        return max(0.0, *stated) if stated else self.cooldowns_s[error.kind]

    def _unavailable(self) -> ModelError:
        """Why no model was asked at all."""
        left = self.cooling or {self.labels[0]: PROBING_S}  # the time of one ended just now
        first = min(left, key=left.__getitem__)
        failed = ", ".join(f"{label} ({rest.after})" for label, rest in zip(self.labels, self._rests, strict=True))
        try:
            reset: datetime | None = self._now() + timedelta(seconds=left[first])
        except OverflowError:  # for ever, or as good as that
            reset = None
        return ModelError(
            f"all models of {self.name} failed lately and are left alone", kind="rate", provider=self.name,
            retry_after=left[first], reset_at=reset,
            hint=f"{first!r} is asked again in {left[first]:.0f} s; failed last: {failed}",
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Fallback({', '.join(map(repr, self.models))})"
