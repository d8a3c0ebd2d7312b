"""The three messages, and the round: one model call with every tool call it asked for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Raw, Struct

from onrecord.conversation.content import CallRef, Mark, Part, Refusal, Structured, Text, Thinking
from onrecord.conversation.usage import ModelUse
from onrecord.jsonio import Json

__all__ = (
    "AssistantMessage",
    "Authority",
    "Block",
    "CallStatus",
    "ContextMessage",
    "Continuation",
    "Message",
    "Note",
    "Round",
    "ToolCall",
    "Unit",
    "UserMessage",
)

CallStatus = Literal["asked", "returned", "failed", "denied", "invalid", "absent", "partial", "not_run", "cancelled"]
Authority = Literal["system", "developer", "data"]


class Note(Struct, frozen=True, gc=False):
    """Words the library adds after a tool's result on the wire; never the tool's own."""

    by: str
    text: str


class ToolCall(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One call and, once known, its result.

    ``id`` is ours (``{round.id}/c{i}``, unique in the conversation), ``wire_id`` the provider's. ``raw_args`` is what
    the model wrote, for ever; ``args`` is the working form that rules may have changed.
    """

    id: str
    wire_id: str
    name: str
    raw_args: str = "{}"
    args: Mapping[str, Json] = {}
    result: tuple[Part, ...] | None = None
    notes: tuple[Note, ...] = ()
    status: CallStatus = "asked"


class Continuation(Struct, frozen=True, gc=False, kw_only=True):
    """A provider's own output items, verbatim, and the scope in which it takes them back."""

    protocol: str
    scope: str
    items: tuple[Raw, ...]


class ContextMessage(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="context"):
    """Library and application text in the conversation; never a person's words.

    ``authority`` ``data`` never gains the force of an instruction, on no wire.
    """

    id: str
    turn: str = ""
    content: tuple[Text | Structured, ...] = ()
    authority: Authority = "data"
    writer: str = ""


class Round(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="round"):
    """One model call and every tool call it asked for.

    ``content`` keeps the provider's order and raw text; ``calls`` is the only owner of calls and results.
    ``use`` is None for a verbatim line and for an import. ``revised`` makes the round a draft: its corrections are
    shown after it and both leave when the turn closes. ``lost`` names native items without a portable form.
    """

    id: str
    before: tuple[ContextMessage, ...] = ()
    content: tuple[Text | Refusal | Thinking | CallRef, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    use: ModelUse | None = None
    continuation: Continuation | None = None
    revised: tuple[ContextMessage, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The words meant for a person, as the model wrote them."""
        content = self.content
        if len(content) == 1 and type(content[0]) is Text:
            return content[0].text
        return "".join(p.text for p in content if isinstance(p, (Text, Refusal)))


class UserMessage(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="user"):
    """What a person wrote or attached, fixed when it was admitted."""

    id: str
    turn: str = ""
    content: tuple[Part, ...]
    at: datetime | None = None
    notice: str | None = None
    reply_to: str | None = None
    reply_preview: str = ""
    tool_refs: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The words of the message without its media."""
        return "".join(p.text for p in self.content if isinstance(p, Text))


class Block(Struct, frozen=True, gc=False, kw_only=True):
    """Text that a feature appends below an answer, after a rule line; stored apart and never streamed."""

    source: str
    rank: int
    text: str


class AssistantMessage(
    Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="assistant"
):
    """What one take said: its rounds, and what people saw of them after text filters.

    ``interrupted`` is the cause, if it was cut; ``heard`` is an offset into the shown text (None: all, or unknown).
    """

    id: str
    turn: str = ""
    rounds: tuple[Round, ...] = ()
    shown: tuple[Text | Mark, ...] = ()
    blocks: tuple[Block, ...] = ()
    started_at: datetime | None = None
    completed_at: datetime | None = None
    interrupted: str | None = None
    heard: int | None = None
    proactive: bool = False

    @property
    def text(self) -> str:
        """What people saw, as one string."""
        return "".join(p.text for p in self.shown if isinstance(p, Text))


Message = UserMessage | ContextMessage | AssistantMessage
Unit = UserMessage | ContextMessage | Round
"""What is windowed and projected: a user message, a context message, or one round."""
