"""Plays "speak" for a director of flows: one object with what is said and the values that the message gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from onrecord.jsonio import Json
from onrecord.models.request import Offer, Request
from onrecord.providers.offline.candidates import numbers
from onrecord.providers.offline.choosing import AskFirst, Call, Decline, Move, Talk, called_for, choose
from onrecord.providers.offline.corrections import Told, read_message
from onrecord.providers.offline.guidelines import carried_out, is_last_try
from onrecord.providers.offline.headings import Headed, Topic, headed
from onrecord.providers.offline.inquiry import asked_topic, counted, everyday, is_confirmation, question_for
from onrecord.providers.offline.overlap import fold, sentences
from onrecord.providers.offline.scene import Line, Scene
from onrecord.providers.offline.telling import answer_to, plain_answer, results_text
from onrecord.providers.offline.wording import (
    Language,
    is_courtesy,
    is_greeting,
    is_question,
    phrase,
)

__all__ = ("played",)

WORD_FOR_WORD = "word for word"
"""Stands in the guideline of a reply behind which an author's own question goes out."""


def played(request: Request, scene: Scene, language: Language) -> Call | dict[str, Json]:
    """A call that the step or the message wants, else the reply as the object that the director reads."""
    parts = headed(request)
    return _Part(parts, scene, request, language).reply()


class _Part:
    """One reply on its way: what the message gave, what a tool returned, what is asked next."""

    def __init__(self, parts: Headed, scene: Scene, request: Request, language: Language) -> None:
        self.parts, self.request, self.language = parts, request, language
        self.offers: Sequence[Offer] = request.offers if request.purpose == "speak" and request.choice != "none" else ()
        self.guideline = parts.text("Guideline for your reply")
        self.idle = not parts.has("Flow")
        self.fixed = WORD_FOR_WORD in self.guideline and not parts.topics
        facts = replace(scene, brief=parts.facts)
        # A message that was answered before is none: whoever speaks first speaks from what is known.
        self.scene = replace(facts, lines=tuple(_silent(facts.lines))) if parts.speaks_first else facts
        self.text = self.scene.latest
        self.before = self.scene.said_before
        self.asked = asked_topic(self.before, parts.topics, parts.known)
        values = [topic.value for topic in parts.topics]
        asked = self.asked.slug if self.asked else ""
        self.told: Told = read_message(self.text, values, parts.known, asked, self.before)
        self.heard = dict(self.told.heard)
        self._judge_yes()

    def reply(self) -> Call | dict[str, Json]:
        """The call, or the filled object."""
        move = self._move()
        if isinstance(move, Call):
            return move
        said = self._idle(move) if self.idle else " ".join(filter(None, self._lines(move)))
        filled: dict[str, Json] = {"message": said or phrase("agreed", self.language)}
        for topic in self.parts.topics:
            filled[topic.wire] = self.heard.get(topic.slug)
        return filled

    # ---- hearing --------------------------------------------------------------------------------------------------

    def _judge_yes(self) -> None:
        """A yes or no counts where it was asked for; one that comes with a correction is a no."""
        for topic in self.parts.topics:
            if topic.value.kind != "boolean" or not is_confirmation(topic):
                continue
            others = [slug for slug, value in self.heard.items() if slug != topic.slug and value is not None]
            if topic is not self.asked or others:
                self.heard.pop(topic.slug, None)
            elif self.told.changed:
                self.heard[topic.slug] = False

    # ---- tools ----------------------------------------------------------------------------------------------------

    def _move(self) -> Move:
        if not self.offers:
            return Talk()
        if self.idle:
            return choose(self.scene, self.offers, self.language)
        scene = self._with_known()
        move = choose(scene, self.offers, self.language, by_values=False)  # values are what the step collects
        if isinstance(move, AskFirst) and move.missing in {topic.slug for topic in self.parts.topics}:
            move = Talk()  # the step asks for it anyway
        named = self.told.named
        if isinstance(move, Talk) and not scene.own_calls and self._calls_by_guideline():
            wants = " ".join([self.guideline, *(one.ask for one in self.parts.topics if is_confirmation(one))])
            move = called_for(scene, self.offers, wants, self.language) or move
            named = self.told.changed
        if isinstance(move, Call):
            settled = {**self.parts.known, **named, **self.heard}
            move = Call(move.name, {key: settled.get(key) or value for key, value in move.args.items()})
        return move

    def _calls_by_guideline(self) -> bool:
        """Whether the step's own order still stands: it has not got all it waits for, and did not ask just now."""
        complete = bool(self.parts.topics) and self._next() is None
        return not self.fixed and not complete and (self.asked is None or bool(self.heard))

    def _with_known(self) -> Scene:
        """The scene as tools see it: what is known and heard as the result of a call, and nothing said before that."""
        known = {**self.parts.known, **{k: v for k, v in self.heard.items() if v is not None}}
        line = Line(who="call", text="", value=known, status="returned")
        last = next((one for one in reversed(self.scene.before) if one.who == "model"), None)
        latest = next((one for one in reversed(self.scene.lines) if one.who == "person"), None)
        spoken = latest is not None and bool(self.text)
        own = [one for one in self.scene.lines if one.own]
        kept = [line, *([last] if last is not None else []), *([latest] if latest is not None and spoken else []), *own]
        return replace(self.scene, lines=tuple(kept))

    # ---- speaking -------------------------------------------------------------------------------------------------

    def _idle(self, move: Move) -> str:
        results = results_text(self.scene.own_calls, self.language) if self.scene.own_calls else ""
        if isinstance(move, AskFirst):
            return f"{results} {move.text}".strip()
        if isinstance(move, Decline):
            return phrase("declined", self.language, tool=move.name)
        if results:
            return results
        told = carried_out(self.guideline, self.language) if is_courtesy(self.text) or not self.text else []
        return " ".join(told) or plain_answer(self.scene, self.offers, self.language)

    def _lines(self, move: Move) -> list[str]:
        """What is said, in order: greeting, what was noted, what tools returned, an answer, the next question."""
        following = self._next()
        confirming = following is not None and is_confirmation(following)
        own = self.scene.own_calls
        lines = [self._opening()]
        if not confirming and not own:
            lines.append(self._noted())
        if own:
            lines += [self._aside(), results_text(own, self.language)]
        elif isinstance(move, Decline):
            lines.append(phrase("declined", self.language, tool=move.name))
        elif not isinstance(move, AskFirst):
            lines.append(self._answer())
        if isinstance(move, AskFirst):
            return [*lines, move.text]
        if self.fixed:
            return lines
        lines += self._guided(following, spoken=any(lines[1:]))
        return [*lines, "" if _has_acted(self.request, self.scene) else self._asking(following)]

    def _opening(self) -> str:
        if self.parts.speaks_first and not self.scene.own_calls:
            return phrase("again", self.language) if any(line.text for line in self.scene.before) else ""
        first = next(iter(sentences(self.text)), "")
        return phrase("hello", self.language) if is_greeting(first) and not self.scene.own_calls else ""

    def _noted(self) -> str:
        """What the message gave, as it was understood."""
        given = {slug: value for slug, value in self.parts.known.items() if _stands_in(value, self.text)}
        given |= {one.slug: self.heard[one.slug] for one in self.parts.topics if self.heard.get(one.slug) is not None}
        told = [counted(k, v, self.language) for k, v in given.items() if not isinstance(v, (bool, list, dict))]
        return phrase("noted", self.language, what=", ".join(told)) if told else ""

    def _answer(self) -> str:
        """An answer to a question: a fact that stands in the brief, or plainly that no rule fits."""
        if not is_question(self.text):
            return ""
        found = answer_to(self.scene, self.text, self.language)
        gave = self.heard or self.told.changed or any(_stands_in(v, self.text) for v in self.parts.known.values())
        return found or ("" if gave else phrase("lost", self.language))

    def _aside(self) -> str:
        """A fact that the message asked for beside what the step called a tool for."""
        scene = self._with_known()
        alone = replace(scene, lines=tuple(line for line in scene.lines if not line.own))
        if not is_question(self.text) or not isinstance(
            choose(alone, self.offers, self.language, by_values=False), Talk
        ):
            return ""
        return answer_to(self.scene, self.text, self.language)

    def _guided(self, following: Topic | None, *, spoken: bool) -> list[str]:
        """What the guideline adds: courtesies and statements, and its question where no field is asked for."""
        said = "\n".join(line.text for line in self.scene.lines if line.who == "model")
        told = carried_out(self.guideline, self.language, said)
        if self.parts.topics:
            hello = phrase("hello", self.language)
            return [one for one in told if not _asks(one, self.language) and (one != hello or not said)]
        if told or spoken or following is not None:
            return told
        if self.parts.speaks_first:
            return [phrase("last_word" if is_last_try(self.guideline) else "go_on", self.language)]
        return [plain_answer(self.scene, self.offers, self.language)]

    def _asking(self, following: Topic | None) -> str:
        if following is not None:
            return question_for(following, self.language, self._summary())
        for topic in self.parts.topics:
            if self.heard.get(topic.slug) is False and is_confirmation(topic):
                again = [held for slug in self.told.changed if (held := everyday(slug, self.language))]
                return " ".join(
                    [phrase("agreed", self.language), *again] if again else [phrase("differently", self.language)]
                )
        return ""

    def _next(self) -> Topic | None:
        """The first field that is still without a value."""
        return next((topic for topic in self.parts.topics if self.heard.get(topic.slug) is None), None)

    def _summary(self) -> str:
        held: Mapping[str, Json] = {**self.parts.known, **self.heard}
        told = [
            counted(k, v, self.language) for k, v in held.items() if not isinstance(v, (bool, list, dict, type(None)))
        ]
        return ", ".join(told[:8]) + "." if told else ""


def _has_acted(request: Request, scene: Scene) -> bool:
    """Whether a call that cannot be undone came back well: what it made is the director's to read."""
    acts = {offer.spec.name for offer in request.offers if offer.tool.destructive is not False}
    return any(call.went_well and call.name in acts for call in scene.own_calls)


def _silent(lines: Sequence[Line]) -> Sequence[Line]:
    """The lines of a conversation whose last word is not the customer's, so that nothing waits for an answer."""
    own = [line for line in lines if line.own]
    return [*(line for line in lines if not line.own), Line(who="model", text=""), *own]


def _stands_in(value: Json, text: str) -> bool:
    if isinstance(value, str):
        return bool(value) and fold(value) in fold(text)
    return not isinstance(value, bool) and any(found.value == value for found in numbers(text))


def _asks(line: str, language: Language) -> bool:
    return line.startswith(phrase("tell_me", language, what="").rstrip(" .")) or line.endswith("?")
