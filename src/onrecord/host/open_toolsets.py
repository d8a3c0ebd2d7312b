"""Toolsets that keep something open: they learn which sessions are kept ready no longer, and that a host closes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from onrecord.conversation.identity import SessionKey
from onrecord.host.setup import Setup, code_of, log
from onrecord.tools.toolset import SessionToolset, holders, named_source

__all__ = ("OpenToolsets",)

CLOSING_S = 5.0
"""How long a toolset may take to let go; then the host goes on without it."""


class OpenToolsets:
    """Those of all of a host's agents. What they do with what they are told never fails a turn, and holds up none."""

    def __init__(self, setup: Setup) -> None:
        self._holders = holders([one for plan in setup.every_plan for one in plan.holders])
        self._telling = set[asyncio.Task[None]]()

    def left(self, session: SessionKey) -> None:
        """A session is kept ready no longer. Returns at once."""
        for holder in self._holders:
            task = asyncio.create_task(self._tell(holder, partial(holder.leave, session)))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def close(self) -> None:
        """Whatever is kept open is let go, also for sessions that were kept ready until now."""
        await asyncio.gather(*self._telling, *(self._tell(holder, holder.aclose) for holder in self._holders))

    async def _tell(self, holder: SessionToolset, let_go: Callable[[], Awaitable[None]]) -> None:
        code = "toolset-close-timeout"
        try:
            async with asyncio.timeout(CLOSING_S):
                await let_go()
        except TimeoutError:
            log.warning("%s did not let go in %g s", named_source(holder), CLOSING_S, extra={"code": code})
        except Exception as error:  # noqa: BLE001 - the session or host is gone whatever becomes of this
            log.warning("%s could not let go: %s", named_source(holder), code_of(error), extra={"code": code_of(error)})
