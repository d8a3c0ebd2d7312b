"""Rules about one model call: what they see of it, and what they decide before it and after it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from onrecord.conditions import check_condition, says_yes
from onrecord.conversation.messages import Round
from onrecord.declared import Declared
from onrecord.errors import ConfigurationError, GivenUp, ModelError
from onrecord.models.breaker import BreakerState
from onrecord.models.request import Request

__all__ = (
    "STUCK_LOOP",
    "CallKind",
    "CallRule",
    "CallScope",
    "Misfit",
    "Verb",
    "check_rules",
    "first_match",
    "kind_of_call",
    "last_validation_errors_match",
)

log = logging.getLogger("onrecord.models")

CallKind = Literal["ok", "circuit-open", "schema-fail", "rate-limit", "5xx-transient", "unknown"]
"""How a call went, as rules tell it apart; the error itself says more (`onrecord.errors.ErrorKind`)."""

Verb = Literal["go_on", "ok", "retry", "retry_other", "fallback", "fail_fast"]

_OURS: Mapping[str, CallKind] = {"circuit-open": "circuit-open", "schema-fail": "schema-fail"}
_TRANSIENT = frozenset({"overload", "network", "timeout"})


class Misfit(Struct, frozen=True):
    """Why a reply does not fit its shape, ``path`` where; ``raw_output`` is the reply's text."""

    message: str
    path: str = ""
    raw_output: str = ""


class CallScope(Struct, frozen=True, kw_only=True):
    """What a rule sees of a call. Before the first attempt ``attempt`` is 0 and ``error_kind`` ``ok``.

    ``attempt`` counts calls, so an open circuit does not raise it. ``response`` is the reply, unless it was delivered
    piece by piece already. ``current_provider`` is the name of the model (``provider:model``), which is also the key
    of ``attempts_per_provider`` and ``breaker_states``. ``latency_ms`` is that of the last attempt.
    """

    request: Request
    providers_count: int
    has_fallback: bool
    attempt: int
    provider_idx: int
    current_provider: str
    can_switch_provider: bool
    response: Round | None = None
    error: ModelError | None = None
    error_kind: CallKind = "ok"
    latency_ms: int = 0
    validation_error: Misfit | None = None
    validation_error_history: tuple[Misfit, ...] = ()
    attempts_per_provider: Mapping[str, int] = {}
    breaker_states: Mapping[str, BreakerState] = {}


class CallRule(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """What to do when ``only_if`` holds. One that raises does not hold; ConfigurationError for an async one.

    ``then``, before the call: ``go_on`` or ``fail_fast``. After it: ``ok`` (take the reply), ``retry`` (the same
    model), ``retry_other`` (the next one), ``fallback`` (the function given to `Reliable`), ``fail_fast``. ``kind``
    names the decision and becomes `GivenUp.why`; ``label`` is for people. ``feedback`` is shown to the model on the
    next attempt of this call, and nowhere else. ``wait_s`` comes before a retry.
    """

    only_if: Callable[[CallScope], object]
    then: Verb
    kind: str = ""
    label: str = ""
    feedback: str | Callable[[CallScope], str] = ""
    wait_s: float = 0.0

    def __post_init__(self) -> None:
        check_condition(
            self.only_if, "only_if= of a CallRule", hint="it is asked at once: a plain function of the CallScope"
        )

    def told(self, scope: CallScope) -> str:
        """The feedback in words; none from a function that raises or gives no text."""
        if isinstance(self.feedback, str):
            return self.feedback
        try:
            words: object = self.feedback(scope)
        except Exception as error:  # noqa: BLE001 - feedback is help: its failure is told, and must not cost the call
            _tell("feedback", self, error)
            return ""
        return words if isinstance(words, str) else ""


_BEFORE: frozenset[str] = frozenset({"go_on", "fail_fast"})
_AFTER: frozenset[str] = frozenset({"ok", "retry", "retry_other", "fallback", "fail_fast"})


def check_rules(before: Sequence[CallRule], after: Sequence[CallRule]) -> None:
    """ConfigurationError for a rule that could never take effect where it stands."""
    for rules, verbs, where in ((before, _BEFORE, "before"), (after, _AFTER, "after")):
        for rule in rules:
            held: object = rule
            if not isinstance(held, CallRule):
                raise ConfigurationError(f"a rule about a call is a CallRule, not a {type(held).__name__}")
            if rule.then not in verbs:
                raise ConfigurationError(
                    f"a rule {where} the call cannot say {rule.then!r}", hint=f"it says one of {sorted(verbs)}"
                )
            if not rule.wait_s >= 0:
                raise ConfigurationError(f"wait_s of a CallRule is at least 0, not {rule.wait_s}")


def first_match(rules: Sequence[CallRule], scope: CallScope) -> CallRule | None:
    """The first rule that holds."""
    for rule in rules:
        try:
            if says_yes(rule.only_if(scope)):
                return rule
        except Exception as error:  # noqa: BLE001 - one that raises does not hold (loop §18.1), and is told
            _tell("when", rule, error)
    return None


def _tell(what: str, rule: CallRule, error: Exception) -> None:
    """A rule that never holds because it is broken would look like one that is not needed. Nothing is quoted."""
    name = rule.label or rule.kind or rule.then
    log.warning("%s of the call rule %r raised %s", what, name, type(error).__name__)


def kind_of_call(error: ModelError | None, misfit: Misfit | None = None) -> CallKind:
    """How a call went."""
    if misfit is not None:
        return "schema-fail"
    if error is None:
        return "ok"
    if isinstance(error, GivenUp) and error.why in _OURS:
        return _OURS[error.why]
    if error.kind == "rate":
        return "rate-limit"
    if error.kind in _TRANSIENT or (error.status is not None and 500 <= error.status < 600):
        return "5xx-transient"
    return "unknown"


def last_validation_errors_match(scope: CallScope, n: int = 2) -> bool:
    """Whether the last ``n`` replies did not fit for one and the same reason."""
    last = scope.validation_error_history[-n:]
    return len(last) == n and all((m.message, m.path) == (last[0].message, last[0].path) for m in last)


STUCK_LOOP = CallRule(
    only_if=last_validation_errors_match, then="fail_fast", kind="stuck-loop", label="the same misfit twice in a row"
)
"""Ends a call whose replies do not fit for the same reason twice in a row. Put it first."""
