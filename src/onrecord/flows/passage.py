"""Passages: stretches of a prompt with templates in them, of which everything fixed is joined beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from onrecord.flows.template import Template
from onrecord.jsonio import Json

__all__ = ("Joined", "Part", "Passage", "passage")


class Joined(NamedTuple):
    """Templates after each other, and nothing at all where none of them says anything."""

    before: str
    templates: tuple[Template, ...]
    between: str = ""

    @property
    def is_static(self) -> bool:
        """Whether nothing in it is ever filled in."""
        return all(template.is_static for template in self.templates)

    def render(self, data: Mapping[str, Json], context: object = None, input: Json = None) -> str:
        """What it says, with what stands before it."""
        texts = [text for each in self.templates if (text := each.told(data, context, input).strip())]
        return f"{self.before}{self.between.join(texts)}" if texts else ""


Part = str | Joined


class Passage(Struct, frozen=True):
    """Text whose parts are rendered together; with nothing to fill in it is one text, given as it is."""

    parts: tuple[Part, ...]

    def render(self, data: Mapping[str, Json], context: object = None, input: Json = None) -> str:
        """The text for this turn."""
        parts = self.parts
        if len(parts) == 1 and isinstance(parts[0], str):
            return parts[0]
        return "".join(part if isinstance(part, str) else part.render(data, context, input) for part in parts)


def passage(parts: Iterable[Part | Passage]) -> Passage:
    """A passage of parts and other passages."""
    made: list[Part] = []
    fixed: list[str] = []
    for given in parts:
        for part in given.parts if isinstance(given, Passage) else (given,):
            if isinstance(part, str):
                fixed.append(part)
            elif part.is_static:
                fixed.append(part.render({}))
            else:
                made += ("".join(fixed), part)
                fixed = []
    made.append("".join(fixed))
    return Passage(tuple(part for part in made if part))
