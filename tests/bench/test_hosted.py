"""What a host costs over its turns, against its budgets with 1.5 times head room; `make bench` prints more.

Figures of CPU are taken as in `test_budgets`. What two processes do together is wall time: where others keep the cores
busy it says nothing, and the test says that.
"""

import asyncio
from collections.abc import Mapping

import pytest

from benchmarks import hosted, two_workers
from tests.bench.best_rows import show

pytestmark = pytest.mark.bench

HEAD_ROOM = 1.5
ATTEMPTS = 3
BUSY = 0.25
"""Cores used by others from which on wall time says nothing."""
GATED = [name for name, (_, budget) in hosted.BUDGETS.items() if budget]


@pytest.fixture(scope="module")
def figures(request: pytest.FixtureRequest) -> Mapping[str, hosted.Hosted]:
    """All rows, the best of up to three runs: a machine that is busy for seconds spoils one."""
    best: dict[str, hosted.Hosted] = {}
    for _ in range(ATTEMPTS):
        for row in asyncio.run(hosted.measured(blocks=20)):
            if row.name not in best or row.is_better_than(best[row.name]):
                best[row.name] = row
        if all(best[name].is_met(HEAD_ROOM) for name in GATED):
            break
    show(request, hosted.table(list(best.values())))
    return best


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", GATED)
def test_a_host_costs_no_more_than_its_budget(name: str, figures: Mapping[str, hosted.Hosted]) -> None:
    """A row that got slower fails here, with its figure."""
    row = figures[name]
    sign = "at least" if row.high else "at most"
    assert row.is_met(HEAD_ROOM), f"{name}: {row.scaled:.2f} {row.unit} at pace, {sign} {row.budget:g} with head room"


@pytest.mark.timeout(120)
def test_a_second_process_on_the_same_file_adds_most_of_another(request: pytest.FixtureRequest) -> None:
    """Processes that write one file hardly wait for each other."""
    runs = list[two_workers.Workers]()
    while len(runs) < ATTEMPTS and not any(run.is_met(HEAD_ROOM) for run in runs):
        runs.append(two_workers.measured(rounds=7, seconds=0.4))
        show(request, two_workers.table(runs[-1]))
    others = min(run.others for run in runs)
    if others > BUSY and not any(run.is_met(HEAD_ROOM) for run in runs):
        pytest.skip(f"others used {others:.1f} cores meanwhile")
    assert any(run.is_met(HEAD_ROOM) for run in runs), f"two processes: at least {two_workers.BUDGET} times one wanted"
