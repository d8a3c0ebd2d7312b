"""What a graph of 200 skills adds to a turn, against its budgets. Figures are taken as in `test_budgets`."""

import pytest

from benchmarks import skills
from tests.bench.best_rows import Check, checks_of

pytestmark = pytest.mark.bench


check = checks_of(lambda: skills.measured(blocks=10), skills.table)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", skills.BUDGETS)
def test_skills_add_no_more_than_their_budget_to_a_turn(name: str, check: Check) -> None:
    """At most 0.2 ms, however many skills a message could begin at."""
    check(name)
