"""What choosing a window over 10,000 messages costs, against its budgets. Figures are taken as in `test_budgets`."""

from collections.abc import Mapping

import pytest

from benchmarks import windows
from benchmarks.in_process import Row
from tests.bench.best_rows import best_rows, show

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def figures(request: pytest.FixtureRequest) -> Mapping[str, Row]:
    """All rows, the best of up to three runs: a machine that is busy for seconds spoils one."""
    best = best_rows(lambda: windows.measured(blocks=5), lambda row: row.budget)
    show(request, windows.table(list(best.values())))
    return best


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", windows.BUDGETS)
def test_choosing_a_window_costs_no_more_than_its_budget(name: str, figures: Mapping[str, Row]) -> None:
    """At most 0.2 ms a turn, whatever the age of the conversation."""
    row = figures[name]
    assert row.scaled <= row.budget, f"{name}: {row.scaled:.2f} {row.unit} at pace, at most {row.budget:g}"
