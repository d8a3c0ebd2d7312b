"""Forgetting: every feature that keeps something of its own lets go of a session or a person."""

from __future__ import annotations

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import FeatureFailed
from onrecord.host.setup import Setup, log

__all__ = ("forget",)


async def forget(setup: Setup, what: SessionKey | Identity) -> None:
    """Asks the features of all agents of a host. FeatureFailed for the first that could not, after all were asked."""
    failed: FeatureFailed | None = None
    for plan in (setup.plan, *setup.plans.values()):
        for name, forgets in plan.forget:
            try:
                await forgets(what)
            except Exception as error:  # noqa: BLE001 - one feature that fails must not keep what the others hold
                kind = type(error).__name__
                log.error("a feature could not forget: %s", kind, extra={"feature": name, "error": kind})
                failed = failed or FeatureFailed(name, "forget", kind)
    if failed is not None:
        failed.hint = "erase once more when it can: what is erased stays so"
        raise failed
