"""Prices: what tokens of a model cost. The library knows none: they change, and yours may be other ones."""

from __future__ import annotations

from collections.abc import Mapping
from sys import float_info

from msgspec import Struct

from onrecord.conversation.usage import Usage
from onrecord.declared import Declared, declared
from onrecord.errors import ConfigurationError

__all__ = ("Price", "Prices")

MILLION = 1_000_000


class Price(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """US dollars for a million tokens of each sort.

    ``cached_input`` is what is read from the provider's cache, ``cache_write`` what is written to it; without a price
    of their own both cost what ``input`` does. ConfigurationError for a price that is negative or no number.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            given = getattr(self, name)
            if given is not None and not 0 <= given <= float_info.max:
                raise ConfigurationError(f"the price {name} is US dollars for a million tokens, from zero on")

    def usd(self, usage: Usage) -> float:
        """What so many tokens cost. Only what the provider counted is counted."""
        cached, written = usage.cached_input_tokens, usage.cache_write_tokens
        plain = max(0, usage.input_tokens - cached - written)
        dear = self.input if self.cache_write is None else self.cache_write
        cheap = self.input if self.cached_input is None else self.cached_input
        return (plain * self.input + cached * cheap + written * dear + usage.output_tokens * self.output) / MILLION


_VENDORS = {"openai-responses": "openai"}
"""Providers that are another wire of a vendor."""


def _fit(key: str, provider: str, model: str) -> tuple[int, int, str] | None:
    """How much of the model's name a key says, then how much of the provider's; None when it is of another model."""
    before = [f"{provider}:", f"{vendor}:" if (vendor := _VENDORS.get(provider)) else "", ""]
    fits = [(max(0, len(key) - len(p)), -at, key) for at, p in enumerate(before) if f"{p}{model}".startswith(key)]
    return max(fits, default=None)


@declared
class Prices:
    """Prices by model: ``Prices({"openai:gpt-5": Price(input=1.25, output=10)})``.

    A key is a name, or the beginning of one, with its provider or without. The one that says most of the model's name
    decides, so ``gpt-5-mini`` may stand beside ``gpt-5``, and ``gpt-5`` beside ``openai:``; among equals one with the
    provider does. The key ``""`` is for all others. A vendor charges the same on each of its wires, so what is said of
    ``openai`` holds for ``openai-responses`` unless that has keys of its own. ConfigurationError for an empty table,
    and for what is no `Price`.
    """

    def __init__(self, table: Mapping[str, Price]) -> None:
        held: object
        for name, held in table.items():
            if not isinstance(held, Price):
                raise ConfigurationError(
                    f"the price of {name!r} is a {type(held).__name__}", hint="Price(input=1.25, output=10.0)"
                )
        if not table:
            raise ConfigurationError("a table of prices is empty", hint='Prices({"openai:gpt-5": Price(...)})')
        self._table = dict(table)
        self._found: dict[tuple[str, str], Price | None] = {}

    def of(self, provider: str, model: str) -> Price | None:
        """The price of a model; None when there is none."""
        key = (provider, model)
        if key not in self._found:
            if len(self._found) > 1024:
                self._found.clear()
            fits = [fit for at in self._table if (fit := _fit(at, provider, model)) is not None]
            self._found[key] = self._table[max(fits)[-1]] if fits else None
        return self._found[key]

    def usd(self, provider: str, model: str, usage: Usage | None) -> float | None:
        """What a call cost; None when nobody counted, or no price is known."""
        price = None if usage is None else self.of(provider, model)
        return None if price is None or usage is None else price.usd(usage)

    def __repr__(self) -> str:
        return f"Prices({', '.join(map(repr, self._table))})"
