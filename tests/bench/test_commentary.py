"""What a sentence about an entry costs, against its budgets; figures as in `test_budgets`, with 1.5 times head room."""

from collections.abc import Mapping

import pytest

from benchmarks import commentary
from benchmarks.in_process import Row
from tests.bench.best_rows import best_rows, show

pytestmark = pytest.mark.bench

HEAD_ROOM = 1.5


@pytest.fixture(scope="module")
def figures(request: pytest.FixtureRequest) -> Mapping[str, Row]:
    """All rows, the best of up to three runs: a machine that is busy for seconds spoils one."""
    best = best_rows(lambda: commentary.measured(blocks=10), lambda row: row.budget)
    show(request, commentary.table(list(best.values())))
    return best


@pytest.mark.parametrize("name", commentary.BUDGETS)
def test_commentary_costs_no_more_than_its_budget(name: str, figures: Mapping[str, Row]) -> None:
    """A sentence that got slower fails here, with its figure."""
    row = figures[name]
    limit = row.budget * HEAD_ROOM
    assert row.scaled <= limit, f"{name}: {row.scaled:.2f} {row.unit} at pace, at most {limit:g}"
