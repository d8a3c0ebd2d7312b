import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from onrecord.session.memory_store import MemoryStore
from onrecord.stores import SqliteStore
from tests.stores.row_machine import RowMachine

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

drawn = settings(stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))


class InMemory(RowMachine):
    """The store in memory, judged by the model."""

    makers = (MemoryStore,)


class InBoth(RowMachine):
    """Memory and SQLite, which must say the same."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "rows.db"
        self.makers = (MemoryStore, lambda **clock: SqliteStore(path, **clock))
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


@pytest.mark.parametrize(("machine", "examples"), [(InMemory, 60), (InBoth, 25)])
def test_rows_are_never_lost_doubled_or_overtaken(machine: Any, examples: int) -> None:
    """Whatever is put, leased, given back, parked, revived, withdrawn and committed, however the clock jumps."""
    run_state_machine_as_test(machine, settings=settings(drawn, max_examples=examples))
