"""A model whose stream stops where a test wants it, and turns that can be interrupted from outside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Input, Interruption, Said
from onrecord.conversation.outgoing import Delta
from onrecord.models.chunks import Chunk, Finished, TextChunk
from onrecord.models.model import ModelCard
from onrecord.models.request import Request, Wire
from onrecord.session.session import Session
from onrecord.testing import FakeEffects
from onrecord.turn.stream import TurnStream
from onrecord.turn.take import Order, take
from onrecord.turn.turn import Turn
from tests.turn.acting import Result

__all__ = ("WAIT", "Halting", "Live", "interrupted", "stream", "until")

WAIT = object()
"""In a script: the provider sends nothing more until the test opens `Halting.gate`."""


class Halting:
    """A provider call under a test's control: pieces of text, chunks, errors, and `WAIT`.

    ``closed`` names how each stream ended: ``done``, or the exception that closed it.
    """

    def __init__(self, *replies: tuple[object, ...]) -> None:
        self.replies = list(replies)
        self.gate, self.waiting = asyncio.Event(), asyncio.Event()
        self.closed: list[str] = []
        self.requests: list[Request] = []

    @property
    def card(self) -> ModelCard:
        return ModelCard(provider="halting", model="script", protocol="scripted")

    def wire(self, request: Request, /) -> Wire:
        return Wire(body=b"{}")

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        try:
            for piece in self.replies.pop(0):
                if isinstance(piece, Exception):
                    raise piece  # noqa: TRY301 - the script says that the provider fails here
                if piece is WAIT:
                    self.waiting.set()
                    await self.gate.wait()
                else:
                    yield TextChunk(piece) if isinstance(piece, str) else piece  # type: ignore[misc]  # what is no text is a chunk
            yield Finished()
        except BaseException as error:
            self.closed.append(type(error).__name__)
            raise
        self.closed.append("done")


class Live:
    """A turn that runs in a task of its own, for tests that interrupt it. ``seen`` are its deltas."""

    def __init__(
        self, agent: Agent[Any, Any], input: str | Input = "hi", *, session: Session | SessionKey | str = "s",
        read: bool = True,
    ) -> None:  # fmt: skip
        self.turns: list[Turn] = []
        self.seen: list[Delta] = []
        emit: Callable[[Delta], None] | None = self.seen.append if read else None
        held = SessionKey(session) if isinstance(session, str) else session
        said = Said(input) if isinstance(input, str) else input
        order = Order(input=said, session=held, emit=emit, began=self.turns.append)
        self.task: asyncio.Task[Result] = asyncio.ensure_future(take(agent.plan, order, FakeEffects()))

    def interrupt(self, id: str = "i1", cause: str = "stopped") -> bool:
        """What a host does when a person stops the reply."""
        (turn,) = self.turns
        return turn.interrupt(Interruption(id=id, turn=turn.id, cause=cause))


async def until(event: asyncio.Event) -> None:
    """Waits for it, and lets everything else come to rest."""
    await event.wait()
    for _ in range(5):
        await asyncio.sleep(0)


async def interrupted(live: Live, at: asyncio.Event) -> Result:
    """The result of a turn that a person stopped there."""
    await until(at)
    assert live.interrupt()
    result = await live.task
    assert result.status == "interrupted"
    return result


def stream(agent: Agent[Any, Any], input: str | Input = "hi", **given: Any) -> TurnStream[Any]:
    """A turn to read, under a clock that stands still."""
    held: TurnStream[Any] = agent.turn_stream(input, **{"effects": FakeEffects(), **given})
    return held
