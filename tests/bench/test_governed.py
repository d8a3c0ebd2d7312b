"""What an agent with twelve features costs, against its budgets; figures and head room as in `test_budgets`.

The ratio of a long conversation to a short one needs none: both are measured in the same blocks.
"""

from collections.abc import Mapping

import pytest

from benchmarks import governed
from benchmarks.in_process import Row
from tests.bench.best_rows import best_rows, show

pytestmark = pytest.mark.bench

HEAD_ROOM: Mapping[str, float] = {"us": 1.5, "times": 1.0}


@pytest.fixture(scope="module")
def figures(request: pytest.FixtureRequest) -> Mapping[str, Row]:
    """All rows, the best of up to three runs: a machine that is busy for seconds spoils one."""
    best = best_rows(lambda: governed.measured(blocks=8), lambda row: row.budget)
    show(request, governed.table(list(best.values())))
    return best


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", governed.BUDGETS)
def test_twelve_features_cost_no_more_than_their_budget(name: str, figures: Mapping[str, Row]) -> None:
    """0.6 ms a turn, twice that with a call, at most 1.3 times as much at 10,000 messages."""
    row = figures[name]
    limit = row.budget * HEAD_ROOM[row.unit]
    assert row.scaled <= limit, f"{name}: {row.scaled:.2f} {row.unit} at pace, at most {limit:g}"


def test_there_are_twelve() -> None:
    """Each of another kind."""
    held = governed.features(lambda *_: None)
    assert len({feature.name for feature in held}) == len(held) == 12
