"""What a host does with what is kept: changing a history, starting it anew, erasing, letting go by age."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onrecord.conversation.content import Part
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.messages import Message
from onrecord.host.desk import Desk
from onrecord.session.erasure import Erasure, Retention
from onrecord.turn.result import TurnResult

__all__ = ("Keeping",)


class Keeping:
    """The half of a host that changes what was kept."""

    _desk: Desk

    async def edit_result(
        self, session: SessionKey | str, message: str, call: str, result: Sequence[Part], *, by: str
    ) -> TurnResult[Any]:
        """Another result for a tool call; see `onrecord.session.history.edit_result`."""
        return await self._desk.change(session, "edit", by, message=message, call=call, value=result)

    async def remove(self, session: SessionKey | str, message: str, *, by: str) -> TurnResult[Any]:
        """The conversation without a message; the record keeps what it was."""
        return await self._desk.change(session, "remove", by, message=message)

    async def import_history(
        self, session: SessionKey | str, messages: Sequence[Message], *, by: str
    ) -> TurnResult[Any]:
        """Messages from elsewhere, behind the present ones."""
        return await self._desk.change(session, "import", by, value=messages)

    async def reset(self, session: SessionKey | str, *, by: str) -> None:
        """An empty conversation and empty data, at once: what runs or waits stores nothing of the old one."""
        await self._desk.reset(session, by)

    async def erase(
        self, what: SessionKey | Identity | str, *, messages: Sequence[str] | None = None, why: str
    ) -> Erasure:
        """Erases a session, all of a person's, or the turns of some messages: in the store, here, and in features.

        What runs there is stopped, and nothing of it is stored. Every feature that keeps something of its own forgets
        the session or person; also for some messages the whole session, since features know no messages. FeatureFailed
        when one could not, after all were asked: erase again then. See `Store.erase`.
        """
        return await self._desk.erase(what, messages, why)

    async def expire(self, policy: Retention) -> Erasure:
        """Erases what is older than the policy says; see `Store.expire`."""
        return await self._desk.expire(policy)
