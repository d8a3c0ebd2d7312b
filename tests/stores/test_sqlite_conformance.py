from pathlib import Path

import pytest

from onrecord.stores import SqliteStore
from onrecord.testing.conformance.asking import MakeStore
from onrecord.testing.conformance.store import StoreConformance
from onrecord.testing.conformance.store_reopened import ReopenedStoreConformance

pytestmark = pytest.mark.integration


class TestSqlite(StoreConformance, ReopenedStoreConformance):
    """The SQLite store keeps every promise of the suite."""

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        return lambda **clock: SqliteStore(tmp_path / "onrecord.db", **clock)


class TestSqliteFull(StoreConformance):
    """The same where every commit waits for the disk."""

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        return lambda **clock: SqliteStore(tmp_path / "onrecord.db", synchronous="full", **clock)
