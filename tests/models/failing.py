"""Models that fail as told, a clock that moves when told, and calls drained to their end."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from onrecord.errors import ErrorKind, GivenUp, ModelError
from onrecord.models.call_rules import CallRule, CallScope, Verb
from onrecord.models.chunks import Chunk, Finished, TextChunk
from onrecord.models.model import Model, ModelCard
from onrecord.models.request import ProjectionIssue, Request, Wire
from tests.models.requests import CARD, request, user

Script = Iterable[Chunk | Exception | Callable[[], object]]

BUSY = ModelError("a provider that is down", kind="overload", status=503, provider="acme")

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


class Clock:
    """Seconds and instants that move when told; sleeping moves them, too, and is remembered."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.at

    def now(self) -> datetime:
        """The instant, noon at the beginning."""
        return NOON + timedelta(seconds=self.at - 1000.0)

    async def sleep(self, seconds: float) -> None:
        """Moves on at once."""
        self.slept.append(seconds)
        self.at += seconds


def error(kind: ErrorKind = "overload", status: int | None = None, **fields: Any) -> ModelError:
    """A failure of this kind."""
    return ModelError(f"a scripted {kind}", kind=kind, status=status, provider="acme", **fields)


def says(text: str, **fields: Any) -> list[Chunk]:
    """A reply of one text."""
    return [TextChunk(text), Finished(**fields)]


class Failing:
    """A model that plays one script per request, the last one again and again; ``asked`` are the requests it got.

    ``lacks`` is what its wire cannot carry. A function in a script is called where it stands, and waited for.
    """

    def __init__(self, name: str, *scripts: Script, lacks: str = "", card: ModelCard | None = None) -> None:
        self._card = card or replace(CARD, provider=name, model="m", base_url=f"http://{name}/v1")
        self.scripts = [list(script) for script in scripts]
        self.lacks = lacks
        self.asked: list[Request] = []

    @property
    def card(self) -> ModelCard:
        """Named after the model."""
        return self._card

    def wire(self, asked: Request, /) -> Wire:
        """The model's name, the scope, and the texts at the end."""
        trailing = "|".join(piece.text for piece in asked.pieces if piece.place == "trailing")
        issues = (ProjectionIssue(unit=0, what=self.lacks),) if self.lacks else ()
        return Wire(body=f"{self._card.name} {asked.scope} {trailing}".encode(), issues=issues)

    async def stream(self, asked: Request, /) -> AsyncGenerator[Chunk, None]:
        """The next script."""
        script = self.scripts[min(len(self.asked), len(self.scripts) - 1)]
        self.asked.append(asked)
        for item in script:
            if isinstance(item, Exception):
                raise item
            if callable(item):
                if inspect.isawaitable(got := item()):
                    await got
                continue
            yield item


async def drained(model: Model, asked: Request | None = None) -> tuple[list[Chunk], ModelError | None]:
    """What comes out of a call, and the error that ends it."""
    out: list[Chunk] = []
    chunks = model.stream(asked or request(user("q")))
    try:
        async for chunk in chunks:
            out.append(chunk)  # noqa: PERF401 - what came before an error counts
    except ModelError as problem:
        return out, problem
    finally:
        await chunks.aclose()
    return out, None


def text_of(chunks: Iterable[Chunk]) -> str:
    """The words that were handed out."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


def when(kind: str, then: Verb, **fields: Any) -> CallRule:
    """A rule about one kind of call."""
    return CallRule(only_if=lambda s: s.error_kind == kind, then=then, **fields)


def always(then: Verb, **fields: Any) -> CallRule:
    """A rule about every failed call."""
    return CallRule(only_if=lambda s: s.error is not None, then=then, **fields)


def given_up(problem: ModelError | None) -> GivenUp:
    """The error, as the one that rules raise."""
    assert isinstance(problem, GivenUp)
    return problem


def looking(seen: list[CallScope], then: Verb = "ok") -> CallRule:
    """A rule that never holds, and keeps what it saw."""

    def look(scope: CallScope) -> bool:
        seen.append(scope)
        return False

    return CallRule(only_if=look, then=then)
