"""wire: the exact bytes that an agent would send, without sending them."""

from __future__ import annotations

from typing import Any

from onrecord.agent import Agent
from onrecord.conversation.conversation import Conversation
from onrecord.models.model import scope_of
from onrecord.models.request import Piece, Request, Span, View
from onrecord.turn.compose import arranged
from onrecord.turn.moments import Rank

__all__ = ("wire",)


def wire(agent: Agent[Any, Any], conversation: Conversation, *, session: str = "test") -> bytes:
    """The body of the next request over this conversation, before any request hook. No network.

    TypeError for an agent whose model or instructions are functions of a turn.
    """
    plan = agent.plan
    model = plan.fixed_model()
    if model is None or callable(plan.instructions):
        raise TypeError("wire needs an agent with a fixed model and fixed instructions")
    base = (Piece(source="instructions", text=str(plan.instructions), rank=Rank.BASE),) if plan.instructions else ()
    units = len(conversation.units)
    return model.wire(
        Request(
            purpose="speak",
            where="main/r0",
            pieces=arranged((*base, *plan.pieces)),
            conversation=conversation,
            own=units,
            view=View(spans=(Span(0, units),)),
            model=model,
            offers=plan.offers(None) if plan.spec.rounds else (),
            shape=plan.shape,
            scope=scope_of(model.card, session),
        )
    ).body
