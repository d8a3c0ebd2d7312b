"""What Google's models can do, told from their names."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.providers.google import Dialect, google_card
from onrecord.providers.google.thinking_levels import thinking_config, why_not_thinking

pytestmark = pytest.mark.unit

ALL = ("minimal", "low", "medium", "high")
OLD = Dialect(stops_thinking=True)
MILLION = 1_048_576

CARDS: dict[str, tuple[dict[str, Any], Dialect]] = {
    "gemini-1.5-pro": (
        {"thinking": "none", "hosted_search": False, "context_tokens": 2 * MILLION, "output_tokens": 8_192},
        Dialect(),
    ),
    "gemini-1.0-pro": ({"context_tokens": 32_768, "output_tokens": 8_192, "hosted_search": False}, Dialect()),
    "gemini-2.0-flash": (
        {"thinking": "none", "hosted_search": True, "context_tokens": MILLION, "output_tokens": 8_192}, OLD,
    ),
    "gemini-2.0-flash-lite": ({"hosted_search": False}, OLD),
    "gemini-2.5-pro": (
        {"thinking": "budget", "hosted_search": True, "output_tokens": 65_536, "structured_with_tools": False},
        Dialect(budget=(128, 32_768), fetches=True),
    ),
    "gemini-2.5-flash": (
        {"thinking": "budget", "audio": True, "files": True},
        Dialect(budget=(1, 24_576), stops_thinking=True, fetches=True),
    ),
    "gemini-2.5-flash-lite": (
        {"thinking": "budget", "hosted_search": True},
        Dialect(budget=(512, 24_576), stops_thinking=True, fetches=True),
    ),
    "gemini-2.5-flash-image": (
        {"tools": False, "structured": "prompt", "audio": False, "thinking": "none", "hosted_search": False},
        Dialect(stops_thinking=True, fetches=True),
    ),
}  # fmt: skip
THIRD = {"thinking": "adaptive", "structured": "native", "structured_with_tools": True, "hosted_search": True}
LEVELS = {
    "gemini-3-pro-preview": ("low", "high"),
    "gemini-3.1-pro-preview": ALL[1:],
    "gemini-3-flash-preview": ALL,
    "gemini-3.6-flash": ALL,
    "gemini-3.7-flash": ALL[1:],
    "gemini-3.8-flash": ALL[1:],
    "gemini-3.1-flash-lite": ALL,
    "models/gemini-3.8-flash": ALL[1:],
    "gemini-flash-latest": ALL[1:],
    "gemini-pro-latest": ALL[1:],
    "gemini-4.2-ultra": ALL[1:],
    "gemini-12-flash": ALL[1:],
}


@pytest.mark.parametrize("name", CARDS)
def test_models_before_the_third_generation(name: str) -> None:
    """A schema never goes beside their tools, and their calls need no signature."""
    card, dialect = google_card(name)
    expected, generation = CARDS[name]
    assert {field: getattr(card, field) for field in expected} == expected
    assert dialect == generation
    assert not card.structured_with_tools
    assert (card.provider, card.model, card.name) == ("google", name, f"google:{name}")


@pytest.mark.parametrize("name", LEVELS)
def test_models_since_the_third_generation(name: str) -> None:
    """They think by levels, sign their calls, and take everything beside everything; newer ones are taken to."""
    card, dialect = google_card(name)
    assert {field: getattr(card, field) for field in THIRD} == THIRD
    assert (card.context_tokens, card.output_tokens) == (MILLION, 65_536)
    assert dialect == Dialect(
        levels=LEVELS[name], signs=True, results_hold_media=True, fetches=True, search_with_tools=True
    )


def test_an_unknown_name_gets_little() -> None:
    """What every model on this wire can do, so that nothing is sent that it may refuse."""
    card, dialect = google_card("tunedModels/hotel-7")
    assert (card.thinking, card.hosted_search, card.structured_with_tools, card.tools) == ("none", False, False, True)
    assert dialect == OLD


def test_open_models_take_neither_instructions_nor_tools() -> None:
    """Gemma: on the same endpoint, with much less."""
    card, dialect = google_card("gemma-3-27b-it")
    assert (card.tools, card.structured, card.files, card.audio, card.images) == (False, "prompt", False, False, True)
    assert dialect == Dialect(system=False)
    assert not google_card("gemma-3-1b-it")[0].images


# ---- thinking ---------------------------------------------------------------------------------------------------

PRO, FLASH, LITE = (google_card(f"gemini-2.5-{kind}")[1] for kind in ("pro", "flash", "flash-lite"))
THREE, FLASH_3 = google_card("gemini-3-pro-preview")[1], google_card("gemini-3-flash-preview")[1]


@pytest.mark.parametrize(
    ("asked", "dialect", "config"),
    [
        ("high", THREE, {"includeThoughts": True, "thinkingLevel": "high"}),
        ("auto", THREE, {"includeThoughts": True}),
        (-1, THREE, {"includeThoughts": True}),
        (1, FLASH_3, {"includeThoughts": True, "thinkingLevel": "minimal"}),
        (2_000, FLASH_3, {"includeThoughts": True, "thinkingLevel": "medium"}),
        (2_000, THREE, {"includeThoughts": True, "thinkingLevel": "high"}),
        (99_999, FLASH_3, {"includeThoughts": True, "thinkingLevel": "high"}),
        (2_000, PRO, {"includeThoughts": True, "thinkingBudget": 2_000}),
        ("auto", PRO, {"includeThoughts": True, "thinkingBudget": -1}),
        ("medium", PRO, {"includeThoughts": True, "thinkingBudget": 8_192}),
        ("minimal", LITE, {"includeThoughts": True, "thinkingBudget": 1_024}),
        ("none", FLASH, {"thinkingBudget": 0}),
        (0, LITE, {"thinkingBudget": 0}),
        ("off", OLD, None),
    ],
)
def test_thinking_is_asked_for_as_the_model_takes_it(asked: str | int, dialect: Dialect, config: Any) -> None:
    """Levels or tokens; each stands for the other as Google itself reckons them."""
    assert why_not_thinking(asked, dialect) == ""
    assert thinking_config(asked, dialect) == config


@pytest.mark.parametrize(
    ("asked", "dialect", "why"),
    [
        ("none", THREE, "always thinks"),
        (0, PRO, "always thinks"),
        ("minimal", THREE, "takes low, high"),
        ("xhigh", FLASH_3, "takes minimal, low, medium, high"),
        ("xhigh", PRO, "takes minimal, low, medium, high"),
        (64, PRO, "takes 128 to 32768 tokens"),
        (40_000, FLASH, "takes 1 to 24576 tokens"),
        (-7, THREE, "takes a number of tokens above 0"),
        ("low", OLD, "has none"),
        (100, OLD, "has none"),
    ],
)
def test_thinking_that_a_model_cannot_be_asked_for(asked: str | int, dialect: Dialect, why: str) -> None:
    """Named with what it takes instead."""
    assert why_not_thinking(asked, dialect) == why
