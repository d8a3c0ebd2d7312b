"""What a graph of 200 skills adds to a turn, against its budgets. Figures are taken as in `test_budgets`."""

from collections.abc import Mapping

import pytest

from benchmarks import skills
from benchmarks.in_process import Row
from tests.bench.best_rows import best_rows, show

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def figures(request: pytest.FixtureRequest) -> Mapping[str, Row]:
    """All rows, the best of up to three runs: a machine that is busy for seconds spoils one."""
    best = best_rows(lambda: skills.measured(blocks=10), lambda row: row.budget)
    show(request, skills.table(list(best.values())))
    return best


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", skills.BUDGETS)
def test_skills_add_no_more_than_their_budget_to_a_turn(name: str, figures: Mapping[str, Row]) -> None:
    """At most 0.2 ms, however many skills a message could begin at."""
    row = figures[name]
    assert row.scaled <= row.budget, f"{name}: {row.scaled:.2f} {row.unit} at pace, at most {row.budget:g}"
