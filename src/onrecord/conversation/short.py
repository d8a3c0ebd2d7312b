"""Texts in few words: in one line, cut to a length, in quotation marks, counted."""

from __future__ import annotations

__all__ = ("clipped", "cut", "plural", "quoted")


def cut(text: str, limit: int) -> str:
    """The text in one line of at most ``limit`` characters; 0 is no limit."""
    flat = " ".join(text.split())
    return flat if limit <= 0 or len(flat) <= limit else f"{flat[: max(limit - 1, 1)].rstrip()}…"


def clipped(text: str, limit: int) -> str:
    """The first ``limit`` characters of a text, whose lines stay; the last of them tells that there are more."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def quoted(text: str, limit: int = 0) -> str:
    """The text in one line, in quotation marks."""
    return f"“{cut(text, limit)}”"


def plural(count: int, word: str, many: str = "") -> str:
    """``1 entry``, ``2 entries``."""
    return f"{count} {word if count == 1 else many or word + 's'}"
