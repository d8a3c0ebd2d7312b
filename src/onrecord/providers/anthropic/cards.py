"""What models behind the Messages protocol can do, by rules over their names; a name that no rule knows is new."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from onrecord.models.model import ModelCard
from onrecord.models.written_forms import Names

__all__ = ("ANTHROPIC_URL", "NAMES", "PROTOCOL", "Rules", "Structured", "ThinkingMode", "anthropic_card", "rules_of")

PROTOCOL = "anthropic-messages"
ANTHROPIC_URL = "https://api.anthropic.com/v1"

NAMES = Names(most=128)

ThinkingMode = Literal["none", "budget", "adaptive"]
Structured = Literal["prompt", "native"]

_Version = tuple[int, int]
_UNREAD: _Version = (99, 0)

_NAMED = re.compile(r"claude-([a-z]+)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_NUMBERED = re.compile(r"claude-(\d)(?:[-.](\d{1,2}))?(?!\d)")
_BEFORE_NUMBERS = re.compile(r"claude-(instant|v\d)")
_ALWAYS_THINK = frozenset({"fable", "mythos"})


class Rules(Struct, frozen=True, kw_only=True):
    """What a model of this protocol refuses, beyond its card.

    ``sampling`` is whether it can be told how to sample, ``both`` whether by temperature and ``top_p`` at once;
    ``forced`` whether a tool can be insisted on. ``off`` is what turns thinking off: ``omit`` (it is off unless asked
    for), a type of thinking that is sent, or ``never``. ``on`` is the type that asks for it. ``binds``: a thinking
    block is tied to all that came before it, and a request that shows something else there says that such blocks may
    be dropped. ``quiet``: it thinks unless told otherwise, and is told otherwise unless asked to.
    """

    sampling: bool = True
    both: bool = True
    forced: bool = True
    off: Literal["omit", "disabled", "between_tools", "never"] = "omit"
    on: Literal["adaptive", "enabled"] = "adaptive"
    binds: bool = False
    quiet: bool = False


def anthropic_card(
    model: str,
    *,
    base_url: str = ANTHROPIC_URL,
    provider: str = "anthropic",
    thinking: ThinkingMode | None = None,
    structured: Structured = "prompt",
) -> ModelCard:
    """The card of a model of Anthropic's, or of another vendor's behind the same protocol.

    ``thinking`` overrides the rule for this one name: an alias, say, or a model that has both modes.
    """
    claude, version = _family(model)
    known = claude != ""
    return ModelCard(
        provider=provider,
        model=model,
        protocol=PROTOCOL,
        base_url=base_url,
        context_tokens=_context_tokens(version) if known else None,
        output_tokens=_output_tokens(claude, version) if known else None,
        images=not known or version >= (3, 0),
        files=not known or version >= (3, 5),
        hosted_search=known and version >= (3, 5),
        thinking=thinking or _thinking(claude, version),
        least_thinking=1024,
        structured=structured,
        # Claude itself has taken calls without definitions since 2025-02-27; other servers of this protocol may not.
        needs_tools_with_calls=True,
        cache_marks=True,
        about="A model of Anthropic's, over its Messages service."
        if known
        else "A model behind the Messages protocol.",
    )


def rules_of(model: str) -> Rules:
    """What a model refuses; nothing of a Claude whose number cannot be read, since its service will say."""
    claude, version = _family(model)
    if not claude:
        if model.lower().rpartition("/")[2].startswith("glm"):
            return Rules(off="disabled", on="enabled", quiet=True)
        return Rules()
    if version == _UNREAD:
        return Rules()
    if version < (4, 7):
        return Rules(both=version < (4, 1))
    always = claude in _ALWAYS_THINK
    off: Literal["omit", "disabled", "between_tools", "never"] = "omit"
    if always or (claude == "opus" and version >= (5, 5)):
        off = "never"
    elif claude == "sonnet" and version >= (5, 5):
        off = "between_tools"
    elif version >= (5, 0):
        off = "disabled"
    bound = version >= ((5, 1) if always else (5, 5))
    return Rules(sampling=False, forced=not bound, off=off, binds=bound)


def _family(model: str) -> tuple[str, _Version]:
    """Which line of Claude a name belongs to, and its version; ``""`` for a name of another vendor's.

    A Claude whose number cannot be read is newer than all that can.
    """
    name = model.lower()
    if found := _NUMBERED.search(name):
        family = next((one for one in ("opus", "sonnet", "haiku") if one in name), "claude")
        return family, (int(found[1]), int(found[2] or 0))
    if found := _NAMED.search(name):
        return found[1], (int(found[2]), int(found[3] or 0))
    if _BEFORE_NUMBERS.search(name):
        return "claude", (1, 0)
    if "mythos-preview" in name:
        return "mythos", (5, 0)
    return ("claude", _UNREAD) if "claude" in name else ("", (0, 0))


def _thinking(claude: str, version: _Version) -> ThinkingMode:
    if not claude or version >= (4, 7):
        return "adaptive"
    return "budget" if version >= (3, 7) else "none"


def _context_tokens(version: _Version) -> int:
    if version < (3, 0):
        return 100_000
    return 200_000 if version < (4, 6) else 1_000_000


def _output_tokens(claude: str, version: _Version) -> int:
    if version < (3, 5):
        return 4_096
    if version < (3, 7):
        return 8_192
    if version < (4, 5):
        return 32_000 if claude == "opus" else 64_000
    return 128_000 if version >= (4, 7) or (claude, version) == ("opus", (4, 6)) else 64_000
