"""Messages: what surrounds the entries, where pieces go, and which settings are refused before anything is sent."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from onrecord.conversation.content import Image
from onrecord.conversation.conversation import Conversation
from onrecord.models.request import Piece, Reading, Request, Settings, Shape, Span, View
from onrecord.providers.anthropic.cards import PROTOCOL, Rules
from onrecord.providers.anthropic.project import AnthropicProjection
from tests.models.requests import call, context, native, offer, request, said, settled, system, user
from tests.providers.anthropic_requests import ADAPTIVE, BUDGET, NONE, body_of, projection, words

pytestmark = pytest.mark.unit

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
SHAPE: Shape[Any] = Shape(name="answer", schema=SCHEMA, read=lambda held: Reading(text=held.text, value=None))
HI = user("hi")


def piece(text: str, place: Literal["system", "turn", "trailing"], rank: int = 0) -> Piece:
    """A piece at a place."""
    return Piece(source="t", text=text, place=place, rank=rank)


def asks(*, choice: str = "auto", offers: Any = (), shape: Any = None, **settings: Any) -> Request:
    """A request with these settings."""
    return request(HI, settings=Settings(**settings), choice=choice, offers=offers, shape=shape)


def issues(asked: Request, model: str = BUDGET, **fields: Any) -> list[str]:
    """What is refused."""
    return [issue.what for issue in projection(model, **fields).wire(asked).issues]


# ---- the whole body -----------------------------------------------------------------------------------------------


def test_a_body_holds_what_is_said_and_what_the_vendor_needs() -> None:
    """Golden: no field that nobody set, but the cap, which Messages demands."""
    assert projection().wire(request(HI)).body == (
        b'{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],'
        b'"max_tokens":4096,"stream":true}'
    )


def test_a_body_with_everything() -> None:
    """Golden: the order of fields does not matter to the vendor's cache, but that it stays does."""
    asked = request(
        HI,
        pieces=(system("Be good."), piece("Now.", "turn"), piece("The end.", "trailing")),
        offers=(offer(),),
        choice="none",
        shape=SHAPE,
        settings=Settings(top_p=0.95, max_tokens=7, stop=("x",), thinking=1024, search=True, extra={"metadata": {}}),
    )
    assert projection().wire(asked).body.decode() == (
        '{"model":"claude-sonnet-4-5","system":[{"type":"text","text":"Be good."},{"type":"text","text":'
        '"Answer with one JSON object and nothing else. It must be valid against this JSON Schema:\\n'
        '{\\"type\\":\\"object\\",\\"properties\\":{\\"a\\":{\\"type\\":\\"string\\"}},\\"required\\":[\\"a\\"],'
        '\\"additionalProperties\\":false}"}],'
        '"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"Now."},'
        '{"type":"text","text":"The end."}]}],'
        '"max_tokens":2048,"tools":[{"name":"price","description":"The price.","input_schema":'
        '{"type":"object","properties":{}}},{"type":"web_search_20250305","name":"web_search"}],'
        '"tool_choice":{"type":"none"},"top_p":0.95,"stop_sequences":["x"],'
        '"thinking":{"type":"enabled","budget_tokens":1024},"metadata":{},"stream":true}'
    )


def test_a_request_that_shows_nothing_is_a_valid_body() -> None:
    """The vendor needs an entry of the user's."""
    assert words(request()) == ["user: (continue)"]
    assert words(request(user(" "), pieces=(system("a"),))) == ["user: (continue)"]


# ---- pieces -------------------------------------------------------------------------------------------------------


def test_system_pieces_are_a_block_each_in_rank_order_without_blank_ones() -> None:
    """So that a mark has a place behind any of them."""
    pieces = (system("c", 2), system("", 0), system("a", 1), system(" \n", 1), system("b", 1))
    assert [one["text"] for one in body_of(request(HI, pieces=pieces))["system"]] == ["a", "b", "c"]
    assert "system" not in body_of(request(HI, pieces=(system(" "),)))


def test_leading_instructions_go_with_the_system_and_later_ones_stay_where_they_are() -> None:
    """Wrapped, as the words of the application that they are."""
    talk = (
        context("Be kind.", "system"),
        context("Be brief.", "developer", "c1"),
        HI,
        context("Slow.", "system", "c2"),
    )
    body = body_of(request(*talk, pieces=(system("Be good."),)))
    assert [one["text"] for one in body["system"]] == ["Be good.", "Be kind.", "Be brief."]
    (entry,) = body["messages"]
    assert entry["content"][1]["text"].startswith('<instruction from="application" authority="system">\nSlow.')


def test_turn_text_stands_before_the_rounds_of_this_brief_and_trailing_text_last() -> None:
    """With the media of the message whose words it carries."""
    question = user("q", Image(url="https://e.test/a"), id="u0")
    held = Conversation.of((question, said(settled("r", "mm", calls=[call("r", 0)]))))
    pieces = (piece("second", "turn", 2), piece("first", "turn", 1), piece("last", "trailing"))
    assert words(request(conversation=held, own=1, carries=0, pieces=pieces)) == [
        "user: first\n\nsecond | image", "assistant: mm | tool_use", "user: tool_result | last",
    ]  # fmt: skip


def test_a_view_that_begins_or_ends_with_the_model_gets_a_word_of_the_user() -> None:
    """The vendor wants it so."""
    talk = (HI, said(settled("r", "a")), user("so?", id="u1"), said(settled("s", "b"), id="a1"))
    assert words(request(*talk, view=View(spans=(Span(1, 4),)))) == [
        "user: (earlier messages are not shown)", "assistant: a", "user: so?", "assistant: b", "user: (continue)",
    ]  # fmt: skip


# ---- tools and shapes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "sent"),
    [("auto", None), ("none", {"type": "none"}), ("required", {"type": "any"}), ("f", {"type": "tool", "name": "f"})],
)
def test_a_choice_is_told_in_the_vendor_s_words(choice: str, sent: Any) -> None:
    """And with tools alone."""
    assert body_of(asks(choice=choice, offers=(offer(),))).get("tool_choice") == sent
    assert "tool_choice" not in body_of(asks(choice=choice))


def test_a_tool_without_a_description_has_none_on_the_wire() -> None:
    """An empty field would say nothing."""
    (sent,) = body_of(asks(offers=(offer(description=""),)))["tools"]
    assert sent == {"name": "price", "input_schema": {"type": "object", "properties": {}}}


def test_the_provider_s_search_stands_beside_the_tools() -> None:
    """Also alone; refused where there is none, and where a tool has its name."""
    assert [one["name"] for one in body_of(asks(search=True, offers=(offer(),)))["tools"]] == ["price", "web_search"]
    assert [one["name"] for one in body_of(asks(search=True))["tools"]] == ["web_search"]
    assert "tools" not in body_of(asks(search=False))
    assert issues(asks(search=True, offers=(offer(),))) == []
    assert issues(asks(search=True, offers=(offer("web_search"),)))[0].startswith("a tool named 'web_search'")
    assert issues(asks(search=True), "glm-4.6") == ["a search of the provider's own: 'anthropic:glm-4.6' has none"]


def test_a_shape_is_asked_for_behind_what_is_cached_or_by_the_vendor_itself() -> None:
    """As a block of its own; natively where that was chosen, beside the effort."""
    pieces = (system("Be good."),)
    told = body_of(request(HI, pieces=pieces, shape=SHAPE))["system"]
    assert told[0] == body_of(request(HI, pieces=pieces))["system"][0]
    assert "JSON Schema" in told[1]["text"]
    body = body_of(asks(shape=SHAPE, thinking="high"), projection(ADAPTIVE, structured="native"))
    assert body["output_config"] == {"effort": "high", "format": {"type": "json_schema", "schema": SCHEMA}}
    assert "system" not in body


# ---- thinking -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "wanted", "sent"),
    [
        (BUDGET, None, None),
        (BUDGET, 2000, {"type": "enabled", "budget_tokens": 2000}),
        (BUDGET, "none", None),
        (BUDGET, 0, None),
        (ADAPTIVE, None, None),
        (ADAPTIVE, 2000, {"type": "adaptive", "display": "summarized"}),
        (ADAPTIVE, "high", {"type": "adaptive", "display": "summarized"}),
        (ADAPTIVE, "none", None),
        ("claude-sonnet-5", "none", {"type": "disabled"}),
        ("glm-4.6", None, {"type": "disabled"}),
        ("glm-4.6", "none", {"type": "disabled"}),
        ("glm-4.6", 2000, {"type": "enabled"}),
        (NONE, "none", None),
        (NONE, None, None),
    ],
)
def test_thinking_is_asked_for_as_the_model_takes_it(model: str, wanted: Any, sent: Any) -> None:
    """A budget, nothing but that it may, or that it may not."""
    assert body_of(asks(thinking=wanted), projection(model)).get("thinking") == sent
    assert issues(asks(thinking=wanted), model) == []


@pytest.mark.parametrize(
    ("model", "wanted", "sort"),
    [
        ("claude-opus-5-5", None, "adaptive"),
        ("claude-fable-5-1", "low", "adaptive"),
        ("claude-sonnet-5-5", "none", "between_tools"),
    ],
)
def test_where_thinking_is_tied_to_what_came_before_it_is_dropped_and_not_refused(
    model: str, wanted: Any, sort: str
) -> None:
    """Windows, swapped results and other tools change what came before."""
    sent = body_of(asks(thinking=wanted), projection(model))["thinking"]
    assert sent["type"] == sort
    assert sent["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}


def test_138_an_unknown_model_thinks_adaptively_and_no_budget_goes_out() -> None:
    """The wire's half of the case; `thinking(0)` is refused where thinking is mounted."""
    raw = projection("claude-of-the-future").wire(asks(thinking=5000)).body
    assert b'"thinking":{"type":"adaptive","display":"summarized"}' in raw
    assert b"budget" not in raw
    assert b'"max_tokens":6024' in raw


@pytest.mark.parametrize("model", [BUDGET, ADAPTIVE])
@pytest.mark.parametrize(
    ("cap", "budget", "sent"),
    [(None, 1024, 4096), (None, 4095, 4096), (None, 4096, 5120), (100, 2000, 3024), (9000, 2000, 9000)],
)
def test_the_cap_is_above_the_budget(model: str, cap: int | None, budget: int, sent: int) -> None:
    """Thinking counts towards it; in adaptive mode too."""
    assert body_of(asks(max_tokens=cap, thinking=budget), projection(model))["max_tokens"] == sent


def test_e17_the_cap_is_max_tokens_and_only_that() -> None:
    """Messages' half of the case: the vendor demands one, so a default stands in."""
    body = body_of(asks(max_tokens=512))
    assert body["max_tokens"] == 512
    assert "max_output_tokens" not in body


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (BUDGET, {"thinking": 1023}, "thinking 1023: 'anthropic:claude-sonnet-4-5' takes a budget"),
    (BUDGET, {"thinking": 2000.5}, "thinking 2000.5: "),
    (BUDGET, {"thinking": "high"}, "thinking 'high': "),
    (BUDGET, {"thinking": 2000, "temperature": 0.5}, "temperature 0.5 with thinking"),
    (BUDGET, {"thinking": 2000, "top_p": 0.5}, "top_p 0.5 with thinking"),
    (BUDGET, {"thinking": 2000, "extra": {"top_k": 5}}, "top_k 5 with thinking"),
    (BUDGET, {"thinking": 2000, "choice": "required"}, "a tool choice 'required' with thinking"),
    (ADAPTIVE, {"thinking": "low", "choice": "price"}, "a tool choice 'price' with thinking"),
    (NONE, {"thinking": 2000}, "thinking: 'anthropic:claude-3-5-haiku-latest' has none"),
    ("glm-4.6", {"thinking": 2000, "temperature": 0.5}, "temperature 0.5 with thinking"),
    ("claude-opus-5-5", {"thinking": "none"}, "thinking turned off: 'anthropic:claude-opus-5-5' always thinks"),
    ("claude-opus-5-5", {"choice": "required"}, "a tool choice 'required': 'anthropic:claude-opus-5-5' cannot"),
    (ADAPTIVE, {"temperature": 0.5}, "temperature 0.5: 'anthropic:claude-opus-4-8' takes no sampling settings"),
    (ADAPTIVE, {"extra": {"top_k": 5}}, "top_k 5: "),
    (BUDGET, {"temperature": 1.5}, "temperature 1.5: Messages takes 0 to 1"),
    (BUDGET, {"temperature": 0.5, "top_p": 0.5}, "temperature and top_p at once"),
    (BUDGET, {"seed": 1}, "a seed: Messages takes none"),
    (BUDGET, {"stop": ("\n",)}, "a stop text that is blank"),
    (BUDGET, {"extra": {"system": "x"}}, "settings with an extra field 'system'"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "given", "told"), REFUSED)
def test_settings_that_the_model_cannot_take_are_refused_by_name(model: str, given: dict[str, Any], told: str) -> None:
    """Before any request, one sentence for each."""
    (what,) = issues(asks(offers=(offer(),), **given), model)
    assert what.startswith(told)


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (BUDGET, {"temperature": 0.5}),
        (BUDGET, {"thinking": 1024, "temperature": 1, "top_p": None}),
        (BUDGET, {"thinking": 2000, "top_p": 0.99}),
        (ADAPTIVE, {"temperature": 1.0, "top_p": 1}),
        ("claude-opus-4-20250514", {"temperature": 0.5, "top_p": 0.5}),
        (NONE, {"temperature": 0.5, "choice": "required"}),
        (BUDGET, {"thinking": "none", "temperature": 0.5, "choice": "required"}),
        ("my-own-model", {"temperature": 0.5}),
    ],
)
def test_settings_that_the_model_can_take_are_not(model: str, given: dict[str, Any]) -> None:
    """What changes nothing for a model that takes no sampling settings is left out."""
    asked = asks(offers=(offer(),), **given)
    assert issues(asked, model) == []
    assert ("temperature" in body_of(asked, projection(model))) == (
        given.get("temperature") is not None and model != ADAPTIVE
    )


def test_the_mode_of_a_name_can_be_told() -> None:
    """An alias, or a model that has both."""
    assert body_of(asks(thinking=2000), projection(BUDGET, thinking="adaptive"))["thinking"]["type"] == "adaptive"
    assert body_of(asks(thinking=2000), projection("my-alias", thinking="budget"))["thinking"]["type"] == "enabled"
    assert issues(asks(thinking=2000), "my-alias", thinking="none") != []


THOUGHT = b'{"type":"thinking","thinking":"hm","signature":"s"}'
ASKS = b'{"type":"tool_use","id":"w0","name":"price","input":{}}'


def test_a_budget_is_not_given_in_the_middle_of_calls_that_began_without_thinking() -> None:
    """The vendor refuses it: a round of another vendor's, or one made before thinking was asked for.

    The next question of the person begins anew; rounds with thinking go on with it.
    """
    foreign = said(settled("r", calls=[call("r", 0)]), settled("q", calls=[call("q", 0)]))
    held = native(THOUGHT, ASKS, protocol=PROTOCOL, scope="s")
    own = said(settled("r", calls=[call("r", 0)], continuation=held), settled("q", calls=[call("q", 0)]))
    for talk, thinks in (
        ((HI, foreign), False), ((HI, foreign, user("so?", id="u1")), True), ((HI, own), True), ((HI,), True),
    ):  # fmt: skip
        asked = request(*talk, settings=Settings(thinking=2000), scope="s")
        assert ("thinking" in body_of(asked)) is thinks
        assert "thinking" in body_of(asked, projection(ADAPTIVE))


def test_a_reply_goes_on_behind_the_request_that_this_wire_would_send() -> None:
    """Also where what was sent was of another card, which the endpoint taught us meanwhile."""
    wire, asked = projection(), asks(offers=(offer(),))
    tail = b',{"role":"assistant","content":[' + THOUGHT + b"]}]," + wire.wire(asked).body.partition(b"]}],")[2]
    for sent in (wire.wire(asked), projection(NONE).wire(asks())):
        body = wire.resumed(asked, sent, [THOUGHT]).body
        assert body == wire.wire(asked).body.partition(b'],"max_tokens"')[0] + tail


# ---- what is kept of bodies ---------------------------------------------------------------------------------------


def test_extra_fields_win_over_settings_and_never_stand_twice() -> None:
    """JSON with a field twice means different things to different readers."""
    raw = projection().wire(asks(temperature=0.5, extra={"temperature": 0.1, "service_tier": "auto"})).body
    assert raw.count(b'"temperature":0.1') == raw.count(b'"temperature"') == 1
    assert b'"service_tier":"auto"' in raw


def test_what_is_kept_of_settings_that_change_all_the_time_is_little() -> None:
    """Each has bytes of its own, and the memory of them is bounded."""
    wire = projection()
    for cap in range(1, 200):
        assert body_of(asks(max_tokens=cap), wire)["max_tokens"] == cap
    assert len(wire._tails) <= 64


def test_another_system_text_is_not_taken_for_the_last_one() -> None:
    """The encoded blocks are kept while their texts are equal, and only then."""
    wire = projection()
    for text in ("a", "b", "a"):
        assert body_of(request(HI, pieces=(system(text),)), wire)["system"] == [{"type": "text", "text": text}]


def test_a_card_without_tools_leaves_tools_and_choice_out_together() -> None:
    """A choice that insists on one is refused with words."""
    from msgspec.structs import replace

    card = replace(projection().card, tools=False)
    wire = AnthropicProjection(card, Rules())
    for choice, found in (("auto", 0), ("none", 0), ("required", 1)):
        asked = asks(choice=choice, offers=(offer(),))
        assert not {"tools", "tool_choice"} & body_of(asked, wire).keys()
        assert len(wire.wire(asked).issues) == found
    searching = asks(search=True, offers=(offer(),))
    assert "tools" not in body_of(searching, wire)  # the search goes with the tools (case C9)
    assert wire.wire(searching).issues == ()
