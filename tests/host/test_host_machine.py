from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from onrecord.session.memory_store import MemoryStore
from onrecord.stores import SqliteStore
from tests.host.host_machine import HostMachine

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def _work(examples: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )


def test_two_hosts_in_memory_keep_every_promise_whatever_happens() -> None:
    """Sends, cancels, supersedes, interruptions, answers, resets, crashes and time, in any order."""

    class OverMemory(HostMachine):
        make = MemoryStore

    run_state_machine_as_test(OverMemory, settings=_work(60))


def test_two_hosts_on_one_file_keep_every_promise_whatever_happens(tmp_path: Path) -> None:
    """The same over SQLite."""
    files = iter(range(10**6))

    class OverSqlite(HostMachine):
        make = staticmethod(lambda **more: SqliteStore(tmp_path / f"{next(files)}.db", **more))

    run_state_machine_as_test(OverSqlite, settings=_work(18))
