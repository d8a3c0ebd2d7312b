"""Rules about a call: what they see, what each verb does, and what they can never do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onrecord.errors import ConfigurationError, ModelError
from onrecord.models.call_rules import CallRule, CallScope, Verb
from onrecord.models.chunks import Attempted, CallChunk, Chunk, Finished, TextChunk
from onrecord.models.request import Request
from onrecord.models.retry import Reliable
from tests.models.failing import BUSY, Clock, Failing, always, drained, error, given_up, looking, says, text_of, when
from tests.models.requests import request, user

pytestmark = pytest.mark.unit

TRANSIENT = CallRule(
    only_if=lambda s: s.error_kind == "5xx-transient" and s.attempt < 3, then="retry", kind="transient-retry"
)


async def test_l190_rules_retry_what_is_transient_and_fail_the_rest() -> None:
    """Three calls at a provider that is always down; an answer after two failures is the answer."""
    rules = (TRANSIENT, always("fail_fast", kind="unrecoverable", label="no use"))
    down = Failing("a", [BUSY])
    out, problem = await drained(Reliable(down, rules=rules, waits_s=()))
    gone = given_up(problem)
    assert (gone.why, gone.phase, gone.label, gone.attempts, len(down.asked)) == (
        "unrecoverable", "after", "no use", 3, 3,
    )  # fmt: skip
    assert (gone.kind, gone.status, gone.__cause__, gone.code) == ("overload", 503, BUSY, "model-overload")
    assert [type(chunk) for chunk in out] == [Attempted, Attempted]

    back = Failing("a", [BUSY], [BUSY], says("hi"))
    out, problem = await drained(Reliable(back, rules=rules))
    assert (problem, text_of(out), len(back.asked)) == (None, "hi", 3)


async def test_a_rule_that_gives_a_promise_does_not_hold(caplog: pytest.LogCaptureFixture) -> None:
    """A promise counts as true: a rule written so would hold for every call. Which one it is, is told."""

    async def later() -> bool:
        return True

    broken = CallRule(only_if=lambda _: later(), then="retry", label="by promise")
    down = Failing("a", [BUSY])
    _, problem = await drained(Reliable(down, rules=[broken, always("fail_fast", label="no use")]))
    assert (given_up(problem).label, len(down.asked)) == ("no use", 1)
    assert "when of the call rule 'by promise' raised TypeError" in caplog.text


async def test_l136_nothing_is_asked_again_once_a_piece_was_handed_out() -> None:
    """A rule that says retry ends the call with a name of its own, and there is one call only."""
    model = Failing("a", [TextChunk("par"), BUSY])
    out, problem = await drained(Reliable(model, rules=[always("retry")]))
    assert (given_up(problem).why, given_up(problem).started) == ("mid-stream-not-retryable", True)
    assert (text_of(out), len(model.asked)) == ("par", 1)


@pytest.mark.parametrize("then", ["retry", "retry_other", "fallback"])
@pytest.mark.parametrize(
    "script",
    [
        [TextChunk("x"), BUSY],
        [CallChunk(wire_id="c", name="f", raw_args="{}"), BUSY],
        [error(status=503, started=True)],
    ],
    ids=["text", "call", "unseen call"],
)
async def test_every_verb_that_asks_again_is_refused_in_mid_stream(then: Verb, script: list[Any]) -> None:
    """Also where a call began of which nothing was seen."""
    model, other = Failing("a", script), Failing("b", says("other"))
    reliable = Reliable(model, other, rules=[always(then)], fallback=lambda _r, _e: "instead")
    _, problem = await drained(reliable)
    assert given_up(problem).why == "mid-stream-not-retryable"
    assert (len(model.asked), len(other.asked)) == (1, 0)


async def test_a_rule_may_let_a_mid_stream_failure_fail_under_its_own_name() -> None:
    """`fail_fast` is one of the two verbs that stay possible."""
    _, problem = await drained(Reliable(Failing("a", [TextChunk("x"), BUSY]), rules=[always("fail_fast", kind="cut")]))
    assert given_up(problem).why == "cut"


async def test_the_first_rule_that_holds_decides_and_one_that_raises_does_not_hold() -> None:
    """Order is all there is."""
    broken = CallRule(only_if=lambda s: s.nothing, then="fail_fast", kind="broken")  # type: ignore[attr-defined]
    rules = (broken, always("fail_fast", kind="first"), always("fail_fast", kind="second"))
    _, problem = await drained(Reliable(Failing("a", [BUSY]), rules=rules))
    assert given_up(problem).why == "first"


async def test_where_no_rule_holds_waits_go_on_as_without_rules() -> None:
    """And a failure that nothing is done about is raised as it is."""
    clock, model = Clock(), Failing("a", [BUSY], says("hi"))
    out, problem = await drained(Reliable(model, rules=[when("unknown", "fail_fast")], sleep=clock.sleep))
    assert (problem, text_of(out), clock.slept) == (None, "hi", [3.0])
    bad = error("invalid", 400)
    _, problem = await drained(Reliable(Failing("a", [bad]), rules=[when("ok", "ok")]))
    assert problem is bad


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (error("rate", 429), "rate-limit"),
        (error("rate"), "rate-limit"),
        (error("overload", 503), "5xx-transient"),
        (error("overload"), "5xx-transient"),
        (error("network"), "5xx-transient"),
        (error("timeout", 408), "5xx-transient"),
        (error("auth", 401), "unknown"),
        (error("quota", 402), "unknown"),
        (error("invalid", 400), "unknown"),
    ],
)
async def test_rules_tell_failures_apart_by_the_kinds_of_the_spec(problem: ModelError, kind: str) -> None:
    """And can look at the error itself for more."""
    seen: list[CallScope] = []
    rules = looking(seen), always("fail_fast")
    await drained(Reliable(Failing("a", [problem]), rules=rules))
    assert (seen[0].error_kind, seen[0].error) == (kind, problem)


async def test_what_a_rule_sees_of_a_call() -> None:
    """Attempts by model, where there is another one, what failed, and how long it took."""
    seen: list[CallScope] = []
    clock = Clock()

    def slow() -> None:
        clock.at += 0.25

    first, second = Failing("a", [slow, BUSY]), Failing("b", [BUSY], says("hi"))
    asked = request(user("q"))
    rules = (looking(seen), CallRule(only_if=lambda s: s.can_switch_provider, then="retry_other"), always("retry"))
    reliable = Reliable(first, second, rules=rules, before=[looking(seen, "go_on")], clock=clock, sleep=clock.sleep)
    out, problem = await drained(reliable, asked)
    assert (problem, text_of(out)) == (None, "hi")
    told = [(s.attempt, s.provider_idx, s.current_provider, s.can_switch_provider, s.error_kind) for s in seen]
    assert told == [
        (0, 0, "a:m", True, "ok"),
        (1, 0, "a:m", True, "5xx-transient"),
        (2, 1, "b:m", False, "5xx-transient"),
        (3, 1, "b:m", False, "ok"),
    ]
    assert [s.attempts_per_provider for s in seen] == [{}, {"a:m": 1}, {"a:m": 1, "b:m": 1}, {"a:m": 1, "b:m": 2}]
    assert (seen[1].latency_ms, seen[0].providers_count, seen[0].has_fallback) == (250, 2, False)
    assert (seen[1].request.conversation, seen[1].breaker_states) == (asked.conversation, {})


async def test_a_rule_before_the_call_can_stop_it() -> None:
    """No model is asked."""
    model = Failing("a", says("hi"))
    before = [
        CallRule(only_if=lambda _: False, then="fail_fast", kind="never"),
        CallRule(only_if=lambda _: True, then="fail_fast", label="closed"),
    ]
    _, problem = await drained(Reliable(model, before=before))
    gone = given_up(problem)
    assert (gone.why, gone.phase, gone.label, gone.provider) == ("pre-check-failed", "before", "closed", "a")
    assert model.asked == []


async def test_a_rule_before_the_call_that_says_go_on_ends_the_looking() -> None:
    """The first that holds decides, before the call too."""
    before = [CallRule(only_if=lambda _: True, then="go_on"), CallRule(only_if=lambda _: True, then="fail_fast")]
    out, problem = await drained(Reliable(Failing("a", says("hi")), before=before))
    assert (problem, text_of(out)) == (None, "hi")


async def test_the_next_model_is_asked_and_then_there_is_none_left() -> None:
    """Each gets the request once; the error keeps what the last one said."""
    models = [Failing(name, [error(status=503)]) for name in "abc"]
    out, problem = await drained(Reliable(*models, rules=[always("retry_other")]))
    assert given_up(problem).why == "no-more-providers"
    assert [len(model.asked) for model in models] == [1, 1, 1]
    assert [chunk.model for chunk in out if isinstance(chunk, Attempted)] == ["a:m", "b:m"]


async def test_a_fallback_function_answers_in_the_model_s_place() -> None:
    """It gets the request and the error; the reply says that no model gave it."""
    given: list[tuple[Request, ModelError]] = []

    async def canned(asked: Request, problem: ModelError) -> str:
        given.append((asked, problem))
        return "We call you back."

    asked = request(user("q"))
    out, problem = await drained(Reliable(Failing("a", [BUSY]), rules=[always("fallback")], fallback=canned), asked)
    ended = out[-1]
    assert isinstance(ended, Finished)
    assert (problem, text_of(out), given) == (None, "We call you back.", [(asked, BUSY)])
    assert (ended.provider, ended.model, ended.protocol, ended.scope != asked.scope) == (
        "fallback", "canned", "fallback", True,
    )  # fmt: skip


async def test_a_fallback_function_may_give_chunks_and_need_not_be_async() -> None:
    """As a model would."""
    chunks: list[Chunk] = [TextChunk("a"), TextChunk("b"), Finished(finish="length", model="small")]
    out, problem = await drained(
        Reliable(Failing("a", [BUSY]), rules=[always("fallback")], fallback=lambda _r, _e: chunks)
    )
    ended = out[-1]
    assert isinstance(ended, Finished)
    assert (problem, text_of(out), ended.finish, ended.model) == (None, "ab", "length", "small")


async def test_a_fallback_may_fail_as_a_model_does() -> None:
    """With an error of its own choice, which is what is raised."""
    mine = error("entitlement")

    def fails(asked: Request, problem: ModelError) -> str:
        raise mine

    rules = [CallRule(only_if=lambda s: s.error is BUSY, then="fallback")]
    assert (await drained(Reliable(Failing("a", [BUSY]), rules=rules, fallback=fails)))[1] is mine


@pytest.mark.parametrize("bad", [lambda _r, _e: 1 / 0, lambda _r, _e: "", lambda _r, _e: 7])
async def test_a_fallback_that_fails_is_judged_like_an_attempt(bad: Any) -> None:
    """Its error goes to the rules, and the model is not asked again for it."""
    model = Failing("a", [BUSY])
    rules = (CallRule(only_if=lambda s: s.error is BUSY, then="fallback"), always("fail_fast", kind="both"))
    _, problem = await drained(Reliable(model, rules=rules, fallback=bad))
    assert (given_up(problem).why, len(model.asked)) == ("both", 1)
    assert isinstance(given_up(problem).__cause__, ModelError)
    assert given_up(problem).provider == "fallback"


async def test_a_rule_wants_a_fallback_and_there_is_none() -> None:
    """That has a name."""
    _, problem = await drained(Reliable(Failing("a", [BUSY]), rules=[always("fallback")]))
    assert given_up(problem).why == "fallback-not-configured"


async def test_a_failed_attempt_cannot_be_taken_for_an_answer() -> None:
    """`ok` without a reply."""
    _, problem = await drained(Reliable(Failing("a", [BUSY]), rules=[always("ok")]))
    assert given_up(problem).why == "no-response"


async def test_a_blank_reply_can_be_asked_for_again() -> None:
    """Nothing of it was handed out, so nothing stands in the way."""
    model = Failing("a", [Finished()], says("hi"))
    blank = CallRule(
        only_if=lambda s: s.response is not None and not s.response.content, then="retry", feedback="Say something."
    )
    out, problem = await drained(Reliable(model, rules=[blank]))
    assert (problem, text_of(out), len(model.asked)) == (None, "hi", 2)
    assert sum(isinstance(chunk, Finished) for chunk in out) == 1


async def test_fifty_attempts_are_the_most() -> None:
    """Whatever the rules say."""
    model = Failing("a", [BUSY])
    _, problem = await drained(Reliable(model, rules=[always("retry")]))
    assert (given_up(problem).why, len(model.asked), given_up(problem).kind) == ("max-loop-exceeded", 50, "overload")
    assert given_up(problem).__cause__ is BUSY


async def test_a_cancelled_call_is_never_asked_again() -> None:
    """Not by any rule, nor by another model, nor by a fallback."""
    gone = error("aborted")
    model, other = Failing("a", [gone]), Failing("b", says("hi"))
    reliable = Reliable(model, other, rules=[always("retry_other")], fallback=lambda _r, _e: "instead")
    _, problem = await drained(reliable)
    assert problem is gone
    assert (len(model.asked), len(other.asked)) == (1, 0)


async def test_a_rule_s_retry_waits_as_long_as_it_or_the_provider_says() -> None:
    """What the provider says counts up to thirty seconds."""
    clock = Clock()
    script = [[error("rate", 429, retry_after=8.0)], [error("rate", 429)], [error("rate", 429, retry_after=90.0)]]
    model = Failing("a", *script, says("hi"))
    await drained(Reliable(model, rules=[always("retry", wait_s=2.0)], sleep=clock.sleep))
    assert clock.slept == [8.0, 2.0, 30.0]


async def test_cancelling_ends_the_wait_of_a_rule() -> None:
    """No attempt follows."""
    model, waiting = Failing("a", [BUSY]), asyncio.Event()

    async def wait_for_ever(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(drained(Reliable(model, rules=[always("retry", wait_s=1)], sleep=wait_for_ever)))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(model.asked) == 1


# ---- declared wrongly


@pytest.mark.parametrize(
    "fields",
    [
        {"rules": [CallRule(only_if=bool, then="go_on")]},
        {"before": [CallRule(only_if=bool, then="retry")]},
        {"rules": [CallRule(only_if=bool, then="retry", wait_s=-1.0)]},
        {"rules": [lambda _: True]},
    ],
)
def test_a_rule_that_could_never_take_effect_is_refused(fields: dict[str, Any]) -> None:
    """When the model is made."""
    with pytest.raises(ConfigurationError):
        Reliable(Failing("a"), **fields)


def test_what_is_no_model_is_refused() -> None:
    """By its type."""
    with pytest.raises(ConfigurationError, match="not a int"):
        Reliable(7)  # type: ignore[arg-type]  # no model


async def test_waits_that_rules_ask_for_use_up_none_of_the_usual_ones() -> None:
    """A rule that tries once at once leaves the three waits as they are."""
    clock = Clock()
    at_once = CallRule(only_if=lambda s: s.attempt == 1, then="retry", kind="at-once")
    model = Failing("a", [BUSY])
    _, problem = await drained(Reliable(model, rules=[at_once], sleep=clock.sleep, clock=clock))
    assert (problem, clock.slept, len(model.asked)) == (BUSY, [0.0, 3.0, 6.0, 12.0], 5)


async def test_a_rule_that_raises_is_told_and_does_not_hold(caplog: pytest.LogCaptureFixture) -> None:
    """One that is broken would look like one that was not needed. What it raised may quote the request."""

    def broken(scope: CallScope) -> str:
        raise ValueError("canary")

    model = Failing("a", [BUSY], says("hi"))
    rules = (CallRule(only_if=broken, then="fail_fast", label="broken"), always("retry", feedback=broken))
    out, problem = await drained(Reliable(model, rules=rules, waits_s=()))
    assert (problem, text_of(out)) == (None, "hi")
    assert "when of the call rule 'broken' raised ValueError" in caplog.text
    assert "feedback of the call rule 'retry' raised ValueError" in caplog.text
    assert "canary" not in caplog.text
