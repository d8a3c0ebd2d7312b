"""The chat's turns at a host: what was accepted is taken although the program is killed, and shown once it can be."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from onrecord.agent import Agent
from onrecord.cli.terminal import Screen
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Input, Interruption, Said, row_key
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import StoreError
from onrecord.host import Give, Host, HostStream
from onrecord.session.inbox import Row
from onrecord.session.store import Store

__all__ = ("Hosted", "shown_message")

LEASE_S = 2.0
"""A killed chat's row can be taken again after this time: a person waits for it."""

POLL_S = 0.5


class Hosted:
    """A host that serves one session for a terminal. It lives on the chat's event loop, and rests when that does."""

    def __init__(
        self, agent: Agent[Any, Any], store: Store, key: SessionKey, screen: Screen, given: Give | None = None
    ) -> None:
        self.store, self.key, self.screen = store, key, screen
        self.host: Host[Any, Any] = Host(
            agent, store=store, only=key, given=given, deliver=self._deliver, lease_s=LEASE_S, poll_s=POLL_S
        )
        self._replying = asyncio.Lock()
        self._shown = set[str]()

    # ---- turns

    async def unfinished(self) -> list[tuple[Said | Answered, HostStream[Any]]]:
        """What was said before the program ended and is not taken yet, in order, with the streams of its turns.

        All of them are waited for before the first is taken: the host takes one after the other without asking.
        """
        rows = await self.store.rows("in", self.key)
        bodies = [row.body for row in rows if not row.dead and isinstance(row.body, (Said, Answered))]
        keys = {row.key for row in rows}
        # One without a key of its own cannot be found again by it: it is taken without being streamed.
        waiting = [(body, self.stream(body)) for body in bodies if row_key(body, "") in keys]
        for _, stream in waiting:
            await stream.__aenter__()  # it is read and left later
        return waiting

    def stream(self, said: Input) -> HostStream[Any]:
        """Accepts an input, or finds it where it was accepted before, and streams its turn."""
        return self.host.turn_stream(self.key, said)

    @property
    def replying(self) -> asyncio.Lock:
        """Whoever shows a reply holds it, so that nothing else is shown in the middle."""
        return self._replying

    async def stop(self, said: Input | None) -> None:
        """Ends the turn of an input (None: whichever runs) with what was shown, also should the program end first."""
        row = secrets.token_hex(8) if said is None else row_key(said, "")
        by = Interruption(id=f"left:{row}", cause="left")
        if said is not None:
            await self.store.cancel("in", self.key, keys=[row], by=by)
        await self.host.interrupt(self.key, by)

    async def take_back(self, said: Input) -> None:
        """Withdraws an input whose turn failed, so that it is not tried again behind the back of who typed it."""
        with suppress(StoreError):  # then it stays accepted, and is taken later after all
            await self.host.cancel_pending(self.key, [row_key(said, "")])

    async def settle(self) -> None:
        """Takes what is due, such as wakes, and crosses off what was shown."""
        await self.host.work(once=True)

    async def close(self) -> None:
        """Gives back what runs."""
        await self.host.close(drain_s=1.0)

    # ---- messages

    async def was_shown(self, messages: tuple[Outgoing, ...]) -> None:
        """The person has read these: they are not delivered again, whenever they would have been due."""
        keys = [message.key for message in messages]
        self._shown.update(keys)
        if any(message.after_ms for message in messages):
            await self.store.cancel("out", self.key, keys=keys)

    async def show_left_over(self) -> None:
        """Messages of an earlier time that nobody is known to have seen."""
        now = datetime.now(UTC)
        rows = [row for row in await self.store.rows("out", self.key) if _is_due(row, now)]
        if not rows:
            return
        self.screen.line("  not known to have been shown yet:", dim=True)
        for row in rows:
            if isinstance(row.body, Outgoing):
                shown_message(self.screen, row.body)
                self._shown.add(row.key)
                await self.store.cancel("out", self.key, keys=[row.key])

    async def _deliver(self, session: SessionKey, message: Outgoing) -> None:
        """The terminal as a channel: what streamed is there already."""
        async with self._replying:
            if message.key not in self._shown:
                shown_message(self.screen, message)
                self._shown.add(message.key)


def _is_due(row: Row, now: datetime) -> bool:
    return not row.dead and not row.owner and (row.due is None or row.due <= now)


def shown_message(screen: Screen, message: Outgoing) -> None:
    """Shows a message that did not stream."""
    if message.text:
        screen.line(message.text)
    if message.media:
        screen.line(f"  [{message.media}]", dim=True)
