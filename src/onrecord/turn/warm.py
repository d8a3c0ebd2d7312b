"""Warming: a long history is projected and digested in slices, so that no other turn waits for long."""

from __future__ import annotations

import asyncio

from onrecord.conversation.log import Log
from onrecord.conversation.messages import Unit
from onrecord.models.model import extend
from onrecord.models.request import Request
from onrecord.session.chain import chain_of
from onrecord.turn.turn import Turn

__all__ = ("SLICE", "digest_ahead", "warm_up")

SLICE = 500
"""Units per slice: a few milliseconds of work."""


async def warm_up(turn: Turn, request: Request) -> None:
    """Does ahead, slice by slice, what `Model.wire` and the receipt would do at once; other turns run in between."""
    while extend(request.model, request, SLICE):  # noqa: ASYNC110 - other tasks run between slices
        await asyncio.sleep(0)
    await digest_ahead(turn, request.conversation.units)


async def digest_ahead(turn: Turn, units: Log[Unit]) -> None:
    """Makes the chained digests of a long history in slices, all but the last few, which whoever asks makes at once."""
    chain = chain_of(units, turn.session.digest_key)
    while chain.behind(len(units)) > SLICE:
        chain.upto(units, len(units) - chain.behind(len(units)) + SLICE)
        await asyncio.sleep(0)
