"""Waits, then backup models, then a function: what is done where no rule decides."""

from __future__ import annotations

import pytest

from onrecord.errors import ErrorKind
from onrecord.models.chunks import Attempted, TextChunk
from onrecord.models.model import preset
from onrecord.models.retry import Reliable
from tests.models.failing import BUSY, Clock, Failing, always, drained, error, given_up, says, text_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("kind", "status", "asked"),
    [("overload", None, 1), ("rate", None, 1), ("model", 404, 1), ("auth", 401, 0), ("network", None, 0)],
)
async def test_s3_a_backup_model_is_asked_when_the_first_is_busy_or_not_there(
    kind: ErrorKind, status: int | None, asked: int
) -> None:
    """An overload, a rate limit, a model that does not exist; a bad key is another matter."""
    first, backup = Failing("a", [error(kind, status)]), Failing("b", says("hi"))
    out, problem = await drained(Reliable(first, backup, waits_s=()))
    assert (len(backup.asked), text_of(out), problem is None) == (asked, "hi" * asked, bool(asked))


async def test_s2_waits_come_first_and_a_stated_wait_that_is_too_long_goes_to_the_next_layer() -> None:
    """One retry honouring Retry-After; none for a minute."""
    clock, backup = Clock(), Failing("b", says("other"))
    model = Failing("a", [error("rate", 429, retry_after=2.0)], says("hi"))
    out, _ = await drained(Reliable(model, backup, sleep=clock.sleep))
    assert (text_of(out), clock.slept, backup.asked) == ("hi", [2.0], [])
    model = Failing("a", [error("rate", 429, retry_after=60.0)])
    out, _ = await drained(Reliable(model, backup, sleep=clock.sleep))
    assert (text_of(out), clock.slept, len(model.asked)) == ("other", [2.0], 1)


async def test_each_model_has_waits_of_its_own() -> None:
    """Three for the first, three for the second, and its error at the end."""
    clock, last = Clock(), error(status=500)
    models = Failing("a", [BUSY]), Failing("b", [last])
    out, problem = await drained(Reliable(*models, sleep=clock.sleep))
    assert problem is last
    assert ([len(m.asked) for m in models], clock.slept) == ([4, 4], [3.0, 6.0, 12.0] * 2)
    assert [c.attempt for c in out if isinstance(c, Attempted)] == [1, 2, 3, 4, 5, 6, 7]


async def test_s4_nothing_is_asked_again_after_the_first_chunk_with_a_backup_neither() -> None:
    """The error is raised as it came."""
    model, backup = Failing("a", [TextChunk("x"), BUSY]), Failing("b", says("hi"))
    out, problem = await drained(Reliable(model, backup))
    assert (problem, text_of(out), backup.asked) == (BUSY, "x", [])


async def test_a_fallback_function_stands_in_at_the_end_without_any_rule() -> None:
    """For failures of providers; a request that is at fault stays visible, and a broken function is asked once."""
    canned = Reliable(Failing("a", [error("auth", 401)]), fallback=lambda _r, _e: "instead")
    assert text_of((await drained(canned))[0]) == "instead"
    bad = error("invalid", 400)
    assert (await drained(Reliable(Failing("a", [bad]), fallback=lambda _r, _e: "instead")))[1] is bad
    _, problem = await drained(Reliable(Failing("a", [error("auth")]), fallback=lambda _r, _e: 1 / 0))  # type: ignore[arg-type, return-value]
    assert problem is not None
    assert "ZeroDivisionError" in str(problem)


def test_a_plain_wrapper_inside_does_not_multiply_the_waits() -> None:
    """One that does anything else stays."""
    inner = Failing("a")
    assert Reliable(Reliable(inner)).model is inner
    kept = Reliable(inner, waits_s=(1.0,))
    assert Reliable(kept).model is kept


async def test_a_plain_wrapper_in_a_preset_does_not_multiply_them_either() -> None:
    """Names wrap their models, and so presets of names do; the settings stay."""
    clock, inner, other = Clock(), Failing("a", [BUSY]), Failing("b", says("hi"))
    out, _ = await drained(Reliable(preset(Reliable(inner), seed=7), other, sleep=clock.sleep, clock=clock))
    assert (text_of(out), len(inner.asked), clock.slept) == ("hi", 4, [3.0, 6.0, 12.0])
    assert {asked.settings.seed for asked in inner.asked} == {7}
    assert [asked.settings.seed for asked in other.asked] == [None]
    plain = preset(inner)
    assert Reliable(plain).model is plain


async def test_the_function_stands_in_where_no_backup_can_carry_the_request() -> None:
    """A rule that wants another model is told that there is none."""
    models = Failing("a", [BUSY]), Failing("b", says("no"), lacks="video")
    out, problem = await drained(Reliable(*models, waits_s=(), fallback=lambda _r, _e: "instead"))
    assert (problem, text_of(out)) == (None, "instead")
    assert [(c.error, c.model) for c in out if isinstance(c, Attempted)] == [("overload", "a:m")]
    _, problem = await drained(Reliable(*models, rules=[always("retry_other")], fallback=lambda _r, _e: "instead"))
    assert given_up(problem).why == "no-more-providers"
