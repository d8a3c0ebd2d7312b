"""What the stand-in does next: call a tool, ask for one thing, ask before it does harm, or just talk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from onrecord.jsonio import Json, canonical
from onrecord.models.request import Offer
from onrecord.providers.offline.candidates import runs
from onrecord.providers.offline.overlap import CAMEL, NUMBER_WORDS, likeness, root, roots, sentences, words
from onrecord.providers.offline.parameters import Parameter, parameters_of
from onrecord.providers.offline.scene import Line, Scene
from onrecord.providers.offline.telling import call_text, earlier_result
from onrecord.providers.offline.values import NEGATIONS, Hearing, find_values
from onrecord.providers.offline.wording import (
    Language,
    is_courtesy,
    is_farewell,
    is_greeting,
    is_no,
    is_thanks,
    is_yes,
    phrase,
)

__all__ = ("AskFirst", "Call", "Decline", "Move", "Talk", "called_for", "choose")

THRESHOLD = 2.0
SURE = 3.0
"""A second tool in one turn needs this much."""
NAMED_VALUE = 0.75
"""What a value that fits a parameter speaks for a tool, where no word does."""
MOST_CALLS = 4
MOST_WORDS = 120
"""Different words of a message that are weighed."""


@dataclass(frozen=True)
class Call:
    """Call a tool."""

    name: str
    args: Mapping[str, Json]


@dataclass(frozen=True)
class AskFirst:
    """Ask the person: for a value that is ``missing``, or whether to do what cannot be undone."""

    text: str
    missing: str = ""


@dataclass(frozen=True)
class Decline:
    """The person said no to what was asked."""

    name: str


@dataclass(frozen=True)
class Talk:
    """Nothing to call."""


Move = Call | AskFirst | Decline | Talk


@dataclass(frozen=True)
class _Option:
    """An offered tool with its parameters and the roots that speak for it, by weight."""

    offer: Offer
    parameters: tuple[Parameter, ...]
    weights: Mapping[str, float]
    known: frozenset[str]

    @property
    def name(self) -> str:
        return self.offer.spec.name

    def destroys(self, args: Mapping[str, Json]) -> bool:
        flag = self.offer.tool.destructive
        if isinstance(flag, bool):
            return flag
        try:
            return bool(flag(args))
        except Exception:  # noqa: BLE001 - a flag that cannot tell counts as the worse of the two
            return True

    def values(self, lines: Sequence[Line]) -> dict[str, Json]:
        """Arguments that the lines give, in the order of the schema.

        What went into a call that cannot be undone is used up: nothing is booked again with an earlier guest's name.
        """
        if self.offer.tool.destructive is not False:
            done = [i for i, line in enumerate(lines) if line.name == self.name and line.went_well]
            lines = lines[done[-1] + 1 :] if done else lines
        found = find_values(self.parameters, lines, Hearing(self.asked, self.known))
        return {one.name: found[one.name] for one in self.parameters if one.name in found}

    def missing(self, args: Mapping[str, Json]) -> Parameter | None:
        return next((one for one in self.parameters if one.required and one.name not in args), None)

    def asked(self, one: Parameter, text: str) -> bool:
        return any(ask_text(self.name, one, language) in text for language in get_args(Language))

    def confirmed_in(self, args: Mapping[str, Json], text: str) -> bool:
        call = call_text(self.name, args)
        return any(phrase("confirm", language, call=call) in text for language in get_args(Language))


def choose(
    scene: Scene, offers: Sequence[Offer], language: Language, forced: str = "", *, by_values: bool = True
) -> Move:
    """The next move. ``forced`` names the tool that the request insists on.

    ``by_values``: a message without a word for a tool may call it all the same, by the arguments that it gives.
    """
    options = _options(offers)
    if forced:
        options = [one for one in options if one.name == forced] or options
    if scene.own_calls:
        return _after_calls(scene, options, language)
    opened = _opened(scene, options, language)
    if opened is not None:
        return opened
    text = _wanted_text(scene.latest)
    scored = sorted(((-_score(one, text), index) for index, one in enumerate(options)))
    best = options[scored[0][1]] if scored and (forced or -scored[0][0] >= THRESHOLD) else None
    if best is None:
        return (by_values and (_again(scene, options, text) or _filled_in(scene, options, text))) or Talk()
    if not forced and best.destroys({}) and "?" in text and earlier_result(scene, text, language):
        return Talk()  # "What was my booking code?" asks about a booking, not for one
    return _use(best, scene, language)


def called_for(scene: Scene, offers: Sequence[Offer], wanted: str, language: Language) -> Move | None:
    """The move that an instruction calls for ("Quote the price"): a call whose arguments are all there, or the question
    that goes before one that cannot be undone. None where no offered tool is meant.
    """
    options = _options(offers)
    best = max(options, key=lambda one: _score(one, wanted), default=None)
    if best is None or _score(best, wanted) < THRESHOLD or best.missing(best.values(scene.lines)) is not None:
        return None
    return _use(best, scene, language)


def _wanted_text(text: str) -> str:
    """The sentences that want something: greetings, thanks and farewells left out."""
    kept = [s for s in sentences(text) if not (is_greeting(s) or is_thanks(s) or is_farewell(s))]
    return " ".join(kept)


def ask_text(tool: str, one: Parameter, language: Language) -> str:
    """The one question that asks for a parameter, from its description."""
    what = one.about.strip().rstrip(".") or " ".join(CAMEL.sub(" ", one.name).replace("_", " ").split())
    if what[:2].istitle() or (what[:1].isupper() and what[1:2] == " "):
        what = what[:1].lower() + what[1:]
    if one.kind == "date":
        what += " (YYYY-MM-DD)"
    if one.choices:
        what += f" ({', '.join(str(choice) for choice in one.choices[:8])})"
    return phrase("ask", language, tool=tool, what=what)


def _use(option: _Option, scene: Scene, language: Language) -> Move:
    args = option.values(scene.lines)
    missing = option.missing(args)
    if missing is not None:
        return AskFirst(ask_text(option.name, missing, language), missing.name)
    if option.destroys(args):
        return AskFirst(phrase("confirm", language, call=call_text(option.name, args)))
    return Call(option.name, args)


def _after_calls(scene: Scene, options: Sequence[_Option], language: Language) -> Move:
    """Another tool that the same message clearly wants too; never one that was called already."""
    called = {line.name for line in scene.own_calls}
    if len(scene.own_calls) >= MOST_CALLS or not all(line.went_well for line in scene.own_calls):
        return Talk()
    text = _wanted_text(scene.latest)
    for option in options:
        if option.name not in called and text and not is_yes(text) and _score(option, text) >= SURE:
            return _use(option, scene, language)
    return Talk()


def _opened(scene: Scene, options: Sequence[_Option], language: Language) -> Move | None:
    """What the person's words mean for a question that is open: one of ours, recognised by its exact words."""
    said, latest = scene.said_before, scene.latest
    if not said or not latest:
        return None
    upto = _before_said(scene)
    for option in options:
        before = option.values(upto)
        wanted = next((one for one in option.parameters if option.asked(one, said)), None)
        if wanted is not None or option.confirmed_in(before, said):
            rival = max((_score(one, latest) for one in options if one is not option), default=0.0)
            return _replied(option, before, wanted, scene, language, rival)
    return None


def _replied(
    option: _Option,
    before: Mapping[str, Json],
    wanted: Parameter | None,
    scene: Scene,
    language: Language,
    rival: float,
) -> Move | None:
    """What a reply means for a tool: ``wanted`` was asked for, or with None whether to go ahead. None: something else.

    ``rival`` is how much the reply speaks for another tool.
    """
    latest = scene.latest
    now = option.values(scene.lines)
    changed = canonical(now) != canonical(before)
    free = wanted is not None and wanted.kind == "text"
    if not changed and wanted is None and is_yes(latest):
        return Call(option.name, before)
    given = wanted is not None and wanted.name in now and "?" not in latest
    elsewhere = rival >= THRESHOLD and rival > _score(option, latest) and not given
    if not free and (is_courtesy(latest) or elsewhere):
        return None
    if not changed and is_no(latest):
        return Decline(option.name)
    if not changed and "?" in latest:
        return None  # a question in place of an answer is taken for what it is
    return _use(option, scene, language)


def _filled_in(scene: Scene, options: Sequence[_Option], text: str) -> Move | None:
    """A harmless call whose arguments the message names without a word for the tool: "Two nights in Curitiba?"."""
    line = Line(who="person", text=text)
    for option in options:
        given = option.values([line])
        score = _score(option, text) + NAMED_VALUE * len(given)
        if score >= THRESHOLD and option.missing(given) is None and not option.destroys(given):
            return Call(option.name, option.values(scene.lines))
    return None


def _told_roots(option: _Option, args: Mapping[str, Json]) -> set[str]:
    values = {one for value in args.values() for one in roots(str(value))}
    return values | set(option.weights) | {root(word) for word in NUMBER_WORDS}


def _before_said(scene: Scene) -> Sequence[Line]:
    """The lines that the model had before it when it said its last words."""
    held = scene.before
    for index in range(len(held) - 1, -1, -1):
        if held[index].who == "model":
            return held[:index]
    return held


def _again(scene: Scene, options: Sequence[_Option], text: str) -> Move | None:
    """A short message that only changes a value of the last call ("And in Porto?") asks for that call again."""
    last = next((line for line in reversed(scene.before) if line.who == "call"), None)
    option = next((one for one in options if last is not None and one.name == last.name), None)
    if last is None or option is None or not text or len(words(text)) > 7:
        return None
    if not set(roots(text)) <= _told_roots(option, args := option.values(scene.lines)):
        return None  # it speaks of something else, too
    changed = find_values(option.parameters, [Line(who="person", text=text)], Hearing(known=option.known))
    if not changed or option.missing(args) is not None or option.destroys(args):
        return None
    return Call(option.name, args) if canonical(args) != canonical(dict(last.args)) else None


# ---- scoring ------------------------------------------------------------------------------------------------------


def _options(offers: Sequence[Offer]) -> list[_Option]:
    raw: list[dict[str, float]] = []
    known = frozenset(r for offer in offers for r in roots(f"{offer.spec.name} {offer.spec.description}"))
    held = [(offer, parameters_of(offer.spec.schema)) for offer in offers]
    for offer, parameters in held:
        weights: dict[str, float] = {}
        for one in parameters:
            texts = [one.name, one.about, *(str(choice) for choice in one.choices)]
            weights |= {root: 1.0 for text in texts for root in roots(text)}
        weights |= dict.fromkeys(roots(offer.spec.description), 1.5)
        weights |= dict.fromkeys(roots(offer.spec.name), 3.0)
        raw.append(weights)
    shared = Counter(root for weights in raw for root in weights)
    return [
        # What several tools have in common tells none of them apart; a name always does.
        _Option(offer, parameters, {r: w if w >= 3 else w / shared[r] for r, w in weights.items()}, known)
        for (offer, parameters), weights in zip(held, raw, strict=True)
    ]


def _score(option: _Option, text: str) -> float:
    """How much of the text speaks for a tool; a tool that the text says not to use scores nothing."""
    total = 0.0
    for name in reversed([run for run in runs(text, option.known) if run.size > 1]):
        text = text[: name.start] + text[name.stop :]  # Ana Costa costs nothing
    for wanted in list(dict.fromkeys(roots(text)))[:MOST_WORDS]:
        exact = option.weights.get(wanted)
        if exact is not None:
            total += exact
            continue
        alike = max(((likeness(wanted, [held]) * weight) for held, weight in option.weights.items()), default=0.0)
        total += alike
    return 0.0 if _negated(option, text) else total


def _negated(option: _Option, text: str) -> bool:
    named = set(roots(option.offer.spec.name))
    held = words(text)
    return any(
        set(roots(word.text)) & named and any(b.folded in NEGATIONS for b in held[max(index - 3, 0) : index])
        for index, word in enumerate(held)
    )
