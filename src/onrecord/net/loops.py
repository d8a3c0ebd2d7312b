"""What is shared by all requests of one event loop, and how long it lives.

An event loop ends quietly: no hook runs when it closes, except that ``asyncio.run`` and ``asyncio.Runner`` finish the
asynchronous generators that were started in it. So a generator holds what is shared, and its ``finally`` closes it.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import AsyncGenerator, Callable
from typing import Generic, Protocol, TypeVar

__all__ = ("PerLoop",)


class Shared(Protocol):
    """Something to be closed in its loop, or given up where that loop is gone."""

    async def aclose(self) -> None: ...
    def abandon(self) -> None: ...


S = TypeVar("S", bound=Shared)


class PerLoop(Generic[S]):
    """One `Shared` per event loop of this process, opened on first use.

    ``prepare`` runs in a thread and returns what makes one.

    After a fork the child has none: what it inherited is set aside untouched, because its sockets are the parent's.
    A loop that was closed without finishing its generators is noticed when the next one is added.
    """

    def __init__(self, prepare: Callable[[], Callable[[asyncio.AbstractEventLoop], S]]) -> None:
        self._prepare = prepare
        self._held: dict[asyncio.AbstractEventLoop, tuple[S, AsyncGenerator[None, None]]] = {}
        self._inherited: list[object] = []
        atexit.register(self._abandon_all)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._set_aside)

    def now(self, loop: asyncio.AbstractEventLoop) -> S | None:
        """What ``loop`` shares already."""
        held = self._held.get(loop)
        return None if held is None else held[0]

    async def open(self, loop: asyncio.AbstractEventLoop) -> S:
        """What the running ``loop`` shares, made if need be and kept until the loop ends."""
        make = await asyncio.to_thread(self._prepare)
        shared = self.now(loop)  # another task may have been faster
        if shared is None:
            shared = make(loop)
            await self._keep(loop, shared)
        return shared

    async def _keep(self, loop: asyncio.AbstractEventLoop, shared: S) -> None:
        for gone in [other for other in list(self._held) if other.is_closed()]:
            self._abandon(gone)
        holder = self._hold(loop, shared)
        self._held[loop] = shared, holder
        await anext(holder)

    async def close(self, loop: asyncio.AbstractEventLoop) -> None:
        """Closes what the running ``loop`` shares, if anything."""
        if (held := self._held.get(loop)) is not None:
            await held[1].aclose()

    async def _hold(self, loop: asyncio.AbstractEventLoop, shared: S) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._held.pop(loop, None)
            await shared.aclose()

    def _abandon(self, loop: asyncio.AbstractEventLoop) -> None:
        if (held := self._held.pop(loop, None)) is not None:
            held[0].abandon()

    def _abandon_all(self) -> None:
        for loop in list(self._held):
            self._abandon(loop)

    def _set_aside(self) -> None:
        for shared, _ in self._held.values():
            shared.abandon()
        self._inherited.append(self._held)
        self._held = {}
