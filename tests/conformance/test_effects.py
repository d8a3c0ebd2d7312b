"""The effects of the library keep the promises of all, and the suite sees those that do not."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from onrecord.testing import FakeEffects
from onrecord.testing.conformance.effects import EffectsConformance, MakeEffects
from onrecord.turn.effects import PlainEffects

pytestmark = pytest.mark.unit


class TestPlain(EffectsConformance):
    """The system's clock and randomness, and every call made as it comes."""

    @pytest.fixture
    def make_effects(self) -> MakeEffects:
        return PlainEffects


class TestFake(EffectsConformance):
    """A clock that stands still, names that count, calls remembered."""

    journaled = True

    @pytest.fixture
    def make_effects(self) -> MakeEffects:
        return FakeEffects


class Shaky(FakeEffects):
    """Breaks one promise, and one only."""

    def __init__(self, broken: str) -> None:
        super().__init__()
        self.broken = broken

    def now(self) -> datetime:
        self.at -= timedelta(seconds=self.broken == "clock")
        return self.at.replace(tzinfo=None) if self.broken == "offset" else self.at

    def nonce(self) -> str:
        return "name" if self.broken == "names" else super().nonce()

    async def once(self, key: str, digest: str, kind: type[Any], act: Callable[[], Awaitable[Any]], /) -> Any:
        if self.broken == "journal":
            return await act()
        keys = {"digest": (key, ""), "key": ("", digest)}
        key, digest = keys.get(self.broken, (key, digest))
        return await super().once(key, digest, kind, act)


WRONG = [
    ("offset", "test_now_is_an_instant"),
    ("clock", "test_now_is_an_instant"),
    ("names", "test_names_do_not_come_twice"),
    ("digest", "test_another_digest_is_another_call"),
    ("journal", "test_a_journal_makes_a_call_once"),
    ("key", "test_keys_have_nothing_to_do_with_each_other"),
    ("names", "test_one_object_serves_many_turns"),
]


@pytest.mark.parametrize(("broken", "promise"), WRONG)
async def test_effects_that_break_a_promise_are_told(broken: str, promise: str) -> None:
    """The suite is not satisfied with anything."""
    suite = EffectsConformance()
    suite.journaled = True  # type: ignore[misc]  # as a subclass says it
    with pytest.raises(AssertionError):
        await getattr(suite, promise)(lambda: Shaky(broken))
