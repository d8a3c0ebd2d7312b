"""Matching a message: start rules as data, and the words that made them match."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from onrecord.conversation.required_text import required_text
from onrecord.declared import Declared
from onrecord.errors import ConfigurationError

__all__ = ("AllOf", "Intent", "Keywords", "Match", "Pattern", "StartIndex", "Witness", "compile_match")


class Witness(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The words of a message that made a rule match, and the declared keyword that they are."""

    text: str
    keyword: str = ""


class Keywords(Struct, frozen=True, metaclass=Declared):
    """Any of these words or phrases, whatever their case, as whole words: ``Keywords(["refund", "money back"])``."""

    words: Sequence[str]


class Pattern(Struct, frozen=True, metaclass=Declared):
    r"""A regular expression, found anywhere and whatever the case: ``Pattern(r"\bINV-\d+")``."""

    regex: str


class Intent(Struct, frozen=True, metaclass=Declared):
    """A meaning, which a classifier recognises by what is said about it and by examples."""

    means: str
    examples: Sequence[str] = ()


class AllOf(Struct, frozen=True, metaclass=Declared):
    """All of these at once: keywords, patterns, or further ones of this kind. Of them the first witness is told."""

    matches: Sequence[Keywords | Pattern | AllOf]


Match = Keywords | Pattern | AllOf | Intent
Finder = Callable[[str], Witness | None]


def compile_match(match: Match, where: str) -> Finder | None:
    """A function from a message to its witness; None for an intent. ConfigurationError for what could match nothing."""
    parts = list(_flat(match, where))
    if isinstance(match, Intent):
        return None
    finders = [_keywords(part, where) if isinstance(part, Keywords) else _pattern(part, where) for part in parts]
    if len(finders) == 1:
        return finders[0]

    def found(message: str) -> Witness | None:
        first: Witness | None = None
        for find in finders:
            got = find(message)
            if got is None:
                return None
            first = first or got
        return first

    return found


def _flat(match: Any, where: str) -> Iterator[Keywords | Pattern]:
    if isinstance(match, AllOf):
        if not match.matches:
            raise ConfigurationError(
                f"AllOf of {where} is empty: it would hold for every message", hint="leave match= out for a default"
            )
        for each in match.matches:
            yield from _flat(each, where)
    elif isinstance(match, (Keywords, Pattern)):
        yield match
    elif isinstance(match, Intent):
        if not match.means.strip():
            raise ConfigurationError(f"an intent of {where} says nothing", hint='Intent("wants a refund", [...])')
    else:
        raise ConfigurationError(
            f"the match of {where} is a {type(match).__name__}", hint="it is Keywords, Pattern, AllOf or Intent"
        )


def _keywords(match: Keywords, where: str) -> Finder:
    words = match.words
    if not words or not all(w.strip() for w in words):
        raise ConfigurationError(f"the keywords of {where} are no list of words", hint='Keywords(["refund"])')
    by_size = sorted((w.strip() for w in words), key=len, reverse=True)  # the longest that fits is the witness
    regex = re.compile("|".join(f"({_whole(word)})" for word in by_size), re.IGNORECASE)

    def found(message: str) -> Witness | None:
        hit = regex.search(message)
        return None if hit is None else Witness(text=hit[0], keyword=by_size[(hit.lastindex or 1) - 1])

    return found


def _whole(word: str) -> str:
    """A word on its own: its edges are edges only where they are letters."""
    left = r"(?<!\w)" if re.match(r"\w", word) else ""
    right = r"(?!\w)" if re.search(r"\w$", word) else ""
    return left + r"\s+".join(map(re.escape, word.split())) + right


def _pattern(match: Pattern, where: str) -> Finder:
    try:
        regex = re.compile(match.regex, re.IGNORECASE)
    except re.error as error:
        raise ConfigurationError(
            f"the pattern of {where} is no regular expression: {error}", hint=r'Pattern(r"\bINV-\d+")'
        ) from None

    def found(message: str) -> Witness | None:
        hit = regex.search(message)
        return None if hit is None else Witness(text=hit[0])

    return found


class StartIndex:
    """Which of many matches a message may fulfil, without trying them all.

    Keywords are found by their rarest word, patterns by a text that must be in what they match. It leaves out only
    what cannot match: for a message that is not ASCII all are tried, and those of which nothing is known always.
    """

    def __init__(self, matches: Sequence[Match | None]) -> None:
        self._all = [place for place, match in enumerate(matches) if not isinstance(match, Intent)]
        parts = {place: _telling(matches[place]) for place in self._all}
        common = Counter(word for part in parts.values() if isinstance(part, Keywords) for word in _words(part))
        self._by_word: dict[str, list[int]] = {}
        self._by_text: list[tuple[str, int]] = []
        self._always: list[int] = []
        for place, part in parts.items():
            if isinstance(part, Keywords) and (rare := _rarest(part, common)) is not None:
                for word in rare:
                    self._by_word.setdefault(word, []).append(place)
            elif isinstance(part, Pattern) and (text := required_text(part.regex).lower()):
                self._by_text.append((text, place))
            else:
                self._always.append(place)

    def candidates(self, message: str) -> Sequence[int]:
        """The places of the matches to try, in order."""
        if not message.isascii():
            return self._all
        low = message.lower()
        found = {place for text, place in self._by_text if text in low}
        if self._by_word:
            for word in self._by_word.keys() & set(_WORD.findall(low)):
                found.update(self._by_word[word])
        return sorted((*self._always, *found)) if found else self._always


_WORD = re.compile(r"\w+")


def _telling(match: Match | None) -> Keywords | Pattern | None:
    """The part of a match by which it is found; one of several that must all hold will do."""
    if isinstance(match, AllOf):
        return next((part for each in match.matches if (part := _telling(each)) is not None), None)
    return match if isinstance(match, (Keywords, Pattern)) else None


def _words(match: Keywords) -> set[str]:
    return {word for keyword in match.words for word in _WORD.findall(keyword.lower())}


def _rarest(match: Keywords, common: Counter[str]) -> set[str] | None:
    """Words of which a message must have one: of each keyword the one that fewest others have."""
    rare = set()
    for keyword in match.words:
        words = _WORD.findall(keyword.lower())
        if not words or not keyword.isascii():
            return None
        rare.add(min(words, key=common.__getitem__))
    return rare
