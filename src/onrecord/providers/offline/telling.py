"""What the stand-in says: results as plain sentences, quotations of its brief, and what it can do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from onrecord.jsonio import Json, dumps
from onrecord.models.request import Offer
from onrecord.providers.offline.overlap import roots, sentences, words
from onrecord.providers.offline.scene import Line, Scene
from onrecord.providers.offline.wording import (
    HONEST,
    Language,
    is_courtesy,
    is_farewell,
    is_greeting,
    is_no,
    is_thanks,
    is_yes,
    phrase,
)

__all__ = ("answer_to", "call_text", "earlier_result", "plain_answer", "results_text")

LONGEST = 800
DEEPEST = 4

# Sentences that tell the model what to do are no facts to quote.
ORDERS = re.compile(
    r"^(?:you|your|never|always|do not|don't|don’t|answer|be|use|ask|if|when asked|speak|reply|keep|call"  # noqa: RUF001 - characters that people really type
    r"|say|only|please|act|help|write|respond|present|confirm|refuse|você|vocês|nunca|sempre|responda|seja|use|pergunte|tú|usted|siempre"
    r"|responde|sé|pregunta|##?|-)\b",
    re.IGNORECASE,
)
ABOUT_ITSELF = re.compile(
    r"\b(?:who|what) are you\b|\bare you (?:an? )?(?:human|person|real|robot|bot|ai|machine|model|llm)\b"
    r"|\b(?:quem|o que) (?:é|e) voc[êe]\b|\bqui[ée]n eres\b|\beres (?:un )?(?:humano|robot|bot)\b",
    re.IGNORECASE,
)
ABOUT_ABILITIES = re.compile(
    r"\bwhat (?:else )?can you\b|\bhow can you help\b|^\W*(?:help|ajuda|ayuda)\W*$|\bo que voc[êe] (?:pode|faz)\b"
    r"|\bqu[ée] puedes\b",
    re.IGNORECASE,
)
MARKUP = re.compile(r"^[#>*\-\s]+")


def call_text(name: str, args: Mapping[str, Json]) -> str:
    """A call as people read it: ``book (city: Lisbon, nights: 2)``."""
    given = ", ".join(f"{key}: {_flat(value)}" for key, value in args.items())
    return f"{name} ({given})" if given else name


def results_text(calls: Sequence[Line], language: Language) -> str:
    """What calls returned, one sentence for each; errors and denials as such."""
    return " ".join(_result_text(call, language) for call in calls)


def plain_answer(scene: Scene, offers: Sequence[Offer], language: Language) -> str:
    """An answer without a call: courtesy, an earlier result, a sentence of the brief, or what can be done here."""
    latest = scene.latest
    held = sentences(latest)
    if ABOUT_ITSELF.search(latest):
        return HONEST
    if ABOUT_ABILITIES.search(latest):
        return _abilities(offers, language) or phrase("cannot", language)
    if is_courtesy(latest):
        return _courtesy(held, offers, language)
    if is_yes(latest) or is_no(latest):
        return phrase("nothing", language)
    fact = answer_to(scene, latest, language)
    if fact:
        return fact
    hello = f"{phrase('hello', language)} " if held and is_greeting(held[0]) else ""
    if not latest.strip():
        return hello + (_abilities(offers, language) or phrase("cannot", language))
    return hello + (
        f"{phrase('lost', language)} {_abilities(offers, language)}" if offers else phrase("cannot", language)
    )


def answer_to(scene: Scene, asked: str, language: Language) -> str:
    """What the stand-in knows of a question: an earlier result, or a sentence of its brief; empty for neither."""
    return earlier_result(scene, asked, language) or _quotation(scene, asked, language)


# ---- results ------------------------------------------------------------------------------------------------------


def _result_text(call: Line, language: Language) -> str:
    shown = call_text(call.name, call.args)
    if not call.went_well:
        if call.status == "cancelled":
            return phrase("unknown", language, call=shown)
        error = call.value.get("error") if isinstance(call.value, Mapping) else call.text
        why = _cut(_flat(error or call.status)).rstrip(".")
        denied = call.status == "denied" or why.startswith("Permission denied")
        return phrase("denied" if denied else "failed", language, call=shown, why=why)
    value = call.value
    if isinstance(value, Mapping):  # what the call was given need not be told twice
        value = {k: v for k, v in value.items() if k not in call.args or call.args[k] != v} or value
    told = _told(value, language)
    part = f" {phrase('partial', language)}" if call.status == "partial" else ""
    return f"{phrase('from', language, call=shown)} {_cut(told)}{part}".rstrip(".") + "."


def _told(value: Json, language: Language) -> str:
    if isinstance(value, Mapping):
        if not value:
            return phrase("empty", language)
        if dict(value) == {"ok": True}:
            return phrase("done", language)
        return ", ".join(f"{_label(key)}: {text}" for key, text in _pairs(value, "", language))
    if isinstance(value, list):
        return _items(value, language) if value else phrase("empty", language)
    return _flat(value, language) if value not in (None, "") else phrase("empty", language)


def _pairs(value: Mapping[str, Json], above: str, language: Language, depth: int = 0) -> Iterator[tuple[str, str]]:
    for key, inner in value.items():
        name = f"{above} {key}".strip()
        if isinstance(inner, Mapping) and inner and depth < DEEPEST:
            yield from _pairs(inner, name, language, depth + 1)
        elif isinstance(inner, list):
            yield name, _items(inner, language) if inner else phrase("empty", language)
        else:
            yield name, _flat(inner, language)


def _items(values: Sequence[Json], language: Language) -> str:
    shown = "; ".join(
        ", ".join(f"{_label(k)}: {t}" for k, t in _pairs(one, "", language, DEEPEST)) if isinstance(one, Mapping)
        else _flat(one, language)
        for one in values[:5]
    )  # fmt: skip
    return f"{shown}; {phrase('more', language, n=len(values) - 5)}" if len(values) > 5 else shown


def _label(key: str) -> str:
    return key.replace("_", " ")


def _flat(value: Json, language: Language = "en") -> str:
    if isinstance(value, bool):
        return phrase("yes" if value else "no", language)
    if isinstance(value, str):
        return " ".join(value.split())
    return "-" if value is None else dumps(value).decode()


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"


# ---- talk ---------------------------------------------------------------------------------------------------------


def _courtesy(held: Sequence[str], offers: Sequence[Offer], language: Language) -> str:
    said: list[str] = []
    if any(is_greeting(s) for s in held):
        said.append(phrase("hello", language))
    if any(is_thanks(s) for s in held):
        said.append(phrase("welcome", language))
    if any(is_farewell(s) for s in held):
        said.append(phrase("bye", language))
    elif any(is_greeting(s) for s in held):
        said.append(_abilities(offers, language) or phrase("more_please", language))
    return " ".join(said)


def _abilities(offers: Sequence[Offer], language: Language) -> str:
    if not offers:
        return ""
    lines = [_ability(offer) for offer in offers[:8]]
    return f"{phrase('can', language)} {'; '.join(lines)}."


def _ability(offer: Offer) -> str:
    told = next(iter(sentences(offer.spec.description)), "").rstrip(".")
    return f"{offer.spec.name} ({told})" if told else offer.spec.name


def earlier_result(scene: Scene, asked: str, language: Language) -> str:
    """A value of an earlier result whose name the question has: "What was the code again?"."""
    wanted = set(roots(asked))
    for line in reversed(scene.before):
        if line.who == "call" and line.went_well and isinstance(line.value, Mapping):
            hits = {key: value for key, value in line.value.items() if set(roots(key)) & wanted}
            if hits:
                told = ", ".join(f"{_label(k)}: {t}" for k, t in _pairs(hits, "", language))
                return f"{phrase('earlier', language, call=call_text(line.name, line.args))} {_cut(told)}."
    return ""


def _quotation(scene: Scene, asked: str, language: Language) -> str:
    """The sentence of the brief or of the application's data that shares most words with the question."""
    wanted = set(roots(asked))
    best, most = "", 0.0
    for sentence in _facts([*scene.data, *scene.brief]):
        there = set(roots(sentence))
        shared = len(wanted & there)
        if shared and (shared >= 2 or 2 * shared >= len(wanted)):
            score = shared + shared / (len(there) + 1)
            if score > most:
                best, most = sentence, score
    return f"{phrase('brief', language)} “{_cut(best)}”" if best else ""


def _facts(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for sentence in sentences(text):
            plain = MARKUP.sub("", sentence).strip()
            if len(words(plain)) >= 3 and not plain.endswith("?") and not ORDERS.match(plain):
                yield plain
