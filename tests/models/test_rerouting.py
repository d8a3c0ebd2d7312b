"""A request that goes to another model than it was composed for: what changes, what stays, who is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.models.chunks import Attempted, Chunk, Finished
from onrecord.models.fallback import Fallback
from onrecord.models.model import Model, ModelCard, scope_of
from onrecord.models.request import Request, Span, View
from onrecord.models.rerouting import Rerouted, labels_of, shared_card
from onrecord.models.retry import Reliable
from tests.models.failing import BUSY, Failing, drained, error, says, text_of
from tests.models.requests import CARD, native, request, said, settled, user

pytestmark = pytest.mark.unit


def composed(model: Model, *messages: Any, **fields: Any) -> Request:
    """A request as the loop makes it: with a scope of the session, and its bytes."""
    made = request(*(messages or (user("q"),)), model=model, scope=scope_of(model.card, "s1"), **fields)
    return replace(made, wire=model.wire(made))


WRAPPERS = [lambda *models: Reliable(*models, waits_s=()), Fallback]


@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_another_model_gets_its_own_scope_and_bytes(wrapper: Any) -> None:
    """The session part of the scope stays, so that what it says can be replayed to it later."""
    first, other = Failing("a", [BUSY]), Failing("b", says("hi"))
    model = wrapper(first, other)
    asked = composed(model)
    await drained(model, asked)
    sent = other.asked[0]
    assert json.loads(sent.scope) == ["b", "http://b/v1", "m", "s1"]
    assert sent.model is other
    assert sent.wire is not None
    assert sent.wire.body.startswith(b'b:m ["b"')
    assert first.asked[0] is asked
    assert (sent.conversation, sent.pieces, sent.view, sent.settings) == (
        asked.conversation, asked.pieces, asked.view, asked.settings,
    )  # fmt: skip


@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_the_reply_names_the_model_that_really_answered(wrapper: Any) -> None:
    """Provider, protocol and scope of the other one; of the first nothing is said, as ever."""
    card = ModelCard(provider="b", model="m", protocol="another", base_url="http://b/v1")
    first, other = Failing("a", [BUSY], says("mine")), Failing("b", says("hi", model="m-2026"), card=card)
    model = wrapper(first, other)
    out, _ = await drained(model, composed(model))
    assert out[-1] == Finished(provider="b", protocol="another", scope='["b","http://b/v1","m","s1"]', model="m-2026")
    out, _ = await drained(Reliable(first), composed(first))
    assert out[-1] == Finished()


async def test_a_wrapper_inside_a_wrapper_keeps_the_name_that_it_gave() -> None:
    """The innermost knows best."""
    inner = Reliable(Failing("b", [BUSY]), Failing("c", says("hi")), waits_s=())
    out, _ = await drained(Reliable(Failing("a", [BUSY]), inner, waits_s=()), request(user("q")))
    ended = out[-1]
    assert isinstance(ended, Finished)
    assert (ended.provider, json.loads(ended.scope)[0]) == ("c", "c")


@pytest.mark.parametrize("scope", ["", "s", "[1]", '["a",null,"m",7]'])
async def test_a_scope_of_no_session_leads_to_one_of_no_session(scope: str) -> None:
    """And never to one in which the first model's native output could be replayed."""
    other = Failing("b", says("hi"))
    await drained(Reliable(Failing("a", [BUSY]), other, waits_s=()), request(user("q"), scope=scope))
    assert json.loads(other.asked[0].scope) == ["b", "http://b/v1", "m", None]


async def test_headers_of_a_request_go_to_no_other_server() -> None:
    """They may hold the key of a tenant. Another model of the same server gets them."""

    async def secret() -> Mapping[str, str]:
        return {"Authorization": "Bearer of-a"}

    near = Failing("near", [BUSY], card=replace(CARD, provider="a", model="small", base_url="http://a/v1"))
    moved = Failing("moved", [BUSY], card=replace(CARD, provider="a", model="m", base_url="http://elsewhere/v1"))
    far = Failing("b", says("hi"))
    await drained(Reliable(Failing("a", [BUSY]), near, moved, far, waits_s=()), request(user("q"), headers=secret))
    assert [each.asked[0].headers for each in (near, moved, far)] == [secret, None, None]


@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_a_model_whose_wire_cannot_carry_the_request_is_passed_over(wrapper: Any) -> None:
    """The next one is asked."""
    models = Failing("a", [BUSY]), Failing("b", says("no"), lacks="video"), Failing("c", says("hi"))
    model = wrapper(*models)
    out, problem = await drained(model, composed(model))
    assert (problem, text_of(out), models[1].asked) == (None, "hi", [])


@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_when_no_other_model_can_carry_it_the_first_error_stands(wrapper: Any) -> None:
    """It says more than that there is nobody left."""
    model = wrapper(Failing("a", [BUSY]), Failing("b", says("no"), lacks="video"))
    out, problem = await drained(model, composed(model))
    assert (problem, out) == (BUSY, [])


@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_a_first_model_that_cannot_carry_the_request_is_passed_over_too(wrapper: Any) -> None:
    """What came from one vendor and has no portable form can still go back to it."""
    first, other = Failing("a", says("no"), lacks="a search record"), Failing("b", says("hi"))
    model = wrapper(first, other)
    asked = composed(model)
    assert asked.wire is not None
    assert (asked.wire.issues, asked.wire.body[:3]) == ((), b"b:m")
    out, problem = await drained(model, asked)
    ended = out[-1]
    assert isinstance(ended, Finished)
    assert (problem, text_of(out), first.asked, ended.provider) == (None, "hi", [], "b")
    sent = other.asked[0].wire
    assert sent is not None
    assert (sent.body, isinstance(sent, Rerouted)) == (asked.wire.body, False)


@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_a_view_that_degrades_lets_a_model_answer_that_cannot_carry_everything(wrapper: Any) -> None:
    """The first as well as another one; what was left out is on the wire for the receipt."""
    model = wrapper(Failing("a", [BUSY], lacks="video"), Failing("b", says("hi"), lacks="audio"))
    asked = composed(model, view=View(spans=(Span(0, 1),), degrade=True))
    assert asked.wire is not None
    assert (asked.wire.body[:3], [issue.what for issue in asked.wire.issues]) == (b"a:m", ["video"])
    out, problem = await drained(model, asked)
    assert (problem, text_of(out)) == (None, "hi")
    (told,) = [chunk for chunk in out if isinstance(chunk, Attempted)]
    assert [issue.what for issue in told.left_out] == ["audio"]  # what the receipt of the first cannot say


async def test_that_the_first_model_was_passed_over_is_told() -> None:
    """As an attempt that could not be made."""
    model = Reliable(Failing("a", says("no"), lacks="video"), Failing("b", says("hi")))
    out, _ = await drained(model, composed(model))
    assert out[0] == Attempted(attempt=1, error="invalid", model="a:m")


@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_what_no_model_can_carry_is_refused_in_the_first_one_s_words(wrapper: Any) -> None:
    """Before anything is sent."""
    model = wrapper(Failing("a", says("no"), lacks="video"), Failing("b", says("no"), lacks="audio"))
    assert [issue.what for issue in model.wire(request(user("q"))).issues] == ["video"]


async def test_a_model_that_cannot_write_a_request_down_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    """Its exception is its own, and is told without its words, which may quote the request."""

    class Broken(Failing):
        def wire(self, asked: Request, /) -> Any:
            raise ValueError("canary")

    out, _ = await drained(Reliable(Failing("a", [BUSY]), Broken("b"), Failing("c", says("hi")), waits_s=()))
    assert text_of(out) == "hi"
    assert "a request was not sent to b:m: model 'b:m' raised ValueError" in caplog.text
    assert "canary" not in caplog.text


async def test_nested_wrappers_find_the_model_that_fits() -> None:
    """Each knows its own bytes again."""
    inner = Reliable(Failing("a", says("no"), lacks="x"), Failing("b", says("no"), lacks="y"))
    last = Reliable(Failing("c", says("no"), lacks="z"), Failing("d", says("hi")))
    model = Fallback(inner, last)
    asked = composed(model)
    assert asked.wire is not None
    assert asked.wire.body.startswith(b"d:m")
    out, problem = await drained(model, asked)
    assert (problem, text_of(out)) == (None, "hi")


async def test_native_output_of_one_vendor_is_never_sent_to_another() -> None:
    """Over real wires of the same protocol: it is shown in its portable form, and comes back natively."""
    from tests.models.requests import projection

    class Chat(Failing):
        def wire(self, asked: Request, /) -> Any:
            return projection(self.card).wire(asked)

    first, other = Chat("a", [BUSY]), Chat("b", says("hi"))
    mine = scope_of(first.card, "s1")
    held = settled("r0", "seen", continuation=native(b'{"role":"assistant","content":"NATIVE"}', scope=mine))
    model = Reliable(first, other, waits_s=())
    asked = composed(model, user("q"), said(held), user("and now?", id="u1"))
    await drained(model, asked)
    assert asked.wire is not None
    sent = other.asked[0].wire
    assert sent is not None
    assert (b"NATIVE" in asked.wire.body, b"NATIVE" in sent.body, b"seen" in sent.body) == (True, False, True)


def test_a_card_says_no_more_than_all_models_can_do() -> None:
    """Any of them may answer."""
    one = replace(CARD, context_tokens=200, output_tokens=None, thinking="adaptive", structured="native", images=True)
    assert (one.steps, one.least_thinking) == (None, 1)
    two = replace(
        CARD, provider="b", context_tokens=100, output_tokens=50, thinking="budget", structured="json", images=False,
        tools=False, needs_tools_with_calls=True, least_thinking=1024, steps=10, cache_marks=True,
    )  # fmt: skip
    card = shared_card([Failing("a", card=one), Failing("b", card=two)])
    assert (card.provider, card.name, card.base_url) == (one.provider, one.name, one.base_url)
    assert (card.context_tokens, card.output_tokens, card.structured, card.thinking) == (100, 50, "json", "budget")
    assert card.cache_marks  # to the others marks are nothing
    assert (card.images, card.tools, card.audio, card.needs_tools_with_calls) == (False, False, True, True)
    assert (card.steps, card.least_thinking) == (10, 1024)
    none = shared_card([Failing("a", card=one), Failing("b", card=replace(two, thinking="none"))])
    assert none.thinking == "none"
    assert shared_card([Failing("a", card=one)]) is one
    assert Reliable(Failing("a", card=one), Failing("b", card=two)).card == card


def test_models_of_one_name_are_told_apart() -> None:
    """By a number."""
    assert labels_of([Failing("a"), Failing("a"), Failing("b"), Failing("a")]) == (
        "a:m", "a:m/2", "b:m", "a:m/3",
    )  # fmt: skip


async def test_a_long_history_is_encoded_for_the_other_model_in_slices() -> None:
    """So that the loop is not held up."""
    left = [3, 2, 1, 0]

    class Lanes(Failing):
        def extend(self, asked: Request, limit: int = 500, /) -> int:
            return left.pop(0)

    out: list[Chunk] = (await drained(Reliable(Failing("a", [error("model")]), Lanes("b", says("hi")))))[0]
    assert (text_of(out), left) == ("hi", [])
