"""What going on with another model costs, against its budgets. Figures are taken as in `test_budgets`."""

import asyncio
import sys
from collections.abc import Mapping

import pytest

from benchmarks import failover
from benchmarks.in_process import Row

pytestmark = pytest.mark.bench

ATTEMPTS = 3


@pytest.fixture(scope="module")
def figures(request: pytest.FixtureRequest) -> Mapping[str, Row]:
    """All rows, the best of up to three runs: a machine that is busy for seconds spoils one."""
    best: dict[str, Row] = {}
    for _ in range(ATTEMPTS):
        for row in asyncio.run(failover.measured(blocks=15)):
            if row.name not in best or row.scaled < best[row.name].scaled:
                best[row.name] = row
        if all(best[name].scaled <= best[name].budget for name in failover.BUDGETS):
            break
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        sys.stdout.write("\n" + failover.table(list(best.values())) + "\n")
    return best


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", failover.BUDGETS)
def test_going_on_with_another_model_costs_no_more_than_its_budget(name: str, figures: Mapping[str, Row]) -> None:
    """Under 50 microseconds for the decision, and next to nothing for each piece of a reply."""
    row = figures[name]
    assert row.scaled <= row.budget, f"{name}: {row.scaled:.2f} {row.unit} at pace, at most {row.budget:g}"
