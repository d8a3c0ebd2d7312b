"""What Google's models can do, by their names, and how their generations differ on the wire."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from onrecord.models.model import ModelCard

__all__ = ("GOOGLE_URL", "PROTOCOL", "Dialect", "google_card")

PROTOCOL = "google-generate-content"
GOOGLE_URL = "https://generativelanguage.googleapis.com/v1beta"

_NEWEST = (99, 0)
"""The generation of a name that says none, such as ``gemini-flash-latest``: the newest there is."""
_NAME = re.compile(r"gemini-(?:(\d{1,3})(?:\.(\d{1,3}))?(?=-|$))?")
_LEVELS = ("minimal", "low", "medium", "high")


class Dialect(Struct, frozen=True, kw_only=True):
    """What a model's generation takes beside what its card says.

    ``levels`` are the words for how much it thinks; ``budget`` the least and the most tokens that it can be given for
    thinking instead, where it goes by those. ``stops_thinking``: thinking can be turned off. ``signs``: an earlier
    call needs a signature to be taken back. ``results_hold_media``: images and documents may stand in a result.
    ``fetches``: media may be https addresses. ``search_with_tools``: the provider's search goes beside function
    tools. ``system``: there is a place for instructions.
    """

    levels: tuple[str, ...] = ()
    budget: tuple[int, int] | None = None
    stops_thinking: bool = False
    signs: bool = False
    results_hold_media: bool = False
    fetches: bool = False
    search_with_tools: bool = False
    system: bool = True


def google_card(model: str, *, base_url: str = GOOGLE_URL) -> tuple[ModelCard, Dialect]:
    """The card and the dialect of a model by its name; an unknown name gets what every Gemini since 2.0 can do.

    A generation newer than any known one is taken to be like the newest. ``models/`` in front of a name says nothing.
    """
    name = model.removeprefix("models/").lower()
    if name.startswith("gemma-"):
        return _gemma(model, name, base_url)
    found = _NAME.match(name)
    generation = (2, 0)
    if found is not None:
        generation = (int(found[1]), int(found[2] or 0)) if found[1] else _NEWEST
    draws = "-image" in name
    if generation >= (3, 0):
        dialect = _third(name, generation, draws=draws)
    else:
        dialect = Dialect(
            budget=_budget(name) if generation >= (2, 5) and not draws else None,
            stops_thinking="pro" not in name,
            fetches=generation >= (2, 5),
        )
    thinking: Literal["none", "budget", "adaptive"] = "none"
    if dialect.levels or dialect.budget:
        thinking = "adaptive" if dialect.levels else "budget"
    context, output = _limits(name, generation, draws=draws)
    searches = generation >= (3, 0) or (
        generation >= (2, 0) and not draws and not name.startswith("gemini-2.0-flash-lite")
    )
    card = ModelCard(
        provider="google",
        model=model,
        protocol=PROTOCOL,
        base_url=base_url,
        context_tokens=context,
        output_tokens=output,
        audio=not draws,
        files=not draws or generation >= (3, 0),
        tools=not draws,
        hosted_search=found is not None and searches,
        thinking=thinking,
        least_thinking=dialect.budget[0] if dialect.budget else 1,
        structured="prompt" if draws else "native",
        structured_with_tools=generation >= (3, 0),
        about="A model of Google's, over its Gemini API.",
    )
    return card, dialect


def _third(name: str, generation: tuple[int, int], *, draws: bool) -> Dialect:
    """The third generation, and whatever comes after it."""
    levels: tuple[str, ...] = _LEVELS[1:]
    if "pro" in name:
        levels = ("low", "high") if generation == (3, 0) else levels
    elif "lite" in name or generation < (3, 7):
        levels = _LEVELS
    return Dialect(
        levels=() if draws else levels,
        signs=True,
        results_hold_media=True,
        fetches=True,
        search_with_tools=True,
    )


def _budget(name: str) -> tuple[int, int]:
    if "pro" in name:
        return 128, 32_768
    return (512, 24_576) if "lite" in name else (1, 24_576)


def _limits(name: str, generation: tuple[int, int], *, draws: bool) -> tuple[int, int]:
    if draws:
        return (65_536, 32_768) if generation >= (3, 0) else (32_768, 32_768)
    if generation < (1, 5):
        return 32_768, 8_192
    if generation < (2, 5):
        return (2_097_152 if name.startswith("gemini-1.5-pro") else 1_048_576), 8_192
    return 1_048_576, 65_536


def _gemma(model: str, name: str, base_url: str) -> tuple[ModelCard, Dialect]:
    """Open models on the same endpoint: no instructions of their own, no tools, no schema."""
    small = "-1b" in name or name.startswith("gemma-3n")
    card = ModelCard(
        provider="google",
        model=model,
        protocol=PROTOCOL,
        base_url=base_url,
        context_tokens=32_768 if small else 131_072,
        output_tokens=8_192,
        images="-1b" not in name,
        files=False,
        tools=False,
        structured="prompt",
        structured_with_tools=False,
        about="An open model of Google's, over its Gemini API.",
    )
    return card, Dialect(system=False)
