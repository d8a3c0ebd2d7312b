"""What going on with another model costs, against its budgets. Figures are taken as in `test_budgets`."""

import pytest

from benchmarks import failover
from tests.bench.best_rows import Check, checks_of

pytestmark = pytest.mark.bench


check = checks_of(lambda: failover.measured(blocks=15), failover.table)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", failover.BUDGETS)
def test_going_on_with_another_model_costs_no_more_than_its_budget(name: str, check: Check) -> None:
    """Under 50 microseconds for the decision, and next to nothing for each piece of a reply."""
    check(name)
