"""The heartbeat of all leases of a host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from onrecord.host.leased import Leased
from onrecord.host.setup import Setup, code_of, log

__all__ = ("keep_leases", "renew")


async def keep_leases(setup: Setup, held: Callable[[], Sequence[Leased]]) -> None:
    """Renews what is ``held``, for ever: one query for all of it, three times in a lease. Tells who lost theirs."""
    while True:
        await asyncio.sleep(setup.lease_s / 3)
        if kept := held():
            await renew(setup, kept)


async def renew(setup: Setup, held: Sequence[Leased]) -> None:
    """One beat: longer leases; who lost theirs, or was marked to be stopped, learns it."""
    try:
        rows = await setup.store.extend([one.row for one in held], ttl=setup.lease_s)
    except Exception as error:  # noqa: BLE001 - a heartbeat that stops would cost every running turn its lease
        log.error("leases could not be kept: %s", code_of(error), extra={"code": code_of(error)})
        return
    for one, row in zip(held, rows, strict=True):
        if row is None:
            one.lose()
        elif row.cancel is not None:
            one.interrupt(row.cancel)
