"""What follows an attempt: what the first rule that holds says, else what `Reliable` does by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from onrecord.conversation.messages import Round
from onrecord.errors import ErrorKind, ModelError
from onrecord.models.call_rules import CallRule, CallScope, Verb, first_match

if TYPE_CHECKING:
    from onrecord.models.retry import Reliable

__all__ = ("DELIVER", "Decision", "Standing", "decided", "is_worth_waiting")

BACKED_UP: frozenset[ErrorKind] = frozenset({"overload", "rate", "model"})
"""Failures after which the next model is asked when no rule decides."""

STOOD_IN_FOR: frozenset[ErrorKind] = BACKED_UP | {"quota", "auth", "entitlement", "timeout", "network"}
"""Failures of providers, for which a fallback function stands in when no rule decides."""


class Decision(NamedTuple):
    """What follows an attempt. ``why`` is set where a rule, or a limit of ours, decided."""

    then: Verb
    wait_s: float = 0.0
    why: str = ""
    label: str = ""
    feedback: str = ""


class Standing(NamedTuple):
    """Where a call stands when it is decided what follows.

    ``reached``: something of the reply was handed out. ``waited`` is how often this model was waited for,
    ``is_last`` whether no model comes after it, ``stood_in`` whether the fallback function was asked already.
    """

    problem: ModelError | None
    reply: Round | None
    reached: bool
    waited: int
    is_last: bool
    stood_in: bool


DELIVER = Decision("ok")
GIVE_UP = Decision("fail_fast")


def is_worth_waiting(error: ModelError) -> bool:
    """Whether the same request may succeed soon: status 408, 429 or 5xx, and the provider does not say otherwise."""
    status = error.status
    return status is not None and (status in {408, 429} or 500 <= status < 600) and error.should_retry is not False


def decided(by: Reliable, at: Standing, scope: Callable[[], CallScope]) -> Decision:
    """What follows; ``scope`` makes what rules see, where there are any."""
    problem = at.problem
    if problem is not None and problem.kind == "aborted":
        return GIVE_UP
    if by.rules:
        seen = scope()
        rule = first_match(by.rules, seen)
        if rule is not None:
            return _ruled(by, at, rule, seen)
    return DELIVER if problem is None else _by_itself(by, at, problem)


def _ruled(by: Reliable, at: Standing, rule: CallRule, seen: CallScope) -> Decision:
    then, problem, why = rule.then, at.problem, ""
    if at.reached and then not in {"ok", "fail_fast"}:
        why = "mid-stream-not-retryable"
    elif then == "ok" and problem is not None and at.reply is None:
        why = "no-response"
    elif then == "fallback" and by.fallback is None:
        why = "fallback-not-configured"
    if why:
        return Decision("fail_fast", why=why, label=rule.label)
    wait = rule.wait_s
    if then == "retry" and problem is not None and problem.retry_after is not None:
        wait = max(wait, min(problem.retry_after, by.longest_s))
    feedback = rule.told(seen) if then in {"retry", "retry_other"} else ""
    return Decision(then, wait, rule.kind or then, rule.label, feedback)


def _by_itself(by: Reliable, at: Standing, problem: ModelError) -> Decision:
    if at.reached:
        return GIVE_UP
    if (wait := by.wait_after(problem, at.waited)) is not None:
        return Decision("retry", wait)
    if not at.is_last and problem.kind in BACKED_UP:
        return Decision("retry_other")
    if by.fallback is not None and not at.stood_in and problem.kind in STOOD_IN_FOR:
        return Decision("fallback")
    return GIVE_UP
