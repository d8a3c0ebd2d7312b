"""Messages: what is known of a model by its name."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.providers.anthropic.cards import Rules, ThinkingMode, anthropic_card, rules_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-2.1", "none"),
        ("claude-instant-1.2", "none"),
        ("claude-3-opus-20240229", "none"),
        ("claude-3-5-haiku-latest", "none"),
        ("claude-3-5-sonnet-20241022", "none"),
        ("claude-3-7-sonnet-20250219", "budget"),
        ("claude-opus-4-20250514", "budget"),
        ("claude-sonnet-4-0", "budget"),
        ("claude-opus-4-1-20250805", "budget"),
        ("claude-haiku-4-5-20251001", "budget"),
        ("claude-opus-4-6", "budget"),
        ("anthropic/claude-4.5-sonnet", "budget"),
        ("us.anthropic.claude-sonnet-4-6-v1:0", "budget"),
        ("claude-opus-4-7", "adaptive"),
        ("claude-opus-4-8@20260601", "adaptive"),
        ("claude-mythos-preview", "adaptive"),
        ("claude-sonnet-5", "adaptive"),
        ("claude-fable-5-1", "adaptive"),
        ("claude-haiku-12-3", "adaptive"),
        ("claude-latest", "adaptive"),
        ("my-alias", "adaptive"),
    ],
)
def test_138_how_a_model_thinks_is_told_by_its_name(model: str, thinking: str) -> None:
    """None before 3.7, by budget up to 4.6, adaptively since, and so every name that nobody knows."""
    assert anthropic_card(model).thinking == thinking
    modes: tuple[ThinkingMode, ...] = ("none", "budget", "adaptive")
    for told in modes:
        assert anthropic_card(model, thinking=told).thinking == told


@pytest.mark.parametrize(
    ("model", "context", "output", "search"),
    [
        ("claude-3-haiku-20240307", 200_000, 4_096, False),
        ("claude-3-5-haiku-latest", 200_000, 8_192, True),
        ("claude-opus-4-1", 200_000, 32_000, True),
        ("claude-sonnet-4-5", 200_000, 64_000, True),
        ("claude-opus-4-6", 1_000_000, 128_000, True),
        ("claude-sonnet-4-6", 1_000_000, 64_000, True),
        ("claude-opus-5-5", 1_000_000, 128_000, True),
        ("glm-4.6", None, None, False),
    ],
)
def test_limits_are_told_by_the_name(model: str, context: int | None, output: int | None, search: bool) -> None:
    """Of other vendors' models none are known."""
    card = anthropic_card(model)
    assert (card.context_tokens, card.output_tokens, card.hosted_search) == (context, output, search)
    assert (card.images, card.files, card.audio, card.tools, card.needs_tools_with_calls) == (
        True, model != "claude-3-haiku-20240307", False, True, True,
    )  # fmt: skip
    assert card.structured == "prompt"
    assert anthropic_card(model, structured="native").structured == "native"


@pytest.mark.parametrize(
    ("model", "rules"),
    [
        ("claude-sonnet-4-0", {}),
        ("claude-sonnet-4-5", {"both": False}),
        ("claude-opus-4-7", {"sampling": False}),
        ("claude-opus-5", {"sampling": False, "off": "disabled"}),
        ("claude-fable-5", {"sampling": False, "off": "never"}),
        ("claude-mythos-preview", {"sampling": False, "off": "never"}),
        ("claude-fable-5-1", {"sampling": False, "off": "never", "forced": False, "binds": True}),
        ("claude-opus-5-5", {"sampling": False, "off": "never", "forced": False, "binds": True}),
        ("claude-sonnet-5-5", {"sampling": False, "off": "between_tools", "forced": False, "binds": True}),
        ("claude-haiku-5-5", {"sampling": False, "off": "disabled", "forced": False, "binds": True}),
        ("claude-latest", {}),
        ("my-alias", {}),
        ("z-ai/glm-4.6", {"off": "disabled", "on": "enabled", "quiet": True}),
    ],
)
def test_what_a_model_refuses_is_told_by_its_name(model: str, rules: dict[str, Any]) -> None:
    """Nothing, where the name says nothing: its service will."""
    assert rules_of(model) == Rules(**rules)
