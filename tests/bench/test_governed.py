"""What an agent with twelve features costs, against its budgets; figures and head room as in `test_budgets`.

The ratio of a long conversation to a short one needs none: both are measured in the same blocks.
"""

import pytest

from benchmarks import governed
from tests.bench.best_rows import Check, checks_of

pytestmark = pytest.mark.bench

check = checks_of(lambda: governed.measured(blocks=8), governed.table, {"us": 1.5, "times": 1.0})


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", governed.BUDGETS)
def test_twelve_features_cost_no_more_than_their_budget(name: str, check: Check) -> None:
    """0.6 ms a turn, twice that with a call, at most 1.3 times as much at 10,000 messages."""
    check(name)


def test_there_are_twelve() -> None:
    """Each of another kind."""
    held = governed.features(lambda *_: None)
    assert len({feature.name for feature in held}) == len(held) == 12
