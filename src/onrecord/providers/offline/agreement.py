"""How much a message speaks for a condition such as "wants to book a room": by words shared, and a few by rote."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from onrecord.providers.offline.candidates import runs
from onrecord.providers.offline.overlap import NUMBER_WORDS, Word, likeness, root, roots, words
from onrecord.providers.offline.values import NEGATIONS
from onrecord.providers.offline.wording import is_farewell, is_greeting, is_no, is_question, is_thanks, is_yes

__all__ = ("Said", "agreement", "condition_roots", "is_about", "listen_to")

MOST_WORDS = 120
"""Different words of a message that are weighed."""
NUMBERS = frozenset(root(word) for word in NUMBER_WORDS)
HOLDS = 0.6
"""A condition that no other rule decides holds with this share of its words."""

# Words that a condition is written with, and that no customer says: "the customer asks for ...".
SCAFFOLD = frozenset(
    """customer client clients user wants wanting wish wishes ask asks asking say says saying mention mentions
    mentioning mentioned tells needs likes looking something anything someone whether message talks about
    cliente quer querem deseja pergunta perguntar fala diz menciona precisa sobre mensagem algo
    quiere desea pregunta preguntar dice habla necesita mensaje acerca""".split()
)
CUES: Sequence[tuple[frozenset[str], Callable[[str], bool]]] = (
    (frozenset("greets greet greeting hello hi saluda saludo cumprimenta saudacao ola hola".split()), is_greeting),
    (frozenset("thanks thank thanking agradece agradecimento gracias obrigado".split()), is_thanks),
    (frozenset("goodbye bye farewell leaves despede despedida tchau adios".split()), is_farewell),
    (
        frozenset(
            """agrees agree accepts accept confirms approves yes concorda aceita confirma sim acepta acuerdo
            affirmative""".split()
        ),
        is_yes,
    ),
    (
        frozenset("declines decline refuses refuse rejects disagrees no recusa rejeita nega rechaza niega".split()),
        is_no,
    ),
    (frozenset("question questions questioning duvida duda".split()), is_question),
)


@dataclass(frozen=True)
class Said:
    """A message as it is weighed: the roots it affirms, which of them are no names or numbers, and what it denies."""

    text: str
    plain: frozenset[str]
    words: frozenset[str]
    denied: frozenset[str]


def listen_to(text: str) -> Said:
    """Weighs a message once for all conditions."""
    plain: set[str] = set()
    denied: set[str] = set()
    held = words(text)[:MOST_WORDS]
    for index, word in enumerate(held):
        (denied if _is_denied(text, held, index) else plain).update(roots(word.text))
    values = {one for run in runs(text) if run.lead for one in roots(run.value)} | NUMBERS
    return Said(text, frozenset(plain), frozenset(plain - values), frozenset(denied - plain))


def _is_denied(text: str, held: Sequence[Word], index: int) -> bool:
    """Whether a "not" stands up to three words before, in the same clause."""
    return any(
        held[before].folded in NEGATIONS and not set(text[held[before].stop : held[index].start]) & set(".,;:!?\n")
        for before in range(max(index - 3, 0), index)
    )


@lru_cache(maxsize=4096)
def condition_roots(condition: str) -> frozenset[str]:
    """The roots of a condition that a message may share with it."""
    return frozenset(one for word in words(condition) if word.folded not in SCAFFOLD for one in roots(word.text))


def agreement(condition: str, said: Said, weights: Mapping[str, float] | None = None, beside: float = 0.0) -> float:
    """From 0 to 1: the share of the condition's words that the message has, each by its weight, or 1.

    ``beside`` is the weight of what the message has besides, and speaks against the condition.
    """
    spelled = [word.folded for word in words(condition)]
    wanted = condition_roots(condition)
    for cue, test in CUES:
        if cue.intersection(spelled) and not wanted - {one for word in cue for one in roots(word)}:
            return float(test(said.text))
    negative = bool(NEGATIONS.intersection(spelled))
    if not negative and wanted & said.denied:
        return 0.0
    there = said.denied if negative else said.plain
    held = weights or {}
    whole = sum(held.get(one, 1.0) for one in wanted)
    if not whole or not there:
        return 0.0
    return sum(held.get(one, 1.0) * likeness(one, there) for one in wanted) / (whole + beside)


def is_about(conditions: Sequence[str], said: Said) -> bool:
    """Whether a message is about one of these: most words of it, as far as spelling goes."""
    return any(agreement(one, said) >= HOLDS for one in conditions)
