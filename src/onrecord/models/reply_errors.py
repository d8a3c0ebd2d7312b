"""The error of a reply that began well and then went wrong, whichever wire it came over."""

from __future__ import annotations

from collections.abc import Mapping

from onrecord.errors import ErrorKind, ModelError

__all__ = ("reply_error",)

_HINTS: Mapping[ErrorKind, str] = {
    "invalid": "what answers at this address does not keep to its protocol: check the base URL, and the provider in "
    "the model's name",
    "content": "the provider's filter stopped it: other words, or another model",
    "context": "show the model less: a window, a summary, shorter tool results",
    "network": "try again; whether this reply was paid for is not known",
    "overload": "the provider is busy or failing; try again later",
}


def reply_error(provider: str, kind: ErrorKind, what: str, *, started: bool, hint: str = "") -> ModelError:
    """``what`` goes behind the provider's name. Without a ``hint`` it says what helps with errors of its kind."""
    told = hint or _HINTS.get(kind, "")
    return ModelError(f"{provider} {what}", kind=kind, provider=provider, started=started, hint=told)
