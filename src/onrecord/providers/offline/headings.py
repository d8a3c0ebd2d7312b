"""What a flow puts before the stand-in: the headed parts of the turn text, and the lines in them as values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from onrecord.jsonio import Json, loads
from onrecord.models.request import Request
from onrecord.providers.offline.parameters import Parameter, parameters_of

__all__ = ("Candidate", "Headed", "Topic", "headed")

HEADING = re.compile(r"## (.+?)\s*")
MESSAGE = "## Customer's latest message"
BEHIND = ("\n## Output\n", "\n## Response format\n")
"""What stands behind the customer's message, so that headings inside it are taken for words of the customer."""
CANDIDATE = re.compile(r"(?:\d+\.|-) (\S+) — ([^:\n]*)(?:: (.*))?")
TOPIC = re.compile(
    r"- (?P<name>\S.*?) \((?:string|number|integer|boolean|list of \w+)\)(?: \[[^\]]*\])?(?:: (?P<about>.*))?"
)
PHRASES = {"The customer: ": "counts", "Counts when: ": "counts", "Score 0 when: ": "excludes",
           "Does not count when: ": "excludes"}  # fmt: skip
HOW = "  How to ask: "


@dataclass
class Candidate:
    """A flow that the customer may want, or that speaks of something the customer may mention."""

    id: str
    name: str
    about: str
    counts: list[str] = field(default_factory=list)
    excludes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Topic:
    """A field that is still to be collected: how it is called, described and asked for, and where its value goes."""

    slug: str
    about: str
    ask: str
    wire: str
    value: Parameter


@dataclass(frozen=True)
class Headed:
    """The parts of a turn text by their headings, and the facts that the system text has."""

    parts: Mapping[str, Sequence[str]]
    facts: tuple[str, ...]
    schema: Mapping[str, Json]

    def text(self, heading: str) -> str:
        """The text below the first heading that begins with these words; empty without one."""
        found = (lines for name, lines in self.parts.items() if name.startswith(heading))
        return "\n".join(next(found, ())).strip()

    def has(self, heading: str) -> bool:
        """Whether there is such a part."""
        return any(name.startswith(heading) for name in self.parts)

    @cached_property
    def known(self) -> dict[str, Json]:
        """What was collected before, by slug."""
        found: dict[str, Json] = {}
        for line in self.text("Already known").splitlines():
            slug, mark, value = line.removeprefix("- ").partition(": ")
            if line.startswith("- ") and mark:
                try:
                    found[slug] = loads(value)
                except (msgspec.DecodeError, RecursionError):
                    continue
        return found

    @cached_property
    def topics(self) -> tuple[Topic, ...]:
        """The fields of a reply in order: what the text says of each beside what the schema says."""
        wires = [name for name in _properties(self.schema) if name != "message"]
        told = _topic_lines(self.text("Still to collect"))
        alike = len(told) == len(wires)
        found: list[Topic] = []
        for place, wire in enumerate(wires):
            slug, about, ask = told[place] if alike else (wire, "", "")
            (value,) = parameters_of({"properties": {slug: _properties(self.schema)[wire]}})
            found.append(Topic(slug, value.about or about, ask, wire, value))
        return tuple(found)

    def candidates(self, heading: str) -> dict[str, Candidate]:
        """The numbered or listed flows below a heading, by id."""
        found: dict[str, Candidate] = {}
        last: Candidate | None = None
        for line in self.text(heading).splitlines():
            listed = CANDIDATE.fullmatch(line)
            if listed is not None:
                last = found.setdefault(listed[1], Candidate(listed[1], listed[2], listed[3] or ""))
                continue
            for lead, kind in PHRASES.items():
                if last is not None and line.strip().startswith(lead):
                    getattr(last, kind).extend(line.strip().removeprefix(lead).split("; "))
        return found

    def asked_now(self) -> list[str]:
        """The fields that the current step waits for, in its order."""
        lines = self.text("Current flow").splitlines()
        return [found["name"] for line in lines if (found := TOPIC.fullmatch(line)) is not None]

    @property
    def speaks_first(self) -> bool:
        """Whether there is no message to answer."""
        return "You speak first" in self.text("Situation")


def headed(request: Request) -> Headed:
    """Reads the pieces of a request that a director of flows made."""
    parts: dict[str, list[str]] = {}
    for piece in request.pieces:
        if piece.place == "turn":
            for name, lines in _parts(piece.text):
                parts.setdefault(name, lines)
    shape = request.shape
    facts = tuple(_facts(piece.text) for piece in request.pieces if piece.place == "system")
    return Headed(parts, facts, {} if shape is None else shape.schema)


def _parts(text: str) -> Iterator[tuple[str, list[str]]]:
    before, mark, after = f"\n{text}".partition(f"\n{MESSAGE}")
    yield from _split(before)
    if mark:
        end = max(after.rfind(one) for one in BEHIND)
        yield MESSAGE.removeprefix("## "), after[: end if end >= 0 else None].strip().splitlines()
        yield from _split(after[end:] if end >= 0 else "")


def _split(text: str) -> Iterator[tuple[str, list[str]]]:
    name, lines = "", list[str]()
    for line in text.splitlines():
        found = HEADING.fullmatch(line)
        if found is None:
            lines.append(line)
            continue
        if name:
            yield name, lines
        name, lines = found[1], []
    if name:
        yield name, lines


def _topic_lines(text: str) -> list[tuple[str, str, str]]:
    """Slug, description and way of asking; the latter stands on the line below."""
    held: list[tuple[str, str, str]] = []
    for line in text.splitlines():
        found = TOPIC.fullmatch(line)
        if found is not None:
            held.append((found["name"], found["about"] or "", ""))
        elif line.startswith(HOW) and held:
            held[-1] = (*held[-1][:2], line.removeprefix(HOW))
    return held


def _properties(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    held = schema.get("properties")
    return held if isinstance(held, Mapping) else {}


def _facts(text: str) -> str:
    """A system text without what it says of the speaker: who that is answers no question about anything else."""
    kept = [part for part in f"\n{text}".split("\n## ") if not part.startswith("Identity\n")]
    return _flat_facts("\n## ".join(kept).strip())


BULLET = re.compile(r"( *)- ([^:\n]+):(?: (.*))?")


def _flat_facts(text: str) -> str:
    """A system text whose nested bullets each say what they are about: ``- pool:`` and ``  - opens: 9:00`` together."""
    above: list[str] = []
    lines: list[str] = []
    for line in text.splitlines():
        found = BULLET.fullmatch(line)
        if found is None:
            lines.append(line)
            continue
        above[len(found[1]) // 2 :] = [found[2]]
        if found[3]:
            lines.append(f"- {' '.join(above)}: {found[3]}")
    return "\n".join(lines)
