"""Responses: what surrounds the items, and what of a request the wire refuses."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from onrecord.conversation.content import Image
from onrecord.conversation.conversation import Conversation
from onrecord.models.model import ModelCard
from onrecord.models.request import Piece, Reading, Request, Settings, Shape, Span, View
from onrecord.providers.openai_responses.cards import PROTOCOL, STEPS, Dialect, responses_card
from onrecord.providers.openai_responses.project import ResponsesProjection
from tests.models.requests import call, context, offer, request, said, settled, system, user

pytestmark = pytest.mark.unit

CARD = ModelCard(
    provider="acme", model="m", protocol=PROTOCOL, base_url="http://localhost:1/v1", hosted_search=True,
    thinking="adaptive",
)  # fmt: skip
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def projection(card: ModelCard = CARD, dialect: Dialect | None = None, **extra: Any) -> ResponsesProjection:
    """Responses for a card."""
    return ResponsesProjection(card, dialect or Dialect(), extra)


def shape(schema: dict[str, Any] | None = None, name: str = "answer") -> Shape[Any]:
    """What a reply must look like."""
    return Shape(name=name, schema=schema or CLOSED, read=lambda held: Reading(text=held.text, value=None))


def body_of(asked: Request, wire: ResponsesProjection | None = None) -> dict[str, Any]:
    """A body as what it means."""
    held: dict[str, Any] = json.loads((wire or projection()).wire(asked).body)
    return held


def issues_of(asked: Request, wire: ResponsesProjection | None = None) -> list[str]:
    """What is refused."""
    return [issue.what for issue in (wire or projection()).wire(asked).issues]


def piece(text: str, place: Literal["system", "turn", "trailing"], rank: int = 0) -> Piece:
    """A piece at a place."""
    return Piece(source="t", text=text, place=place, rank=rank)


# ---- the whole body -----------------------------------------------------------------------------------------------


def test_c1_a_body_holds_what_is_said_and_nothing_else() -> None:
    """Golden, and the case: nothing is stored, there is no ``messages``, no field that nobody set."""
    assert projection().wire(request(user("Weather?"))).body == (
        b'{"model":"m","input":[{"type":"message","role":"user","content":"Weather?"}],"stream":true,"store":false}'
    )


def test_a_body_with_everything() -> None:
    """Golden: the order of fields is part of what vendors' caches see."""
    asked = request(
        user("hi"),
        pieces=(system("Be good."), piece("Now.", "turn"), piece("The end.", "trailing")),
        offers=(offer(),),
        choice="price",
        shape=shape(),
        settings=Settings(temperature=0.5, top_p=0.9, max_tokens=7, thinking="low", search=True, extra={"user": "u"}),
    )
    assert projection(dialect=Dialect(sealed=True), tier="flex").wire(asked).body.decode() == (
        '{"model":"m","instructions":"Be good.","input":[{"type":"message","role":"user","content":"hi"},'
        '{"type":"message","role":"user","content":"Now."},{"type":"message","role":"user","content":"The end."}],'
        '"tools":[{"type":"function","name":"price","description":"The price.",'
        '"parameters":{"type":"object","properties":{}},"strict":false},{"type":"web_search"}],'
        '"tool_choice":{"type":"function","name":"price"},'
        '"text":{"format":{"type":"json_schema","name":"answer","schema":{"type":"object",'
        '"properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false},"strict":true}},'
        '"temperature":0.5,"top_p":0.9,"max_output_tokens":7,"reasoning":{"effort":"low"},'
        '"stream":true,"store":false,'
        '"include":["reasoning.encrypted_content","web_search_call.action.sources"],"tier":"flex","user":"u"}'
    )


# ---- instructions ----------------------------------------------------------------------------------------


def test_system_pieces_are_the_instructions_in_rank_order_without_blank_ones() -> None:
    """Joined by one blank line."""
    pieces = (system("c", 2), system("", 0), system("a", 1), system(" \n", 1), system("b", 1))
    body = body_of(request(user("hi"), pieces=pieces))
    assert (body["instructions"], len(body["input"])) == ("a\n\nb\n\nc", 1)
    assert "instructions" not in body_of(request(user("hi"), pieces=(system(""), system(" "))))


def test_leading_instructions_of_the_conversation_are_hoisted_and_later_ones_stay() -> None:
    """With their roles; data is never an instruction."""
    held = (context("lead", "system"), context("on", "developer", "c1"), context("news", "data", "c2"))
    body = body_of(request(*held, context("later", "developer", "c3"), pieces=(system("Be good."),)))
    assert body["instructions"] == "Be good.\n\nlead\n\non"
    assert [(item["role"], item["content"]) for item in body["input"]] == [
        ("user", "news"),
        ("developer", [{"type": "input_text", "text": "later"}]),
    ]


def test_instructions_alone_are_an_item_since_there_has_to_be_one() -> None:
    """The provider refuses a body without input."""
    body = body_of(request(pieces=(system("a"), system("b"))))
    assert "instructions" not in body
    assert body["input"] == [
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "a\n\nb"}]}
    ]
    assert body_of(request())["input"] == [{"type": "message", "role": "user", "content": "(continue)"}]


def test_another_system_text_is_not_taken_for_the_last_one() -> None:
    """The encoded text is kept while its pieces are equal, and only then."""
    wire = projection()
    for text in ("a", "b", "a", ""):
        assert body_of(request(user("hi"), pieces=(system(text),)), wire).get("instructions", "") == text
    assert body_of(request(pieces=(system("a"),)), wire)["input"]
    assert body_of(request(user("hi"), pieces=(system("a"),)), wire)["instructions"] == "a"


QUESTION = user("q", Image(url="https://e.test/a"), id="u0")
TALK = Conversation.of((QUESTION, said(settled("r", "mm", calls=[call("r", 0)]))))
TURN = (piece("second", "turn", 2), piece("first", "turn", 1), piece("last", "trailing"))


def test_turn_text_stands_before_the_first_shown_unit_of_this_brief() -> None:
    """As one item, in rank order; trailing pieces come last, a carried message's media with the turn text."""
    items = body_of(request(conversation=TALK, own=1, pieces=TURN))["input"]
    kinds = ["message", "message", "message", "function_call", "function_call_output", "message"]
    assert [item["type"] for item in items] == kinds
    assert (items[1]["content"], items[-1]["content"]) == ("first\n\nsecond", "last")
    carried = body_of(request(conversation=TALK, own=1, carries=0, pieces=TURN))["input"]
    assert [part["type"] for part in carried[0]["content"]] == ["input_text", "input_image"]
    assert len(carried) == 5


# ---- tools -----------------------------------------------------------------------------------------------


def test_tools_are_left_out_when_there_are_none() -> None:
    """With their choice."""
    assert not {"tools", "tool_choice", "include"} & body_of(request(user("hi"), choice="none")).keys()


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", None),
        ("none", "none"),
        ("required", "required"),
        ("inspect", {"type": "function", "name": "inspect"}),
    ],
)
def test_c11_the_choice_of_a_tool(choice: str, sent: object) -> None:
    """A named function is the case's; the default is not sent."""
    assert body_of(request(user("hi"), offers=(offer("inspect"),), choice=choice)).get("tool_choice") == sent


def test_a_tool_says_whether_its_schema_is_strict() -> None:
    """Left unsaid, the provider would make optional properties required."""
    closed = offer()
    closed = replace(closed, spec=replace(closed.spec, schema=CLOSED, description=""))
    sent = body_of(request(user("hi"), offers=(offer(), closed)))["tools"]
    assert [one["strict"] for one in sent] == [False, True]
    assert "description" not in sent[1]


def test_search_stands_behind_the_tools_and_asks_for_its_sources() -> None:
    """Also alone; without it nothing is asked for."""
    searching = Settings(search=True)
    assert [t["type"] for t in body_of(request(user("hi"), offers=(offer(),), settings=searching))["tools"]] == [
        "function",
        "web_search",
    ]
    alone = body_of(request(user("hi"), settings=searching))
    assert (alone["tools"], alone["include"]) == ([{"type": "web_search"}], ["web_search_call.action.sources"])
    assert "tools" not in body_of(request(user("hi"), settings=Settings(search=False)))


def test_c9_a_card_without_tools_leaves_tools_search_and_choice_out_together() -> None:
    """The case, and a choice that insists on a tool is refused with words."""
    wire = projection(replace(CARD, tools=False))
    for choice, issues in (("auto", 0), ("none", 0), ("required", 1), ("price", 1)):
        asked = request(user("hi"), offers=(offer(),), choice=choice, settings=Settings(search=True))
        assert not {"tools", "tool_choice", "include"} & body_of(asked, wire).keys()
        assert len(issues_of(asked, wire)) == issues


def test_a_search_that_the_model_does_not_have_is_refused_by_name() -> None:
    """Nobody waits for sources that cannot come."""
    (told,) = issues_of(
        request(user("hi"), settings=Settings(search=True)), projection(replace(CARD, hosted_search=False))
    )
    assert told == "a search of the provider's own: 'acme:m' has none"


# ---- structured output -----------------------------------------------------------------------------------


def test_a_shape_is_asked_for_as_the_card_can() -> None:
    """By schema, as some JSON, or in words; in words too where tools and schemas do not go together."""
    asked = request(user("hi"), shape=shape(name="an answer!"), pieces=(system("Be good."),))
    native = body_of(asked)
    assert (native["text"]["format"]["name"], native["instructions"]) == ("an_answer_", "Be good.")
    some = body_of(asked, projection(replace(CARD, structured="json")))
    assert some["text"] == {"format": {"type": "json_object"}}
    assert some["instructions"].startswith("Be good.\n\nAnswer with one JSON object")
    told = body_of(asked, projection(replace(CARD, structured="prompt")))
    assert "text" not in told
    assert "JSON Schema" in told["instructions"]
    apart = projection(replace(CARD, structured_with_tools=False))
    assert "text" not in body_of(replace(asked, offers=(offer(),)), apart)
    assert "text" in body_of(asked, apart)


# ---- settings -----------------------------------------------------------------------------------------------


def test_e17_the_cap_is_max_output_tokens_and_only_that() -> None:
    """Responses half of the case; left out when nobody set one."""
    body = body_of(request(user("hi"), settings=Settings(max_tokens=512)))
    assert body["max_output_tokens"] == 512
    assert "max_tokens" not in body
    assert not {"max_tokens", "max_output_tokens"} & body_of(request(user("hi"))).keys()


PLAIN = replace(CARD, thinking="none")


@pytest.mark.parametrize(
    ("card", "can_rest", "thinking", "sent", "told"),
    [
        (CARD, True, "high", {"effort": "high"}, ""),
        (CARD, True, "none", {"effort": "none"}, ""),
        (CARD, True, 0, {"effort": "none"}, ""),
        (CARD, False, "off", {"effort": "none"}, "thinking turned off: 'acme:m' always thinks"),
        (CARD, True, 2000, None, ""),
        (CARD, True, None, None, ""),
        (PLAIN, True, "low", None, "thinking: 'acme:m' has none"),
        (PLAIN, True, 2000, None, "thinking: 'acme:m' has none"),
        (PLAIN, False, "none", None, ""),
    ],
)
def test_reasoning_is_an_effort_or_refused_by_name(
    card: ModelCard, can_rest: bool, thinking: Any, sent: Any, told: str
) -> None:
    """A model that does none, and one that always does. A budget in tokens has no place here, and asks for nothing.

    Whoever asks every model for a budget (`Thinking`) may name one that chooses by itself (loop §21).
    """
    wire = projection(card, Dialect(can_rest=can_rest))
    asked = request(user("hi"), settings=Settings(thinking=thinking))
    assert body_of(asked, wire).get("reasoning") == sent
    assert issues_of(asked, wire) == ([told] if told else [])


def test_settings_that_the_wire_has_no_field_for_are_refused_by_name() -> None:
    """Stop sequences change what is said, and a seed promises that nothing else does."""
    told = issues_of(request(user("hi"), settings=Settings(stop=("x",), seed=1)))
    assert told == ["stop sequences: Responses takes none", "a seed: Responses takes none"]
    assert issues_of(request(user("hi"), settings=Settings(stop=()))) == []


@pytest.mark.parametrize(
    "name",
    ["model", "input", "instructions", "stream", "store", "previous_response_id", "conversation", "background"],
)
def test_extra_fields_that_the_request_decides_are_refused(name: str) -> None:
    """With words, before anything is sent; the history is always sent whole and never stored."""
    asked = request(user("hi"), settings=Settings(extra={name: "x"}))
    assert [name in what for what in issues_of(asked)] == [True]
    assert body_of(asked)["store"] is False


def test_extra_fields_win_over_settings_and_never_stand_twice() -> None:
    """JSON with a field twice means different things to different readers."""
    settings = Settings(temperature=0.5, extra={"temperature": 0.1})
    raw = projection(temperature=0.9).wire(request(user("hi"), settings=settings)).body
    assert raw.count(b'"temperature"') == 1
    assert json.loads(raw)["temperature"] == 0.1


def test_extra_fields_join_what_shares_an_object_with_them() -> None:
    """A summary beside an effort, words beside a schema, one more thing to include; a null stands alone."""
    extra = {
        "reasoning": {"summary": "auto"},
        "text": {"verbosity": "low"},
        "include": ["message.output_text.logprobs", "reasoning.encrypted_content"],
    }
    asked = request(user("hi"), shape=shape(), settings=Settings(thinking="low", extra=extra))
    body = body_of(asked, projection(dialect=Dialect(sealed=True)))
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body["text"].keys() == {"format", "verbosity"}
    assert body["include"] == ["reasoning.encrypted_content", "message.output_text.logprobs"]
    assert (
        body_of(request(user("hi"), settings=Settings(thinking="low", extra={"reasoning": None})))["reasoning"] is None
    )


def test_what_is_kept_of_settings_that_change_all_the_time_is_little() -> None:
    """Each has bytes of its own, and the memory of them is bounded."""
    wire = projection()
    for cap in range(1, 200):
        asked = request(user("hi"), settings=Settings(max_tokens=cap))
        assert body_of(asked, wire)["max_output_tokens"] == cap
    assert len(wire._tails) <= 64


def test_models_that_read_other_media_share_no_bytes() -> None:
    """A conversation that changes its model, and back, is written for each as if it had no other."""
    shown = (user("see", Image(url="https://e.test/a.png")),)
    both = Conversation.of(shown)
    for wire in (projection(), projection(replace(CARD, images=False)), projection()):
        assert wire.wire(request(conversation=both)) == wire.wire(request(*shown))


def test_a_window_without_units_keeps_its_pieces() -> None:
    """Only the turn's text is sent then."""
    asked = request(conversation=TALK, view=View(spans=(Span(0, 0),)), pieces=TURN)
    assert [item["content"] for item in body_of(asked)["input"]] == ["first\n\nsecond", "last"]


# ---- cards -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "thinking", "can_rest", "search", "structured", "tokens"),
    [
        ("gpt-4o-mini", "none", True, True, "native", 128_000),
        ("gpt-4o-2024-08-06", "none", True, True, "native", 128_000),
        ("gpt-4.1", "none", True, True, "native", 1_047_576),
        ("gpt-4.1-nano", "none", True, False, "native", 1_047_576),
        ("gpt-4", "none", True, False, "json", 8_192),
        ("gpt-4-turbo", "none", True, False, "json", 128_000),
        ("gpt-3.5-turbo", "none", True, False, "json", 16_385),
        ("o3", "adaptive", False, True, "native", 200_000),
        ("o3-mini", "adaptive", False, False, "native", 200_000),
        ("o4-mini-2025-04-16", "adaptive", False, True, "native", 200_000),
        ("gpt-5", "adaptive", False, True, "native", 400_000),
        ("gpt-5-2025-08-07", "adaptive", False, True, "native", 400_000),
        ("gpt-5-mini", "adaptive", False, True, "native", 400_000),
        ("gpt-5-chat-latest", "none", True, True, "native", 128_000),
        ("gpt-5.2", "adaptive", True, True, "native", 400_000),
        ("gpt-5.3-codex", "adaptive", False, True, "native", 400_000),
        ("gpt-5.4-mini", "adaptive", True, True, "native", 400_000),
        ("gpt-5.5-2026-04-23", "adaptive", True, True, "native", 1_050_000),
        ("gpt-9", "adaptive", True, True, "native", None),
    ],
)
def test_a_card_goes_by_the_beginning_of_a_name(
    model: str, thinking: str, can_rest: bool, search: bool, structured: str, tokens: int | None
) -> None:
    """A model that nobody has heard of can do what newer ones can, and its window is not guessed."""
    card, dialect = responses_card(model)
    assert (card.thinking, dialect.can_rest, card.hosted_search) == (thinking, can_rest, search)
    assert (card.structured, card.context_tokens, card.audio, card.steps) == (structured, tokens, False, STEPS)
    assert dialect.sealed is (thinking != "none")  # others refuse to be asked for it
    assert card.name == f"openai-responses:{model}"


def test_servers_of_others_send_reasoning_in_the_clear_and_run_no_search() -> None:
    """As the recorded one does."""
    card, dialect = responses_card("deepseek-v4-flash", base_url="https://api.deepseek.com", provider="deepseek")
    assert (card.name, card.thinking, card.hosted_search) == ("deepseek:deepseek-v4-flash", "adaptive", False)
    assert dialect == Dialect(sealed=False, can_rest=True)
