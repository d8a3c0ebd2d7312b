"""Questions for fields in the customer's language, made from how an author says that a field is to be asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from onrecord.jsonio import Json
from onrecord.providers.offline.headings import Topic
from onrecord.providers.offline.overlap import CAMEL, root, roots, sentences
from onrecord.providers.offline.wording import OPEN_WORDS, Language, phrase, told_language, words_of

__all__ = (
    "addressed",
    "asked_topic",
    "counted",
    "everyday",
    "is_confirmation",
    "last_question",
    "question_for",
    "topic_of",
    "wanted_clause",
)

Three = tuple[str, str, str]

# Everyday fields by the root of their name: how people ask for them.
QUESTIONS: Mapping[str, Three] = {
    "city": ("Which city?", "Qual cidade?", "¿Qué ciudad?"),
    "country": ("Which country?", "Qual país?", "¿Qué país?"),
    "night": ("How many nights?", "Quantas noites?", "¿Cuántas noches?"),
    "day": ("How many days?", "Quantos dias?", "¿Cuántos días?"),
    "guest": ("How many guests?", "Quantos hóspedes?", "¿Cuántos huéspedes?"),
    "person": ("How many people?", "Quantas pessoas?", "¿Cuántas personas?"),
    "name": ("What is the name, please?", "Qual é o nome, por favor?", "¿Cuál es el nombre, por favor?"),
    "email": ("What is the email address?", "Qual é o e-mail?", "¿Cuál es el correo electrónico?"),
    "phone": ("What is the phone number?", "Qual é o telefone?", "¿Cuál es el teléfono?"),
    "date": ("For which date (YYYY-MM-DD)?", "Para que data (AAAA-MM-DD)?", "¿Para qué fecha (AAAA-MM-DD)?"),
    "time": ("At what time?", "A que horas?", "¿A qué hora?"),
    "company": ("Which company?", "Qual empresa?", "¿Qué empresa?"),
    "budget": ("What is the budget?", "Qual é o orçamento?", "¿Cuál es el presupuesto?"),
    "code": ("What is the code?", "Qual é o código?", "¿Cuál es el código?"),
    "order": ("Which order?", "Qual pedido?", "¿Qué pedido?"),
}
COUNTED: Mapping[str, tuple[Three, Three]] = {
    "night": (("night", "noite", "noche"), ("nights", "noites", "noches")),
    "day": (("day", "dia", "día"), ("days", "dias", "días")),
    "guest": (("guest", "hóspede", "huésped"), ("guests", "hóspedes", "huéspedes")),
    "person": (("person", "pessoa", "persona"), ("people", "pessoas", "personas")),
}
"""What is counted: these are asked for as numbers only."""
ALIKE: Mapping[str, str] = {
    root(word): name
    for name, line in {
        "company": "company empresa firma organization",
        "budget": "budget orcamento presupuesto",
        "email": "email mail correo",
        "phone": "phone telephone telefone telefono mobile celular whatsapp",
        "date": "date checkin checkout",
    }.items()
    for word in line.split()
}

ASK = re.compile(
    r"\b(?:ask(?:ing)?(?: (?:them|him|her|the (?:customer|guest|client|person)))?(?: to (?:confirm|tell you|say))?"
    r"|find out|get|request|collect|learn|pergunt(?:e|ar)|descubra|pe[çc]a|preg[uú]nt(?:a|e|ar)(?:le)?|averigua|pide)"
    r"\b(?: (?:for|about|por|sobre))?[:,]?\s+(?P<what>[^.;!?\n]+)(?P<mark>\?)?",
    re.IGNORECASE,
)
TRIMS = re.compile(
    r",? (?:and|then|e|y) (?:offer|show|then|confirm|say|tell|mention|ofere[çc]a|ofrece)\b.*$|, then .*$| - .*$"
    r"|, \w+ly$",
    re.IGNORECASE,
)
SWAPS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"\b{old}\b", re.IGNORECASE), new)
    for old, new in (
        ("(?:they|the customer|the guest|the client) (?:is|are)", "you are"),
        ("(?:they|the customer|the guest|the client) (?:has|have)", "you have"),
        ("(?:the customer|the guest|the client) wants", "you want"),
        ("(?:the customer|the guest|the client)'s", "your"),
        ("their|his or her", "your"),
        ("they|them", "you"),
        ("the customer|the client", "you"),
    )
)
CONFIRMS = frozenset(
    root(word)
    for word in """right correct confirm confirmation confirma confirmar correto certo correcto summary sum summarize
    resumo resumir resumen""".split()
)
OPENS = re.compile(
    r"(?:what|which|who|whom|whose|where|when|why|how|whether|if|qual|quais|quanto|quem|onde|quando|como|se|cu[aá]l"
    r"|cu[aá]nt[oa]s?|qui[eé]n|d[oó]nde|cu[aá]ndo|c[oó]mo|si|qu[eé]|the|your|a|an|o|a|os|as|el|la|los|las|su|seu|sua)\b",
    re.IGNORECASE,
)


def topic_of(slug: str, *, number: bool) -> str:
    """Which of the everyday fields a field is, by its name; empty for another."""
    for one in roots(slug):
        name = ALIKE.get(one, one)
        if name in QUESTIONS and (number or name not in COUNTED):
            return name
    return ""


def question_for(topic: Topic, language: Language, summary: str = "") -> str:
    """The one question that asks for a field.

    An author's own question goes first when it is in the customer's language, then the everyday question for fields of
    this name, then what the author says is to be asked, and last the field's description or name.
    """
    ask = topic.ask.strip()
    spoken = told_language(ask)
    own = ask.endswith("?") and len(ask) > 1 and ASK.match(ask) is None
    if own and spoken in {None, language}:
        return _with_options(ask, topic)
    boolean = topic.value.kind == "boolean"
    if boolean and is_confirmation(topic):
        return f"{summary} {phrase('is_that_right', language)}".strip()
    known = topic_of(topic.slug, number=topic.value.kind == "number")
    if known and not boolean:
        return _with_options(QUESTIONS[known][get_args(Language).index(language)], topic)
    what = wanted_clause(ask)
    if what and spoken in {None, language}:
        return _with_options(phrase("tell_whether" if boolean else "tell_me", language, what=what), topic)
    what = topic.about.strip().rstrip(".") or " ".join(CAMEL.sub(" ", topic.slug).replace("_", " ").split())
    return _with_options(phrase("yes_or_no" if boolean else "quoted", language, what=what), topic)


def asked_topic(before: str, topics: Sequence[Topic], known: Iterable[str]) -> Topic | None:
    """The field that the last words before a message asked for: by our own questions, then by the words shared.

    None where they asked for what is ``known`` by now, or for nothing.
    """
    for topic in topics if before else ():
        if any(question_for(topic, language) in before for language in get_args(Language)):
            return topic
    known = tuple(known)
    if any(held in before for slug in known for language in get_args(Language) if (held := everyday(slug, language))):
        return None
    question = last_question(before)
    if any(question.endswith(phrase("yes_or_no", language, what="")[2:]) for language in get_args(Language)):
        return None  # a question of ours, for something else
    there = set(roots(question))
    booleans = [topic for topic in topics if topic.value.kind == "boolean"]
    if question and booleans and not OPEN_WORDS.intersection(words_of(question)):
        return next((topic for topic in booleans if topic.value.roots & there), booleans[0])
    others = [topic for topic in topics if topic not in booleans]
    named = [topic for topic in others if topic.value.roots & there]
    if named or any(set(roots(slug)) & there for slug in known):
        return named[0] if named else None
    return others[0] if others and question else None


def last_question(text: str) -> str:
    """The last sentence of a text that asks something; empty without one."""
    return next((one for one in reversed(sentences(text)) if one.endswith(("?", "？"))), "")  # noqa: RUF001 - characters that people really type


def everyday(slug: str, language: Language) -> str:
    """The everyday question for a field of this name; empty for a name that is none of them."""
    name = topic_of(slug, number=False) or topic_of(slug, number=True)
    return QUESTIONS[name][get_args(Language).index(language)] if name else ""


def wanted_clause(ask: str) -> str:
    """What an author's order to ask is about, addressed to the customer: "Ask which city they want." gives
    "which city you want"; empty where nothing is to be asked.
    """
    found = ASK.search(ask)
    what = found["what"] if found is not None else ask if OPENS.match(ask) and not ask.endswith("?") else ""
    what = addressed(TRIMS.sub("", what).strip(" ,:"))
    return what[:1].lower() + what[1:] if what[:2].istitle() else what


def addressed(text: str) -> str:
    """A text about the customer as one to the customer."""
    for old, new in SWAPS:
        text = old.sub(new, text)
    return text


def is_confirmation(topic: Topic) -> bool:
    """Whether a yes or no is about everything that is known: "Sum up and ask if it is right"."""
    return bool(CONFIRMS & {*roots(topic.slug), *roots(topic.about), *roots(topic.ask)}) or topic.slug in {"ok", "okay"}


def counted(slug: str, value: Json, language: Language) -> str:
    """A value as people say it: "2 nights"; a text alone where its field is an everyday one, else with a label."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    known = topic_of(slug, number=number)
    shown = str(int(value)) if number and value == int(value) else str(value)
    if known in COUNTED:
        return f"{shown} {COUNTED[known][value != 1][get_args(Language).index(language)]}"
    if known and not number:
        return shown
    return f"{' '.join(CAMEL.sub(' ', slug).replace('_', ' ').split())}: {shown}"


def _with_options(question: str, topic: Topic) -> str:
    """A question with the values of an enumeration before its closing mark."""
    choices = ", ".join(str(one) for one in topic.value.choices[:12] if one is not None)
    return f"{question[:-1]} ({choices}){question[-1]}" if choices else question
