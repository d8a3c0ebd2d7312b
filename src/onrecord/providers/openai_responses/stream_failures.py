"""What can go wrong in a reply, as errors that say it precisely and quote nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import DecodeError

from onrecord.conversation.usage import Usage
from onrecord.errors import ErrorKind, ModelError
from onrecord.jsonio import UNREADABLE, Json
from onrecord.models.classify_errors import stream_error
from onrecord.models.reply_errors import reply_error
from onrecord.providers.openai_responses.events import Answer

__all__ = ("FOREIGN", "Failing")

T = TypeVar("T")

FOREIGN = "sent an event that is not of its protocol"


class Failing:
    """Whoever reads a reply of ``provider``; ``started`` once a chunk was handed out or a call began."""

    __slots__ = ("provider", "started")

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self.started = False

    def error(self, kind: ErrorKind, what: str, *, hint: str = "") -> ModelError:
        """An error of a kind."""
        return reply_error(self.provider, kind, what, started=self.started, hint=hint)

    def early(self) -> ModelError:
        """The stream ended before the reply did."""
        return self.error("network", "ended its stream early")

    def lost(self, what: str) -> ModelError:
        """Something of the reply never came, though what followed it did."""
        return self.error("network", what, hint="try again")

    def unread(self, problem: Exception) -> ModelError:
        """Data that is JSON up to where it ends was cut in the middle; anything else is of another protocol."""
        cut = isinstance(problem, DecodeError) and "truncated" in str(problem)
        return self.early() if cut else self.error("invalid", FOREIGN)

    def reported(self, held: Json) -> ModelError:
        """The provider says itself that it failed."""
        return stream_error(self.provider, held, started=self.started)

    def incomplete(self, answer: Answer, usage: Usage | None) -> ModelError:
        """The provider says that it cut its reply off."""
        reason = answer.incomplete_details.reason if answer.incomplete_details else None
        if reason == "content_filter":
            return self.error("content", "cut its reply off: its content filter stopped it")
        if reason == "max_output_tokens":
            thought = (
                f" ({usage.reasoning_tokens} tokens went to reasoning)" if usage and usage.reasoning_tokens else ""
            )
            return self.error("invalid", f"reached the output cap in its reply{thought}", hint="raise max_tokens")
        return self.error("overload", "broke off its reply")

    def held(self, read: Callable[[bytes], T], raw: bytes) -> T:
        """Part of an event that is JSON, read as what it has to be."""
        try:
            return read(raw)
        except UNREADABLE:
            raise self.error("invalid", FOREIGN) from None
