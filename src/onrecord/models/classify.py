"""Classifier: a port for whatever judges a text without writing one. Chances come back as they were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from onrecord.conversation.usage import Usage
from onrecord.jsonio import Json

__all__ = ("Choice", "Chosen", "Classified", "Classifier", "Rated", "Rating", "Told", "YesNo")


class Choice(Struct, frozen=True, kw_only=True, tag="choice"):
    """Which one of several: ``options`` are names with what each stands for."""

    ask: str
    options: Mapping[str, str]


class YesNo(Struct, frozen=True, kw_only=True, tag="yes_no"):
    """Whether something holds."""

    ask: str


class Rating(Struct, frozen=True, kw_only=True, tag="rating"):
    """How much, between two ends."""

    ask: str
    low: float = 0.0
    high: float = 1.0


class Chosen(Struct, frozen=True, kw_only=True, tag="chosen"):
    """The answer to a `Choice`: the provider's own pick (empty: none), and the chances it gave, never rescaled.

    An option that it gave none is left out.
    """

    choice: str = ""
    chances: Mapping[str, float] = {}


class Told(Struct, frozen=True, kw_only=True, tag="told"):
    """The answer to a `YesNo`: the chance of yes."""

    yes: float


class Rated(Struct, frozen=True, kw_only=True, tag="rated"):
    """The answer to a `Rating`."""

    score: float


Question: TypeAlias = Choice | YesNo | Rating


class Classified(Struct, frozen=True, kw_only=True):
    """What a classifier answered: one answer per question, in order. ``latency_ms`` is wall time, 0 if unknown."""

    model: str
    answers: tuple[Chosen | Told | Rated, ...]
    usage: Usage | None = None
    latency_ms: int = 0


class Classifier(Protocol):
    """Answers questions about a state, a JSON value. A failure is a ModelError, never a guessed answer."""

    async def classify(self, state: Json, questions: Sequence[Question], /) -> Classified: ...
