"""Silence: the wakes that fire when a customer has not answered."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from onrecord.conversation.outgoing import Wake
from onrecord.flows.keys import silence_key
from onrecord.flows.play import Play, snapped
from onrecord.flows.starting import draft

if TYPE_CHECKING:
    from onrecord.flows.book import BookFlow, BookTrigger

__all__ = ("arm_silence",)


async def arm_silence(play: Play) -> None:
    """Arms a wake per silence flow when the assistant spoke in this turn and the customer has not written since."""
    working, before = play.turn.working, play.turn.session.last_assistant_at
    spoke, wrote = working.last_assistant_at, working.last_user_at
    if spoke is None or spoke == before or (wrote is not None and wrote > spoke):
        return
    for flow in play.book.silent:
        trigger = flow.of("silence")[0]
        if play.blocked(flow, trigger, silence_nonce(trigger, spoke)) is not None:
            continue
        if not await play.holds(trigger.check, draft(play, flow, "silence", trigger)):
            continue
        session = play.turn.session.key.id
        play.stage.arm(
            Wake(
                key=silence_key(flow.id, session, spoke), at=silence_at(play, trigger, spoke),
                replaces=None if before is None else silence_key(flow.id, session, before),
            )  # fmt: skip
        )


def silence_nonce(trigger: BookTrigger, since: datetime) -> str:
    """The nonce of the claim that a silence would spend."""
    from onrecord.timing import to_ms

    return str(to_ms(since)) if trigger.always else ""


def silence_at(play: Play, trigger: BookTrigger, since: datetime) -> datetime:
    """When a silence that began ``since`` is long enough."""
    at = since + (trigger.after or timedelta())
    return snapped(play, at, business_hours=trigger.business_hours)


_ = (inspect, Iterator, BookFlow if TYPE_CHECKING else None)
