"""Texts in few words: in one line, cut to a length, in quotation marks, counted; and made safe to print."""

from __future__ import annotations

__all__ = ("CONTROLS", "STEERING", "clipped", "cut", "plural", "quoted", "safe")

CONTROLS = (*range(32), *range(127, 160))
"""Codes that a terminal obeys and does not show."""

STEERING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029)
"""Codes that turn the direction of what stands behind them, and ends of lines that are not seen as such."""

_ESCAPED = {
    code: f"\\x{code:02x}" for code in CONTROLS if chr(code) not in "\n\t"
} | {code: f"\\u{code:04x}" for code in STEERING}  # fmt: skip
_ESCAPED[ord("\r")] = ""


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


def safe(text: str) -> str:
    """The text without control codes: what a model, a tool or a file says must not steer the terminal."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPED)
