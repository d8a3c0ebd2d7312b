"""One call of `Reliable` while it runs: which model is asked, what it came to, and what is done about it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from onrecord.conversation.messages import Round
from onrecord.errors import GivenUp, ModelError
from onrecord.models.breaker import Circuit
from onrecord.models.call_decisions import DELIVER, Decision, Standing, decided
from onrecord.models.call_rules import CallScope, Misfit, first_match, kind_of_call
from onrecord.models.chunks import Attempted, Chunk, Finished
from onrecord.models.held_reply import round_of
from onrecord.models.model import Model, ModelCard
from onrecord.models.request import Piece, ProjectionIssue, Request
from onrecord.models.rerouting import Rerouted, answered_by, fitted, sent_to
from onrecord.models.standing_in import FallbackFunction, stand_in

if TYPE_CHECKING:
    from onrecord.models.retry import Reliable

__all__ = ("MOST_LOOPS", "Call")

MOST_LOOPS = 50
FEEDBACK_RANK = 800
"""Among the nudges, which come last but for the time."""


class Call:
    """The state of one call; nothing of it outlives the call but what circuits count.

    ``held`` keeps a reply that is validated before it is handed out, else it is None. ``wait_s`` is the wait before
    the next attempt, None when there is none, and ``over`` says that the reply is whole.
    """

    __slots__ = (
        "_asked", "_attempts", "_began", "_by", "_ended", "_entered", "_failed", "_first", "_history", "_latest",
        "_loops", "_misfit", "_original", "_problem", "_reply", "_stood_in", "_waited", "at", "attempts", "held",
        "over", "wait_s",
    )  # fmt: skip

    def __init__(self, by: Reliable, request: Request) -> None:
        self._by, self._original, self._asked = by, request, request
        self._first: ModelCard = by.models[0].card
        self.at = self.attempts = 0
        self._attempts: dict[str, int] = {}
        self._problem: ModelError | None = None  # of this attempt
        self._latest: ModelError | None = None  # of any
        self._misfit: Misfit | None = None
        self._history: tuple[Misfit, ...] = ()
        self._failed = self._loops = self._waited = 0
        self._stood_in = self.over = False
        self._began = 0.0
        self._entered: tuple[Circuit, int] | None = None  # while an attempt runs
        self._reply: Round | None = None  # where all of it was kept
        self._ended: Finished | None = None
        shape = request.shape
        holds = by.validate is not None and shape is not None and bool(shape.schema)
        self.held: list[Chunk] | None = [] if holds else None
        self.wait_s: float | None = None

    @property
    def model(self) -> Model:
        """The model whose turn it is."""
        return self._by.models[self.at]

    @property
    def request(self) -> Request:
        """The request as that model gets it."""
        return self._asked

    def begin(self) -> tuple[Attempted, ...]:
        """Looks at the rules before the call, and skips models that cannot carry the request at all. GivenUp."""
        by, wire = self._by, self._original.wire
        rule = first_match(by.before, self._scope(None)) if by.before else None
        if rule is not None and rule.then == "fail_fast":
            raise GivenUp(
                rule.kind or "pre-check-failed", phase="before", label=rule.label, provider=self._first.provider
            )
        if not isinstance(wire, Rerouted) or wire.by is not by:
            return ()
        told = self._told("invalid", by.labels[self.at], DELIVER)  # the receipt has what the other cannot be sent
        self.at = wire.at
        self._asked = replace(sent_to(self.model, self._original, self._first), wire=wire.wire)
        return (told,)

    def is_refused(self) -> bool:
        """Whether the model is left alone this time. Otherwise the attempt counts. GivenUp after fifty attempts."""
        by, label = self._by, self._by.labels[self.at]
        self._loops += 1
        if self._loops > MOST_LOOPS:
            raise self._given_up(Decision("fail_fast", why="max-loop-exceeded"), reached=False)
        if self._problem is not None:  # the fallback function failed: that is judged in place of an attempt
            return True
        self._misfit = self._ended = self._reply = None
        if self.held is not None:
            self.held = []
        circuit, now = by.circuits.get(label), by.clock()
        period = 0 if circuit is None else circuit.enter(now)
        if circuit is not None and not period:
            self._problem = GivenUp(
                "circuit-open", attempts=self.attempts, provider=self.model.card.provider, kind="overload",
                retry_after=circuit.left(now), hint=f"{label} failed several times in a row and is left alone",
            )  # fmt: skip
            return True
        self._entered = None if circuit is None else (circuit, period)
        self.attempts += 1
        self._attempts[label] = self._attempts.get(label, 0) + 1
        self._began = now
        return False

    def keep(self, chunk: Chunk) -> bool:
        """Keeps the end of a reply, and what is held of it. Whether the chunk is handed out at once."""
        if isinstance(chunk, Finished):
            self._ended = chunk
        elif self.held is None or isinstance(chunk, Attempted):
            return True
        else:
            self.held.append(chunk)
        return False

    def ended(self, problem: ModelError | None) -> None:
        """The attempt is over: a whole reply is validated where it was held, and the circuit is told."""
        by = self._by
        if problem is None and self.held is not None and by.validate is not None:
            self._reply = round_of(self.held)
            self._misfit = by.validate(self._asked, self._reply)
            if self._misfit is not None:
                self._history = (*self._history, self._misfit)
                problem = GivenUp("schema-fail", attempts=self.attempts, provider=self.model.card.provider)
        self._problem = problem
        if self._entered is not None:
            (circuit, period), self._entered = self._entered, None
            if problem is None or self._misfit is not None:  # a reply that does not fit is an answer all the same
                circuit.succeeded(period)
            else:
                circuit.failed(period, problem.kind, by.clock())

    def over_early(self) -> None:
        """The call ends where it is: an attempt that still ran says nothing about its model."""
        if self._entered is not None:
            circuit, period = self._entered
            circuit.broke_off(period)

    async def follow(self, *, reached: bool) -> Sequence[Chunk]:
        """Decides what follows and prepares it; what is handed out now. Raises what ends the call."""
        by, problem, reply = self._by, self._problem, self._reply
        if problem is not None:
            self._latest = problem
            # A call that began without a chunk of it being seen counts, too.
            reached = reached or (problem.started and self.held is None)
        elif reply is None and not reached:
            reply = round_of(())  # nothing was said
        standing = Standing(problem, reply, reached, self._waited, self.at + 1 >= len(by.models), self._stood_in)
        decision = decided(by, standing, partial(self._scope, reply))
        self.wait_s = None
        match decision.then:
            case "ok":
                self.over = True
                return self._delivered()
            case "retry":
                self._waited += not decision.why
                self.wait_s = decision.wait_s
                told = self._told(_kind(self._problem, self._misfit), by.labels[self.at], decision)
                self._show(decision.feedback)
            case "retry_other":
                switched = await self._switch(decision)
                if switched is None and not decision.why and by.fallback is not None and not self._stood_in:
                    return await self._answered_by_function(by.fallback, decision)
                if switched is None:
                    why = "no-more-providers" if decision.why else ""
                    raise self._given_up(decision._replace(why=why), reached=False)
                told = switched
            case "fallback" if by.fallback is not None:
                return await self._answered_by_function(by.fallback, decision)
            case _:
                raise self._given_up(decision, reached=reached)
        self._problem = None
        return (told,)

    def _delivered(self) -> Sequence[Chunk]:
        """What was kept of the reply; its end names the model that gave it, where that is not the first one."""
        ended = self._ended
        if ended is None:
            return self.held or ()
        if self.at:
            ended = answered_by(self.model.card, self._asked, ended)
        return (*self.held, ended) if self.held else (ended,)

    async def _switch(self, decision: Decision) -> Attempted | None:
        """Turns to the next model that can carry the request; None when there is none."""
        models, left = self._by.models, self._by.labels[self.at]
        for at in range(self.at + 1, len(models)):
            asked = await fitted(models[at], self._original, self._first)
            if asked is not None:
                left_out = () if asked.wire is None else asked.wire.issues
                told = self._told(_kind(self._problem, self._misfit), left, decision, left_out)
                self.at, self._asked, self._waited = at, asked, 0
                self._show(decision.feedback)
                return told
        return None

    async def _answered_by_function(self, function: FallbackFunction, decision: Decision) -> Sequence[Chunk]:
        """What the fallback function says; when it fails, that is the next problem."""
        told = self._told(_kind(self._problem, self._misfit), self._by.labels[self.at], decision)
        self._stood_in = True
        error = self._latest or GivenUp(decision.why, attempts=self.attempts)
        try:
            said = await stand_in(function, self._original, error)
        except ModelError as failed:
            self._problem, self._misfit, self._reply = failed, None, None
            return (told,)
        self.over = True
        return (told, *said)

    def _scope(self, reply: Round | None) -> CallScope:
        """What rules see."""
        by = self._by
        return CallScope(
            request=self._asked, providers_count=len(by.models), has_fallback=by.fallback is not None,
            attempt=self.attempts, provider_idx=self.at, current_provider=by.labels[self.at],
            can_switch_provider=self.at + 1 < len(by.models), response=reply, error=self._problem,
            error_kind=kind_of_call(self._problem, self._misfit),
            latency_ms=round((by.clock() - self._began) * 1000) if self.attempts else 0,
            validation_error=self._misfit, validation_error_history=self._history,
            attempts_per_provider=dict(self._attempts),
            breaker_states={label: circuit.state for label, circuit in by.circuits.items()},
        )  # fmt: skip

    def _given_up(self, decision: Decision, *, reached: bool) -> ModelError:
        """The error that ends the call: the model's own, unless a rule or a limit decided."""
        problem = self._latest
        if not decision.why and problem is not None:
            return problem
        error = GivenUp(
            decision.why or "fail_fast", label=decision.label, attempts=self.attempts, cause=problem, started=reached,
            provider=self.model.card.provider,
        )  # fmt: skip
        error.__cause__ = problem
        return error

    def _told(self, kind: str, model: str, decision: Decision, left_out: tuple[ProjectionIssue, ...] = ()) -> Attempted:
        self._failed += 1
        ended, self._ended = self._ended, None  # what it cost is told once
        return Attempted(
            attempt=self._failed, error=kind, status=None if self._problem is None else self._problem.status,
            wait_s=decision.wait_s if decision.then == "retry" else 0.0, model=model, feedback=decision.feedback,
            usage=None if ended is None else ended.usage, left_out=left_out,
        )  # fmt: skip

    def _show(self, feedback: str) -> None:
        """Adds the feedback to what the model is shown, in place of an earlier one."""
        pieces = self._original.pieces
        if feedback:
            pieces = (*pieces, Piece(source="reliable", text=feedback, rank=FEEDBACK_RANK, place="trailing"))
        if feedback or self._asked.pieces is not pieces:
            self._asked = replace(self._asked, pieces=pieces, wire=None)


def _kind(problem: ModelError | None, misfit: Misfit | None) -> str:
    """What went wrong, as the record says it."""
    if problem is None or misfit is not None or isinstance(problem, GivenUp):
        return kind_of_call(problem, misfit)
    return problem.kind
