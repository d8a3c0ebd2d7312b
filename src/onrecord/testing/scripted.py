"""ScriptedModel: answers in order, loud when they run out. For users' tests as much as for ours."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from onrecord.conversation.content import Part
from onrecord.conversation.messages import ContextMessage, Unit, UserMessage
from onrecord.conversation.render import context_text
from onrecord.conversation.usage import Usage
from onrecord.errors import ErrorKind, ModelError
from onrecord.jsonio import Json, dumps
from onrecord.models.chunks import CallChunk, Chunk, Finished, TextChunk
from onrecord.models.model import ModelCard
from onrecord.models.request import Purpose, Request, Wire

__all__ = ("Failing", "Reply", "ScriptedModel", "call", "raises", "reply", "shown")

QUEUES: dict[Purpose, str] = {"speak": "speak", "wrap_up": "speak", "judge": "judge", "consult": "consult"}


class Failing(Struct, frozen=True):
    """In a script: at this point the model raises."""

    error: Exception


class Reply(Struct, frozen=True, kw_only=True):
    """In a script: several chunks, with usage and finish of their own."""

    chunks: tuple[Any, ...]
    usage: Usage | None = None
    finish: str = ""


class ScriptEnded(ModelError, AssertionError):
    """The script was asked for more than it holds: a test went another way than it says."""


Step = str | Chunk | Failing | Reply | Sequence[Any] | Callable[[Request], Any] | Exception


def call(name: str, /, *, wire_id: str = "", **args: Json) -> CallChunk:
    """A tool call as the model asks for it: ``call("price", city="Lund")``."""
    return CallChunk(wire_id=wire_id or f"call_{name}", name=name, raw_args=dumps(args).decode())


def reply(*chunks: Any, usage: Usage | None = None, finish: str = "") -> Reply:
    """A reply of several parts: ``reply("Let me see.", call("price", city="Lund"), usage=Usage(...))``."""
    return Reply(chunks=chunks, usage=usage, finish=finish)


def raises(kind: ErrorKind = "overload", *, retry_after: float | None = None, status: int | None = None) -> Failing:
    """The model fails here; put it behind text to fail in mid-stream."""
    return Failing(
        ModelError(f"scripted {kind}", kind=kind, provider="scripted", retry_after=retry_after, status=status)
    )


class ScriptedModel:
    """A model that answers from a script, one queue per purpose.

    An answer is a text, a list of texts and `call`s, a `reply`, `raises`, an exception, or a function of the request
    giving one. ``requests`` and ``calls`` (their purposes) are kept. When a queue is empty it raises `ScriptEnded`, an
    AssertionError, saying how many answers it had and what was asked.
    """

    def __init__(
        self,
        *answers: Step,
        judge: Iterable[Step] = (),
        consult: Iterable[Step] = (),
        card: ModelCard | None = None,
        usage: Usage | None = None,
    ) -> None:
        self._queues = {"speak": list(answers), "judge": list(judge), "consult": list(consult)}
        self._had = {name: len(queue) for name, queue in self._queues.items()}
        self._card = card or ModelCard(provider="scripted", model="script", protocol="scripted", about="a test double")
        self._usage = usage
        self.requests: list[Request] = []

    @property
    def card(self) -> ModelCard:
        return self._card

    @property
    def calls(self) -> list[str]:
        """The purposes of the requests so far."""
        return [r.purpose for r in self.requests]

    @property
    def left(self) -> int:
        """How many answers were not asked for yet."""
        return sum(map(len, self._queues.values()))

    def add(self, *answers: Step) -> None:
        """More answers for speaking."""
        self._queues["speak"] += answers
        self._had["speak"] += len(answers)

    def wire(self, request: Request, /) -> Wire:
        return Wire(body=dumps(shown(request)))

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        name = QUEUES[request.purpose]
        if not self._queues[name]:
            raise ScriptEnded(
                f"the script has no answer left for {request.purpose!r}: it had {self._had[name]}, this is request "
                f"{len(self.requests)} ({request.where})",
                provider="scripted",
                hint="give ScriptedModel another answer; one that calls tools is followed by one that ends the turn",
            )
        answer = self._queues[name].pop(0)
        if callable(answer):
            answer = answer(request)
        steps, usage, finish = _steps(answer)
        for step in steps:
            if isinstance(step, Failing):
                raise step.error
            if isinstance(step, Exception):
                raise step
            yield TextChunk(step) if isinstance(step, str) else step
        asked = any(isinstance(s, CallChunk) for s in steps)
        yield Finished(finish=finish or ("calls" if asked else "stop"), usage=usage or self._usage)


def _steps(answer: Any) -> tuple[Sequence[Any], Usage | None, str]:
    if isinstance(answer, Reply):
        return answer.chunks, answer.usage, answer.finish
    if isinstance(answer, (list, tuple)):
        return answer, None, ""
    return [answer], None, ""


def shown(request: Request) -> Mapping[str, Json]:
    """What a request shows a model, as plain JSON: readable in an assertion, and the bytes of this model's wire."""
    messages: list[Json] = []
    swaps = {(swap.unit, swap.call): swap.shows for swap in request.view.swaps}
    for span in request.view.spans:
        if isinstance(span, ContextMessage):
            messages += _unit(-1, span, swaps)
            continue
        for index, unit in enumerate(request.conversation.units[span.start : span.stop], span.start):
            messages += _unit(index, unit, swaps)
    system = [p.text for p in request.pieces if p.place == "system"]
    return {
        "system": "\n\n".join(t for t in system if t),
        "messages": messages,
        "turn": [p.text for p in request.pieces if p.place == "turn"],
        "trailing": [p.text for p in request.pieces if p.place == "trailing"],
        "tools": [o.spec.name for o in request.offers],
        "choice": request.choice,
    }


def _unit(index: int, unit: Unit, swaps: Mapping[tuple[int, int], Sequence[Part]]) -> list[Json]:
    if isinstance(unit, UserMessage):
        return [{"role": "user", "content": unit.text}]
    if isinstance(unit, ContextMessage):
        return [{"role": unit.authority, "content": context_text(unit)}]
    out: list[Json] = [{"role": c.authority, "content": context_text(c)} for c in unit.before]
    said: dict[str, Json] = {"role": "assistant", "content": unit.text}
    if unit.calls:
        said["calls"] = [{"name": c.name, "args": c.args} for c in unit.calls]
    out.append(said)
    for place, asked in enumerate(unit.calls):
        shows = swaps.get((index, place))
        parts, notes = (asked.result or (), asked.notes) if shows is None else (shows, ())
        text = "".join(p.text for p in parts if hasattr(p, "text"))
        out.append({"role": "tool", "name": asked.name, "content": text + "".join(n.text for n in notes)})
    out += [{"role": c.authority, "content": context_text(c)} for c in unit.revised]
    return out
