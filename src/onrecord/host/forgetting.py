"""Forgetting: every feature that keeps something of its own lets go of a session, a person, or what is old."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import FeatureFailed
from onrecord.host.setup import Setup, log
from onrecord.session.erasure import Retention
from onrecord.turn.plan import Plan

__all__ = ("expire", "forget")


async def forget(setup: Setup, *what: SessionKey | Identity) -> None:
    """Asks the features of all agents of a host. FeatureFailed for the first that could not, after all were asked."""
    asked = [(name, partial(forgets, each)) for plan in _plans(setup) for name, forgets in plan.forget for each in what]
    await _each("forget", asked, "erase")


async def expire(setup: Setup, policy: Retention) -> None:
    """The same for what is older than a policy says."""
    now = setup.effects.now()
    asked = [(name, partial(expires, policy, now)) for plan in _plans(setup) for name, expires in plan.expire]
    await _each("expire", asked, "expire")


def _plans(setup: Setup) -> tuple[Plan, ...]:
    return (setup.plan, *setup.plans.values())


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
