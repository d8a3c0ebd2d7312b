"""Saying: what is said is filed, put among the turn's messages, and shown where it was held."""

from __future__ import annotations

from onrecord.conversation.content import Mark, Text
from onrecord.conversation.outgoing import Outgoing
from onrecord.record.kinds import TextSaid
from onrecord.turn.answer import with_blocks
from onrecord.turn.director import Brief
from onrecord.turn.listen import release_all
from onrecord.turn.moments import Answer
from onrecord.turn.turn import Turn

__all__ = ("message_of", "release_held", "say_text")


def say_text(
    turn: Turn, brief: Brief, answer: Answer, *, round_id: str, shown: tuple[Text | Mark, ...], media: str | None = None
) -> None:
    """Files what is said and puts its message among the turn's. A blank answer says nothing."""
    turn.streaming.clear()
    if not answer.text.strip() and media is None:
        return
    said = TextSaid(
        key=brief.message_key or f"{turn.id}/{brief.key}", text=answer.text, round=round_id, verbatim=answer.verbatim,
        shown=shown, blocks=answer.blocks, media=media, after_ms=brief.after_ms, about=brief.about,
    )  # fmt: skip
    turn.cause = turn.note(said).n
    turn.apart = turn.apart or bool(answer.text.strip())
    turn.messages.append(message_of(said, speaks=turn.speaks))


def message_of(said: TextSaid, *, speaks: bool = True) -> Outgoing:
    """The message that goes out for what was said."""
    return Outgoing(
        key=said.key, text=with_blocks(said.text, said.blocks), kind="verbatim" if said.verbatim else "ai",
        media=said.media, after_ms=said.after_ms, marks=tuple(m for m in said.shown if isinstance(m, Mark)),
        speaks=speaks, about=said.about,
    )  # fmt: skip


def release_held(turn: Turn, text: str, shown: tuple[Text | Mark, ...]) -> None:
    """Shows an accepted draft to a live reader, at once."""
    release_all(turn, [item if isinstance(item, Mark) else item.text for item in shown] or [text])
