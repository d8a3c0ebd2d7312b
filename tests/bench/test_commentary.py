"""What a sentence about an entry costs, against its budgets; figures as in `test_budgets`, with 1.5 times head room."""

import pytest

from benchmarks import commentary
from tests.bench.best_rows import Check, checks_of

pytestmark = pytest.mark.bench

check = checks_of(lambda: commentary.measured(blocks=10), commentary.table, 1.5)


@pytest.mark.parametrize("name", commentary.BUDGETS)
def test_commentary_costs_no_more_than_its_budget(name: str, check: Check) -> None:
    """A sentence that got slower fails here, with its figure."""
    check(name)
