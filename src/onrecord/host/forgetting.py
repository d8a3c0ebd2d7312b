"""Forgetting: every feature that keeps something of its own lets go of a session, a person, or what is old."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import partial

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import FeatureFailed
from onrecord.host.setup import Setup, log
from onrecord.record.entry import Body
from onrecord.record.kinds import HistoryChanged
from onrecord.session.erasure import Retention
from onrecord.session.inbox import Row
from onrecord.session.session import Session

__all__ = ("expire", "forget", "forget_overtaken")

Turns = Collection[str]


async def forget(setup: Setup, *what: SessionKey | Identity, of: SessionKey | None = None, turns: Turns = ()) -> None:
    """Asks the features of all agents of a host. FeatureFailed for the first that could not, after all were asked.

    ``turns`` of the session ``of`` are forgotten, and all of it by features that do not know one turn from another.
    """
    every = [each for plan in setup.every_plan for each in plan.forget]
    asked = list[tuple[str, Callable[[], Awaitable[None]]]]()
    for name, forgets, by_turn in every:
        if of is not None:
            asked.append((name, partial(by_turn, of, turns) if turns and by_turn is not None else partial(forgets, of)))
        asked += [(name, partial(forgets, each)) for each in what]
    await _each("forget", asked, "erase")


async def expire(setup: Setup, policy: Retention) -> None:
    """The same for what is older than a policy says."""
    now = setup.effects.now()
    asked = [(name, partial(expires, policy, now)) for plan in setup.every_plan for name, expires in plan.expire]
    await _each("expire", asked, "expire")


async def forget_overtaken(setup: Setup, row: Row, base: Session | None) -> None:
    """Forgets a session that was erased while a turn of it ran: that turn settled before it was known that nothing of
    it counts, and a feature may have kept words of it.
    """
    store, key = setup.store, row.session
    if not any(plan.forget for plan in setup.every_plan):
        return
    newer = await store.load(key)
    if newer is None:
        erased = all(other.n != row.n for other in await store.rows("in", key))
    else:
        since = -1 if base is None else base.seq - 1
        erased = any([e.seq async for e in store.entries(key, after=since) if _erases(e.body)])
    if erased:
        await forget(setup, key)


def _erases(body: Body) -> bool:
    return isinstance(body, HistoryChanged) and body.op == "erase"


async def _each(moment: str, asked: Iterable[tuple[str, Callable[[], Awaitable[None]]]], again: str) -> None:
    failed: FeatureFailed | None = None
    for name, lets_go in asked:
        try:
            await lets_go()
        except Exception as error:  # noqa: BLE001 - one feature that fails must not keep what the others hold
            kind = type(error).__name__
            log.error("a feature could not %s: %s", moment, kind, extra={"feature": name, "error": kind})
            failed = failed or FeatureFailed(name, moment, kind)
    if failed is not None:
        failed.hint = f"{again} once more when it can: what is erased stays so"
        raise failed
