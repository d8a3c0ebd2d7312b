import pytest

from onrecord.session.memory import MemoryStore
from onrecord.testing.conformance.asking import MakeStore
from onrecord.testing.conformance.store import StoreConformance

pytestmark = pytest.mark.unit


class TestMemory(StoreConformance):
    """The store in memory keeps every promise of the suite."""

    @pytest.fixture
    def make_store(self) -> MakeStore:
        return MemoryStore
