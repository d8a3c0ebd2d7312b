"""Taking back: words that announce a correction, and which known values a message gives anew."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from onrecord.jsonio import Json
from onrecord.providers.offline.candidates import JOINTS, runs
from onrecord.providers.offline.overlap import NUMBER_WORDS, STOP_WORDS, fold, roots, words
from onrecord.providers.offline.parameters import Parameter, parameters_of
from onrecord.providers.offline.values import NEGATIONS, read_words
from onrecord.providers.offline.wording import (
    Language,
    is_courtesy,
    is_no,
    is_question,
    is_yes,
    phrase,
    told_language,
)

__all__ = ("Told", "corrects", "read_message")

MARKER = re.compile(
    r"\b(?:actually|(?:no[,.!] *)?wait|hold on|sorry|i mean(?:t)?|rather|instead|make (?:it|that)|correction"
    r"|change(?: (?:it|that))?|na verdade|ali[aá]s|quer dizer|quis dizer|corrigindo|(?:[eé]|seria) melhor"
    r"|mud(?:e|ar|ei)|troc(?:a|ar|o)|desculp[ae]|em vez|en realidad|mejor(?: dicho)?|quise decir|perd[oó]n"
    r"|cambi(?:a|ar|e|o)|en vez)\b|\b(?:no|n[aã]o)(?=[,.!])",
    re.IGNORECASE,
)
POLITE = re.compile(
    r"\b(?:please|thanks|thank you|por favor|obrigad[oa]|gracias|then|ent[aã]o|entonces)\b", re.IGNORECASE
)
CLAUSE = re.compile(r"[,;\n]|(?<=[.!?])\s|\s(?:and|e|y)\s(?=\S)")
UNSURE = frozenset(
    """hm hmm hum uh um er well know sure think idea maybe moment later sei sabe acho momento depois talvez espera
    espere pensar pensando se creo quiza quizas luego idk dunno""".split()
)
IN_NAMES = JOINTS | frozenset("the el los las o a os as e y san".split())
BEFORE_NAMES = frozenset("in at to for its it is em en no na para es e the im".split())
INTO_PLACES = frozenset("in at to from em en no na".split())
ADDRESSES = frozenset(
    one for word in "address street delivery goes endereco morada rua direccion calle".split() for one in roots(word)
)
"""A place whose name may have numbers and any words."""
FREE = frozenset({"place", "person", "text", "any"})
"""Kinds whose value may be a whole answer, since nothing in its spelling tells what it is."""


@dataclass(frozen=True)
class Told:
    """What one message gives: values that were missing, for what is known other ones that it names, and of these the
    ones that it means to change. A change to None says that a value does not hold, and not what it should be.
    """

    heard: Mapping[str, Json]
    named: Mapping[str, Json]
    changed: Mapping[str, Json]


def corrects(text: str, before: str = "") -> bool:
    """Whether a message says that something said before does not hold, or answers what should be different."""
    asked = any(phrase("differently", language) in before for language in get_args(Language))
    return asked or MARKER.search(text) is not None


def read_message(
    text: str, missing: Sequence[Parameter], known: Mapping[str, Json], asked: str = "", before: str = ""
) -> Told:
    """Reads a message for all fields at once, so that what gives one of them gives no other.

    ``asked`` names the missing field that the message answers, ``before`` are the model's last words. What stands
    behind "actually" goes before the rest. A known value counts as changed when the message announces a correction,
    names what it changes, or says it with a yes or a no.
    """
    held = [_as_parameter(name, value) for name, value in known.items() if not isinstance(value, (Mapping, list))]
    marked = corrects(text, before)
    heard: dict[str, Json] = {}
    again: dict[str, Json] = {}
    for one in missing:
        if one.kind == "boolean" and (value := read_words([one], text, one if one.name == asked else None)):
            heard |= value  # "No." and "Yes, actually" answer as they stand
    for part in _latest_first(text):
        found = _read(part, missing, held, asked if asked not in heard else "")
        if marked and not found:
            found = _named_alone(part, [*missing, *held])
        for name, value in found.items():
            (again if name in known else heard).setdefault(name, value)
    spoken = set(roots(text))
    agreed = is_yes(text) or is_no(text)
    changed: dict[str, Json] = {}
    for one in held:
        named = bool(one.name_roots & spoken) and not is_question(text)
        fresh = one.name in again and not _equal(again[one.name], known[one.name])
        if fresh and (marked or named or agreed):
            changed[one.name] = again[one.name]
        elif one.name not in again and named and marked:
            changed[one.name] = None
    return Told(heard, again, changed)


def _latest_first(text: str) -> list[str]:
    """The text behind its last correction, then what stands before it, and so on to the start."""
    parts = [part.strip(" ,;.!") for part in MARKER.split(text)]
    return [part for part in reversed(parts) if part] if len(parts) > 1 else [text]


def _named_alone(text: str, every: Sequence[Parameter]) -> dict[str, Json]:
    """A correction that is a name and nothing else: of a person when it has two words, else rather of a place."""
    held = runs(POLITE.sub(" ", text).strip())
    if len(held) != 1 or len(words(POLITE.sub(" ", text))) != held[0].size:
        return {}
    order = ("person", "place") if held[0].size > 1 else ("place", "person")
    one = next((one for kind in order for one in every if one.kind == kind), None)
    return {one.name: held[0].value} if one is not None and one.fits(held[0].value) else {}


def _as_parameter(name: str, value: Json) -> Parameter:
    """A known field, whose schema nobody shows here, as something to look for."""
    kind = "boolean" if isinstance(value, bool) else "number" if isinstance(value, (int, float)) else "string"
    if isinstance(value, int) and kind == "number":
        kind = "integer"
    (one,) = parameters_of({"properties": {name: {"type": kind}}})
    return one


def _read(text: str, missing: Sequence[Parameter], held: Sequence[Parameter], asked: str) -> dict[str, Json]:
    every = [*missing, *held]
    answered = next((one for one in missing if one.name == asked), None)
    found: dict[str, Json] = {}
    if answered is not None:
        value = _answer(text, answered, every)
        if value is not None:
            found[answered.name] = value
    others = [one for one in every if one.name not in found and one.kind != "boolean"]
    rest = text if not found or not isinstance(found[asked], str) else text.replace(str(found[asked]), " ", 1)
    # A word that nothing but its capital tells from others is a value of the one field that could mean it, or of none.
    vague = [one for one in others if one.kind in {"any", "text"} and not one.name_roots & set(roots(text))]
    alone = len(vague) == 1 and vague[0].kind == "any" and vague[0] not in held
    spare = [] if alone else vague
    found |= read_words([one for one in others if one not in spare], rest, None, every)
    return found


def _answer(text: str, one: Parameter, every: Sequence[Parameter]) -> Json:
    """The value in the first clause of an answer that gives one; doubt, courtesy and questions give none."""
    if one.kind not in FREE:
        return read_words([one], text, one, every).get(one.name)
    if is_question(text):
        return None
    if one.kind == "text" and not _unsure(text):
        return read_words([one], text, one, every).get(one.name)
    named = one.kind in {"place", "person"} and not one.roots & ADDRESSES
    found = read_words([one], text, None, every) if named else {}
    if found:
        return found[one.name]
    for clause in (POLITE.sub(" ", part).strip() for part in CLAUSE.split(text)):
        spoken = [word.folded for word in words(clause)]
        if not spoken or _unsure(clause) or is_courtesy(clause) or is_yes(clause) or is_no(clause):
            continue
        if one.kind == "person" and spoken[0] in INTO_PLACES:
            continue
        if one.kind in {"place", "person"} and not (one.roots & ADDRESSES or _could_be_a_name(spoken)):
            continue
        if set(roots(clause)) <= one.roots:
            continue  # it names the field, and gives no value
        if not any(read_words([other], clause, None, every) for other in every if other.kind not in FREE):
            address = one.kind == "place" and not named and one.fits(clause)
            value = clause if address else read_words([one], clause, one, every).get(one.name)
            if value is not None:
                return value
    return None


def _could_be_a_name(spoken: Sequence[str]) -> bool:
    """Whether an answer has no word that names never have, but for a preposition before it and articles inside."""
    inside = spoken[1:] if len(spoken) > 1 and spoken[0] in BEFORE_NAMES else spoken
    return not any(
        word in NUMBER_WORDS or word.isdigit() or (word in STOP_WORDS and word not in IN_NAMES) for word in inside
    )


def _unsure(text: str) -> bool:
    spoken = {word.folded for word in words(text)}
    capital = bool(runs(text)) and told_language(text) is None
    return not capital and bool(spoken & UNSURE or spoken & NEGATIONS or "?" in text)


def _equal(one: Json, other: Json) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return fold(one) == fold(other)
    return bool(one == other)
