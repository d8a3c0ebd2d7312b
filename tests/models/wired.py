"""Models that answer from a script behind a real projection: what they are sent is kept as bytes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from msgspec.structs import replace

from onrecord.models.chunks import Chunk
from onrecord.models.model import ModelCard
from onrecord.models.projection import Projection
from onrecord.models.request import Request, Wire
from onrecord.providers.anthropic.cards import anthropic_card, rules_of
from onrecord.providers.anthropic.project import AnthropicProjection
from onrecord.providers.google.cards import google_card
from onrecord.providers.google.project import GoogleProjection
from onrecord.providers.openai_chat.cards import Dialect
from onrecord.providers.openai_chat.project import ChatProjection
from onrecord.providers.openai_responses.cards import responses_card
from onrecord.providers.openai_responses.project import ResponsesProjection
from onrecord.testing import ScriptedModel
from tests.models.merging import MergingWire
from tests.models.requests import CARD

__all__ = ("WiredModel", "chat", "gemini", "merging", "messages", "responses")


class WiredModel(ScriptedModel):
    """A scripted model that sends, into ``bodies``, what its projection makes of requests."""

    def __init__(self, wires: Projection, *answers: Any, card: ModelCard = CARD, **more: Any) -> None:
        super().__init__(*answers, card=card, **more)
        self.wires = wires
        self.bodies: list[bytes] = []

    def wire(self, request: Request, /) -> Wire:
        return self.wires.wire(request)

    def extend(self, request: Request, /, limit: int = 500) -> int:
        return self.wires.extend(request, limit)

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        self.bodies.append((request.wire or self.wire(request)).body)
        self.wires.sent(request)
        async for chunk in super().stream(request):
            yield chunk


def chat(*answers: Any, **about: Any) -> WiredModel:
    """Chat Completions; ``about`` changes the card."""
    given = {name: about.pop(name) for name in ("usage", "judge") if name in about}
    card = replace(CARD, **about)
    return WiredModel(ChatProjection(card, Dialect()), *answers, card=card, **given)


def merging(*answers: Any, **about: Any) -> WiredModel:
    """The wire that merges entries, hoists instructions and takes marks."""
    given = {name: about.pop(name) for name in ("usage", "judge") if name in about}
    card = replace(CARD, provider="merging", model="merging", protocol="merging", cache_marks=True, **about)
    return WiredModel(MergingWire(), *answers, card=card, **given)


def responses(*answers: Any, model: str = "gpt-5-mini") -> WiredModel:
    """Responses, for a model that reasons where nothing else is said."""
    card, dialect = responses_card(model)
    return WiredModel(ResponsesProjection(card, dialect), *answers, card=card)


def gemini(*answers: Any, model: str = "gemini-3.8-flash") -> WiredModel:
    """Google's wire, for a model that signs its calls where nothing else is said."""
    card, dialect = google_card(model)
    return WiredModel(GoogleProjection(card, dialect), *answers, card=card)


def messages(*answers: Any, model: str = "claude-sonnet-4-5") -> WiredModel:
    """Anthropic's wire, for a model that thinks on a budget where nothing else is said."""
    card = anthropic_card(model)
    return WiredModel(AnthropicProjection(card, rules_of(card.model)), *answers, card=card)
