"""What a host does with what is kept: changing a history, starting it anew, erasing, letting go by age."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from msgspec.structs import replace

from onrecord.conversation.content import Part
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.messages import Message
from onrecord.errors import FeatureFailed, SessionConflict, UsageError
from onrecord.host.desk import Desk, named
from onrecord.host.forgetting import expire, forget
from onrecord.host.running import Asked
from onrecord.record.kinds import HistoryChanged
from onrecord.session.erasure import Erasure, Retention
from onrecord.session.history import raw_value, reset
from onrecord.session.inbox import Row
from onrecord.session.let_go import changes_below
from onrecord.turn.result import TurnResult

__all__ = ("Keeping",)

Op = Literal["import", "edit", "remove"]


class Keeping:
    """The half of a host that changes what was kept."""

    _desk: Desk

    async def edit_result(
        self, session: SessionKey | str, message: str, call: str, result: Sequence[Part], *, by: str
    ) -> TurnResult[Any]:
        """Another result for a tool call; see `onrecord.session.history.edit_result`."""
        return await self._change(session, "edit", by, message=message, call=call, value=result)

    async def remove(self, session: SessionKey | str, message: str, *, by: str) -> TurnResult[Any]:
        """The conversation without a message; the record keeps what it was."""
        return await self._change(session, "remove", by, message=message)

    async def import_history(
        self, session: SessionKey | str, messages: Sequence[Message], *, by: str
    ) -> TurnResult[Any]:
        """Messages from elsewhere, behind the present ones."""
        return await self._change(session, "import", by, value=messages)

    async def _change(
        self, session: SessionKey | str, op: Op, by: str, *, message: str = "", call: str = "", value: Any = None
    ) -> TurnResult[Any]:
        """Puts a change of history ahead of every message, and waits for it."""
        _check_maker(by)
        body = HistoryChanged(op=op, by=by, message=message, call=call)
        if value is not None:
            body = replace(body, value=raw_value(value))
        key = f"history::{self._desk.setup.effects.nonce()}"
        row = Row(session=named(session), box="in", key=key, body=body)
        return await (await self._desk.put(row, "queue", Asked())).result()

    async def reset(self, session: SessionKey | str, *, by: str) -> None:
        """An empty conversation and empty data, at once: what runs or waits stores nothing of the old one."""
        _check_maker(by)
        desk, key = self._desk, named(session)
        desk.start()
        store, setup = desk.setup.store, desk.setup
        while (held := await store.load(key, known=desk.hot.get(key))) is not None:
            try:
                at = setup.effects.now()
                below = await changes_below(held, at, store.entries)
                change = reset(held, by=by, at=at, folds=setup.plan.folds)
                desk.hot.put(await store.commit(replace(change, children=below)))
                return
            except SessionConflict:
                desk.hot.drop(key)

    async def erase(
        self, what: SessionKey | Identity | str, *, messages: Sequence[str] | None = None, why: str
    ) -> Erasure:
        """Erases a session, all of a person's, or the turns of some messages: in the store, here, and in features.

        What runs there is stopped, and nothing of it is stored. Every feature that keeps something of its own forgets
        the session or person, and the sessions of sub-turns that are gone; for some messages their turns, or the whole
        session where it cannot tell them apart, or where they were gone before. FeatureFailed when one could not, after
        all were asked: erase again then, and the sessions that ``erased.gone`` of the error names, where only some
        messages were. See `Store.erase`.
        """
        desk = self._desk
        worker = desk.start()
        about = what if isinstance(what, Identity) else named(what)
        done = await desk.setup.store.erase(about, messages=messages, why=why)
        for running in list(worker.takes.running.values()):
            if not running.is_about(about):
                continue
            running.stop()  # what of it is not erased is taken anew
            if isinstance(about, Identity) and running.is_new:  # no store knows yet whose session that becomes
                done += await desk.setup.store.erase(running.row.session, why=why)
        desk.hot.drop_about(about)
        worker.tell(gone=True)
        below = () if isinstance(about, Identity) else [key for key in done.gone if key != about]
        try:
            if messages is None or isinstance(about, Identity):
                await forget(desk.setup, about, *below)
            else:
                await forget(desk.setup, *below, of=about, turns=done.turns)
        except FeatureFailed as failed:
            failed.erased = done
            if messages is not None and below:
                failed.hint = f"{failed.hint}; {_BY_NAME}"  # another time these messages lead to no sub-turn
            raise
        return done

    async def expire(self, policy: Retention) -> Erasure:
        """Erases what is older than the policy says, in the store (see `Store.expire`), then in features that keep
        something of their own. FeatureFailed when one of them could not, after all were asked: do it again then, and
        erase the sessions that ``erased.gone`` of the error names.
        """
        self._desk.start()
        done = await self._desk.setup.store.expire(policy)
        failed, hints = list[FeatureFailed](), list[str]()
        for letting_go, by_name in (
            (partial(forget, self._desk.setup, *done.gone), True), (partial(expire, self._desk.setup, policy), False)
        ):  # fmt: skip
            try:
                await letting_go()
            except FeatureFailed as error:
                failed.append(error)
                hints.append(_BY_NAME if by_name else error.hint)  # another time no session is gone once more
        if failed:
            failed[0].erased, failed[0].hint = done, "; ".join(hints)
            raise failed[0]
        return done


_BY_NAME = "erase each session that `erased.gone` of this error names, with Host.erase, when the feature can"


def _check_maker(by: str) -> None:
    told: object = by
    if not isinstance(told, str) or not by:
        raise UsageError("a change of history needs to say who made it", hint='pass by="..."')
