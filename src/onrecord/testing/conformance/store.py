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
from onrecord.testing.conformance.store_erasure import ErasesMessages, ErasesSessions
from onrecord.testing.conformance.store_expiry import Expires
from onrecord.testing.conformance.store_reading import KeepsRecords, KeepsSessions
from onrecord.testing.conformance.store_rows import AcceptsRows, KeepsRows, RefusesRows
from onrecord.testing.conformance.store_rows_aside import ParksRows, TellsWhatIsDue, WithdrawsRows
from onrecord.testing.conformance.store_rows_commits import ArmsWakes, CommitsRows, SendsMessages
from onrecord.testing.conformance.store_rows_leases import GivesBack, HoldsLeases, SharesRows
from onrecord.testing.conformance.store_rows_order import LeasesInOrder, LeasesWithPut, OrdersMessages

__all__ = ("StoreConformance",)


class StoreConformance(
    KeepsSessions, KeepsRecords, CommitsWhole,
    KeepsRows, AcceptsRows, RefusesRows, LeasesInOrder, OrdersMessages, LeasesWithPut,
    HoldsLeases, GivesBack, SharesRows, ParksRows, WithdrawsRows, TellsWhatIsDue,
    CommitsRows, ArmsWakes, SendsMessages,
    ErasesSessions, ErasesMessages, Expires,
):  # fmt: skip
    """All of it: give a subclass the fixture ``make_store``."""
