"""The best of some runs of a benchmark: its table where people see it, and its rows against their budgets."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from benchmarks.in_process import Row

__all__ = ("Check", "checks_of", "show")

ATTEMPTS = 3

Check = Callable[[str], None]
"""Asserts that the row with this name is within its budget."""


def checks_of(
    measured: Callable[[], Coroutine[Any, Any, list[Row]]], table: Callable[[list[Row]], str],
    head_room: Mapping[str, float] | float = 1.0,
) -> Any:  # fmt: skip
    """A fixture with a `Check` of each row, measured once a module; head room is a factor, or one for each unit.

    A row is the best of up to three runs, since a machine that is busy for seconds spoils one. One whose budget is 0
    is only shown.
    """

    def limit(row: Row) -> float:
        return row.budget * (head_room[row.unit] if isinstance(head_room, Mapping) else head_room)

    @pytest.fixture(scope="module")
    def check(request: pytest.FixtureRequest) -> Check:
        best: dict[str, Row] = {}
        for _ in range(ATTEMPTS):
            for row in asyncio.run(measured()):
                if row.name not in best or row.scaled < best[row.name].scaled:
                    best[row.name] = row
            if all(row.scaled <= limit(row) for row in best.values() if row.budget):
                break
        show(request, table([*best.values()]))

        def is_kept(name: str) -> None:
            row = best[name]
            assert row.scaled <= limit(row), f"{name}: {row.scaled:.2f} {row.unit} at pace, at most {limit(row):g}"

        return is_kept

    return check


def show(request: pytest.FixtureRequest, table: str) -> None:
    """Prints a table past what pytest keeps back."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        sys.stdout.write(f"\n{table}\n")
