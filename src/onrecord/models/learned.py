"""What endpoints proved that they do not take, per endpoint and model, until that expires.

A model whose answer says that it takes no tools, or no lists as message content, is asked without them from then on,
instead of failing again and again. Nothing here reads a clock: whoever asks brings a monotonic instant, in seconds.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from onrecord.errors import ModelError
from onrecord.models.classify_errors import refused_by
from onrecord.models.model import ModelCard
from onrecord.models.request import Request

__all__ = ("KEEPS_S", "Learned", "Refusal", "proven", "without_tools")

Refusal = Literal["tools", "arrays"]
"""Tools of any kind with the search of the provider, or message content that is a list of parts."""

KEEPS_S = 3600.0
"""How long a refusal is believed: servers are reconfigured, and routers find other machines."""

MOST = 1024
_WORDS = (b"support", b"unrecogni", b"invalid type", b"should be", b"expected")
"""One of these stands in every sentence that is a proof."""


class Learned:
    """Refusals by protocol, endpoint and model. The oldest goes where there are too many; false while it is empty.

    One protocol says nothing about another one: the same model may take tools over the one and not over the other.
    """

    __slots__ = ("_until", "keeps_s")

    def __init__(self, keeps_s: float = KEEPS_S) -> None:
        self.keeps_s = keeps_s
        self._until: dict[tuple[str, str | None, str], dict[Refusal, float]] = {}

    def note(self, card: ModelCard, refusal: Refusal, now: float) -> None:
        """Believes it from now on, or again from now on."""
        key = _key(card)
        held = self._until.pop(key, {})
        if len(self._until) >= MOST:
            self._until.pop(next(iter(self._until)), None)
        self._until[key] = held | {refusal: now + self.keeps_s}

    def refusals(self, card: ModelCard, now: float) -> frozenset[Refusal]:
        """What this model is known to refuse now; what has expired is forgotten."""
        held = self._until.get(key := _key(card))
        if held is None:
            return frozenset()
        current = frozenset(refusal for refusal, until in held.items() if now < until)
        if not current:
            self._until.pop(key, None)
        return current

    def forget(self, card: ModelCard) -> None:
        """As if nothing had ever been refused, for a server that was set up anew."""
        self._until.pop(_key(card), None)

    def __bool__(self) -> bool:
        return bool(self._until)

    def __repr__(self) -> str:
        return f"Learned({len(self._until)} of {MOST})"


def proven(error: ModelError, request: Request, body: bytes) -> Refusal | None:
    """What the failure of this request proves about its model; nothing, for most.

    An invalid schema, a failed call and the like are no proof, and neither are words that the request itself held:
    servers quote what they were sent, and nobody may switch the tools of others off by talking about it.
    """
    refusal = error.refuses
    if not refusal or error.started:
        return None
    if refusal == "tools" and not (request.offers or request.settings.search):
        return None
    small = body.lower()
    if any(word in small for word in _WORDS) and refused_by(body.decode("utf-8", "replace")):
        return None
    return refusal


def without_tools(request: Request) -> Request:
    """The request without tools, hosted search and tool choice, which go together; itself where it has none."""
    searches = request.settings.search is not None
    if not request.offers and request.choice == "auto" and not searches:
        return request
    settings = replace(request.settings, search=None) if searches else request.settings
    return replace(request, offers=(), choice="auto", settings=settings)


def _key(card: ModelCard) -> tuple[str, str | None, str]:
    return card.protocol, card.base_url, card.model
