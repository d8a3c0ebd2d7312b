"""Recalling for a turn: what is looked for, and how what was found joins each of its requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.content import Text, plain_text
from onrecord.conversation.inputs import Said
from onrecord.conversation.messages import ContextMessage
from onrecord.models.request import Request
from onrecord.turn.turn import Turn

__all__ = ("LONGEST_ASKED", "Recalled", "said_in", "with_recalled")

LONGEST_ASKED = 4000
"""Characters of a message that are looked for."""


class Recalled(Struct, frozen=True):
    """What a turn is shown, in its frames; the same for all its requests."""

    texts: tuple[str, ...] = ()


def said_in(turn: Turn) -> str:
    """The words of the message that a turn is about, or nothing."""
    return plain_text(turn.input.content).strip() if isinstance(turn.input, Said) else ""


async def with_recalled(
    turn: Turn, request: Request, feature: str, header: str, recall: Callable[[], Awaitable[Recalled]]
) -> Request:
    """The request with what ``recall`` finds, which is asked once a turn.

    It is one message with the authority ``data`` behind the conversation, a content for each text.
    """
    recalled = await turn.once(f"{feature}/recalled", Recalled, recall)
    if not recalled.texts:
        return request
    content = (Text(header), *(Text(f"\n{text}") for text in recalled.texts))
    message = ContextMessage(id=f"{turn.id}/{feature}", turn=turn.id, content=content, writer=feature)
    return replace(request, view=replace(request.view, spans=(*request.view.spans, message)))
