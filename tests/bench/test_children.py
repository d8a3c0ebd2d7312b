"""What a sub-agent's turn adds to the one above, against its budgets. Figures are taken as in `test_budgets`."""

import pytest

from benchmarks import children
from tests.bench.best_rows import Check, checks_of

pytestmark = pytest.mark.bench


check = checks_of(lambda: children.measured(blocks=10), children.table)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", children.BUDGETS)
def test_a_child_turn_costs_hardly_more_than_a_turn(name: str, check: Check) -> None:
    """Its session, its place in the turn above, and a budget that looks at it."""
    check(name)
