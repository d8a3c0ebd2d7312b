"""Values behind names in a text that is no JSON: what stands in the place of a secret, however the text writes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

__all__ = ("without_named",)

# A quoted text, whole or cut short; a list or an object with all that follows, since nobody knows where it ends; or
# whatever has no blank, comma or bracket in it.
_QUOTED = r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|\'(?:[^\'\\]|\\.)*(?:\'|\\?\Z)'
_OPEN = r"[\[{(].*"


@cache
def _forms(names: frozenset[str]) -> tuple[re.Pattern[str], ...]:
    """How a name and its value are written; the first group is what stays, the second what goes."""
    named = "|".join(map(re.escape, sorted(names)))
    return tuple(
        re.compile(form, re.IGNORECASE | re.DOTALL | re.MULTILINE)
        for form in (
            rf"""(["'](?:{named})["']\s*:\s*)({_QUOTED}|{_OPEN}|[^\s"',\]}})]+)""",  # JSON, and how Python writes it
            rf"""((?<![\w-])(?:{named})\s*=\s*)({_QUOTED}|{_OPEN}|[^\s"'&;,\]}})]+)""",  # arguments, forms, variables
            rf"""(^[ \t>*-]*(?:{named})[ \t]*:[ \t]*)([^\s][^\n]*)""",  # headers, YAML
            rf"""(<(?:{named})(?:\s[^<>]*)?>)([^<]+)""",  # XML
        )
    )


def without_named(text: str, names: frozenset[str], word: Callable[[re.Match[str]], str]) -> str:
    """The text with ``word`` of each match in the place of values behind these names (folded to one case)."""
    folded = text.casefold()
    if not any(name in folded for name in names):
        return text
    for form in _forms(names):
        text = form.sub(word, text)
    return text
