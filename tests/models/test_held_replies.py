"""Replies that are held back until they are whole: what fits, what is asked for again, and with which words."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.conversation.messages import ToolCall
from onrecord.conversation.usage import Usage
from onrecord.models.call_rules import STUCK_LOOP, CallRule, CallScope, Misfit, last_validation_errors_match
from onrecord.models.chunks import Attempted, CallChunk, Chunk, Finished, TextChunk, ThinkingChunk
from onrecord.models.held_reply import fits_shape
from onrecord.models.request import Reading, Shape
from onrecord.models.retry import Reliable
from tests.models.failing import BUSY, Clock, Failing, drained, error, given_up, says, text_of, when
from tests.models.requests import request, user

pytestmark = pytest.mark.unit

SHAPE: Shape[None] = Shape(
    name="answer",
    schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    read=lambda held: Reading(text=held.text, value=None),
)


async def test_a_reply_that_does_not_fit_is_asked_for_again_with_what_is_wrong() -> None:
    """Feedback comes last in this call's request, and is told with the attempt; nothing of the misfit is shown."""
    model = Failing("a", [TextChunk('{"n":'), TextChunk('"x"}'), Finished()], says('{"n":7}'))
    rule = when("schema-fail", "retry", label="again", feedback=lambda s: f"Not: {s.validation_error.message}")
    asked = request(user("q"), shape=SHAPE)
    out, problem = await drained(Reliable(model, rules=[rule], validate=fits_shape), asked)
    assert (problem, text_of(out)) == (None, '{"n":7}')
    told = "Not: n: expected integer, got string"
    assert [(c.error, c.feedback) for c in out if isinstance(c, Attempted)] == [("schema-fail", told)]
    assert [(p.text, p.place) for p in model.asked[1].pieces] == [(told, "trailing")]
    assert (asked.pieces, model.asked[1].wire, len(model.asked)) == ((), None, 2)


async def test_feedback_of_the_latest_attempt_takes_the_place_of_an_earlier_one() -> None:
    """And one that cannot be made is left out."""
    model = Failing("a", says("x"), says("y"), says("z"), says('{"n":1}'))
    broken: Any = lambda s: s.nothing  # noqa: E731 - the annotation is the point
    rules = (
        CallRule(only_if=lambda s: s.error_kind == "schema-fail" and s.attempt == 3, then="retry", feedback=broken),
        when("schema-fail", "retry", feedback=lambda s: f"attempt {s.attempt}"),
    )
    await drained(Reliable(model, rules=rules, validate=fits_shape), request(user("q"), shape=SHAPE))
    assert [[p.text for p in asked.pieces] for asked in model.asked] == [[], ["attempt 1"], ["attempt 2"], []]


async def test_a_misfit_that_no_rule_takes_up_ends_the_call() -> None:
    """It is an error like any other, and none of its text is in it."""
    model = Failing("a", says("the secret words"))
    out, problem = await drained(Reliable(model, validate=fits_shape), request(user("q"), shape=SHAPE))
    gone = given_up(problem)
    assert (gone.why, gone.attempts, text_of(out)) == ("schema-fail", 1, "")
    assert "secret" not in f"{gone} {gone!r} {gone.__dict__}"


async def test_a_misfit_may_be_taken_as_it_is() -> None:
    """`ok` has a reply here."""
    out, problem = await drained(
        Reliable(Failing("a", says("x")), rules=[when("schema-fail", "ok")], validate=fits_shape),
        request(user("q"), shape=SHAPE),
    )
    assert (problem, text_of(out)) == (None, "x")


async def test_a_misfit_can_go_to_another_model() -> None:
    """Which gets the feedback, too."""
    first, other = Failing("a", says("x")), Failing("b", says('{"n":1}'))
    rules = [when("schema-fail", "retry_other", feedback="JSON, please.")]
    out, _ = await drained(Reliable(first, other, rules=rules, validate=fits_shape), request(user("q"), shape=SHAPE))
    assert text_of(out) == '{"n":1}'
    assert [p.text for p in other.asked[0].pieces] == ["JSON, please."]


async def test_a_held_reply_that_breaks_off_can_be_asked_for_again() -> None:
    """Nothing of it was handed out."""
    model = Failing("a", [TextChunk('{"n"'), error(status=503, started=True)], says('{"n":1}'))
    clock = Clock()
    out, problem = await drained(
        Reliable(model, validate=fits_shape, sleep=clock.sleep), request(user("q"), shape=SHAPE)
    )
    assert (problem, text_of(out), clock.slept) == (None, '{"n":1}', [3.0])


async def test_replies_without_a_shape_stream_as_ever() -> None:
    """Only what is validated is held back."""
    chunks = Reliable(Failing("a", [TextChunk("a"), BUSY]), validate=fits_shape).stream(request(user("q")))
    assert await anext(chunks) == TextChunk("a")
    await chunks.aclose()


@pytest.mark.parametrize(
    ("chunks", "fits"),
    [
        ([TextChunk('{"n": 1}')], True),
        ([TextChunk('```json\n{"n": 1}\n```')], True),
        ([CallChunk(wire_id="c", name="f", raw_args="{}")], True),
        ([TextChunk("No.", refusal=True)], True),
        ([TextChunk("n is 1")], False),
        ([TextChunk('{"m": 1}')], False),
        ([], False),
    ],
)
async def test_what_fits_a_shape(chunks: list[Chunk], fits: bool) -> None:
    """A call and a refusal are no attempts at it."""
    _, problem = await drained(
        Reliable(Failing("a", [*chunks, Finished()]), validate=fits_shape), request(user("q"), shape=SHAPE)
    )
    assert (problem is None) is fits


async def test_the_same_misfit_twice_in_a_row_is_a_stuck_loop() -> None:
    """Asking a third time would give the third."""
    model = Failing("a", says("x"), says("y"))
    rules = (STUCK_LOOP, when("schema-fail", "retry"))
    _, problem = await drained(Reliable(model, rules=rules, validate=fits_shape), request(user("q"), shape=SHAPE))
    assert (given_up(problem).why, len(model.asked)) == ("stuck-loop", 2)


def test_misfits_match_by_their_words_and_place() -> None:
    """Not by the text that did not fit."""
    scope = CallScope(
        request=request(user("q")), providers_count=1, has_fallback=False, attempt=3, provider_idx=0,
        current_provider="a:m", can_switch_provider=False,
        validation_error_history=(Misfit("other"), Misfit("bad", "n", "1"), Misfit("bad", "n", "2")),
    )  # fmt: skip
    assert last_validation_errors_match(scope)
    assert not last_validation_errors_match(scope, 3)
    assert not last_validation_errors_match(scope, 4)


async def test_attempts_of_a_model_inside_are_told_while_its_reply_is_held() -> None:
    """They are no part of it."""
    told = Attempted(attempt=1, error="rate")
    chunks = Reliable(Failing("a", [told, TextChunk('{"n":1}')]), validate=fits_shape).stream(
        request(user("q"), shape=SHAPE)
    )
    assert [chunk async for chunk in chunks] == [told, TextChunk('{"n":1}')]


async def test_calls_inside_an_envelope_are_calls() -> None:
    """A shape may find some where others look for a value."""
    found = (ToolCall(id="r/c0", wire_id="", name="f", raw_args="{}", args={}),)
    shape: Shape[None] = Shape(
        name="envelope", schema=SHAPE.schema, read=lambda h: Reading(text=h.text, value=None, calls=found)
    )
    _, problem = await drained(
        Reliable(Failing("a", says("f()")), validate=fits_shape), request(user("q"), shape=shape)
    )
    assert problem is None


async def test_reasoning_is_no_part_of_what_must_fit() -> None:
    """Nor is it lost on the way."""
    chunks: list[Chunk] = [ThinkingChunk("hm"), TextChunk('{"n"'), TextChunk(":1}"), Finished()]
    out, _ = await drained(Reliable(Failing("a", chunks), validate=fits_shape), request(user("q"), shape=SHAPE))
    assert out == chunks


PAID = Usage(input_tokens=10, output_tokens=5)


async def test_a_reply_that_did_not_fit_was_paid_and_is_told_with_its_price_once() -> None:
    """Whoever adds up would miss it otherwise; what comes of the next attempt is told with that one."""
    model = Failing("a", says("x", usage=PAID), says('{"n":1}', usage=PAID))
    rules = [when("schema-fail", "retry")]
    out, _ = await drained(Reliable(model, rules=rules, validate=fits_shape), request(user("q"), shape=SHAPE))
    assert [chunk.usage for chunk in out if isinstance(chunk, (Attempted, Finished))] == [PAID, PAID]

    def broken(_request: object, _error: object) -> str:
        raise ValueError

    rules = [CallRule(only_if=lambda s: s.error_kind == "schema-fail", then="fallback"), when("unknown", "retry_other")]
    reliable = Reliable(
        Failing("a", says("x", usage=PAID)), Failing("b", says('{"n":1}')), rules=rules, validate=fits_shape,
        fallback=broken,
    )  # fmt: skip
    out, problem = await drained(reliable, request(user("q"), shape=SHAPE))
    assert (problem, [chunk.usage for chunk in out if isinstance(chunk, Attempted)]) == (None, [PAID, None])
