"""What a search in 20,000 passages costs, against its budgets with 1.5 times head room; `make bench` prints more."""

import pytest

from benchmarks import retrieval
from tests.bench.best_rows import Check, checks_of

pytestmark = pytest.mark.bench

check = checks_of(lambda: retrieval.measured(blocks=6), retrieval.table, 1.5)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", retrieval.BUDGETS)
def test_a_search_costs_no_more_than_its_budget(name: str, check: Check) -> None:
    """A row that got slower fails here, with its figure."""
    check(name)
