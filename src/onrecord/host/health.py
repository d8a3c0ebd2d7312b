"""Health: what a host does and what waits for it, in numbers and without content."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from onrecord.host.setup import Setup
from onrecord.session.inbox import Box, Row

if TYPE_CHECKING:
    from onrecord.host.worker import Worker

__all__ = ("MOST_COUNTED", "Health", "health_of")

MOST_COUNTED = 10_000
"""How many rows of a box are counted."""

_PAGE = 1000


class Health(Struct, frozen=True, kw_only=True):
    """A host at one moment.

    ``taken`` and ``delivered`` count what ended here since it began; ``running`` is being taken or delivered here. Of
    the store: ``due`` rows could be taken now, ``waiting`` ones come later, ``parked`` ones were set aside;
    ``oldest_s`` is for how long the first of those due has been so. ``is_whole`` False: there are more rows than were
    counted.
    """

    taken: int
    delivered: int
    running: int
    waiting: int
    due: int
    parked: int
    oldest_s: float
    is_whole: bool = True

    def __str__(self) -> str:
        """One line for a log."""
        more = "" if self.is_whole else " or more"
        return (
            f"taken {self.taken}, delivered {self.delivered}, running {self.running}, due {self.due}, "
            f"waiting {self.waiting}, parked {self.parked}{more}, oldest due for {self.oldest_s:.0f} s"
        )


async def health_of(setup: Setup, worker: Worker | None) -> Health:
    """Counts rows of both boxes, page by page; without a worker nothing was done here yet."""
    now, waiting, late, parked, whole = setup.effects.now(), 0, list[float](), 0, True
    boxes: tuple[Box, ...] = ("in", "out")
    for box in boxes:
        counted, page = 0, list[Row]()
        while counted < MOST_COUNTED:
            after = page[-1].n if page else 0
            page = await setup.store.rows(box, setup.only, after=after, limit=_PAGE)
            counted += len(page)
            for row in page:
                parked += bool(row.dead)
                if not row.dead and not row.owner:
                    late_s = _late(row.due, now)
                    late += [late_s] if late_s >= 0 else []
                    waiting += late_s < 0
            if len(page) < _PAGE:
                break
        else:
            whole = False
    return Health(
        taken=0 if worker is None else worker.takes.count,
        delivered=0 if worker is None else worker.delivery.delivered,
        running=0 if worker is None else len(worker.takes.running) + len(worker.delivery.running),
        waiting=waiting, due=len(late), parked=parked, oldest_s=max(late, default=0.0), is_whole=whole,
    )  # fmt: skip


def _late(due: datetime | None, now: datetime) -> float:
    """Seconds since a row is due; less than nothing before. Interruptions are due before everything else: now."""
    if due is None or due.year <= 1970:
        return 0.0
    return (now - due).total_seconds()
