"""The words of a text as searches compare them: no case, no accents; scripts without spaces in pairs of letters."""

from __future__ import annotations

import re
import unicodedata

__all__ = ("LONGEST", "terms")

LONGEST = 64
"""Letters of a word that count: what is longer is no word of anybody's."""

_words = re.compile(r"[^\W_]+").findall
_MARKS = frozenset({"Mn", "Mc"})
# Written without spaces between words: Han, kana, Hangul, Thai, Lao, Khmer, Burmese.
_dense = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")


def terms(text: str) -> list[str]:
    """The words of a text in order, each as often as it comes."""
    if text.isascii():
        return [word[:LONGEST] for word in _words(text.lower())]
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(_plain(c) for c in decomposed if not unicodedata.combining(c))
    found: list[str] = []
    for word in unicodedata.normalize("NFC", plain).split():
        if word.isascii():
            found.append(word[:LONGEST])
        else:
            found += _parted(word)
    return found


def _plain(c: str) -> str:
    """A letter, a digit, or a vowel sign, which is part of its word; a blank in place of anything else."""
    return c if c.isalnum() or unicodedata.category(c) in _MARKS else " "


def _parted(word: str) -> list[str]:
    """A word in a script with spaces as it is; in one without, every two letters that stand together."""
    parts: list[str] = []
    at = 0
    for dense in _dense.finditer(word):
        if dense.start() > at:
            parts.append(word[at : dense.start()][:LONGEST])
        run = dense.group()
        parts += [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]
        at = dense.end()
    if at < len(word):
        parts.append(word[at:][:LONGEST])
    return parts
