"""The understand call: what is put to the model about a message, the shape of its answer, and what it answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.messages import Round
from onrecord.flows.aliases import aliases
from onrecord.flows.coercion import read_boolean
from onrecord.flows.embedded import first_object
from onrecord.flows.fields import FieldSpec, field_line, is_known, to_wire_schema
from onrecord.flows.flow import Flow
from onrecord.flows.flow_lines import candidate_lines, lines_of
from onrecord.flows.numerals import read_number
from onrecord.flows.passage import Passage, passage
from onrecord.flows.steps import Collect, Talk
from onrecord.flows.triggers import OnMessage
from onrecord.jsonio import Json, dumps
from onrecord.models.request import Reading, Shape

__all__ = ("Frame", "Judged", "ToJudge", "frame_of", "understand_shape")

SECTIONS = frozenset({"flows", "mentions", "extract", "branches", "fields", "asks"})
BEST = 100
"""The highest score."""

_SCORE: Json = {"type": ["integer", "null"]}
_TRUTH: Json = {"type": ["boolean", "null"]}
_MOST_FRAMES, _MOST_SHAPES = 256, 64
_FRAMES: dict[object, tuple[ToJudge, Frame]] = {}


class ToJudge(Struct, frozen=True, kw_only=True):
    """What a message is judged for.

    ``floor`` is the flow whose run is asking, ``floor_step`` its talk step and ``pending`` what that still wants.
    ``candidates`` may be wanted, the floor's flow first among them; ``mentions`` may be mentioned. ``branches`` are
    the addresses of questions with their texts, rendered; ``fields`` are what may have been told. ``asks``: whether the
    customer asks something. Flows and fields are the declared ones themselves, not copies: by them what was compiled is
    found again. ``input`` is that of the floor's run; ``starts`` names, of flows that list several triggers with
    phrases, the one that would start it, where that is not the first.
    """

    floor: Flow | None = None
    floor_step: Talk | Collect | None = None
    input: Json = None
    pending: tuple[FieldSpec, ...] = ()
    candidates: tuple[Flow, ...] = ()
    starts: Mapping[str, OnMessage] = {}
    mentions: tuple[Flow, ...] = ()
    branches: tuple[tuple[str, str], ...] = ()
    fields: tuple[FieldSpec, ...] = ()
    asks: bool = False

    @property
    def needs_a_call(self) -> bool:
        """Whether anything is open: a flow beside the floor's own, a mention, a question or a field."""
        if self.mentions or self.branches or self.fields:
            return True
        return any(flow is not self.floor for flow in self.candidates)


class Judged(Struct, frozen=True, kw_only=True):
    """What the model judged, by flow id, branch address and field slug; what it did not judge is absent.

    ``scores`` are from 0 to 100. Values of ``extract`` and ``fields`` are as the model gave them. ``usable`` is false
    when the reply held nothing that was asked for.
    """

    scores: Mapping[str, float] = {}
    mentions: Mapping[str, bool] = {}
    extracts: Mapping[str, Mapping[str, Json]] = {}
    branches: Mapping[str, bool] = {}
    fields: Mapping[str, Json] = {}
    asks: bool | None = None
    usable: bool = True


class Frame:
    """Everything about a question that is the same whenever the same things are judged.

    ``flow_names``, ``field_names`` and ``extract_names`` say under which name flows, fields and the values of a mention
    travel; ``candidates``, ``mentions``, ``details`` and ``output`` are parts of the prompt.
    """

    __slots__ = (
        "_shapes", "candidates", "details", "extract_names", "field_names", "flow_names", "mentions", "output", "schema"
    )  # fmt: skip

    def __init__(self, asked: ToJudge) -> None:
        self.flow_names = aliases((flow.id for flow in (*asked.candidates, *asked.mentions)), "f")
        self.field_names = aliases((spec.slug for spec in asked.fields), "d")
        self.extract_names = {
            flow.id: aliases((spec.slug for spec in lines_of(flow).extract), "d")
            for flow in asked.mentions
            if lines_of(flow).extract
        }
        self.candidates = passage(self._candidates(asked))
        self.mentions = passage(self._mentions(asked.mentions))
        self.details = "".join(f"\n- {field_line(spec, self.field_names[spec.slug])}" for spec in asked.fields)
        self.schema = _closed(self._schemas(asked))
        self.output = _output(self.schema["properties"])
        self._shapes: dict[tuple[str, ...], Shape[Judged]] = {}

    def shape(self, addresses: tuple[str, ...]) -> Shape[Judged]:
        """The shape for questions with these addresses; one object for equal ones."""
        made = self._shapes.get(addresses)
        if made is None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            questions = {_question(number): address for number, address in enumerate(addresses)}
            read = partial(_read, frame=self, questions=questions)
            made = self._shapes[addresses] = Shape(name="understand", schema=self.schema, read=read)
        return made

    def _candidates(self, asked: ToJudge) -> Iterator[str | Passage]:
        for number, flow in enumerate(asked.candidates, 1):
            yield f"\n{number}. {self.flow_names[flow.id]}"
            start = asked.starts.get(flow.id)
            yield lines_of(flow).candidate if start is None else candidate_lines(flow, start)

    def _mentions(self, flows: Iterable[Flow]) -> Iterator[str | Passage]:
        for flow in flows:
            lines = lines_of(flow)
            yield f"\n- {self.flow_names[flow.id]}"
            yield lines.mention
            if lines.extract:
                names = self.extract_names[flow.id]
                yield "\n  When true, also extract:"
                yield "".join(f"\n  - {field_line(spec, names[spec.slug])}" for spec in lines.extract)

    def _schemas(self, asked: ToJudge) -> Iterator[tuple[str, Json]]:
        names = self.flow_names
        if asked.candidates:
            yield "flows", _closed((names[flow.id], _SCORE) for flow in asked.candidates)
        if asked.mentions:
            yield "mentions", _closed((names[flow.id], _TRUTH) for flow in asked.mentions)
        if self.extract_names:
            extracting = (flow for flow in asked.mentions if flow.id in self.extract_names)
            yield "extract", _closed((names[flow.id], self._extract(flow)) for flow in extracting)
        if asked.branches:
            yield "branches", _closed((_question(number), _TRUTH) for number in range(len(asked.branches)))
        if asked.fields:
            yield "fields", to_wire_schema(asked.fields, names=self.field_names)
        if asked.asks:
            yield "asks", _TRUTH

    def _extract(self, flow: Flow) -> Json:
        return to_wire_schema(lines_of(flow).extract, names=self.extract_names[flow.id])


def frame_of(asked: ToJudge) -> Frame:
    """The frame of a question: one that was built for the same flows and fields, or a new one."""
    key = (
        tuple(map(id, asked.candidates)), tuple(map(id, asked.mentions)), tuple(map(id, asked.fields)),
        len(asked.branches), asked.asks, tuple((flow, id(trigger)) for flow, trigger in asked.starts.items()),
    )  # fmt: skip
    held = _FRAMES.get(key)
    if held is None:
        if len(_FRAMES) >= _MOST_FRAMES:
            _FRAMES.clear()
        # What the key names by id is kept with it, so that no id can come to mean something else; not the questions,
        # in which a customer's words may stand.
        held = _FRAMES[key] = (replace(asked, branches=(), pending=()), Frame(asked))
    return held[1]


def understand_shape(asked: ToJudge) -> Shape[Judged]:
    """What the answer must look like, and how it is read: tolerantly, and never with an error."""
    return frame_of(asked).shape(tuple(address for address, _ in asked.branches))


def _question(number: int) -> str:
    """The name of a question: addresses never travel, they are no names that every vendor takes."""
    return f"q{number + 1}"


def _closed(properties: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    held = dict(properties)
    return {"type": "object", "properties": held, "required": list(held), "additionalProperties": False}


# ---- the end of the prompt -------------------------------------------------------------------------------------------
_OUTPUT = (
    "## Output\n"
    "One JSON object and nothing else: no words around it, no code fence. Every key below is required; null stands for "
    "nothing.\n"
)
_TOLD = {
    "flows": "the score of each flow, a whole number from 0 to 100.",
    "mentions": "true or false for each thing the customer may mention.",
    "extract": "the values that come with what is mentioned, as the customer gave them.",
    "branches": "true or false for each question about this message.",
    "fields": "the details that the customer gave in this message.",
    "asks": "true when the customer asks something or wants something that a reply must deal with, false when not.",
}
_EMPTY: Mapping[str, Json] = {"flows": 0, "mentions": False, "branches": False}


def _output(sections: Mapping[str, Json]) -> str:
    """What the answer looks like, by a skeleton whose values a model cannot take for an answer."""
    told = "".join(f'- "{name}": {_TOLD[name]}\n' for name in sections)
    return f"{_OUTPUT}{told}{dumps({name: _skeleton(name, schema) for name, schema in sections.items()}).decode()}"


def _skeleton(section: str, schema: Json) -> Json:
    if section == "asks":
        return False
    if section == "extract":
        return {flow: dict.fromkeys(each["properties"]) for flow, each in schema["properties"].items()}
    return dict.fromkeys(schema["properties"], _EMPTY.get(section))


# ---- the answer ------------------------------------------------------------------------------------------------------
def _read(settled: Round, *, frame: Frame, questions: Mapping[str, str]) -> Reading[Judged]:
    text = settled.text
    found = first_object(text, SECTIONS)
    if found is None or SECTIONS.isdisjoint(found):
        return Reading(text=text, value=Judged(usable=False))
    real = {alias: name for name, alias in frame.flow_names.items()}
    slugs = {alias: slug for slug, alias in frame.field_names.items()}
    extracts = {real.get(name, name): each for name, each in _map(found, "extract").items() if isinstance(each, dict)}
    judged = Judged(
        scores={real.get(name, name): score for name, score in _numbers(_map(found, "flows"))},
        mentions={real.get(name, name): held for name, held in _truths(_map(found, "mentions"))},
        extracts={flow: _extracted(each, frame.extract_names.get(flow, {})) for flow, each in extracts.items()},
        branches={questions.get(name, name): held for name, held in _truths(_map(found, "branches"))},
        fields={slugs.get(name, name): value for name, value in _map(found, "fields").items() if is_known(value)},
        asks=read_boolean(found.get("asks")),
    )
    return Reading(text=text, value=judged)


def _map(found: Mapping[str, Json], section: str) -> Mapping[str, Json]:
    held = found.get(section)
    return held if isinstance(held, dict) else {}


def _numbers(section: Mapping[str, Json]) -> Iterator[tuple[str, float]]:
    for name, raw in section.items():
        if (score := read_number(raw)) is not None:
            yield name, min(max(score, 0), BEST)


def _truths(section: Mapping[str, Json]) -> Iterator[tuple[str, bool]]:
    for name, raw in section.items():
        if (held := read_boolean(raw)) is not None:
            yield name, held


def _extracted(values: Mapping[str, Json], names: Mapping[str, str]) -> Mapping[str, Json]:
    """The values of a mention without those that say nothing."""
    real = {alias: name for name, alias in names.items()}
    return {real.get(name, name): value for name, value in values.items() if value not in (None, "", [], {})}
