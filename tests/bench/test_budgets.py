"""What a turn costs, against its budgets with 1.5 times head room; `make bench` prints more.

Each figure is the best of many short blocks of CPU time, scaled by a yardstick measured in the same blocks, so that
neither a slow machine nor a slow moment fails it.
"""

import pytest

from benchmarks import in_process
from tests.bench.best_rows import Check, checks_of

pytestmark = pytest.mark.bench

# The import has a gate of its own, in fresh interpreters: gates/import_budget.py.
GATED = [name for name, (_, budget) in in_process.BUDGETS.items() if budget and name != "import of the door"]


check = checks_of(lambda: in_process.measured(blocks=25, imports=False), in_process.table, 1.5)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", GATED)
def test_costs_no_more_than_its_budget(name: str, check: Check) -> None:
    """A row that got slower fails here, with its figure."""
    check(name)
