"""Words of a server made fit to be shown: no control characters, nothing that nobody sees, and not too much."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

__all__ = ("clean", "hides", "named", "without")

_BLANK = re.compile(r"\n{3,}")
LINES = 60
"""Lines of one description."""

_KEPT = frozenset("\n\t")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Unicode categories without a look of their own: controls, formats (such as text direction), unassigned."""


def hides(text: str, *, but: frozenset[str] = frozenset()) -> bool:
    """Whether a text holds characters that a reader does not see, other than these."""
    if text.isascii() and text.isprintable():
        return False
    return any(unicodedata.category(c) in _UNSEEN and c not in but for c in text)


def clean(text: str, most: int, *, lines: int = LINES) -> str:
    """A text of the server without what nobody sees, cut to so many characters and lines, and saying so."""
    seen = text[: most * 4]  # what is behind is cut anyway
    if hides(seen):
        seen = seen.replace("\r\n", "\n").replace("\r", "\n")
        seen = "".join(c for c in seen if c in _KEPT or unicodedata.category(c) not in _UNSEEN)
    seen = _BLANK.sub("\n\n", seen).strip()
    kept = "\n".join(seen.split("\n", lines)[:lines])[:most].rstrip()
    return kept if len(kept) == len(seen) and len(text) <= most * 4 else f"{kept}\n[cut: {len(text)} characters]"


def named(name: object, most: int = 64) -> str:
    """A name of the server in quotes, for people: whatever it holds stands in one short line."""
    if not isinstance(name, str):
        return f"a {type(name).__name__}"
    return ascii(name[:most]) + ("..." if len(name) > most else "")


def without(text: str, secrets: Iterable[str]) -> str:
    """A text in which no secret stands."""
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, "[hidden]")
    return text
