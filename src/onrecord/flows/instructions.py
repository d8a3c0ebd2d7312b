"""FlowInstruction: a rule for what a speaker says, in the whole agent, in one flow, in one step or for the idle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from onrecord.flows.phrases import Phrases, phrases
from onrecord.flows.predicates import Pred

__all__ = ("FlowInstruction", "InstructionKind", "as_tuples")

InstructionKind = Literal["must", "never", "should"]


def as_tuples(value: Struct, *names: str) -> None:
    """Turns lists of a declaration into tuples, so that nobody changes it later; whatever is no list is left alone."""
    for name in names:
        given = getattr(value, name)
        if isinstance(given, list):
            force_setattr(value, name, tuple(given))


class _Prompt(Struct, frozen=True):
    prompt: str


class FlowInstruction(_Prompt, frozen=True, kw_only=True):
    """A rule for the one who speaks. It never moves a run.

    ``prompt`` is a template. ``when`` is text for the model, alternatives of which those that begin with ``!`` exclude;
    ``only_if`` is a gate in code, judged when the reply is asked for.
    """

    kind: InstructionKind = "should"
    when: str | Sequence[str] = ()
    only_if: Pred | None = None
    id: str = ""

    def __post_init__(self) -> None:
        as_tuples(self, "when")

    @property
    def phrases(self) -> Phrases:
        """``when``, sorted into what it applies to and what it never applies to."""
        return phrases((self.when,) if isinstance(self.when, str) else self.when)
