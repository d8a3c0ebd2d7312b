"""``offline``: a rule-based stand-in behind the model port. It says what it is, and never pretends to understand."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator, Mapping

from onrecord.conversation.content import Part
from onrecord.conversation.display import labelled
from onrecord.conversation.messages import ContextMessage, Unit, UserMessage
from onrecord.conversation.render import context_text, user_parts
from onrecord.errors import ConfigurationError
from onrecord.jsonio import Json, canonical, dumps
from onrecord.models.chunks import CallChunk, Chunk, Finished, TextChunk
from onrecord.models.model import ModelCard
from onrecord.models.request import Request, Wire
from onrecord.models.unit_bytes import result_parts
from onrecord.providers.offline.choosing import AskFirst, Call, Decline, Move, Talk, choose
from onrecord.providers.offline.filling import filled
from onrecord.providers.offline.judging import judged
from onrecord.providers.offline.replying import played
from onrecord.providers.offline.scene import Scene, look, shown_units, swaps_of
from onrecord.providers.offline.telling import plain_answer, results_text
from onrecord.providers.offline.wording import HONEST, Language, language_of, phrase

__all__ = ("Offline", "named")

PIECE = re.compile(r"\s*\S+|\s+")
TALKS = frozenset({"speak", "wrap_up"})


def named(provider: str, model: str) -> Offline:
    """The stand-in for ``offline`` or ``offline:rules``: there is one. ConfigurationError for another name."""
    if model not in {"", "rules"}:
        raise ConfigurationError(f"there is no model {model!r} of provider {provider!r}", hint=f"write {provider!r}")
    return Offline("rules", provider=provider)


class Offline:
    """Answers by word overlap, types and patterns: equal requests give equal replies, and nothing is ever raised."""

    def __init__(self, model: str = "rules", *, provider: str = "offline") -> None:
        self.card = ModelCard(
            provider=provider,
            model=model,
            protocol="offline",
            images=False,
            audio=False,
            files=False,
            structured="native",
            about="A rule-based stand-in without key, network or weights, for the demo, documentation and first steps.",
            honest=HONEST,
        )

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        """The reply word by word, or one call, then how it ended; nobody counts tokens here."""
        for chunk in reply_chunks(request, self.card.model):
            yield chunk

    def wire(self, request: Request, /) -> Wire:
        """What the stand-in is shown, as canonical JSON. It sends nothing and refuses nothing."""
        return Wire(body=canonical(_shown(request)))


def reply_chunks(request: Request, model: str) -> Iterator[Chunk]:
    """The chunks of the reply to a request."""
    scene = look(request)
    language = language_of([scene.latest, *(line.text for line in reversed(scene.before) if line.who == "person")])
    shape = request.shape
    if shape is not None and shape.name == "understand" and request.purpose == "judge":
        yield from _written(dumps(judged(request, scene)).decode(), model)
        return
    flowing = shape is not None and shape.name == "speak" and request.purpose in TALKS
    move = played(request, scene, language) if flowing else _move(request, scene, language)
    if isinstance(move, Call):
        wire_id = f"offline-{len(request.conversation.units)}-0"
        yield CallChunk(wire_id=wire_id, name=move.name, raw_args=dumps(move.args).decode())
        yield Finished(finish="calls", model=model)
        return
    if isinstance(move, dict):
        yield from _written(dumps(move).decode(), model)
        return
    text = _spoken(request, scene, move, language)
    if shape is not None:
        said = text if request.purpose in TALKS else ""
        text = dumps(filled(shape.schema, scene.lines, name=shape.name, spoken=said)).decode()
    yield from _written(text, model)


def _written(text: str, model: str) -> Iterator[Chunk]:
    for piece in PIECE.findall(text):
        yield TextChunk(piece)
    yield Finished(finish="stop", model=model)


def _move(request: Request, scene: Scene, language: Language) -> Move:
    if not request.offers or request.choice == "none" or request.purpose != "speak":
        return Talk()
    forced = "" if request.choice in {"auto", "required"} else request.choice
    if forced and scene.own_calls:
        return Talk()
    return choose(scene, request.offers, language, forced)


def _spoken(request: Request, scene: Scene, move: AskFirst | Decline | Talk, language: Language) -> str:
    results = results_text(scene.own_calls, language) if scene.own_calls else ""
    match move:
        case AskFirst(text=question):
            return f"{results} {question}".strip()
        case Decline(name=name):
            return phrase("declined", language, tool=name)
        case _:
            return results or plain_answer(scene, request.offers, language)


def _shown(request: Request) -> dict[str, Json]:
    swaps = swaps_of(request)
    shape = request.shape
    return {
        "purpose": request.purpose,
        "pieces": [{"place": piece.place, "text": piece.text} for piece in request.pieces],
        "units": [line for index, unit in shown_units(request) for line in _lines(index, unit, swaps)],
        "tools": [
            {"name": o.spec.name, "description": o.spec.description, "schema": o.spec.schema} for o in request.offers
        ],
        "choice": request.choice,
        "output": None if shape is None else {"name": shape.name, "schema": shape.schema},
    }


def _lines(index: int, unit: Unit, swaps: Mapping[tuple[int, int], tuple[Part, ...]]) -> Iterator[dict[str, Json]]:
    if isinstance(unit, UserMessage):
        yield {"role": "user", "text": labelled(user_parts(unit))}
        return
    if isinstance(unit, ContextMessage):
        yield {"role": unit.authority, "text": context_text(unit)}
        return
    for note in unit.before:
        yield from _lines(index, note, swaps)
    calls: list[Json] = []
    for place, call in enumerate(unit.calls):
        if call.status != "asked":
            shows = swaps.get((index, place))
            result = labelled(result_parts(call) if shows is None else shows)
            calls.append({"name": call.name, "arguments": call.raw_args, "result": result})
    yield {"role": "model", "text": unit.text, "calls": calls}
    for correction in unit.revised:
        yield from _lines(index, correction, swaps)
