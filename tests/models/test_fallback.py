"""Fallback: which model is asked, how long one is left alone, and what happens when all are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any, get_args

import pytest

from onrecord.errors import ConfigurationError, ErrorKind, ModelError
from onrecord.models.chunks import Attempted, Chunk, Finished, TextChunk
from onrecord.models.fallback import COOLDOWNS_S, Fallback
from onrecord.models.request import Request
from onrecord.models.retry import Reliable
from tests.models.failing import NOON, Clock, Failing, drained, error, says, text_of
from tests.models.requests import request, user

pytestmark = pytest.mark.unit


def fallback(*models: Any, clock: Clock, **fields: Any) -> Fallback:
    """With a clock that moves when told."""
    return Fallback(*models, clock=clock, now=clock.now, **fields)


@pytest.mark.parametrize(("kind", "seconds"), COOLDOWNS_S.items())
async def test_a_model_that_failed_is_left_alone_for_as_long_as_its_kind_says(kind: ErrorKind, seconds: float) -> None:
    """Rate 60 s; quota, auth, entitlement, model an hour; timeout, network, overload 30 s."""
    assert seconds == {"rate": 60, "timeout": 30, "network": 30, "overload": 30}.get(kind, 3600)
    clock = Clock()
    first, second = Failing("a", [error(kind)]), Failing("b", says("hi"))
    model = fallback(first, second, clock=clock)
    out, problem = await drained(model)
    assert (problem, text_of(out)) == (None, "hi")
    assert [(c.error, c.model) for c in out if isinstance(c, Attempted)] == [(kind, "a:m")]
    clock.at += seconds - 0.5
    await drained(model)
    assert (len(first.asked), len(second.asked)) == (1, 2)
    clock.at += 0.5
    await drained(model)
    assert (len(first.asked), len(second.asked)) == (2, 3)


@pytest.mark.parametrize("kind", sorted(set(get_args(ErrorKind)) - set(COOLDOWNS_S)))
async def test_other_failures_do_not_fall_back(kind: ErrorKind) -> None:
    """They are the request's own, and the model is left alone by nobody."""
    clock, bad = Clock(), error(kind)
    first, second = Failing("a", [bad]), Failing("b", says("hi"))
    model = fallback(first, second, clock=clock)
    for _ in range(2):
        _, problem = await drained(model)
        assert problem is bad
    assert (len(first.asked), second.asked, model.cooling) == (2, [], {})


async def test_s5_a_stated_reset_wins_and_when_all_are_left_alone_the_call_fails_at_once() -> None:
    """With the earliest time; nobody is asked."""
    clock = Clock()
    first = Failing("a", [error("quota", 429, reset_at=NOON + timedelta(seconds=100))])
    second = Failing("b", says("hi"), [error("rate", 429, retry_after=250.0)])
    model = fallback(first, second, clock=clock)
    assert text_of((await drained(model))[0]) == "hi"
    clock.at += 10
    out, problem = await drained(model)
    assert (len(first.asked), len(second.asked), out) == (1, 2, [])
    assert problem is not None
    assert problem.kind == "rate"
    clock.at += 10
    out, problem = await drained(model)
    assert problem is not None
    assert (problem.kind, problem.retry_after, problem.reset_at) == ("rate", 80.0, NOON + timedelta(seconds=100))
    assert (problem.provider, out, len(first.asked), len(second.asked)) == ("fallback(a:m->b:m)", [], 1, 2)
    assert problem.hint == "'a:m' is asked again in 80 s; failed last: a:m (quota), b:m (rate)"


async def test_of_a_stated_wait_and_a_stated_reset_the_later_counts() -> None:
    """And a reset that has passed is no wait."""
    clock = Clock()
    both = error("rate", retry_after=5.0, reset_at=NOON + timedelta(seconds=40))
    gone = error("rate", reset_at=NOON - timedelta(seconds=40))
    model = fallback(Failing("a", [both]), Failing("b", [gone]), Failing("c", says("hi")), clock=clock)
    await drained(model)
    assert model.cooling == {"a:m": 40.0}


async def test_one_call_tries_a_model_out_while_the_others_go_by() -> None:
    """And once it has answered all calls go to it again."""
    clock, gate = Clock(), asyncio.Event()

    class Slow(Failing):
        async def stream(self, asked: Request, /) -> AsyncGenerator[Chunk, None]:
            failing = super().stream(asked)
            if self.asked:
                await gate.wait()
            async for chunk in failing:
                yield chunk

    first, second = Slow("a", [error("overload")], says("back")), Failing("b", says("hi"))
    model = fallback(first, second, clock=clock)
    await drained(model)
    clock.at += 30
    trial = asyncio.ensure_future(drained(model))
    await asyncio.sleep(0)
    assert [text_of((await drained(model))[0]) for _ in range(3)] == ["hi"] * 3
    gate.set()
    assert text_of((await trial)[0]) == "back"
    assert text_of((await drained(model))[0]) == "back"
    assert len(first.asked) == 3


async def test_a_trial_that_fails_begins_the_time_anew() -> None:
    """With the time of the new failure."""
    clock = Clock()
    first = Failing("a", [error("quota")], [error("overload")])
    model = fallback(first, Failing("b", says("hi")), clock=clock)
    await drained(model)
    clock.at += 3600
    await drained(model)
    assert model.cooling == {"a:m": 30.0}


async def test_a_trial_that_is_cut_short_leaves_the_trial_to_the_next_call() -> None:
    """A reader who leaves proves nothing."""
    clock = Clock()
    first = Failing("a", [error("overload")], [TextChunk("x"), TextChunk("y"), Finished()])
    model = fallback(first, Failing("b", says("hi")), clock=clock)
    await drained(model)
    clock.at += 30
    chunks = model.stream(request(user("q")))
    assert await anext(chunks) == TextChunk("x")
    assert model.cooling == {"a:m": 1.0}
    await chunks.aclose()
    assert text_of((await drained(model))[0]) == "xy"
    assert model.cooling == {}


async def test_a_trial_that_fails_by_the_request_s_own_fault_shows_that_the_model_is_there() -> None:
    """It is asked again by everybody."""
    clock, bad = Clock(), error("invalid")
    first = Failing("a", [error("overload")], [bad])
    model = fallback(first, Failing("b", says("hi")), clock=clock)
    await drained(model)
    clock.at += 30
    assert (await drained(model))[1] is bad
    assert model.cooling == {}


async def test_the_only_model_left_is_tried_out_by_one_call_and_the_others_come_back_soon() -> None:
    """They are told a second."""
    clock, gate = Clock(), asyncio.Event()
    entered = asyncio.Event()

    class Slow(Failing):
        async def stream(self, asked: Request, /) -> AsyncGenerator[Chunk, None]:
            failing = super().stream(asked)
            if self.asked:
                entered.set()
                await gate.wait()
            async for chunk in failing:
                yield chunk

    model = fallback(Slow("a", [error("overload")], says("back")), clock=clock)
    await drained(model)
    clock.at += 30
    trial = asyncio.ensure_future(drained(model))
    await entered.wait()
    _, problem = await drained(model)
    assert problem is not None
    assert (problem.kind, problem.retry_after) == ("rate", 1.0)
    gate.set()
    assert text_of((await trial)[0]) == "back"


async def test_s4_nothing_falls_back_after_output_but_the_model_is_left_alone() -> None:
    """The next call goes to the second one."""
    clock = Clock()
    first, second = Failing("a", [TextChunk("par"), error("network", started=True)]), Failing("b", says("hi"))
    model = fallback(first, second, clock=clock)
    out, problem = await drained(model)
    assert problem is not None
    assert (problem.kind, text_of(out), second.asked) == ("network", "par", [])
    assert text_of((await drained(model))[0]) == "hi"


async def test_a_call_that_began_unseen_does_not_fall_back() -> None:
    """Though nothing of it came out."""
    clock, begun = Clock(), error("network", started=True)
    second = Failing("b", says("hi"))
    assert (await drained(fallback(Failing("a", [begun]), second, clock=clock)))[1] is begun
    assert second.asked == []


async def test_the_last_error_is_raised_when_all_were_asked() -> None:
    """Each failure but the last is told once another model is asked."""
    clock, last = Clock(), error("overload")
    model = fallback(Failing("a", [error("network")]), Failing("b", [error("rate")]), Failing("c", [last]), clock=clock)
    out, problem = await drained(model)
    assert problem is last
    assert [(c.attempt, c.error, c.model) for c in out if isinstance(c, Attempted)] == [
        (1, "network", "a:m"), (2, "rate", "b:m"),
    ]  # fmt: skip


async def test_who_listens_hears_of_each_model_that_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """And decides nothing, whatever it raises; that is told."""
    clock, heard = Clock(), list[tuple[str, str, float]]()

    def listen(name: str, problem: ModelError, seconds: float) -> None:
        heard.append((name, problem.kind, seconds))
        raise RuntimeError(name)

    model = fallback(Failing("a", [error("auth")]), Failing("b", says("hi")), clock=clock, on_cooldown=listen)
    assert text_of((await drained(model))[0]) == "hi"
    assert heard == [("a:m", "auth", 3600.0)]
    assert "on_cooldown raised RuntimeError" in caplog.text


async def test_cooldowns_can_be_laid_over_the_usual_ones() -> None:
    """A kind that is added falls back, too."""
    clock = Clock()
    model = fallback(
        Failing("a", [error("unknown")]), Failing("b", says("hi")), clock=clock, cooldowns_s={"unknown": 5.0}
    )
    assert text_of((await drained(model))[0]) == "hi"
    assert (model.cooling, model.cooldowns_s["rate"]) == ({"a:m": 5.0}, 60.0)


class Gated(Failing):
    """Its first call waits for the gate, and then fails or says something; later ones go as scripted."""

    def __init__(self, gate: asyncio.Event, late: Chunk | ModelError, *scripts: Any) -> None:
        super().__init__("a", *scripts)
        self.gate, self.late = gate, late

    async def stream(self, asked: Request, /) -> AsyncGenerator[Chunk, None]:
        failing = super().stream(asked)
        if not self.asked:
            self.asked.append(asked)
            await self.gate.wait()
            if isinstance(self.late, ModelError):
                raise self.late
            yield self.late
            return
        async for chunk in failing:
            yield chunk


async def test_a_longer_time_is_not_cut_by_a_failure_of_a_call_that_began_before() -> None:
    """Two calls fail, the second with a shorter time."""
    clock, gate = Clock(), asyncio.Event()

    model = fallback(Gated(gate, error("overload"), [error("quota")]), Failing("b", says("hi")), clock=clock)
    early = asyncio.ensure_future(drained(model))
    await asyncio.sleep(0)
    await drained(model)
    gate.set()
    await early
    assert model.cooling == {"a:m": 3600.0}


async def test_a_reply_that_began_before_the_failure_does_not_bring_the_model_back() -> None:
    """Only the call that tries it out does."""
    clock, gate = Clock(), asyncio.Event()

    model = fallback(Gated(gate, TextChunk("late"), [error("quota")]), Failing("b", says("hi")), clock=clock)
    early = asyncio.ensure_future(drained(model))
    await asyncio.sleep(0)
    await drained(model)
    gate.set()
    assert text_of((await early)[0]) == "late"
    assert model.cooling == {"a:m": 3600.0}


async def test_each_model_may_wait_by_itself() -> None:
    """Waits are inside, cooldowns outside: the order of the layers."""
    clock, busy = Clock(), error("overload", 503)
    first = Failing("a", [busy])
    model = fallback(Reliable(first, sleep=clock.sleep), Failing("b", says("hi")), clock=clock)
    out, _ = await drained(model)
    assert (text_of(out), clock.slept, len(first.asked)) == ("hi", [3.0, 6.0, 12.0], 4)
    assert len([c for c in out if isinstance(c, Attempted)]) == 4


async def test_of_two_calls_that_want_to_try_the_same_model_out_one_does() -> None:
    """Though both find that its time is over: the request is made anew for it meanwhile."""
    clock, gate = Clock(), asyncio.Event()

    class Slow(Failing):
        left: int = 0

        def extend(self, asked: Request, limit: int = 500, /) -> int:
            self.left, left = max(0, self.left - 1), self.left
            return left

        async def stream(self, asked: Request, /) -> AsyncGenerator[Chunk, None]:
            failing = super().stream(asked)
            if self.asked:
                await gate.wait()
            async for chunk in failing:
                yield chunk

    first, second = Failing("a", [error("quota")]), Slow("b", [error("overload")], says("back"))
    model = fallback(first, second, clock=clock)
    await drained(model)
    clock.at += 30
    second.left = 2
    calls = [asyncio.ensure_future(drained(model)) for _ in range(2)]
    for _ in range(5):
        await asyncio.sleep(0)
    gate.set()
    outcomes = [await each for each in calls]
    assert sorted(text_of(out) for out, _ in outcomes) == ["", "back"]
    assert [problem.kind for _, problem in outcomes if problem is not None] == ["rate"]
    assert len(second.asked) == 2


async def test_it_encodes_ahead_for_its_first_model() -> None:
    """As the loop asks for."""

    class Lanes(Failing):
        def extend(self, asked: Request, limit: int = 500, /) -> int:
            return limit

    asked = request(user("q"))
    assert Fallback(Lanes("a"), Failing("b")).extend(asked, 7) == 7
    assert Reliable(Lanes("a"), Failing("b")).extend(asked, 7) == 7


def test_an_empty_list_is_refused() -> None:
    """And what is no model, and a cooldown that is no time."""
    with pytest.raises(ConfigurationError, match="at least one model"):
        Fallback()
    with pytest.raises(ConfigurationError, match="not a object"):
        Fallback(object())  # type: ignore[arg-type]  # no model
    with pytest.raises(ConfigurationError, match="'rate'"):
        Fallback(Failing("a"), cooldowns_s={"rate": float("nan")})


def test_it_is_named_after_its_models() -> None:
    """And repeats are told apart."""
    assert Fallback(Failing("a"), Failing("b"), Failing("a")).name == "fallback(a:m->b:m->a:m/2)"
    assert repr(Fallback(Failing("a"))).startswith("Fallback(")


async def test_a_call_that_had_begun_before_proves_nothing_by_succeeding() -> None:
    """The model failed since: it is left alone all the same."""
    clock, gate = Clock(), asyncio.Event()
    first, second = Failing("a", [gate.wait, *says("late")], [error("overload")]), Failing("b", says("hi"))
    model = fallback(first, second, clock=clock)
    early = asyncio.ensure_future(drained(model))
    await asyncio.sleep(0)
    assert text_of((await drained(model))[0]) == "hi"
    gate.set()
    assert text_of((await early)[0]) == "late"
    assert model.cooling == {"a:m": 30.0}
