"""What each wire costs, against its budgets; `make bench` prints more.

A delta is a ratio of two loops in one process and gets little head room; the bytes of a long conversation get as much
as other times (see `test_budgets`).
"""

from collections.abc import Mapping

import pytest

from benchmarks import wires
from benchmarks.in_process import Row
from tests.bench.best_rows import best_rows, show

pytestmark = pytest.mark.bench

HEAD_ROOM = {"times": 1.1, "ms": 1.5}


@pytest.fixture(scope="module")
def figures(request: pytest.FixtureRequest) -> Mapping[str, Row]:
    """All rows, the best of up to three runs: a machine that is busy for seconds spoils one."""
    best = best_rows(lambda: wires.measured(blocks=6), lambda row: row.budget * HEAD_ROOM[row.unit])
    show(request, wires.table(list(best.values())))
    return best


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", wires.BUDGETS)
def test_a_wire_costs_no_more_than_its_budget(name: str, figures: Mapping[str, Row]) -> None:
    """A row that got slower fails here, with its figure."""
    row = figures[name]
    limit = row.budget * HEAD_ROOM[row.unit]
    assert row.scaled <= limit, f"{name}: {row.scaled:.2f} {row.unit}, at most {limit:g}"
