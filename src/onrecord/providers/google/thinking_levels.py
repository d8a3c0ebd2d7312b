"""How much a model is asked to think: levels since the third generation, tokens before."""

from __future__ import annotations

from onrecord.jsonio import Json
from onrecord.providers.google.cards import Dialect

__all__ = ("thinking_config", "why_not_thinking")

_OFF = frozenset({"none", "off", 0})
_AUTO = frozenset({"auto", -1})
_TOKENS = {"minimal": 1_024, "low": 1_024, "medium": 8_192, "high": 24_576}
"""What Google itself makes of an effort where a model goes by tokens (its OpenAI-compatible endpoint)."""


def why_not_thinking(asked: str | int, dialect: Dialect) -> str:
    """Why a model cannot be asked to think so; empty when it can."""
    if asked in _OFF:
        thinks = dialect.levels or dialect.budget
        return "always thinks" if thinks and not dialect.stops_thinking else ""
    if not dialect.levels and dialect.budget is None:
        return "has none"
    if asked in _AUTO:
        return ""
    if isinstance(asked, str):
        known = dialect.levels or tuple(_TOKENS)
        return "" if asked in known else f"takes {', '.join(known)}"
    if dialect.budget is None:
        return "" if asked > 0 else "takes a number of tokens above 0"
    low, high = dialect.budget
    return "" if low <= asked <= high else f"takes {low} to {high} tokens"


def thinking_config(asked: str | int, dialect: Dialect) -> dict[str, Json] | None:
    """The field for it; None where there is nothing to say. What is thought comes along in words, unless turned off."""
    if asked in _OFF:
        return {"thinkingBudget": 0} if dialect.budget else None
    config: dict[str, Json] = {"includeThoughts": True}
    if dialect.levels:
        if asked not in _AUTO:
            config["thinkingLevel"] = asked if isinstance(asked, str) else _level(asked, dialect.levels)
    elif dialect.budget is not None:
        low, high = dialect.budget
        tokens = _TOKENS.get(asked, low) if isinstance(asked, str) else asked
        config["thinkingBudget"] = -1 if asked in _AUTO else min(max(tokens, low), high)
    return config


def _level(tokens: int, levels: tuple[str, ...]) -> str:
    """The least level that stands for so many tokens, as Google reckons them."""
    return next((level for level in levels if tokens <= _TOKENS[level]), levels[-1])
