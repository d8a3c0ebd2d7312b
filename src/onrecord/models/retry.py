"""Reliable: a model that waits, asks again, asks another one, or leaves a failing one alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from onrecord.declared import declared
from onrecord.errors import ConfigurationError, ModelError
from onrecord.models.breaker import Breaker, Circuit
from onrecord.models.call_decisions import is_worth_waiting
from onrecord.models.call_rules import CallRule, check_rules
from onrecord.models.calling import Call
from onrecord.models.chunks import Attempted, Chunk, Finished
from onrecord.models.held_reply import Validate
from onrecord.models.lanes import SLICE
from onrecord.models.model import Model, ModelCard, Preset, extend
from onrecord.models.raised_errors import raised_error
from onrecord.models.request import Request, Wire
from onrecord.models.rerouting import fitting_wire, labels_of, models_of, shared_card
from onrecord.models.standing_in import FallbackFunction

__all__ = ("LONGEST_WAIT_S", "WAITS_S", "FallbackFunction", "Reliable", "is_worth_waiting")

WAITS_S = (3.0, 6.0, 12.0)
LONGEST_WAIT_S = 30.0

_SLEEP = asyncio.sleep


@declared
class Reliable:
    """A model that tries again, after a wait, what failed before anything of the reply reached the caller.

    ``waits_s`` holds one wait for each further attempt after status 408, 429 and 5xx; a wait that the provider states
    takes its place, and one over ``longest_s`` ends the attempts at once. Network failures and other statuses are
    never retried by themselves: nobody knows what they cost. Then the next of ``others`` is asked, if the failure was
    an overload, a rate limit or a model that is not there; then ``fallback(request, error)``, which gives a text or
    chunks. Models may be given by name; a plain `Reliable` among them, in a `preset` too, is taken for the model it
    wraps.

    ``rules`` are looked at after each attempt, good or bad, and ``before`` once before the first; the first that holds
    decides (see `CallRule`), and where none does, the above is done. Nothing is asked again once a piece of the reply
    was handed out. ``validate`` (such as `fits_shape`) holds replies with a shape back until they are whole, so that
    one that does not fit can be asked for again. ``breaker`` gives each model a circuit that lives as long as this
    object. A call makes fifty attempts at most.

    Each failed attempt that is followed by another yields an `Attempted`. ``sleep`` waits; ``clock`` gives seconds
    that only go forward. ConfigurationError for no model, or a rule that cannot take effect; `GivenUp` when a rule,
    an open circuit or a misfit ends the call; else the model's own error.
    """

    def __init__(
        self,
        model: Model | str,
        /,
        *others: Model | str,
        rules: Sequence[CallRule] = (),
        before: Sequence[CallRule] = (),
        fallback: FallbackFunction | None = None,
        breaker: Breaker | None = None,
        validate: Validate | None = None,
        waits_s: tuple[float, ...] = WAITS_S,
        longest_s: float = LONGEST_WAIT_S,
        sleep: Callable[[float], Awaitable[object]] = _SLEEP,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_rules(before, rules)
        if not all(seconds >= 0 for seconds in (*waits_s, longest_s)):
            raise ConfigurationError(f"waits_s and longest_s of Reliable are at least 0, not {waits_s} and {longest_s}")
        self.models = tuple(_bare(each) for each in models_of((model, *others), "Reliable"))
        self.labels = labels_of(self.models)
        self._shared = shared_card(self.models) if others else None
        self.rules, self.before = tuple(rules), tuple(before)
        self.fallback, self.breaker, self.validate = fallback, breaker, validate
        self.waits_s, self.longest_s = waits_s, longest_s
        self.clock, self._sleep = clock, sleep
        self.circuits = {} if breaker is None else {label: Circuit(breaker) for label in self.labels}

    @property
    def model(self) -> Model:
        """The first of the models."""
        return self.models[0]

    @property
    def card(self) -> ModelCard:
        return self._shared or self.models[0].card

    @property
    def is_plain(self) -> bool:
        """Whether it does no more than wait as every `Reliable` does."""
        given = (self.rules, self.before, self.fallback, self.breaker, self.validate)
        usual = self.waits_s == WAITS_S and self.longest_s == LONGEST_WAIT_S and self._sleep is _SLEEP
        return usual and len(self.models) == 1 and not any(given)

    def wire(self, request: Request, /) -> Wire:
        return fitting_wire(self, self.models, request)

    def extend(self, request: Request, /, limit: int = SLICE) -> int:
        return extend(self.models[0], request, limit)

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        call = Call(self, request)
        for skipped in call.begin():
            yield skipped
        hands_out = call.held is None
        try:
            while True:
                reached = False
                if not call.is_refused():
                    problem: ModelError | None = None
                    chunks = call.model.stream(call.request)
                    try:
                        async for chunk in chunks:
                            if hands_out and type(chunk) is not Finished:
                                reached = reached or type(chunk) is not Attempted
                                yield chunk
                            elif call.keep(chunk):
                                yield chunk
                    except Exception as error:  # noqa: BLE001 - other people's models raise anything
                        problem = raised_error(call.model.card.provider, call.model.card.name, error)
                    finally:
                        await chunks.aclose()
                    call.ended(problem)
                for told in await call.follow(reached=reached):
                    yield told
                if call.over:
                    return
                if call.wait_s is not None:
                    await self._sleep(call.wait_s)
        finally:
            call.over_early()

    def wait_after(self, error: ModelError, failed: int) -> float | None:
        """Seconds to wait after this error, with ``failed`` waits behind us; None to give up."""
        if failed >= len(self.waits_s) or not is_worth_waiting(error):
            return None
        if error.retry_after is None:
            return self.waits_s[failed]
        wait = max(0.0, error.retry_after)
        return None if wait > self.longest_s else wait

    def __repr__(self) -> str:
        return f"Reliable({', '.join(map(repr, self.models))})"


def _bare(model: Model) -> Model:
    """The model itself, with its settings, where another `Reliable` around it would only multiply the waits."""
    if type(model) is Preset:
        inner = _bare(model.model)
        return model if inner is model.model else Preset(inner, model.settings)
    return model.model if type(model) is Reliable and model.is_plain else model
