"""Every exception onrecord raises on purpose.

OnrecordError                 .code (stable)  .hint (what to do)
├─ ConfigurationError         while building: FlowInvalid, ToolInvalid, FeatureConflict, MissingDependency
├─ UsageError                 called wrongly: an answer without a question, an option without an owner; SessionBusy
├─ TurnError                  .result: the turn's entries and session are kept
│   ├─ MessageDenied          .moment .rule .reason (never the content)
│   ├─ AnswerRefused
│   ├─ FeatureFailed          .feature .moment; Unmeasurable .provider
│   ├─ LimitReached           tokens, cost, time, rounds
│   └─ TurnParked             .why: its row was set aside
├─ ModelError                 .kind .provider .status .retry_after .reset_at .window .should_retry .started .refuses
│                             .result
│   ├─ GivenUp                .why .phase .label .attempts: rules of `Reliable` ended the call
│   └─ UnsupportedThinkingError   a ConfigurationError too: raised while building where the model is known by then
├─ OutputInvalid              from result.output
├─ RecordInvalid              a record file or line that cannot be read
├─ DocumentInvalid            a document that cannot be read: broken, too large, of no known kind
└─ StoreError                 SessionConflict .expected .found; LeaseLost

Messages quote names with ``!r`` and never hold message content, tool arguments or credentials.
Denials inside a turn and pauses are results, not exceptions; ``asyncio.CancelledError`` is never wrapped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from datetime import datetime

    from onrecord.turn.result import TurnResult

__all__ = (
    "AnswerRefused",
    "ConfigurationError",
    "DocumentInvalid",
    "ErrorKind",
    "FeatureConflict",
    "FeatureFailed",
    "FlowInvalid",
    "GivenUp",
    "LeaseLost",
    "LimitReached",
    "MessageDenied",
    "MissingDependency",
    "ModelError",
    "OnrecordError",
    "OutputInvalid",
    "RecordInvalid",
    "SessionBusy",
    "SessionConflict",
    "StoreError",
    "ToolInvalid",
    "TurnError",
    "TurnParked",
    "Unmeasurable",
    "UnsupportedThinkingError",
    "UsageError",
    "check_count",
)

ErrorKind = Literal[
    "aborted",
    "timeout",
    "network",
    "overload",
    "rate",
    "quota",
    "auth",
    "entitlement",
    "context",
    "model",
    "invalid",
    "content",
    "unknown",
]


class OnrecordError(Exception):
    """Root of all errors of the library: ``code`` is stable across releases, ``hint`` says what to do.

    A traceback shows the hint below the message.
    """

    default_code: ClassVar[str] = "error"

    def __init__(self, message: str, *, code: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")

    def __reduce__(self) -> tuple[object, ...]:
        """An error comes back whole from another process, whatever its own constructor takes."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[OnrecordError], args: tuple[object, ...], state: dict[str, object]) -> OnrecordError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class ConfigurationError(OnrecordError):
    """An agent, tool, model name or store was declared in a way that cannot work. Raised while building."""

    default_code = "configuration"


class FlowInvalid(ConfigurationError):
    """A flow's declaration is wrong: a misspelt field, step, tool, event or condition, or a duration nobody can read.

    The message names the flow, the step and the thing, the hint the nearest right name or the fix.
    """

    default_code = "flow-invalid"


class ToolInvalid(ConfigurationError):
    """A tool's declaration is wrong: a duplicate id, parameters that are no JSON Schema object, a bad trait."""

    default_code = "tool-invalid"


class FeatureConflict(ConfigurationError):
    """Two features want something only one can have, or a feature cannot work with this agent."""

    default_code = "feature-conflict"


class MissingDependency(ConfigurationError):
    """An optional library is not installed; ``hint`` holds the exact command that installs it."""

    default_code = "missing-dependency"


class UsageError(OnrecordError):
    """The library was called in a way its contract rules out."""

    default_code = "usage"


class SessionBusy(UsageError):
    """A turn of this session runs or waits, and the caller asked to be refused then."""

    default_code = "session-busy"


class TurnError(OnrecordError):
    """A turn ended without an answer. ``result`` keeps its entries and session, so nothing is lost."""

    default_code = "turn-failed"

    def __init__(self, message: str, *, code: str = "", hint: str = "") -> None:
        super().__init__(message, code=code, hint=hint)
        self.result: TurnResult[object] | None = None


class MessageDenied(TurnError):
    """A rule denied the message at the ``input`` moment. Holds the rule and its reason, never the content."""

    default_code = "message-denied"

    def __init__(self, moment: str, rule: str, reason: str) -> None:
        super().__init__(f"rule {rule!r} denied the message at {moment}: {reason}")
        self.moment, self.rule, self.reason = moment, rule, reason


class AnswerRefused(TurnError):
    """A rule refused the answer at the ``output`` moment; nothing of it was shown."""

    default_code = "answer-refused"

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(f"rule {rule!r} refused the answer: {reason}")
        self.moment, self.rule, self.reason = "output", rule, reason


class FeatureFailed(TurnError):
    """A feature's hook raised, or broke its contract, at a moment that cannot be turned into a denial.

    ``erased`` is what `Host.erase` or `Host.expire` had erased when a feature could not let go of what it keeps of it.
    """

    default_code = "feature-failed"
    erased: object = None

    def __init__(self, feature: str, moment: str, problem: str, *, hint: str = "") -> None:
        super().__init__(f"feature {feature!r} failed at {moment}: {problem}", hint=hint)
        self.feature, self.moment = feature, moment


class Unmeasurable(FeatureFailed):
    """A window is to keep a budget of tokens, and the provider does not say how many it counted."""

    default_code = "unmeasurable"

    def __init__(self, feature: str, provider: str) -> None:
        super().__init__(
            feature,
            "request",
            f"provider {provider!r} reported no usage, and tokens are counted here, never guessed",
            hint="use a model that reports usage, Window.last(...), which counts no tokens, or Compaction, which "
            "estimates them",
        )
        self.provider = provider


class LimitReached(TurnError):
    """A budget of tokens, cost, time or rounds was used up."""

    default_code = "limit-reached"


class TurnParked(TurnError):
    """The row of this turn was set aside as one that nobody can handle: it is visible, and can be tried again."""

    default_code = "turn-parked"

    def __init__(self, session: str, why: str) -> None:
        super().__init__(
            f"a turn of session {session!r} was set aside: {why}",
            hint="look at it with `onrecord inbox list`; `onrecord inbox retry` makes it due again",
        )
        self.why = why


class ModelError(OnrecordError):
    """A model call failed.

    ``kind`` is one of `ErrorKind`; ``retry_after`` is in seconds and ``reset_at`` an instant, both as the
    provider stated them; ``started`` is True once a chunk or call reached the caller, after which nothing is retried.
    ``refuses`` names what the provider says that this model never takes: ``tools``, or ``arrays`` where message content
    must be a string. ``result`` is set when text was already shown and the turn therefore ended as failed.
    """

    default_code = "model"

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind = "unknown",
        provider: str = "",
        status: int | None = None,
        retry_after: float | None = None,
        reset_at: datetime | None = None,
        window: str | None = None,
        should_retry: bool | None = None,
        started: bool = False,
        hint: str = "",
    ) -> None:
        super().__init__(message, code=f"model-{kind}", hint=hint)
        self.kind: ErrorKind = kind
        self.provider = provider
        self.status = status
        self.retry_after = retry_after
        self.reset_at = reset_at
        self.window = window
        self.should_retry = should_retry
        self.started = started
        self.refuses: Literal["", "tools", "arrays"] = ""
        self.result: TurnResult[object] | None = None


class GivenUp(ModelError):
    """Rules, a circuit breaker or a limit of `Reliable` ended a model call; ``__cause__`` is what the model said last.

    ``why`` is the ``kind`` of the rule that decided, or one of ``circuit-open``, ``schema-fail``, ``no-response``,
    ``mid-stream-not-retryable``, ``no-more-providers``, ``fallback-not-configured``, ``max-loop-exceeded`` and
    ``pre-check-failed``. ``phase`` is ``before`` or ``after`` the call, ``label`` that of the rule, ``attempts`` how
    often a model was called. Everything else is as the cause has it.
    """

    def __init__(
        self,
        why: str,
        *,
        phase: Literal["before", "after"] = "after",
        label: str = "",
        attempts: int = 0,
        cause: ModelError | None = None,
        provider: str = "",
        retry_after: float | None = None,
        kind: ErrorKind = "unknown",
        started: bool = False,
        hint: str = "",
    ) -> None:
        told = f"the model call was given up ({why}) {phase} {'it' if phase == 'before' else f'{attempts} attempts'}"
        if cause is None:
            super().__init__(told, kind=kind, provider=provider, retry_after=retry_after, started=started, hint=hint)
        else:
            super().__init__(
                told, kind=cause.kind, provider=cause.provider, status=cause.status, retry_after=cause.retry_after,
                reset_at=cause.reset_at, window=cause.window, should_retry=cause.should_retry,
                started=started or cause.started, hint=hint or cause.hint,
            )  # fmt: skip
            self.refuses = cause.refuses
        self.why, self.phase, self.label, self.attempts = why, phase, label, attempts


class UnsupportedThinkingError(ConfigurationError, ModelError):
    """Thinking was asked of a model that does none, or in a way that this model does not take.

    Raised while building where the model is known by then, else by the turn, before anything is sent. Both times it is
    a ModelError of kind ``invalid`` as well, so that hosts, flows and fallback models treat it as one.
    """

    default_code = "unsupported-thinking"

    def __init__(self, message: str, *, provider: str = "", hint: str = "") -> None:
        ModelError.__init__(self, message, kind="invalid", provider=provider, hint=hint)
        self.code = self.default_code


class OutputInvalid(OnrecordError):
    """Read from ``result.output``: the answer did not fit the declared output type and no fallback supplied a value.

    ``problem`` says what does not fit, ``path`` where (empty for the whole); neither holds the answer's text.
    """

    default_code = "output-invalid"

    def __init__(self, problem: str, *, path: str = "", hint: str = "") -> None:
        super().__init__(f"the answer is not a valid output{f' at {path!r}' if path else ''}: {problem}", hint=hint)
        self.problem, self.path = problem, path


class RecordInvalid(OnrecordError):
    """A record file or line cannot be read, or does not fold. Names the line."""

    default_code = "record-invalid"


class DocumentInvalid(OnrecordError):
    """A document cannot be read for retrieval: it is broken, encrypted, too large, or of a kind nobody here reads."""

    default_code = "document-invalid"


class StoreError(OnrecordError):
    """The store could not do what was asked; nothing was half-written."""

    default_code = "store"


class SessionConflict(StoreError):
    """The session in the store is not the one this change was made from; load it again and replay the input."""

    default_code = "session-conflict"

    def __init__(self, session: str, *, expected: int, found: int) -> None:
        super().__init__(
            f"session {session!r} is at version {found}, the change was made from version {expected}",
            hint="load it again and take the same input once more; if this turn is stored already, go on with the "
            "session that commit returned",
        )
        self.expected, self.found = expected, found


class LeaseLost(StoreError):
    """The row of this take was leased to somebody else meanwhile, or withdrawn: nothing of the take is stored."""

    default_code = "lease-lost"


def check_count(owner: str, name: str, value: object, least: int = 1, *, hint: str = "") -> None:
    """ConfigurationError unless ``value``, the ``name`` of an ``owner``, is a whole number from ``least`` on."""
    if type(value) is not int or value < least:
        given = value if isinstance(value, (int, float)) else type(value).__name__
        raise ConfigurationError(f"{name} of {owner} is a whole number from {least} on, not {given}", hint=hint)
