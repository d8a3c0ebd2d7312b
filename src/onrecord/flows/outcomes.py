"""The codes of outcome lines and the sentence of each. Programs look at the code; people read the sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

__all__ = ("END_REASONS", "OUTCOME_MESSAGES", "EndReason", "OutcomeCode")

EndReason = Literal["end", "flow", "reset", "skipped", "failed", "replaced"]
END_REASONS: tuple[EndReason, ...] = get_args(EndReason)

OutcomeCode = Literal[
    "no-session", "duplicate-input", "stale-wake", "silence-broken",
    "already-claimed", "cooldown", "hop-limit", "already-running", "flow-gone",
    "step-loop", "step-gone", "customer-replied", "premise-changed", "silenced",
    "already-known", "asked-fixed", "another-reply", "already-sent", "branch", "max-asks",
    "inline-delay", "awaiting-trigger", "awaiting-event", "event-arrived", "no-event", "replied", "no-reply",
    "action-skipped", "action-failed", "action-deferred",
    "unknown-field", "bad-value", "not-in-enum",
    "provider-quota", "provider-context", "provider-auth", "provider-invalid", "provider-unavailable",
    "unknown-event", "refused", "awaiting-answer", "question-gone", "blank",
]  # fmt: skip

OUTCOME_MESSAGES: Mapping[OutcomeCode, str] = {
    # The input was taken before, or nobody waits for it.
    "no-session": "a wake arrived for a session that does not exist",
    "duplicate-input": "this input was already applied",
    "stale-wake": "no run is waiting on this wake",
    "silence-broken": "someone wrote after this silence wake was set",
    "unknown-event": "no event by that name is declared on the agent",
    # A flow was not begun.
    "already-claimed": "this flow already ran here",
    "cooldown": "the flow's cooldown has not passed",
    "hop-limit": "the chain reached the hop limit",
    "already-running": "a run of this flow is already live here",
    "flow-gone": "the flow is no longer registered on the agent",
    # A run ended without reaching its end.
    "step-loop": "the run moved through 50 steps in one turn",
    "step-gone": "the step is no longer in the flow",
    "customer-replied": "the customer wrote before the wake fired",
    "premise-changed": "the flow's while condition no longer holds",
    "silenced": "the host cannot speak right now",
    # Talking.
    "already-known": "every field this step collects is known",
    "asked-fixed": "the step's fixed question went out word for word",
    "another-reply": "another run already answered this turn",
    "already-sent": "this message was already sent once",
    "branch": "a branch of this step fired",
    "max-asks": "the field was asked the most times allowed",
    "refused": "a rule refused the text",
    "blank": "the text came out empty, so nothing was said",
    # Waiting.
    "inline-delay": "a short wait rides on the next message",
    "awaiting-trigger": "the trigger's delay has not passed",
    "awaiting-event": "the run is waiting for an event",
    "event-arrived": "the event was reported",
    "no-event": "the event did not arrive in time",
    "replied": "the customer replied while the run waited",
    "no-reply": "the customer did not reply while the run waited",
    "awaiting-answer": "the run waits for a person's answer",
    "question-gone": "the question the run waited for is no longer open",
    # Actions.
    "action-skipped": "the action decided not to run",
    "action-failed": "the action failed",
    "action-deferred": "the action asked to run again later",
    # Values a model reported.
    "unknown-field": "no field by that name is declared on the agent",
    "bad-value": "the value did not fit the field's type",
    "not-in-enum": "the value is not one of the field's options",
    # A model that could not answer.
    "provider-quota": "the provider's usage limit is spent",
    "provider-context": "the conversation outgrew the model's context window",
    "provider-auth": "the provider rejected the credentials",
    "provider-invalid": "the provider rejected the request",
    "provider-unavailable": "the model call failed or came back empty",
}
