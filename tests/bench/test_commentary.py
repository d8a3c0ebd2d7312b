"""A sentence about an entry costs at most five microseconds, with 1.5 times head room; figures as in `test_budgets`."""

import asyncio
from collections.abc import Mapping

import pytest

from benchmarks import commentary

pytestmark = pytest.mark.bench

HEAD_ROOM = 1.5


@pytest.fixture(scope="module")
def figures() -> Mapping[str, float]:
    """The best of three runs: a machine that is busy for seconds spoils one."""
    runs = [asyncio.run(commentary.measured(blocks=10)) for _ in range(3)]
    return {name: min(run[name] for run in runs) for name in commentary.BUDGETS}


@pytest.mark.parametrize("name", commentary.BUDGETS)
def test_commentary_costs_no_more_than_its_budget(name: str, figures: Mapping[str, float]) -> None:
    """A sentence that got slower fails here, with its figure."""
    most = commentary.BUDGETS[name] * HEAD_ROOM
    assert figures[name] <= most, f"{name}: {figures[name]:.2f} µs at pace, at most {most:g}"
