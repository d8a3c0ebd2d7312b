"""What choosing a window over 10,000 messages costs, against its budgets. Figures are taken as in `test_budgets`."""

import pytest

from benchmarks import windows
from tests.bench.best_rows import Check, checks_of

pytestmark = pytest.mark.bench


check = checks_of(lambda: windows.measured(blocks=5), windows.table)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", windows.BUDGETS)
def test_choosing_a_window_costs_no_more_than_its_budget(name: str, check: Check) -> None:
    """At most 0.2 ms a turn, whatever the age of the conversation."""
    check(name)
