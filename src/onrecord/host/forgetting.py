"""Forgetting: every feature that keeps something of its own lets go of a session, a person, or what is too old."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import FeatureFailed
from onrecord.host.setup import Setup, log
from onrecord.session.erasure import Expired
from onrecord.turn.plan import Forget

__all__ = ("expire", "forget")


async def forget(setup: Setup, *what: SessionKey | Identity) -> None:
    """Asks the features of all agents of a host. FeatureFailed for the first that could not, after all were asked."""

    async def forgets(one: Forget) -> None:
        for each in what:
            await one.forget(each)

    await _ask_all(setup, forgets, "forget", "erase once more when it can: what is erased stays so")


async def expire(setup: Setup, expired: Expired) -> None:
    """The same by age; a feature that only knows how to forget does so session by session."""

    async def lets_go(one: Forget) -> None:
        if one.expire is not None:
            await one.expire(expired)
            return
        for key in expired.sessions:
            await one.forget(key)

    if expired.sessions or expired.before is not None:
        await _ask_all(setup, lets_go, "expire", "erase the sessions of `gone` by hand, or what the feature keeps")


async def _ask_all(setup: Setup, act: Callable[[Forget], Awaitable[None]], moment: str, hint: str) -> None:
    failed: FeatureFailed | None = None
    for plan in (setup.plan, *setup.plans.values()):
        for one in plan.forget:
            try:
                await act(one)
            except Exception as error:  # noqa: BLE001 - one feature that fails must not keep what the others hold
                kind = type(error).__name__
                log.error("a feature could not %s: %s", moment, kind, extra={"feature": one.name, "error": kind})
                failed = failed or FeatureFailed(one.name, moment, kind)
    if failed is not None:
        failed.hint = hint
        raise failed
