"""A text as it looks: what reads alike is the same, however it is written, and each letter knows where it stands."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from onrecord.conversation.render import INVISIBLE

__all__ = ("SeenText", "looks_otherwise")

_FOLLOWS = (
    r"\u0300-\u036f\u1160-\u11ff\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f\uff9e\uff9f"
    rf"{INVISIBLE}"
)
"""What belongs to the letter before it: accents, vowels of Hangul, marks of voice, and what nobody sees."""

_RUN = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]+")
_LETTER = re.compile(rf".[{_FOLLOWS}]*", re.DOTALL)
_invisible = re.compile(rf"[{INVISIBLE}]")


def looks_otherwise(text: str) -> bool:
    """Whether a text may look like another: one with accents apart, in wide letters, or with letters nobody sees."""
    if text.isascii():
        return False
    return not unicodedata.is_normalized("NFKC", text) or _invisible.search(text) is not None


@lru_cache(maxsize=4096)
def _seen(letter: str) -> str:
    return unicodedata.normalize("NFKC", _invisible.sub("", letter))


class SeenText:
    """``text`` with accents on their letters, in plain width and without what nobody sees.

    ``places`` says of each of its letters, and of its end, where that stands in the text it is made of.
    """

    __slots__ = ("places", "text")

    def __init__(self, text: str) -> None:
        words, places, done = list[str](), list[int](), 0
        for run in _RUN.finditer(text):
            words.append(text[done : run.start()])
            places += range(done, run.start())
            letters = _LETTER.findall(run[0])
            seen = [*map(_seen, letters)]
            words += seen
            place = run.start()
            for letter, looks in zip(letters, seen, strict=True):
                if len(looks) == 1:
                    places.append(place)
                else:
                    places += [place] * len(looks)
                place += len(letter)
            done = run.end()
        words.append(text[done:])
        places += range(done, len(text) + 1)
        self.text, self.places = "".join(words), places

    def span(self, found: re.Match[str]) -> tuple[int, int]:
        """Where a match stands in the text, with all of each letter that it has a part of."""
        start, end, places = found.start(), found.end(), self.places
        while start < end and places[end] == places[end - 1]:
            end += 1
        return places[start], places[end]
