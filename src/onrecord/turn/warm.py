"""Warming: long histories are projected in slices before a request, so that no other turn waits for long."""

from __future__ import annotations

import asyncio

from onrecord.models.request import Request

__all__ = ("warm_lanes",)


async def warm_lanes(request: Request) -> None:
    """Lets the model project what is new in slices, yielding to other turns in between.

    Only models with a cache of projected units offer ``prepare(request) -> bool`` (True: call again).
    """
    prepare = getattr(request.model, "prepare", None)
    if prepare is None:
        return
    while prepare(request):
        await asyncio.sleep(0)
