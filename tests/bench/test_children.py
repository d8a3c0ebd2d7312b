"""What a sub-agent's turn adds to the one above, against its budgets. Figures are taken as in `test_budgets`."""

from collections.abc import Mapping

import pytest

from benchmarks import children
from benchmarks.in_process import Row
from tests.bench.best_rows import best_rows, show

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def figures(request: pytest.FixtureRequest) -> Mapping[str, Row]:
    """All rows, the best of up to three runs: a machine that is busy for seconds spoils one."""
    best = best_rows(lambda: children.measured(blocks=10), lambda row: row.budget)
    show(request, children.table(list(best.values())))
    return best


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", children.BUDGETS)
def test_a_child_turn_costs_hardly_more_than_a_turn(name: str, figures: Mapping[str, Row]) -> None:
    """Its session, its place in the turn above, and a budget that looks at it."""
    row = figures[name]
    assert row.scaled <= row.budget, f"{name}: {row.scaled:.2f} {row.unit} at pace, at most {row.budget:g}"
