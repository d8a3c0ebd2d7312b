"""Prices: which one a model has, and what a call costs."""

from __future__ import annotations

import math

import pytest

from onrecord.conversation.usage import Usage
from onrecord.errors import ConfigurationError
from onrecord.models.prices import Price, Prices

pytestmark = pytest.mark.unit

PRICE = Price(input=1.0, output=10.0, cached_input=0.1, cache_write=1.25)


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        (Usage(input_tokens=1_000_000), 1.0),
        (Usage(output_tokens=1_000_000), 10.0),
        (Usage(input_tokens=1_000_000, cached_input_tokens=1_000_000), 0.1),
        (Usage(input_tokens=1_000_000, cache_write_tokens=1_000_000), 1.25),
        (Usage(input_tokens=1_000_000, cached_input_tokens=400_000, cache_write_tokens=200_000), 0.4 + 0.04 + 0.25),
        (Usage(input_tokens=1000, output_tokens=500, reasoning_tokens=400), 0.006),
        (Usage(), 0.0),
    ],
)
def test_what_a_call_costs_by_the_sorts_of_its_tokens(usage: Usage, usd: float) -> None:
    """Dollars for a million; reasoning is part of the output, cached tokens of the input."""
    assert PRICE.usd(usage) == pytest.approx(usd)


def test_cached_tokens_cost_what_others_do_where_no_price_of_theirs_is_given() -> None:
    """Nothing is made up."""
    usage = Usage(input_tokens=3_000_000, cached_input_tokens=1_000_000, cache_write_tokens=1_000_000)
    assert Price(input=2.0, output=0.0).usd(usage) == 6.0


def test_counts_that_contradict_each_other_never_give_money_back() -> None:
    """More cached than there was input."""
    assert PRICE.usd(Usage(input_tokens=0, cached_input_tokens=1_000_000)) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("provider", "model", "key"),
    [
        ("openai", "gpt-5-2026-08-07", "gpt-5"),
        ("openai", "gpt-5-mini", "gpt-5-mini"),
        ("azure", "gpt-5", "azure:gpt-5"),
        ("openrouter", "acme/large", "openrouter:acme/"),
        ("ollama", "qwen3:8b", ""),
    ],
)
def test_the_longest_key_that_a_name_begins_with_decides(provider: str, model: str, key: str) -> None:
    """With the provider or without; the empty one is for all others."""
    keys = ("gpt-5", "gpt-5-mini", "azure:gpt-5", "openrouter:acme/", "")
    prices = {name: Price(input=float(at), output=0.0) for at, name in enumerate(keys)}
    assert Prices(prices).of(provider, model) is prices[key]


@pytest.mark.parametrize(
    ("provider", "model", "key"),
    [
        ("openai-responses", "gpt-5", "openai:gpt-5"),
        ("openai-responses", "gpt-6", "openai-responses:gpt-6"),
        ("openai-responses", "gpt-4.1", "openai:"),
        ("openai", "gpt-6-mini", "gpt-6-mini"),
        ("openai", "gpt-6", "openai:"),
        ("azure", "gpt-5", None),
    ],
)
def test_a_vendor_charges_the_same_on_each_of_its_wires(provider: str, model: str, key: str | None) -> None:
    """A key that says more of the model comes first, then one with the provider's own name, then its vendor's."""
    keys = ("openai:", "openai:gpt-5", "gpt-6-mini", "openai-responses:gpt-6")
    prices = {name: Price(input=float(at), output=0.0) for at, name in enumerate(keys)}
    found = Prices(prices).of(provider, model)
    assert found is (None if key is None else prices[key])


def test_a_model_without_a_price_costs_nobody_knows_what() -> None:
    """Nor does a call that nobody counted."""
    prices = Prices({"gpt-5": PRICE})
    assert prices.of("acme", "m") is None
    assert prices.usd("acme", "m", Usage(input_tokens=1)) is None
    assert prices.usd("openai", "gpt-5", None) is None
    assert prices.usd("openai", "gpt-5", Usage(input_tokens=1_000_000)) == 1.0
    assert repr(prices) == "Prices('gpt-5')"


def test_many_names_do_not_fill_the_memory() -> None:
    """A gateway may report thousands."""
    prices = Prices({"": PRICE})
    for n in range(3000):
        prices.of("gateway", f"m{n}")
    assert len(prices._found) <= 1025


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["input", "output", "cached_input", "cache_write"])
def test_what_is_no_price_is_refused(name: str, bad: float) -> None:
    """Negative, or no number."""
    with pytest.raises(ConfigurationError, match=name):
        Price(**{"input": 1.0, "output": 1.0, name: bad})


def test_what_is_no_table_is_refused() -> None:
    """An empty one, and one of numbers."""
    with pytest.raises(ConfigurationError, match="empty"):
        Prices({})
    with pytest.raises(ConfigurationError, match="'gpt-5' is a float"):
        Prices({"gpt-5": 1.25})  # type: ignore[dict-item]  # no price
