"""What every store promises, as tests: subclass `StoreConformance` and say how to make a store.

```python
class TestMyStore(StoreConformance):
    @pytest.fixture
    def make_store(self, tmp_path):
        return lambda **clock: MyStore(tmp_path / "my.db", **clock)
```

``make_store`` returns a function that is called once in each test, for a store that holds nothing yet. It is called
with nothing, or with ``clock=``, a function that says what time it is: leases and due times go by it. The tests are
coroutines: they need pytest-asyncio.
"""

from __future__ import annotations

from onrecord.testing.conformance.store_commits import CommitsWhole
from onrecord.testing.conformance.store_reading import KeepsRecords, KeepsSessions
from onrecord.testing.conformance.store_rows import AcceptsRows, KeepsRows, RefusesRows

__all__ = ("StoreConformance",)


class StoreConformance(
    KeepsSessions, KeepsRecords, CommitsWhole,
    KeepsRows, AcceptsRows, RefusesRows,
):  # fmt: skip
    """All of it: give a subclass the fixture ``make_store``."""
