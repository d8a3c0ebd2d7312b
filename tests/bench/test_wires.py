"""What each wire costs, against its budgets; `make bench` prints more.

A delta is a ratio of two loops in one process and gets little head room; the bytes of a long conversation get as much
as other times (see `test_budgets`).
"""

import pytest

from benchmarks import wires
from tests.bench.best_rows import Check, checks_of

pytestmark = pytest.mark.bench

check = checks_of(lambda: wires.measured(blocks=6), wires.table, {"times": 1.1, "ms": 1.5})


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", wires.BUDGETS)
def test_a_wire_costs_no_more_than_its_budget(name: str, check: Check) -> None:
    """A row that got slower fails here, with its figure."""
    check(name)
