"""What of an author's guideline the stand-in can carry out: courtesies, a question, a statement that is spelled out.

A guideline is written to a model. What no rule here knows how to do is left undone, and never read out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from onrecord.providers.offline.inquiry import addressed, wanted_clause
from onrecord.providers.offline.wording import Language, phrase, told_language

__all__ = ("carried_out", "is_last_try")

VERBS = (
    "ask|say|tell|thank|wish|offer|greet|welcome|inform|remind|let|apologi|bid|quote|sum|confirm|find|answer"
    "|pergunt|dig[ao]|agrade|ofere|cumpriment|despe|inform|avis|pregunt|dile|ofrec|salud|resum"
)
CLAUSE = re.compile(rf"[.;!?]+(?=\s|$)\s*|\n|,? (?:and|then|e|y) (?=(?:then )?(?:{VERBS}))", re.IGNORECASE)
COURTESIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE))
    for name, pattern in {
        "hello": "greet|welcome|say (?:hello|hi)|cumprimente|d[êe] as boas.vindas|salud[ae]",
        "thank_you": "thank|thanks|agrade[çc]a|agradece",
        "sorry": "apologi[sz]e|say sorry|pe[çc]a desculpas?|desculpe-se|disc[uú]lpa(?:te)?|pide disculpas",
        "bye": "(?:say|bid) (?:good)?bye|farewell|despe[çc]a-se|desp[ií]dete",
        "more_please": (
            "offer(?: (?:to|your))? help|(?:how|what) (?:to|you can|you could|can|could)(?: I| we)? (?:help|do)"
            "|ofere[çc]a ajuda|ofrece ayuda"
        ),
    }.items()
)
TELL = re.compile(
    r"\b(?:tell|inform|remind|let|diga|informe|avise|lembre|dile|informa|recuerda|av[ií]sale)\b"
    r"(?: (?:them|him|her|the (?:customer|guest|client)|ao cliente|à cliente|al cliente))?(?: know)?"
    r"(?P<mark> that| que|:)?\s+(?P<what>.+)",
    re.IGNORECASE,
)
STATES = re.compile(
    r"\b(?:is|are|was|were|has|have|will|can|opens?|closes?|costs?|starts?|ends?|é|são|está|estão|foi|tem|vai|custa|abre"
    r"|es|son|fue|tiene|cuesta|hay|há)\b",
    re.IGNORECASE,
)
LAST = re.compile(r"\b(?:last|final|[uú]ltim[oa])\b", re.IGNORECASE)


def carried_out(guideline: str, language: Language, before: str = "") -> list[str]:
    """What a guideline makes the stand-in say, clause by clause; statements that ``before`` has are not repeated."""
    said: list[str] = []
    for clause in CLAUSE.split(guideline):
        for line in _one(clause, language):
            if line not in said and not (line in before and line not in COURTEOUS[language]):
                said.append(line)
    return said


def is_last_try(guideline: str) -> bool:
    """Whether a guideline speaks of a last attempt."""
    return LAST.search(guideline) is not None


COURTEOUS: dict[Language, set[str]] = {
    language: {phrase(name, language) for name, _ in COURTESIES} for language in ("en", "pt", "es")
}


def _one(clause: str, language: Language) -> Iterator[str]:
    clause = clause.strip()
    named = [phrase(name, language) for name, pattern in COURTESIES if pattern.search(clause)]
    if named:
        yield from named
        return
    told = TELL.search(clause)
    if told is not None:
        what = addressed(told["what"].strip().rstrip("."))
        if (told["mark"] or STATES.search(what)) and not re.match(r"(?:about|how|what|which|if|whether)\b", what):
            yield what[:1].upper() + what[1:] + ("" if what.endswith(("!", "?")) else ".")
        return
    wanted = wanted_clause(clause)
    if wanted and told_language(clause) in {None, language}:
        yield phrase("tell_me", language, what=wanted)
