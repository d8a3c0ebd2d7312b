"""What each wire costs, against its budgets; `make bench` prints more.

A delta is a ratio of two loops in one process and gets little head room; the bytes of a long conversation get as much
as other times (see `test_budgets`).
"""

import asyncio
from collections.abc import Mapping

import pytest

from benchmarks import wires
from benchmarks.in_process import Row
from tests.bench.test_flows import show

pytestmark = pytest.mark.bench

HEAD_ROOM = {"times": 1.1, "ms": 1.5}
ATTEMPTS = 3


@pytest.fixture(scope="module")
def figures(request: pytest.FixtureRequest) -> Mapping[str, Row]:
    """All rows, the best of up to three runs: a machine that is busy for seconds spoils one."""
    best: dict[str, Row] = {}
    for _ in range(ATTEMPTS):
        for row in asyncio.run(wires.measured(blocks=6)):
            if row.name not in best or row.scaled < best[row.name].scaled:
                best[row.name] = row
        if all(row.scaled <= row.budget * HEAD_ROOM[row.unit] for row in best.values()):
            break
    show(request, wires.table(list(best.values())))
    return best


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", wires.BUDGETS)
def test_a_wire_costs_no_more_than_its_budget(name: str, figures: Mapping[str, Row]) -> None:
    """A row that got slower fails here, with its figure."""
    row = figures[name]
    limit = row.budget * HEAD_ROOM[row.unit]
    assert row.scaled <= limit, f"{name}: {row.scaled:.2f} {row.unit}, at most {limit:g}"
