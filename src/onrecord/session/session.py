"""Session: the small immutable state of one conversation, beside its messages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Raw, Struct, field

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.inputs import Answered, Input, Question, Said, Woke, expiry_key
from onrecord.jsonio import Json
from onrecord.record.kinds import Pending

__all__ = ("KEPT_FILED", "KEPT_INPUTS", "Session", "SlotState", "StoredSlot", "resumed")

KEPT_INPUTS = 50
"""How many input keys and interruption ids a session remembers."""

KEPT_FILED = 64
"""How many digests of filed texts a session remembers, and all of its last request; a forgotten one is filed anew."""


class SlotState(Struct, frozen=True):
    """What a feature's fold made, with the fold's version; fresh from a store ``value`` is still `msgspec.Raw`.

    ``quotes``: it repeats what was said, as `Fold` tells.
    """

    version: int
    value: Any
    quotes: bool = False


class StoredSlot(Struct, frozen=True, omit_defaults=True):
    """A slot's state as it is written."""

    version: int
    value: Raw
    quotes: bool = False


class Session(Struct, frozen=True, kw_only=True):
    """The state of one conversation.

    ``version`` is written by the store only, ``generation`` is raised by a reset, ``seq`` is the number of the next
    entry. ``pending`` is a paused turn. ``digest_key`` keys the digests of this session's receipts.
    """

    key: SessionKey
    version: int = 0
    generation: int = 0
    seq: int = 0
    owner: Identity | None = None
    parent: str | None = None
    data: Mapping[str, Json] = {}
    inputs: tuple[str, ...] = ()
    interruptions: tuple[str, ...] = ()
    pending: Pending | None = None
    last_user_at: datetime | None = None
    last_assistant_at: datetime | None = None
    slots: Mapping[str, SlotState] = {}
    digest_key: str = ""
    filed: tuple[str, ...] = ()
    conversation: Conversation = field(default_factory=Conversation)

    @property
    def question(self) -> Question | None:
        """What a person must answer before the paused turn goes on."""
        return None if self.pending is None else self.pending.question

    def __repr__(self) -> str:
        paused = ", paused" if self.pending is not None else ""
        return f"Session({self.key.id!r}, version={self.version}, {len(self.conversation.messages)} messages{paused})"


def resumed(session: Session, input: Input) -> Pending | None:
    """The paused turn that an input goes on with: the answer to its question, or what counts as one.

    That is a message, where the question says so, and the wake that ends a question nobody answers.
    """
    pending = session.pending
    if pending is None:
        return None
    if isinstance(input, Said):
        return pending if pending.question.on_message == "answer" else None
    if isinstance(input, Woke):
        return pending if input.key == expiry_key(pending.question) else None
    return pending if isinstance(input, Answered) and input.key == pending.question.key else None
