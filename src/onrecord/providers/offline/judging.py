"""Plays "understand" for a director of flows: what a message is about, decides and gives, from words and patterns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from onrecord.jsonio import Json
from onrecord.models.request import Request
from onrecord.providers.offline.agreement import Said, agreement, condition_roots, is_about, listen_to
from onrecord.providers.offline.corrections import Told, corrects, read_message
from onrecord.providers.offline.headings import Candidate, Headed, headed
from onrecord.providers.offline.inquiry import last_question
from onrecord.providers.offline.overlap import roots
from onrecord.providers.offline.parameters import Parameter, parameters_of
from onrecord.providers.offline.scene import Scene
from onrecord.providers.offline.values import read_words
from onrecord.providers.offline.wording import is_question

__all__ = ("judged",)

PHRASED, NAMED, DESCRIBED = 95.0, 85.0, 55.0
"""The most that a flow gets for its phrases, for its name, and for its description alone."""
ASIDE = 0.6
ANSWERS = 75
"""What the flow that has the floor gets at least from a message that gives what it waits for."""
CHANGES = frozenset(
    one
    for word in """changes change changing corrects correct different another other instead muda mudar corrige corrigir
    outro outra cambia cambiar corregir diferente""".split()
    for one in roots(word)
)


def judged(request: Request, scene: Scene) -> Json:
    """One object with the sections that the schema asks for; null stands for what the message does not give."""
    parts = headed(request)
    properties = parts.schema.get("properties")
    return _Judge(parts, scene).sections(properties if isinstance(properties, Mapping) else {})


class _Judge:
    """One message on its way to a judgement."""

    def __init__(self, parts: Headed, scene: Scene) -> None:
        self.parts = parts
        self.text = scene.latest
        self.said: Said = listen_to(self.text)
        self.before = scene.said_before
        self.told = Told({}, {}, {})

    def sections(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        """The judgement, section by section, in the order of the schema."""
        self.told = self._told(properties.get("fields"))
        mentions = self._mentions(properties.get("mentions"))
        made: dict[str, Json] = {}
        for name, schema in properties.items():
            match name:
                case "flows":
                    made[name] = self._scores(schema)
                case "mentions":
                    made[name] = dict(mentions)
                case "extract":
                    made[name] = self._extracts(schema, mentions)
                case "branches":
                    made[name] = self._branches(schema)
                case "fields":
                    made[name] = {one: self.told.heard.get(one) for one in _names(schema)}
                case "asks":
                    made[name] = is_question(self.text)
                case _:
                    made[name] = None
        return made

    def _told(self, schema: Json) -> Told:
        missing = parameters_of(schema) if isinstance(schema, Mapping) else ()
        return read_message(self.text, missing, self.parts.known, self._asked(missing), self.before)

    def _asked(self, missing: Sequence[Parameter]) -> str:
        """The field that the model asked for last: the first of its step that its words speak of, or the first."""
        if not self.parts.has("Current flow") or not self.before.strip():
            return ""
        pending = self.parts.asked_now()
        question = set(roots(last_question(self.before) or self.before))
        spoken = [one.name for one in missing if one.roots & question]
        # A step that has asked often enough waits for nothing, and is answered all the same.
        return next((name for name in spoken if name in pending), (spoken or pending or [""])[0])

    # ---- flows ----------------------------------------------------------------------------------------------------

    def _scores(self, schema: Json) -> dict[str, Json]:
        held = self.parts.candidates("Flows the customer may want")
        shared = Counter(root for one in held.values() for root in _vocabulary(one))
        weights = {root: 1 / count for root, count in shared.items()}
        current = self.parts.text("Current flow")
        scores: dict[str, Json] = {}
        for name in _names(schema):
            candidate = held.get(name)
            score = _score(candidate, self.said, weights) if candidate is not None else 0
            if f"({name})" in current.partition("\n")[0] and set(self.told.heard) & set(self.parts.asked_now()):
                score = max(score, ANSWERS)
            scores[name] = score
        return scores

    # ---- mentions and branches ------------------------------------------------------------------------------------

    def _mentions(self, schema: Json) -> dict[str, bool]:
        held = self.parts.candidates("Things the customer may mention")
        found: dict[str, bool] = {}
        for name in _names(schema):
            one = held.get(name)
            counts = (one.counts or [one.name]) if one is not None else []
            found[name] = is_about(counts, self.said) and not (one is not None and is_about(one.excludes, self.said))
        return found

    def _extracts(self, schema: Json, mentions: Mapping[str, bool]) -> dict[str, Json]:
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        made: dict[str, Json] = {}
        for name, inner in (properties or {}).items():
            parameters = parameters_of(inner) if isinstance(inner, Mapping) else ()
            found = read_words(parameters, self.text) if mentions.get(name) else {}
            made[name] = {one: found.get(one) for one in _names(inner)}
        return made

    def _branches(self, schema: Json) -> dict[str, Json]:
        questions: dict[str, str] = {}
        for line in self.parts.text("Questions about this message").splitlines():
            name, mark, text = line.removeprefix("- ").partition(": ")
            if mark and line.startswith("- "):
                questions[name] = text
        return {name: self._holds(questions.get(name, "")) for name in _names(schema)}

    def _holds(self, condition: str) -> bool:
        """Whether a condition holds. One that speaks of a change holds when the message changes what it names."""
        wanted = condition_roots(condition)
        if not wanted & CHANGES:
            return is_about([condition], self.said)
        things = wanted - CHANGES
        named = {slug for slug in self.parts.known if things & set(roots(slug))}
        if named:
            return any(slug in self.told.changed for slug in named)
        if any(things & set(roots(slug)) for slug in (*self.parts.asked_now(), *self.told.heard)):
            return False  # what is still to be given cannot be changed
        return bool(self.told.changed) or corrects(self.text, self.before)


def _names(schema: Json) -> list[str]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return list(properties) if isinstance(properties, Mapping) else []


def _vocabulary(one: Candidate) -> set[str]:
    return {root for text in (one.name, *one.counts) for root in condition_roots(text)}


def _score(one: Candidate, said: Said, weights: Mapping[str, float]) -> int:
    """From 0 to 100, for the phrase that fits best; the name and the description count, too, and less."""
    if is_about(one.excludes, said):
        return 0
    own = _vocabulary(one)
    rivals = (said.plain & weights.keys()) - own
    beside = sum(weights[root] for root in rivals)
    covered = max((agreement(phrase, said, weights, beside) for phrase in one.counts), default=0.0)
    best = max(covered * PHRASED, agreement(one.name, said, weights, beside) * NAMED)
    described = condition_roots(one.about)
    if len(described & said.plain) >= 2 and not rivals:
        best = max(best, DESCRIBED)
    if covered < 1 and is_question(said.text) and said.words - own - described:
        best *= ASIDE  # it asks about something that the flow says nothing of
    return round(best)
