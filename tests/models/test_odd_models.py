"""Models, fallback functions and settings that break the rules: errors of a kind, and no wrapper that is stuck."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from onrecord.errors import ConfigurationError, ErrorKind, UsageError
from onrecord.models.breaker import Breaker
from onrecord.models.chunks import Attempted, Chunk, Finished, TextChunk
from onrecord.models.fallback import Fallback
from onrecord.models.retry import Reliable
from onrecord.models.standing_in import FallbackFunction
from tests.models.failing import Clock, Failing, drained, error, says, text_of

pytestmark = pytest.mark.unit

NAN, EVER = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (TimeoutError(), "timeout"),
        (ConnectionResetError(), "network"),
        (TypeError("canary"), "unknown"),
        (RuntimeError("overloaded"), "overload"),
    ],
)
async def test_what_a_model_of_somebody_else_raises_is_an_error_of_a_kind(raised: Exception, kind: ErrorKind) -> None:
    """Its words are not quoted; a circuit counts it, and another model is asked after those that are a provider's."""
    for wrapped in (Reliable(Failing("a", [raised]), waits_s=()), Fallback(Failing("a", [raised]))):
        _, told = await drained(wrapped)
        assert told is not None
        assert told.kind == kind
        assert told.__cause__ is raised
        assert "canary" not in str(told)
    if kind != "unknown":
        chunks, _ = await drained(Fallback(Failing("a", [raised]), Failing("b", says("hi"))))
        assert text_of(chunks) == "hi"


async def test_a_wrong_use_is_no_failure_of_a_model() -> None:
    """No other model would change it, so none is asked."""
    for wrap in (Reliable, Fallback):
        second = Failing("b", says("hi"))
        with pytest.raises(UsageError):
            await drained(wrap(Failing("a", [UsageError("so not")]), second))
        assert not second.asked


@pytest.mark.parametrize("wait", [EVER, 1e300, NAN, -5.0])
async def test_a_stated_wait_may_be_any_number(wait: float) -> None:
    """For ever is told without an instant; what is no number is as if nothing was stated."""
    clock = Clock()
    first = Failing("a", [error("rate", 429, retry_after=wait)])
    model = Fallback(first, clock=clock, now=clock.now)
    for _ in range(2):
        _, told = await drained(model)
        assert told is not None
        assert told.kind == "rate"
    assert model.cooling == ({} if wait < 0 else {"a:m": 60.0 if wait != wait else wait})  # noqa: PLR0124 - no number


@pytest.mark.parametrize(
    "said", [["words"], [TextChunk("a"), Finished(), TextChunk("b")], b"bytes", {"a": 1}, 5], ids=repr
)
async def test_a_fallback_function_that_gives_no_reply_is_told(said: Sequence[Chunk]) -> None:
    """Nothing of it is handed out: a chunk that is none, and one behind the end, would break whoever reads."""
    function: FallbackFunction = lambda *_: said  # noqa: E731 - with a name that is not in the way
    model = Reliable(Failing("a", [error("quota", 402)]), fallback=function)
    chunks, told = await drained(model)
    assert "the fallback" in str(told)
    assert [type(chunk) for chunk in chunks] == [Attempted]


@pytest.mark.parametrize(
    "settings",
    [{"waits_s": (NAN,)}, {"waits_s": (-1.0,)}, {"longest_s": NAN}, {"longest_s": -1.0}],
    ids=repr,
)
def test_a_wait_that_is_no_time_is_refused(settings: dict[str, object]) -> None:
    """It would be found out at the first failure, or never."""
    with pytest.raises(ConfigurationError, match="at least 0"):
        Reliable(Failing("a", says("hi")), **settings)  # type: ignore[arg-type]  # of the kinds above


@pytest.mark.parametrize("name", ["threshold", "cooldown_s", "successes"])
def test_a_breaker_whose_number_is_none_is_refused(name: str) -> None:
    """A circuit with it would never close again."""
    with pytest.raises(ConfigurationError, match=name):
        Breaker(**{name: NAN})  # type: ignore[arg-type]  # what a computed setting may be
