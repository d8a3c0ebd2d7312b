"""Finds values for parameters in the conversation, by type and pattern; what is not there is not found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from onrecord.jsonio import Json
from onrecord.providers.offline import candidates
from onrecord.providers.offline.candidates import Found, Run
from onrecord.providers.offline.overlap import fold, likeness, roots, sentences, words
from onrecord.providers.offline.parameters import Parameter, parameters_of
from onrecord.providers.offline.scene import Line
from onrecord.providers.offline.wording import is_courtesy, is_no, is_yes

__all__ = ("Hearing", "find_values", "read_words")


@dataclass(frozen=True)
class Hearing:
    """How lines are heard: ``asked`` tells which question of the model asked for a parameter, ``known`` are the roots
    of words that name tools and therefore no places.
    """

    asked: Callable[[Parameter, str], bool] = lambda _one, _text: False
    known: frozenset[str] = frozenset()


IN = frozenset("in at near en em no na a".split())
TOWARDS = frozenset("to into towards para hacia ate hasta".split())
SINCE = frozenset("from desde".split())
AWAY = frozenset("from desde de do da".split())
FOR = frozenset("for para por pra".split())
ORIGINS = frozenset("from origin source departure start desde origem origen".split())
TARGETS = frozenset("to destination target arrival destino hacia para".split())
NEGATIONS = frozenset("no not without dont never sem nao sin nunca".split())
UNITS = frozenset(root for word in "night day guest person hour week month year".split() for root in roots(word))
ORDER = ("choice", "email", "uri", "uuid", "date-time", "date", "time", "phone", "code", "number", "boolean", "place",
         "person", "object", "array", "text", "any", "none")  # fmt: skip


def find_values(parameters: Sequence[Parameter], lines: Sequence[Line], hearing: Hearing) -> dict[str, Json]:
    """Values by parameter name, from the newest line back: a person's words, arguments and results of earlier calls.

    A line that answers the model's question for a value is read more freely. Free text is taken from such an answer
    or from the newest line only, and a day that only a clock could date hides older dates.
    """
    found: dict[str, Json] = {}
    hidden: set[str] = set()
    newest = next((index for index in range(len(lines) - 1, -1, -1) if lines[index].who == "person"), -1)
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index]
        open_ones = [one for one in parameters if one.name not in found and one.name not in hidden]
        if not open_ones:
            break
        if line.who == "person":
            before = lines[index - 1].text if index and lines[index - 1].who == "model" else ""
            answered = next((one for one in open_ones if before and hearing.asked(one, before)), None)
            if index != newest:
                open_ones = [one for one in open_ones if one.kind != "text" or one is answered]
            found |= read_words(open_ones, line.text, answered, parameters, hearing.known)
            if candidates.names_a_day(line.text):
                hidden |= {one.name for one in open_ones if one.kind in {"date", "date-time"}}
        elif line.who == "call":
            found |= _from_call([one for one in open_ones if one.kind != "text"], line)
    return found


def _from_call(parameters: Iterable[Parameter], line: Line) -> dict[str, Json]:
    found: dict[str, Json] = {}
    results = line.value if line.went_well and isinstance(line.value, Mapping) else {}
    for one in parameters:
        for source in (results, line.args):
            if one.name in source and source[one.name] is not None and one.fits(source[one.name]):
                found[one.name] = source[one.name]
                break
        else:
            near = [v for k, v in results.items() if one.kind == "code" and set(roots(k)) & one.name_roots]
            near += [v for k, v in results.items() if one.kind == "code" and k in {"code", "id", "reference"}]
            if near and one.fits(near[0]):
                found[one.name] = near[0]
    return found


def read_words(
    parameters: Sequence[Parameter],
    text: str,
    answered: Parameter | None = None,
    siblings: Sequence[Parameter] = (),
    known: frozenset[str] = frozenset(),
) -> dict[str, Json]:
    """Values that one text gives; ``answered`` is the parameter that the text is the answer to.

    ``siblings`` are all parameters of the tool, found or not: they tell whether a lone number can only mean one.
    """
    reading = _Reading(text, siblings or parameters, known)
    found: dict[str, Json] = {}
    for one in sorted(parameters, key=lambda p: (p is not answered, ORDER.index(p.kind))):
        value = reading.value(one, answered is one)
        if value is not None and one.fits(value):
            found[one.name] = value
    return found


class _Reading:
    """One text on its way to values: a stretch that gave one value gives no other."""

    def __init__(self, text: str, siblings: Sequence[Parameter], known: frozenset[str]) -> None:
        self.text, self.siblings = text, siblings
        self.taken: list[tuple[int, int]] = []
        self.known = known | frozenset(root for one in siblings for root in one.roots)

    def value(self, one: Parameter, answered: bool) -> Json:  # noqa: FBT001 - it stands last in a call of three
        """The value for a parameter, or None."""
        match one.kind:
            case "choice":
                return _first(self._choices(one), None)
            case "boolean":
                return self._boolean(one, answered)
            case "number":
                return self._number(one, answered)
            case "array":
                return self._array(one, answered)
            case "object":
                return self._object(one)
            case "none":
                return None
            case _:
                return self._string(one, answered)

    def _take(self, one: Parameter, options: Iterable[Found]) -> Json:
        for found in options:
            free = all(found.stop <= start or stop <= found.start for start, stop in self.taken)
            if free and one.fits(found.value):
                self.taken.append((found.start, found.stop))
                return found.value
        return None

    def _choices(self, one: Parameter) -> list[Json]:
        """The choices that the text names, in the order of the text; of overlapping names the longest."""
        folded = f" {' '.join(w.folded for w in words(self.text))} "
        named = [(folded.find(f" {' '.join(w.folded for w in words(str(c)))} "), c) for c in one.choices]
        hits = sorted(
            ((at, c) for at, c in named if at >= 0 and words(str(c))), key=lambda hit: (hit[0], -len(str(hit[1])))
        )
        if not hits:
            there = roots(self.text)
            close = [c for c in one.choices if (held := roots(str(c))) and all(likeness(r, there) >= 0.6 for r in held)]
            return close[:1] if len(close) == 1 else []
        kept: list[Json] = []
        end = -1
        for at, choice in hits:
            if at >= end:
                kept.append(choice)
                end = at + len(str(choice))
        return kept

    def _boolean(self, one: Parameter, answered: bool) -> Json:  # noqa: FBT001 - it stands last in a call of three
        if answered and is_yes(self.text):
            return True
        if answered and is_no(self.text):
            return False
        held = words(self.text)
        for index, word in enumerate(held):
            if set(roots(word.text)) & one.name_roots:
                return not any(before.folded in NEGATIONS for before in held[max(index - 3, 0) : index])
        return None

    def _number(self, one: Parameter, answered: bool) -> Json:  # noqa: FBT001 - it stands last in a call of three
        whole = one.schema.get("type") == "integer"
        options = [f for f in candidates.numbers(self.text) if not whole or f.value == int(f.value)]
        options = [f._replace(value=int(f.value)) if whole else f for f in options]
        near = sorted(((self._nearness(one, f), -f.start, f) for f in options), reverse=True)
        best = [f for score, _, f in near if score > 0]
        if not best and answered:
            best = options
        if not best and self._alone(options) and not self._counts_other(one, options[0]):
            best = options
        peers = [p for p in self.siblings if p.kind == "number"]
        if not best and len(peers) == len(options) > 1 and one in peers:  # as many numbers as the tool takes
            best = [options[peers.index(one)]]
        return self._take(one, best)

    def _alone(self, options: Sequence[Found]) -> bool:
        """Whether the text's one number can only mean the tool's one number. A year hardly ever does."""
        only = len([p for p in self.siblings if p.kind == "number"]) == 1 and len(options) == 1
        return only and not 1900 <= options[0].value < 2100

    def _counts_other(self, one: Parameter, found: Found) -> bool:
        """Whether a number counts something else than nights, guests and the like: one room, two beds, "um quarto"."""
        if not one.roots & UNITS:
            return False
        after = next(iter(words(self.text[found.stop :])), None)
        noun = after is not None and self.text[found.stop : found.stop + after.start].isspace()
        return noun and after is not None and after.text.islower() and bool(roots(after.text))

    def _nearness(self, one: Parameter, found: Found) -> int:
        after = set(roots(" ".join(w.text for w in words(self.text[found.stop :])[:2])))
        before = set(roots(" ".join(w.text for w in words(self.text[: found.start])[-2:])))
        return 2 * bool(after & one.name_roots) + 2 * bool(after & one.roots) + bool(before & one.roots)

    def _array(self, one: Parameter, answered: bool) -> Json:  # noqa: FBT001 - it stands last in a call of three
        items = one.schema.get("items")
        (inner,) = parameters_of({"properties": {one.name: items if isinstance(items, Mapping) else {}}}, one.whole)
        if inner.kind in {"object", "array", "none", "boolean"}:
            return None
        if inner.kind == "choice":
            return self._choices(inner) or None
        found: list[Json] = []
        if inner.kind == "number":
            found += [f.value for f in candidates.numbers(self.text) if inner.fits(f.value)]
        else:
            while len(found) < 20 and (value := self.value(inner, answered=False)) is not None and value not in found:
                found.append(value)
        if not found and answered:
            found += [part for part in _listed(self.text) if inner.fits(part)]
        return found or None

    def _object(self, one: Parameter) -> Json:
        inner = parameters_of(one.schema, one.whole)
        simple = [p for p in inner if p.kind not in {"object", "array"}]
        return read_words(simple, self.text) or None

    def _string(self, one: Parameter, answered: bool) -> Json:  # noqa: FBT001 - it stands last in a call of three
        kind = one.kind
        if kind in candidates.PATTERNS:
            return self._take(one, candidates.patterned(kind, self.text))
        if kind == "date":
            return self._take(one, candidates.dates(self.text))
        finders: Mapping[str, Callable[[Parameter], Iterable[Found]]] = {
            "code": lambda _: candidates.codes(self.text),
            "place": self._places,
            "person": lambda _: self._persons(),
        }
        if kind in finders:
            value = self._take(one, finders[kind](one))
            if value is not None:
                return value
        value = self._take(one, candidates.quoted(self.text))
        if value is None and "pattern" in one.schema:
            value = self._take(one, [Found(w.text, w.start, w.stop) for w in words(self.text)])
        if value is None and kind == "any" and not answered:
            value = self._take(one, [_as_found(r) for r in candidates.runs(self.text) if r.lead])
        if value is None and answered:
            value = self._take(one, _direct(self.text, short=kind != "text"))
        if value is None and kind == "text" and one.required:
            value = self._take(one, _subject(self.text))
        return value

    def _places(self, one: Parameter) -> list[Found]:
        named = list(candidates.names_led(self.text))
        runs = [
            r
            for r in candidates.runs(self.text, self.known)
            if (r.lead in IN or not set(roots(r.value)) & self.known)
            and not any(n.start <= r.start < n.stop for n in named)
        ]
        spelled = {fold(word.text) for word in words(one.name.replace("_", " "))}
        persons = any(p.kind == "person" for p in self.siblings)
        if spelled & ORIGINS:
            leads: tuple[frozenset[str], ...] = (AWAY,)
        elif spelled & TARGETS:
            leads = (TOWARDS, IN)
        else:
            leads = (IN, TOWARDS, SINCE) if persons else (IN, TOWARDS, FOR, SINCE)
        found = [_as_found(r) for lead in leads for r in runs if r.lead in lead]
        if not spelled & (ORIGINS | TARGETS):
            found += [_as_found(r) for r in runs if r.lead and not (persons and (r.lead in FOR or r.size > 1))]
            found += [_as_found(r) for r in runs if not r.lead and not persons and not _is_verb(r, self.text)]
            leads = (IN,)  # "to book" and "for dinner" are no places
        lower = frozenset().union(*leads) - frozenset({"a", "no", "na", "de", "do", "da", "para"})
        return found + list(candidates.lower_places(self.text, lower, self.known))

    def _persons(self) -> list[Found]:
        runs = candidates.runs(self.text)
        found = list(candidates.names_led(self.text))
        found += [_as_found(r) for r in runs if r.lead in FOR]
        return found + [_as_found(r) for r in runs if r.size > 1 and r.lead not in IN | TOWARDS | AWAY and r.lead]


def _as_found(run: Run) -> Found:
    return Found(run.value, run.start, run.stop)


def _is_verb(run: Run, text: str) -> bool:
    """A capital at the start of a sentence says nothing, unless the sentence is little more than that word."""
    return run.size == 1 and len(words(text)) > run.size + 3


def _first(values: Sequence[Json], default: Json) -> Json:
    return values[0] if values else default


def _listed(text: str) -> list[str]:
    plain = text.replace(" and ", ",").replace(" e ", ",").replace(" y ", ",")
    return [part.strip(" .!") for part in plain.split(",") if part.strip(" .!")]


ABOUT = re.compile(r"\b(?:about|for|saying|that says|sobre|acerca de)\s+(.+)", re.IGNORECASE)
SUBJECT = re.compile(r"\b(?:search|find|look up|busca|buscar|procurar?|procure)\s+(.+)", re.IGNORECASE)


def _subject(text: str) -> list[Found]:
    """What a request is about: the words behind "about" or "search for", else a question as a whole."""
    for sentence in sentences(text):
        match = ABOUT.search(sentence) or SUBJECT.search(sentence)
        words_of_it = match.group(1) if match else sentence if sentence.endswith("?") else ""
        plain = re.sub(r"^(?:for|about|the|sobre)\s+", "", words_of_it.rstrip(".!?").strip(), flags=re.IGNORECASE)
        if plain:
            start = text.index(plain)
            return [Found(plain, start, start + len(plain))]
    return []


LEAD_INS = (
    "it is ",
    "it's ",
    "its ",
    "the ",
    "in ",
    "for ",
    "to ",
    "at ",
    "é ",
    "es ",
    "em ",
    "en ",
    "para ",
    "a ",
    "o ",
)


def _direct(text: str, *, short: bool) -> list[Found]:
    """A whole answer as the value: at most six words where a ``short`` one is due, and no yes, no or question."""
    plain = text.strip().rstrip(".!").strip()
    for lead in LEAD_INS:
        if plain.casefold().startswith(lead) and len(plain) > len(lead):
            plain = plain[len(lead) :].strip()
            break
    count = len(words(plain))
    polite = short and (is_yes(text) or is_no(text) or is_courtesy(text))
    if not count or text.rstrip().endswith("?") or polite or (short and (count > 6 or "\n" in plain)):
        return []
    start = text.index(plain)
    return [Found(plain, start, start + len(plain))]
