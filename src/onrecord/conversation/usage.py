"""What a model call cost, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

__all__ = ("FINISHES", "ModelUse", "Usage", "counted", "total")

FINISHES = ("stop", "length", "calls", "content", "refusal", "unknown")
"""How a reply ends: done, cut at the output cap, asking for tools, filtered, refused, not said."""


_MOST = 2**53


def counted(told: float | None) -> int:
    """A count as a provider tells it, a float now and then, kept to what can be one: 0 to 2**53."""
    return int(min(max(told, 0), _MOST)) if told else 0


class Usage(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Tokens counted by the provider.

    ``input_tokens`` includes those that were read from the provider's cache and those that were written to it,
    ``output_tokens`` the reasoning.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
        )


def total(of: Iterable[Usage]) -> Usage | None:
    """The sum; None of nothing."""
    held = tuple(of)
    return sum(held[1:], held[0]) if held else None


class ModelUse(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Which model really answered, in which scope, at what cost. ``usage`` is None when nobody counted."""

    provider: str
    model: str
    scope: str = ""
    usage: Usage | None = None
    finish: str = "stop"
    latency_ms: int = 0
