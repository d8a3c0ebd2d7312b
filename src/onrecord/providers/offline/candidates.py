"""Patterns of values in a person's words: numbers, dates, codes, addresses, names, places, quotations.

Every finder returns what stands in the text, as it stands there, with its place. Nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from onrecord.jsonio import Json
from onrecord.providers.offline.overlap import NUMBER_WORDS, STOP_WORDS, Word, root, roots, words

__all__ = (
    "JOINTS",
    "Found",
    "Run",
    "codes",
    "dates",
    "lower_places",
    "names_a_day",
    "names_led",
    "numbers",
    "patterned",
    "quoted",
    "runs",
)


class Found(NamedTuple):
    """A value and the stretch of text it was read from."""

    value: Json
    start: int
    stop: int


class Run(NamedTuple):
    """Capitalised words in a row; ``lead`` is the folded word before, empty at the start of a sentence."""

    value: str
    start: int
    stop: int
    lead: str
    size: int


PATTERNS = {
    "email": re.compile(r"[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*\.[A-Za-z]{2,}"),
    "uri": re.compile(r"https?://[^\s<>\"']+[^\s<>\"'.,;:!?)]"),
    "uuid": re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"),
    "date-time": re.compile(r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?"),
    "time": re.compile(r"\b(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?\b"),
    "phone": re.compile(r"(?<![\w-])\+?\d[\d ().-]{6,17}\d(?![\w-])"),
}
ISO_DATE = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
NAMED_DATE = re.compile(
    r"\b(\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+|de\s+)?([^\W\d_]{3,10})\.?,?\s+(?:of\s+|de\s+)?(\d{4})\b"
)
NAMED_DATE_US = re.compile(r"\b([^\W\d_]{3,10})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})\b")
NUMBER = re.compile(r"(?<![\w.,:/-])[-+]?\d+(?:[.,]\d+)?(?![\w:/-])(?![.,]\d)")
CODE = re.compile(r"(?<![\w@.-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*(?![\w@-])")
UPPER_CODE = re.compile(r"(?<![\w@.-])[A-Z0-9]{2,}(?:-[A-Z0-9]+)+(?![\w@-])")
QUOTES = re.compile(
    r"\"([^\"\n]+)\"|“([^”\n]+)”|«\s*([^»\n]+?)\s*»|„([^“\n]+)“|「([^」\n]+)」|(?<!\w)'([^'\n]+)'(?!\w)"
)
NAME_LEAD = re.compile(
    r"\b(?:my name is|the name is|name's|i am|i'm|i’m|this is|call me|under the name(?: of)?|in the name of"  # noqa: RUF001 - characters that people really type
    r"|under|name:|me llamo|mi nombre es|soy|a nombre de|meu nome (?:é|e)|me chamo|sou(?: [oa])?|em nome de|nome:"
    r"|nombre:|on behalf of|name is)\s+",
    re.IGNORECASE,
)
MONTHS = {
    name: number
    for number, line in enumerate(
        """january jan janeiro enero
february feb fevereiro febrero
march mar março marco marzo
april apr abril
may maio mayo
june jun junho junio
july jul julho julio
august aug agosto
september sep sept setembro septiembre
october oct outubro octubre
november nov novembro noviembre
december dec dezembro diciembre""".splitlines(),
        start=1,
    )
    for name in line.split()
}
DAYS = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday segunda terca quarta quinta sexta sabado
domingo lunes martes miercoles jueves viernes today tomorrow tonight hoje amanha hoy manana""".split()
)
JOINTS = frozenset({"da", "de", "do", "dos", "das", "del", "la", "di", "van", "von", "der", "of"})
SMALL_TALK = frozenset(
    "hi hello hey thanks thank bye goodbye ok okay yes no please sorry dear great perfect cool".split()
)


def numbers(text: str) -> list[Found]:
    """Numbers in digits or words, in order; digits inside dates, codes, times and addresses are none."""
    found: list[Found] = []
    for match in NUMBER.finditer(text):
        plain = match.group().replace(",", ".")
        found.append(Found(float(plain) if "." in plain else int(plain), match.start(), match.end()))
    found += [Found(NUMBER_WORDS[w.folded], w.start, w.stop) for w in words(text) if w.folded in NUMBER_WORDS]
    return sorted(found, key=lambda one: one.start)


def dates(text: str) -> list[Found]:
    """Dates that name their year, as ISO dates. "Tomorrow" needs a clock and 5/6/2026 has two readings: neither."""
    found: list[Found] = []
    for match in ISO_DATE.finditer(text):
        found += _date(match, *match.groups())
    for match in NAMED_DATE.finditer(text):
        day, month, year = match.groups()
        found += _date(match, year, str(MONTHS.get(month.casefold(), 0)), day)
    for match in NAMED_DATE_US.finditer(text):
        month, day, year = match.groups()
        found += _date(match, year, str(MONTHS.get(month.casefold(), 0)), day)
    return sorted(found, key=lambda one: one.start)


def names_a_day(text: str) -> bool:
    """Whether a text speaks of a day that only a clock or a calendar could date: tomorrow, Friday."""
    return any(word.folded in DAYS for word in words(text))


def _date(match: re.Match[str], year: str, month: str, day: str) -> list[Found]:
    try:
        value = date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return []
    return [Found(value, match.start(), match.end())]


def patterned(kind: str, text: str) -> list[Found]:
    """Email addresses, ``uri``, ``uuid``, ``date-time``, ``time`` and ``phone`` numbers."""
    return [Found(m.group(), m.start(), m.end()) for m in PATTERNS[kind].finditer(text)]


def codes(text: str) -> list[Found]:
    """Words that mix letters and digits, or capitals joined by hyphens: H-4F2, RES123, AB-CD. A date is none."""
    found = [Found(m.group(), m.start(), m.end()) for rule in (CODE, UPPER_CODE) for m in rule.finditer(text)]
    dated = {m.group() for m in ISO_DATE.finditer(text)}
    return sorted({one for one in found if one.value not in dated}, key=lambda one: one.start)


def quoted(text: str) -> list[Found]:
    """What stands in quotation marks."""
    return [
        Found(next(group for group in m.groups() if group is not None), m.start(), m.end())
        for m in QUOTES.finditer(text)
    ]


def runs(text: str, known: frozenset[str] = frozenset()) -> list[Run]:
    """Capitalised words in a row that are neither small words, months nor days.

    A sentence that begins with a word of these ``known`` roots begins no name with it: in "Book Faro" Faro is one.
    """
    held = words(text)
    found: list[Run] = []
    index = 0
    while index < len(held):
        if not _is_name(held[index]):
            index += 1
            continue
        stop = _run_end(text, held, index)
        first, last = held[index], held[stop - 1]
        lead = held[index - 1].folded if index and _same_sentence(text, held[index - 1], first) else ""
        if not lead and stop - index > 1 and not known.isdisjoint(roots(first.text)):
            index += 1
            lead, first = first.folded, held[index]
        found.append(Run(text[first.start : last.stop], first.start, last.stop, lead, stop - index))
        index = stop
    return found


def _run_end(text: str, held: list[Word], index: int) -> int:
    stop = index + 1
    while stop < len(held) and _touches(text, held[stop - 1], held[stop]):
        if _is_name(held[stop]):
            stop += 1
        elif held[stop].text in JOINTS and _goes_on(text, held, stop):
            stop += 2
        else:
            break
    return stop


def _goes_on(text: str, held: list[Word], joint: int) -> bool:
    """Whether a capitalised word stands behind a joint such as "de": Rio de Janeiro."""
    after = joint + 1
    return after < len(held) and _touches(text, held[joint], held[after]) and held[after].text[0].isupper()


def _is_name(word: Word) -> bool:
    first = word.text[0]
    plain = word.folded not in STOP_WORDS and word.folded not in SMALL_TALK
    return first.isupper() and plain and word.folded not in MONTHS and word.folded not in DAYS


def _touches(text: str, one: Word, other: Word) -> bool:
    return text[one.stop : other.start] in {" ", "  "}


def _same_sentence(text: str, one: Word, other: Word) -> bool:
    return not set(text[one.stop : other.start]) & set(".!?…。\n¿¡:")


def names_led(text: str) -> Iterator[Found]:
    """What follows "my name is", "a nombre de", "em nome de" and the like: up to four words, capitalised or not."""
    for match in NAME_LEAD.finditer(text):
        held = words(text[match.end() :])[:4]
        taken: list[Word] = []
        for word in held:
            joint = word.folded in JOINTS and bool(taken)
            if taken and not _touches(text[match.end() :], taken[-1], word):
                break
            small = word.folded in STOP_WORDS or word.folded in NUMBER_WORDS or word.folded in SMALL_TALK
            if small and not joint:
                break
            if taken and taken[0].text[0].isupper() and not word.text[0].isupper() and not joint:
                break
            taken.append(word)
        while taken and taken[-1].folded in JOINTS:
            taken.pop()
        if taken and (taken[0].text[0].isupper() or match.group().strip().casefold() not in LOOSE_LEADS):
            start, stop = match.end() + taken[0].start, match.end() + taken[-1].stop
            yield Found(text[start:stop], start, stop)


LOOSE_LEADS = frozenset({"i am", "i'm", "i’m", "this is", "under", "sou", "sou a", "sou o", "soy", "call me"})  # noqa: RUF001 - characters that people really type


def lower_places(text: str, before: frozenset[str], known: frozenset[str]) -> Iterator[Found]:
    """A word in lower case right after a preposition, that is neither small, a number, nor one of the ``known``."""
    held = words(text)
    for index in range(1, len(held)):
        word, lead = held[index], held[index - 1].folded
        if lead not in before or not _touches(text, held[index - 1], word) or not word.text[0].isalpha():
            continue
        if word.folded in STOP_WORDS or word.folded in NUMBER_WORDS or word.folded in MONTHS or word.folded in DAYS:
            continue
        if root(word.folded) not in known:
            yield Found(word.text, word.start, word.stop)
