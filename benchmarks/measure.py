"""How things are timed: CPU time in many short blocks by turns, and a yardstick that moves with the machine.

Others share the machine and only ever add time, so the best of many blocks is the figure; medians are shown beside
it. The yardstick is a fixed piece of plain Python, measured in the same blocks: where it is slow, everything is.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

__all__ = ("YARDSTICK_US", "Figure", "Work", "by_turns", "pin", "yardstick")

Work = Callable[[], Awaitable[int]]
"""Runs one block and says how many operations it was."""

YARDSTICK_US = 152.0
"""CPU microseconds of one `yardstick` where the budgets were stated: CPython 3.11 on the machine of the goals."""


class Figure(NamedTuple):
    """CPU microseconds of one operation."""

    best: float
    median: float


async def by_turns(works: Mapping[str, Work], blocks: int) -> dict[str, Figure]:
    """Every piece of work in short blocks, one after the other, again and again. The first block warms up."""
    seen: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    for block in range(blocks + 1):
        for name in names if block % 2 else reversed(names):
            start = time.process_time()
            count = await works[name]()
            taken = time.process_time() - start
            if block:
                seen[name].append(taken / count * 1e6)
        if block == 0:
            gc.collect()
    return {name: Figure(min(taken), statistics.median(taken)) for name, taken in seen.items()}


class _Thing:
    __slots__ = ("name", "size")

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size


async def _hop(value: int) -> int:
    return value


async def yardstick() -> int:
    """Calls, objects, dictionaries, strings and awaits, in about the mix that a turn is made of."""
    rounds = 4
    for _ in range(rounds):
        held: dict[str, _Thing] = {}
        total = 0
        for i in range(300):
            thing = _Thing(f"thing {i}", i)
            held[thing.name] = thing
            total += await _hop(thing.size)
        if total != sum(thing.size for thing in held.values()):
            raise ArithmeticError(total)
    return rounds


def pin(which: int) -> None:
    """Keeps the process on one core where the system can."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[which]})
