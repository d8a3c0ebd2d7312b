"""What models behind the Chat Completions protocol can do, and how their vendors' dialects of it differ."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from onrecord.jsonio import Json
from onrecord.models.model import ModelCard

__all__ = ("OPENAI_URL", "PROTOCOL", "Dialect", "openai_card")

PROTOCOL = "openai-chat"
OPENAI_URL = "https://api.openai.com/v1"

# Reasoning models count and cap hidden tokens too, and refuse the older field.
_REASONING = re.compile(r"(o\d|gpt-5|gpt-6|codex)")
_CHAT_VARIANT = re.compile(r"gpt-5(\.\d)?-chat")
# These search before each answer; others search over the Responses service only.
_SEARCHES = re.compile(r".*-search-(preview|api)")


class Dialect(Struct, frozen=True, kw_only=True):
    """How one vendor's Chat Completions differs from the plain protocol.

    ``cap`` and ``seed`` are the fields for the output cap and the seed. ``thinking`` is how reasoning is asked for:
    ``effort`` (a field ``reasoning_effort``), ``reasoning`` (an object with effort or budget), ``switch`` (an object
    that turns it on and off), ``switch_effort`` (both the object and the field), or None for not at all; ``quiet``
    turns it off where a request does not ask, for vendors whose models otherwise think. ``forces`` is whether a tool
    call can be demanded. ``search`` holds the fields that ask for hosted search; its ``tools`` go behind the
    request's own. ``keeps`` names the extra fields of a reply that the vendor wants back, ``keeps_all`` whether also
    from replies without tool calls. ``developer`` is whether that role is known; ``one_system`` whether a single
    system message, at the start, is all that its chat templates take; ``usage`` whether token counts have to be asked
    for.
    """

    cap: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    seed: Literal["seed", "random_seed"] = "seed"
    thinking: Literal["effort", "reasoning", "switch", "switch_effort"] | None = "effort"
    quiet: bool = False
    forces: bool = True
    search: Mapping[str, Json] = {}
    keeps: tuple[str, ...] = ()
    keeps_all: bool = False
    developer: bool = False
    one_system: bool = False
    usage: bool = True


def openai_card(model: str, *, base_url: str = OPENAI_URL) -> tuple[ModelCard, Dialect]:
    """The card and the dialect of a model of OpenAI's own service."""
    chats = _CHAT_VARIANT.match(model) is not None
    searches = _SEARCHES.match(model) is not None
    reasons = _REASONING.match(model) is not None and not chats and not searches
    card = ModelCard(
        provider="openai",
        model=model,
        protocol=PROTOCOL,
        base_url=base_url,
        context_tokens=128_000 if chats else _context_tokens(model),
        audio="audio" in model,
        hosted_search=searches,
        thinking="adaptive" if reasons else "none",
        structured="json" if model.startswith(("gpt-3.5", "gpt-4-turbo")) or model == "gpt-4" else "native",
        about="A model of OpenAI's, over its Chat Completions service.",
    )
    cap: Literal["max_tokens", "max_completion_tokens"] = "max_completion_tokens"
    if model.startswith(("gpt-3.5", "gpt-4", "chatgpt-4o")):
        cap = "max_tokens"
    search: Mapping[str, Json] = {"web_search_options": {}} if searches else {}
    return card, Dialect(cap=cap, thinking="effort" if reasons else None, developer=True, search=search)


def _context_tokens(model: str) -> int | None:
    for prefix, tokens in _CONTEXTS:
        if model.startswith(prefix):
            return tokens
    return None


_CONTEXTS = (
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4", 8_192),
    ("gpt-3.5", 16_385),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4", 200_000),
)
