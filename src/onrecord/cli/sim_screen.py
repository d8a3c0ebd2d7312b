"""What a simulation shows: messages, what each step came to, how a turn failed, and what one asks to see."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from onrecord.cli.asking import show_private
from onrecord.cli.failure import said_of, tell
from onrecord.cli.outcome_words import outcome_texts
from onrecord.cli.terminal import Screen
from onrecord.cli.world import Taken, World
from onrecord.conversation.inputs import row_key
from onrecord.conversation.outgoing import Outgoing
from onrecord.flows.captions import lasting
from onrecord.turn.result import TurnResult

__all__ = ("SimScreen",)

PATIENCE_S = 2.0
"""After this time without a word the screen says that one waits."""


class SimScreen:
    """The screen of one simulation. ``failed``: something was not understood, or a turn failed."""

    def __init__(self, screen: Screen, world: World, *, debug: bool) -> None:
        self.screen, self.world, self.debug = screen, world, debug
        self.private: dict[str, Mapping[str, str]] = {}  # by question
        self.failed = False

    @property
    def now(self) -> str:
        """The present instant, as people read it."""
        return self.world.clock.told(self.world.clock.at)

    def rows(self, lines: Iterable[str], otherwise: str) -> None:
        """What one asked to see, or that there is none of it."""
        for line in list(lines) or [otherwise]:
            self.screen.line(f"  {line}", dim=True)

    def refuse(self, told: str) -> None:
        """A line was not understood."""
        self.failed = True
        self.screen.line(f"  {told}", dim=True)

    async def turn(self, taken: Taken) -> None:
        """What a turn said, what its steps came to, and how it failed if it did."""
        if taken.cause:
            self.screen.line(f"{self.world.clock.told(taken.at)} · {taken.cause}", bold=True)
        if not taken.ticket.is_done:  # it was left in the middle, and is taken again
            return
        failure: Exception | None = None
        result: TurnResult[Any] | None
        try:
            result = await taken.ticket.result()
        except Exception as error:  # noqa: BLE001 - whatever ended the turn is told
            failure, result = error, getattr(error, "result", None)
        if result is not None:
            self._result(result)
        if failure is not None:
            self.tell(failure)
            await self._later(taken)

    def _result(self, result: TurnResult[Any]) -> None:
        screen = self.screen
        for message in result.messages:
            screen.line(_message_text(message))
        if result.status == "interrupted":
            screen.line("  interrupted", dim=True)
        elif result.status == "silent" and not result.lines:
            screen.line("  no reply", dim=True)
        for told in outcome_texts(result, self.world.clock.told):
            screen.line(f"    {told}", dim=True)
        if result.question is None:
            show_private(screen, result.private)
        else:
            self.private = {result.question.key: result.private}

    async def _later(self, taken: Taken) -> None:
        """Whether an input whose turn failed is taken again, as a host does it."""
        key = row_key(taken.input, "")
        for row in await self.world.rows():
            if row.key == key and not row.dead:
                told = self.world.clock.told(row.due or self.world.clock.at)
                self.screen.line(f"  it is tried again at {told}", dim=True)

    def tell(self, error: Exception) -> None:
        """What went wrong, and what to do."""
        self.failed = True
        if self.debug or not self.screen.live:
            self.screen.fresh()
            self.screen.out.flush()
            tell(error, debug=self.debug)
            return
        told, hint = said_of(error)
        self.screen.line(f"! {told}", bold=True)
        if hint:
            self.screen.line(f"  hint: {hint}", dim=True)

    @contextmanager
    def patience(self) -> Iterator[None]:
        """Inside, a terminal says after a while that the turn goes on, and takes that back at the end."""
        waiting = asyncio.get_running_loop().call_later(PATIENCE_S, self._wait)
        try:
            yield
        finally:
            waiting.cancel()
            if not self.screen.at_start:
                self.screen.erase()

    def _wait(self) -> None:
        if self.screen.styled and self.screen.at_start:
            self.screen.write("  waiting …", dim=True)


def _message_text(message: Outgoing) -> str:
    """A message as it arrives: after which delay, its text, its media."""
    delay = f"(after {lasting(timedelta(milliseconds=message.after_ms))}) " if message.after_ms else ""
    media = f"[{message.media}]" if message.media else ""
    return f"{delay}{' '.join(filter(None, (message.text, media)))}"
