"""Circuits: when a model is left alone, and when it is asked again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onrecord.errors import ConfigurationError, ErrorKind, UsageError
from onrecord.models.breaker import Breaker, Circuit
from onrecord.models.call_rules import CallRule, CallScope
from onrecord.models.chunks import Attempted, TextChunk
from onrecord.models.held_reply import fits_shape
from onrecord.models.request import Reading, Shape
from onrecord.models.retry import Reliable
from tests.models.failing import BUSY, Clock, Failing, always, drained, error, given_up, looking, says, text_of, when
from tests.models.requests import request, user

pytestmark = pytest.mark.unit

TWO = Breaker(threshold=2, cooldown_s=30.0)


def alone(model: Failing, clock: Clock, breaker: Breaker = TWO, *rules: CallRule) -> Reliable:
    """A model with a circuit and no waits."""
    return Reliable(model, rules=rules, breaker=breaker, waits_s=(), clock=clock, sleep=clock.sleep)


async def test_l137_two_failed_calls_open_the_circuit_and_two_good_ones_close_it() -> None:
    """The state lives across calls. The promise is the target behaviour of the spec, which the original missed."""
    clock = Clock()
    model = Failing("a", [BUSY])
    seen: list[CallScope] = []
    reliable = alone(model, clock, TWO, looking(seen))

    async def state() -> str:
        await drained(reliable)
        return seen[-1].breaker_states["a:m"]

    assert [await state(), await state()] == ["closed", "open"]
    _, problem = await drained(reliable)
    gone = given_up(problem)
    assert (gone.why, gone.kind, gone.retry_after, len(model.asked)) == ("circuit-open", "overload", 30.0, 2)
    assert (seen[-1].error_kind, seen[-1].attempt) == ("circuit-open", 0)

    clock.at += 29.9
    await drained(reliable)
    assert len(model.asked) == 2
    clock.at += 0.1
    model.scripts = [list(says("hi"))]
    assert [await state(), await state()] == ["half-open", "closed"]
    assert len(model.asked) == 4


async def test_one_failure_on_trial_opens_the_circuit_again() -> None:
    """For the whole time."""
    clock, model = Clock(), Failing("a", [BUSY])
    reliable = alone(model, clock)
    for _ in range(2):
        await drained(reliable)
    clock.at += 30
    await drained(reliable)
    assert len(model.asked) == 3
    clock.at += 29
    _, problem = await drained(reliable)
    assert (given_up(problem).why, given_up(problem).retry_after, len(model.asked)) == ("circuit-open", 1.0, 3)


async def test_only_failures_in_a_row_count() -> None:
    """A reply in between begins the count anew."""
    clock = Clock()
    model = Failing("a", [BUSY], says("hi"), [BUSY], says("hi"))
    reliable = alone(model, clock)
    outcomes = [(await drained(reliable))[1] for _ in range(4)]
    assert [problem is None for problem in outcomes] == [False, True, False, True]
    assert reliable.circuits["a:m"].state == "closed"


@pytest.mark.parametrize("kind", ["aborted", "invalid", "content", "context"])
async def test_what_is_not_the_provider_s_fault_never_counts(kind: ErrorKind) -> None:
    """Somebody left, or this one request cannot be served."""
    clock, model = Clock(), Failing("a", [error(kind)])
    reliable = alone(model, clock)
    for _ in range(5):
        await drained(reliable)
    assert (reliable.circuits["a:m"].state, len(model.asked)) == ("closed", 5)


async def test_a_cancelled_call_never_counts() -> None:
    """Nor does one whose reader leaves."""
    clock = Clock()
    model = Failing("a", [TextChunk("a"), TextChunk("b"), BUSY])
    reliable = alone(model, clock)
    for _ in range(3):
        chunks = reliable.stream(request(user("q")))
        await anext(chunks)
        await chunks.aclose()
    assert reliable.circuits["a:m"].state == "closed"


async def test_a_failure_in_mid_stream_counts() -> None:
    """The provider failed all the same."""
    clock, model = Clock(), Failing("a", [TextChunk("a"), BUSY])
    reliable = alone(model, clock)
    for _ in range(2):
        await drained(reliable)
    assert reliable.circuits["a:m"].state == "open"


async def test_a_reply_that_does_not_fit_is_an_answer() -> None:
    """The circuit is about the provider, not about what it says."""
    shape: Shape[None] = Shape(name="s", schema={"type": "integer"}, read=lambda h: Reading(text=h.text, value=None))
    model, clock = Failing("a", says("x")), Clock()
    reliable = Reliable(model, breaker=TWO, validate=fits_shape, clock=clock)
    for _ in range(3):
        await drained(reliable, request(user("q"), shape=shape))
    assert reliable.circuits["a:m"].state == "closed"


async def test_attempts_of_one_call_count_each() -> None:
    """So waits may open the circuit, which ends them."""
    clock, model = Clock(), Failing("a", [BUSY])
    reliable = Reliable(model, breaker=TWO, waits_s=(1.0, 1.0, 1.0), clock=clock, sleep=clock.sleep)
    _, problem = await drained(reliable)
    assert (given_up(problem).why, len(model.asked), clock.slept) == ("circuit-open", 2, [1.0, 1.0])


async def test_an_open_circuit_sends_calls_to_the_backup() -> None:
    """Without any rule; the refusal is told, and is no attempt."""
    clock = Clock()
    model, backup = Failing("a", [BUSY]), Failing("b", says("hi"))
    reliable = Reliable(model, backup, breaker=TWO, waits_s=(), clock=clock)
    assert [text_of((await drained(reliable))[0]) for _ in range(2)] == ["hi"] * 2
    out, _ = await drained(reliable)
    assert (len(model.asked), len(backup.asked)) == (2, 3)
    assert [c.error for c in out if isinstance(c, Attempted)] == ["circuit-open"]


async def test_a_refused_model_does_not_keep_the_next_one_from_being_asked() -> None:
    """A fault of the original: there, after one refusal no model was called any more in the same call."""
    clock = Clock()
    model, other = Failing("a", [BUSY]), Failing("b", [BUSY], says("hi"))
    rules = (when("circuit-open", "retry_other"), when("5xx-transient", "retry"))
    reliable = Reliable(model, other, rules=rules, breaker=Breaker(threshold=2), clock=clock, sleep=clock.sleep)
    out, problem = await drained(reliable)
    assert (problem, text_of(out), len(model.asked), len(other.asked)) == (None, "hi", 2, 2)


async def test_a_rule_that_insists_on_a_refused_model_waits_until_the_circuit_lets_it_through() -> None:
    """Refusals are no attempts, but they are among the fifty rounds of a call."""
    clock, model = Clock(), Failing("a", [BUSY])
    reliable = alone(model, clock, TWO, always("retry"))
    _, problem = await drained(reliable)
    assert (given_up(problem).why, given_up(problem).attempts, len(model.asked)) == ("max-loop-exceeded", 26, 26)
    assert set(clock.slept) == {0.0, 30.0}


async def test_each_model_has_a_circuit_of_its_own() -> None:
    """Two of one name are told apart."""
    clock = Clock()
    reliable = Reliable(Failing("a", [BUSY]), Failing("a", says("hi")), breaker=TWO, waits_s=(), clock=clock)
    for _ in range(2):
        await drained(reliable)
    assert {label: circuit.state for label, circuit in reliable.circuits.items()} == {"a:m": "open", "a:m/2": "closed"}


async def test_calls_at_the_same_time_share_the_circuit() -> None:
    """What began before it opened neither closes it nor opens it for longer."""
    clock, gate = Clock(), asyncio.Event()
    reliable = alone(Failing("a", [gate.wait, *says("late")], [BUSY]), clock)
    early = asyncio.ensure_future(drained(reliable))
    await asyncio.sleep(0)
    for _ in range(2):
        await drained(reliable)
    assert reliable.circuits["a:m"].state == "open"
    gate.set()
    await early
    assert reliable.circuits["a:m"].state == "open"


def test_a_circuit_says_how_long_it_stays_open() -> None:
    """Nothing when it lets calls through."""
    circuit = Circuit(Breaker(threshold=1, cooldown_s=10))
    assert circuit.left(0) == 0.0
    late, early = circuit.enter(0), circuit.enter(0)
    circuit.failed(early, "overload", 5.0)
    assert (circuit.left(7.0), circuit.enter(7.0)) == (8.0, 0)
    circuit.failed(late, "overload", 14.0)
    assert circuit.enter(15.0)


async def test_no_more_calls_are_let_through_on_trial_than_would_close_the_circuit() -> None:
    """Of a hundred sessions that wait for the model two try it out; the others come back a second later."""
    clock, gate = Clock(), asyncio.Event()
    model = Failing("a", [BUSY], [BUSY], [gate.wait, *says("hi")])
    reliable = alone(model, clock)
    for _ in range(2):
        await drained(reliable)
    clock.at += 30
    calls = [asyncio.ensure_future(drained(reliable)) for _ in range(100)]
    await asyncio.sleep(0)
    assert (len(model.asked), reliable.circuits["a:m"].state) == (4, "half-open")
    gate.set()
    outcomes = await asyncio.gather(*calls)
    refused = [given_up(problem) for _, problem in outcomes if problem is not None]
    assert (len(refused), {(gone.why, gone.retry_after) for gone in refused}) == (98, {("circuit-open", 1.0)})
    assert reliable.circuits["a:m"].state == "closed"


def test_each_success_on_trial_leaves_room_for_one_less() -> None:
    """Three close it: after the first, two more are let through."""
    circuit = Circuit(Breaker(threshold=1, cooldown_s=0, successes=3))
    circuit.failed(circuit.enter(0), "overload", 0)
    circuit.succeeded(circuit.enter(0))
    trials = [circuit.enter(0) for _ in range(3)]
    assert (bool(trials[0]), bool(trials[1]), trials[2], circuit.left(0)) == (True, True, 0, 1.0)
    for trial in trials[:2]:
        circuit.succeeded(trial)
    assert circuit.state == "closed"


@pytest.mark.parametrize("ends", ["cancelled", "left", "own fault", "raised"])
async def test_a_trial_that_is_cut_short_makes_room_for_another(ends: str) -> None:
    """However it ends, or the circuit would never close again."""
    clock, never = Clock(), asyncio.Event()
    trial: dict[str, Any] = {
        "cancelled": [never.wait], "left": [TextChunk("par"), never.wait], "own fault": [error("invalid")],
        "raised": [UsageError("not of the provider")],
    }  # fmt: skip
    model = Failing("a", [BUSY], [BUSY], trial[ends])
    reliable = alone(model, clock, Breaker(threshold=2, successes=1))
    for _ in range(2):
        await drained(reliable)
    clock.at += 30
    for _ in range(3):
        chunks = reliable.stream(request(user("q")))
        call = asyncio.ensure_future(anext(chunks))
        await asyncio.sleep(0)
        if ends == "cancelled":
            call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await chunks.aclose()
    assert (len(model.asked), reliable.circuits["a:m"].state) == (5, "half-open")
    model.scripts = [list(says("hi"))]
    assert text_of((await drained(reliable))[0]) == "hi"
    assert reliable.circuits["a:m"].state == "closed"


async def test_what_began_before_the_circuit_opened_counts_for_no_trial() -> None:
    """Neither a late success, which would close it untried, nor a late failure, which would open it again."""
    for fails_late in (False, True):
        circuit = Circuit(Breaker(threshold=1, cooldown_s=10, successes=1))
        old, first = circuit.enter(0), circuit.enter(0)
        circuit.failed(first, "overload", 0)
        trial = circuit.enter(10)
        if fails_late:
            circuit.failed(old, "overload", 10)
        else:
            circuit.succeeded(old)
        assert (circuit.state, circuit.enter(10)) == ("half-open", 0)
        circuit.succeeded(trial)
        assert circuit.state == "closed"


def test_a_clock_that_was_set_back_costs_one_cooldown_at_most() -> None:
    """And one that jumped ahead ends it."""
    circuit = Circuit(Breaker(threshold=1, cooldown_s=10))
    circuit.failed(circuit.enter(1e6), "overload", 1e6)
    assert (circuit.left(5.0), circuit.enter(14.9)) == (10.0, 0)
    assert circuit.enter(15.0)
    circuit = Circuit(Breaker(threshold=1, cooldown_s=10))
    circuit.failed(circuit.enter(0), "overload", 0)
    assert circuit.enter(1e9)


def test_the_usual_breaker() -> None:
    """Five failures, thirty seconds, two successes."""
    assert Breaker() == Breaker(threshold=5, cooldown_s=30.0, successes=2)


@pytest.mark.parametrize("field", ["threshold", "successes"])
def test_a_breaker_that_could_never_close_is_refused(field: str) -> None:
    """When it is made."""
    with pytest.raises(ConfigurationError, match=field):
        Breaker(**{field: 0})
    with pytest.raises(ConfigurationError, match="cooldown_s"):
        Breaker(cooldown_s=-1)
