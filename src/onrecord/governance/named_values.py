"""Values behind names in a text that is no JSON: what stands in the place of a secret, however the text writes it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache

from onrecord.conversation.render import INVISIBLE

__all__ = ("folded", "without_named")

# A quoted text, whole or cut short, with a letter of its language before it, doubled quotes in it, or its quotes
# escaped once more than it is; a list or an object with all that follows, since nobody knows where it ends; or whatever
# has no blank, comma or bracket in it.
_QUOTED = (
    r'(?:[a-z]{0,2}(?:"""(?:.*?)(?:"""|\Z)|'
    r"'''(?:.*?)(?:'''|\Z)|"
    r'(?:"(?:[^"\\]|\\.)*(?:"|\\?\Z))+|'
    r"(?:'(?:[^'\\]|\\.)*(?:'|\\?\Z))+|"
    r"`(?:[^`\\]|\\.)*(?:`|\\?\Z))|"
    r"""(?P<more>\\+["'])(?:.*?)(?:(?P=more)|\Z))"""
)
_OPEN = r"[\[{(].*"
_BELOW = r"(?:[|>][-+\d]*)?[ \t]*(?:\r?\n(?P=in)[ \t]+[^\n]+)+"
_SPACE = r"(?:[\w.-]+:)?"
_TYPE = r"(?:\s*:[ \t]*[\w.]{1,40}(?:\[[^\]\n]{0,60}\])?(?=\s*=))?"


@cache
def _forms(names: frozenset[str]) -> tuple[re.Pattern[str], ...]:
    """How a name and its value are written; the first group is what stays, the rest of the match what goes."""
    named = f"(?:{'|'.join(map(re.escape, sorted(names)))})"
    return tuple(
        re.compile(form, re.IGNORECASE | re.DOTALL | re.MULTILINE)
        for form in (
            # JSON, also inside of another text, how Python and others write it, and members that are set
            rf"""((?P<name>\\*["']){named}(?P=name)\s*(?::|=>|\]\s*=+)\s*)({_QUOTED}|{_OPEN}|[^\s"',\]}})]+)""",
            # arguments, forms, variables, comparisons
            rf"""((?<![\w-])-{{0,2}}{named}{_TYPE}\s*[:!]?=+>?\s*)({_QUOTED}|{_OPEN}|[^\s"'`&;,\]}})]+)""",
            rf"""((?<![\w-]){named}\s*:\s*)({_QUOTED})""",  # objects whose names have no quotes
            rf"""([{{,]\s*{named}\s*:\s*)({_OPEN}|[^\s"'`,\]}})]+)""",
            rf"""((?<![\w-])--?{named}[ \t]+)({_QUOTED}|(?!-)[^\s"'`;|&]+)""",  # options of a command
            # headers, YAML, and what stands further in below a name
            rf"""(^(?P<in>[ \t]*)(?:[>*-][ \t>*-]*)?{named}[ \t]*:[ \t]*)({_BELOW}|[^\s][^\n]*)""",
            rf"""(["']{named}[ \t]*:[ \t]*)([^"'\n]+)""",  # a header as an argument
            rf"""(\bname=(?P<of>["']?){named}(?P=of)[^\n]*\n\r?\n)([^\r\n]+)""",  # a part of a form
            rf"""(<{_SPACE}{named}(?:\s[^<>]*)?>)(\s*<(?!/)(?:[^<]|<(?!/{_SPACE}{named}\s*>))*|[^<]+)""",  # XML
        )
    )


def without_named(text: str, names: frozenset[str], word: Callable[[str], str]) -> str:
    """The text with ``word`` of what stands before each value in its place, for values behind these names (`folded`).

    ``word`` gives what stays of a match, too.
    """
    seen = folded(text)
    if not any(name in seen for name in names):
        return text
    if not text.isascii():
        plain = text.lower()
        if _odd.search(text) or any(seen.count(name) != plain.count(name) for name in names):
            return _without(text, names, word)
    for form in _forms(names):
        text = form.sub(lambda found: word(found[1]), text)
    return text


def _without(text: str, names: frozenset[str], word: Callable[[str], str]) -> str:
    """The same for names and signs that only the folded text has: found there, and taken out of the text itself."""
    seen = _Folded(text)
    for form in _forms(names):
        left, done = list[str](), 0
        for found in form.finditer(seen.text):
            start, value, end = (seen.places[at] for at in (found.start(), found.end(1), found.end()))
            left += [text[done:start], word(text[start:value])]
            done = end
        if left:
            text = "".join([*left, text[done:]])
            seen = _Folded(text)
    return text


class _Folded:
    """A text folded letter by letter, and where each letter of that stands in it."""

    def __init__(self, text: str) -> None:
        pieces = [*map(_piece, text)]
        self.text = "".join(pieces)
        self.places = [place for place, piece in enumerate(pieces) for _ in piece]
        self.places.append(len(text))


@lru_cache(maxsize=4096)
def _piece(char: str) -> str:
    """One letter or accent folded; a sign stays, or it could become one that ends a value."""
    is_word = char.isalpha() or unicodedata.category(char).startswith("M") or not folded(char)
    return folded(char) if is_word else _SIGNS.get(char, char)


def folded(text: str) -> str:
    """A name, or a text in which names are looked for, as those that read alike are the same.

    In one case, with accents apart from their letters, wide letters as narrow ones, and without what nobody sees.
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKD", _unseen("", unicodedata.normalize("NFKD", text).casefold()))


_SIGNS = {"\uff1a": ":", "\ufe55": ":", "\uff1d": "="}
"""Wide signs between a name and its value. Neither of them ends one."""

_odd = re.compile(f"[{''.join(_SIGNS)}{INVISIBLE}]")
_unseen = re.compile(f"[{INVISIBLE}]").sub
