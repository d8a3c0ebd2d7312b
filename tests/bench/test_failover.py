"""What going on with another model costs, against its budgets. Figures are taken as in `test_budgets`."""

from collections.abc import Mapping

import pytest

from benchmarks import failover
from benchmarks.in_process import Row
from tests.bench.best_rows import best_rows, show

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def figures(request: pytest.FixtureRequest) -> Mapping[str, Row]:
    """All rows, the best of up to three runs: a machine that is busy for seconds spoils one."""
    best = best_rows(lambda: failover.measured(blocks=15), lambda row: row.budget)
    show(request, failover.table(list(best.values())))
    return best


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", failover.BUDGETS)
def test_going_on_with_another_model_costs_no_more_than_its_budget(name: str, figures: Mapping[str, Row]) -> None:
    """Under 50 microseconds for the decision, and next to nothing for each piece of a reply."""
    row = figures[name]
    assert row.scaled <= row.budget, f"{name}: {row.scaled:.2f} {row.unit} at pace, at most {row.budget:g}"
