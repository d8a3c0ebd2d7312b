"""What models behind Responses can do, by rules over the beginnings of their names."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from onrecord.models.model import ModelCard

__all__ = ("OPENAI_URL", "PROTOCOL", "PROVIDER", "STEPS", "Dialect", "responses_card")

PROTOCOL = "openai-responses"
PROVIDER = "openai-responses"
OPENAI_URL = "https://api.openai.com/v1"
STEPS = 10
"""Requests that one answer may take, the one without tools at the end included."""

# Models newer than these rules reason, search and read images, as all of their makers' have for years: the rules name
# the older ones.
_PLAIN = re.compile(r"gpt-3\.5|gpt-4|chatgpt-4o|gpt-5(\.\d+)?-chat|computer-use")
_ALWAYS_THINKS = re.compile(r"o\d|codex|gpt-5(-(?!chat)|$)|gpt-5\.\d+-(codex|pro)")
_NO_SEARCH = re.compile(r"gpt-3\.5|gpt-4(?!o|\.1)|gpt-4\.1-nano|o1|o3-mini|computer-use")
_NO_IMAGES = re.compile(r"gpt-3\.5|gpt-4(-0|-1|-32k|$)|o1-mini|o1-preview|o3-mini")
_JSON_ONLY = re.compile(r"gpt-3\.5|gpt-4(-|$)")


class Dialect(Struct, frozen=True, kw_only=True):
    """How one server's Responses differs for one model.

    ``sealed``: reasoning comes back encrypted where it is asked for, and has to, since nothing is stored.
    ``can_rest``: the model can be told not to reason at all.
    """

    sealed: bool = False
    can_rest: bool = True


def responses_card(model: str, *, base_url: str = OPENAI_URL, provider: str = PROVIDER) -> tuple[ModelCard, Dialect]:
    """The card and the dialect of a model; of one that nobody has heard of, what newer models can do.

    ``provider`` other than the default means a server of somebody else: its reasoning is taken to come in the clear,
    and to run no search.
    """
    ours = provider == PROVIDER
    thinking: Literal["none", "adaptive"] = "none" if _PLAIN.match(model) else "adaptive"
    card = ModelCard(
        provider=provider,
        model=model,
        protocol=PROTOCOL,
        base_url=base_url,
        context_tokens=_context_tokens(model),
        images=_NO_IMAGES.match(model) is None,
        files=_NO_IMAGES.match(model) is None,
        audio=False,
        hosted_search=ours and _NO_SEARCH.match(model) is None,
        thinking=thinking,
        structured="json" if _JSON_ONLY.match(model) else "native",
        steps=STEPS,
        about="A model of OpenAI's, over its Responses service." if ours else "A model behind a server of Responses.",
    )
    return card, Dialect(sealed=ours and thinking != "none", can_rest=_ALWAYS_THINKS.match(model) is None)


def _context_tokens(model: str) -> int | None:
    for rule, tokens in _CONTEXTS:
        if rule.match(model):
            return tokens
    return None


_CONTEXTS = tuple(
    (re.compile(rule), tokens)
    for rule, tokens in (
        (r"gpt-5(\.\d+)?-chat", 128_000),
        (r"gpt-5(\.[0-3])?(-|$)|gpt-5\.\d-(mini|nano)", 400_000),
        (r"gpt-5\.[45](-|$)", 1_050_000),
        (r"gpt-4\.1", 1_047_576),
        (r"gpt-4o|chatgpt-4o|gpt-4-turbo|gpt-4-1|gpt-4-0125", 128_000),
        (r"gpt-4-32k", 32_768),
        (r"gpt-4(-|$)", 8_192),
        (r"gpt-3\.5", 16_385),
        (r"o1-(mini|preview)", 128_000),
        (r"o[134](-|$)|codex", 200_000),
    )
)
"""Windows that are known; newer models are not guessed at."""
