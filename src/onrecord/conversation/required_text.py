"""A text without which a regular expression matches nowhere: one cheap look tells where it need not be tried."""

from __future__ import annotations

import re

__all__ = ("required_text",)

_TOKEN = re.compile(
    r"\\(?P<escaped>.)|(?P<one_of>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<times>[?*+]|\{[\d,]*\})|(?P<plain>.)", re.DOTALL
)
_CODES = frozenset("xuUN0123456789")
"""Behind a backslash: a letter by its number or name, or an earlier group."""


def required_text(regex: str) -> str:
    """The longest text that is plain to see in whatever an expression without flags matches; empty where none is.

    Of groups, alternatives and letters beyond ASCII nothing is known. With IGNORECASE it is there in some case.
    """
    if not regex.isascii():
        return ""
    runs = [""]
    for token in _TOKEN.finditer(regex):
        text, escaped = token.group(), token["escaped"]
        if escaped in _CODES or text in {"(", ")", "|", "["}:
            return ""
        if token["times"]:
            if text[0] in "?*" or text[1:2] in {"0", ","}:
                runs[-1] = runs[-1][:-1]
            runs.append("")
        elif token["one_of"] or text in {".", "^", "$"} or (escaped or "").isalpha():
            runs.append("")  # what stands here is one of many, or an edge
        else:
            runs[-1] += escaped or text
    return max(runs, key=len)
