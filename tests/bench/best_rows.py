"""The best of some runs of a benchmark, and its table where people see it."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from benchmarks.in_process import Row

__all__ = ("best_rows", "show")

ATTEMPTS = 3


def best_rows(
    measured: Callable[[], Coroutine[Any, Any, Sequence[Row]]], limit: Callable[[Row], float]
) -> dict[str, Row]:
    """All rows, the best of up to three runs: a machine that is busy for seconds spoils one."""
    best: dict[str, Row] = {}
    for _ in range(ATTEMPTS):
        for row in asyncio.run(measured()):
            if row.name not in best or row.scaled < best[row.name].scaled:
                best[row.name] = row
        if all(row.scaled <= limit(row) for row in best.values()):
            break
    return best


def show(request: pytest.FixtureRequest, table: str) -> None:
    """Prints a table past what pytest keeps back."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        sys.stdout.write(f"\n{table}\n")
