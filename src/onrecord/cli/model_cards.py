"""What a model can do, from its card: in the columns of a table, and in words."""

from __future__ import annotations

from collections.abc import Sequence

from onrecord.models.model import ModelCard

__all__ = ("HEADINGS", "abilities", "in_columns", "in_words", "table")

HEADINGS = ("images", "audio", "files", "tools", "schema", "with tools", "search", "thinking")

_SCHEMA = {
    "native": "typed output is enforced by JSON Schema",
    "json": "typed output: JSON is enforced, its schema stands in the prompt",
    "prompt": "typed output: its schema stands in the prompt, nothing is enforced",
}
_THINKING = {
    "none": "no reasoning that can be asked for",
    "budget": "reasoning, with a budget in tokens",
    "adaptive": "reasoning, by effort",
}


def abilities(card: ModelCard) -> dict[str, bool | str]:
    """Each heading with what the card says under it, as JSON shows it."""
    beside = card.tools and (card.structured_with_tools or card.structured == "prompt")  # a prompt goes with anything
    values = (
        card.images, card.audio, card.files, card.tools, card.structured, beside, card.tools and card.hosted_search,
        card.thinking,
    )  # fmt: skip
    return {name.replace(" ", "_"): value for name, value in zip(HEADINGS, values, strict=True)}


def in_columns(card: ModelCard) -> list[str]:
    """A cell for each heading; what a model has not is a dash."""
    said = {True: "yes", False: "-", "none": "-"}
    return [said.get(value, str(value)) for value in abilities(card).values()]


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def in_words(card: ModelCard) -> list[str]:
    """The card in sentences, one a line."""
    media = [name for name, has in (("images", card.images), ("audio", card.audio), ("files", card.files)) if has]
    lines = [card.about] if card.about else []
    lines.append(f"speaks {card.protocol}" + (f", at {card.base_url}" if card.base_url else ""))
    if card.context_tokens:
        lines.append(f"reads up to {card.context_tokens:,} tokens")
    if card.output_tokens:
        lines.append(f"writes up to {card.output_tokens:,} tokens")
    lines.append(f"reads text{', ' + ', '.join(media) if media else ' only'}")
    if not card.arrays:
        lines.append("takes each message as one string: media is left out")
    lines.append("calls tools" if card.tools else "takes no tools, and no search of its provider")
    if card.tools and card.hosted_search:
        lines.append("searches the web itself, when asked to (search=True)")
    lines.append(_SCHEMA[card.structured])
    if card.tools and card.structured != "prompt" and not card.structured_with_tools:
        lines.append("beside tools, the schema stands in the prompt")
    least = f" of at least {card.least_thinking:,}" if card.thinking == "budget" and card.least_thinking > 1 else ""
    lines.append(_THINKING[card.thinking] + least)
    if card.honest:
        lines.append(card.honest)
    return lines
