"""Chat Completions: what surrounds the messages, and where pieces go among them."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from onrecord.conversation.content import Image
from onrecord.conversation.conversation import Conversation
from onrecord.models.chunks import Finished
from onrecord.models.model import ModelCard, preset
from onrecord.models.request import Piece, Reading, Request, Settings, Shape, Span, View, Wire
from onrecord.providers.openai_chat.cards import Dialect, openai_card
from onrecord.providers.openai_chat.project import ChatProjection, is_strict
from tests.models.requests import CARD, call, context, offer, projection, request, said, settled, system, user

pytestmark = pytest.mark.unit

CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def shape(schema: dict[str, Any] | None = None, name: str = "answer") -> Shape[Any]:
    """What a reply must look like."""
    return Shape(name=name, schema=schema or CLOSED, read=lambda held: Reading(text=held.text, value=None))


def body_of(asked: Request, wire: ChatProjection | None = None) -> dict[str, Any]:
    """A body as what it means."""
    held: dict[str, Any] = json.loads((wire or projection()).wire(asked).body)
    return held


def words(asked: Request, wire: ChatProjection | None = None) -> list[str]:
    """Role and words of each message."""
    return [f"{m['role']}: {m['content']}" for m in body_of(asked, wire)["messages"]]


def piece(text: str, place: Literal["system", "turn", "trailing"], rank: int = 0) -> Piece:
    """A piece at a place."""
    return Piece(source="t", text=text, place=place, rank=rank)


# ---- the whole body -----------------------------------------------------------------------------------------------


def test_a_body_holds_what_is_said_and_nothing_else() -> None:
    """Golden: no field that nobody set."""
    assert projection().wire(request(user("hi"))).body == (
        b'{"model":"m","messages":[{"role":"user","content":"hi"}],'
        b'"stream":true,"stream_options":{"include_usage":true}}'
    )


def test_a_body_with_everything() -> None:
    """Golden: the order of fields is part of what vendors' caches see."""
    asked = request(
        user("hi"),
        pieces=(system("Be good."), piece("Now.", "turn"), piece("The end.", "trailing")),
        offers=(offer(),),
        choice="price",
        shape=shape(),
        settings=Settings(
            temperature=0.5, top_p=0.9, max_tokens=7, stop=("x",), seed=1, thinking="low", extra={"user": "u"}
        ),
    )
    assert projection(tier="flex").wire(asked).body.decode() == (
        '{"model":"m","messages":[{"role":"system","content":"Be good."},{"role":"user","content":"hi"},'
        '{"role":"user","content":"Now."},{"role":"user","content":"The end."}],'
        '"tools":[{"type":"function","function":{"name":"price","description":"The price.",'
        '"parameters":{"type":"object","properties":{}}}}],'
        '"tool_choice":{"type":"function","function":{"name":"price"}},'
        '"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object",'
        '"properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false},"strict":true}},'
        '"temperature":0.5,"top_p":0.9,"max_tokens":7,"stop":["x"],"seed":1,"reasoning_effort":"low",'
        '"stream":true,"stream_options":{"include_usage":true},"tier":"flex","user":"u"}'
    )


# ---- pieces -----------------------------------------------------------------------------------------------


def test_system_pieces_are_one_message_in_rank_order_without_blank_ones() -> None:
    """Joined by one blank line; equal ranks keep their order."""
    pieces = (system("c", 2), system("", 0), system("a", 1), system(" \n", 1), system("b", 1))
    assert words(request(user("hi"), pieces=pieces))[0] == "system: a\n\nb\n\nc"
    assert words(request(user("hi"), pieces=(system(""), system(" ")))) == ["user: hi"]


def test_system_text_alone_is_a_valid_list_of_messages() -> None:
    """Nothing shown: no stray comma; and a list without any message is refused, so there is always one."""
    assert words(request(pieces=(system("a"),))) == ["system: a"]
    assert words(request()) == ["user: (continue)"]


def test_another_system_text_is_not_taken_for_the_last_one() -> None:
    """The encoded message is kept while its texts are equal, and only then."""
    wire = projection()
    for text in ("a", "b", "a"):
        assert words(request(user("hi"), pieces=(system(text),)), wire) == [f"system: {text}", "user: hi"]


QUESTION = user("q", Image(url="https://e.test/a"), id="u0")
TALK = Conversation.of((QUESTION, said(settled("r", "mm", calls=[call("r", 0)]))))
TURN = (piece("second", "turn", 2), piece("first", "turn", 1), piece("last", "trailing"))


def test_turn_text_stands_before_the_first_shown_unit_of_this_brief() -> None:
    """As one message, in rank order; trailing pieces come last."""
    asked = request(conversation=TALK, own=1, pieces=TURN)
    roles = [message["role"] for message in body_of(asked)["messages"]]
    assert roles == ["user", "user", "assistant", "tool", "user"]
    assert words(asked)[1] == "user: first\n\nsecond"
    assert words(asked)[-1] == "user: last"


def test_turn_text_stands_last_where_no_unit_of_this_brief_is_shown() -> None:
    """Its rounds may all be outside the window, or yet to come."""
    for asked in (
        request(conversation=TALK, own=2, pieces=TURN),
        request(conversation=TALK, own=1, pieces=TURN, view=View(spans=(Span(0, 1),))),
    ):
        assert words(asked)[-2:] == ["user: first\n\nsecond", "user: last"]


def test_turn_text_goes_before_the_first_own_unit_that_is_shown_in_any_span() -> None:
    """A window may begin behind the first of them."""
    talk = TALK.grow(settled("r2", "more"))
    view = View(spans=(Span(0, 1), context("news"), Span(2, 3)))
    asked = request(conversation=talk, own=1, pieces=TURN, view=view)
    assert words(asked)[1:] == ["user: news", "user: first\n\nsecond", "assistant: more", "user: last"]


def test_a_carried_message_is_left_out_and_its_media_join_the_turn_text() -> None:
    """The turn text already says its words."""
    asked = request(conversation=TALK, own=1, carries=0, pieces=TURN)
    first = body_of(asked)["messages"][0]
    assert first["content"][0] == {"type": "text", "text": "first\n\nsecond"}
    assert first["content"][1]["type"] == "image_url"
    assert [m["role"] for m in body_of(asked)["messages"]] == ["user", "assistant", "tool", "user"]


def test_what_a_carried_message_cannot_carry_is_an_issue_once() -> None:
    """It is left out of its place but not out of the request."""
    blind = projection(replace(CARD, images=False))
    assert [issue.unit for issue in blind.wire(request(conversation=TALK, own=1, carries=0, pieces=TURN)).issues] == [0]


# ---- tools -----------------------------------------------------------------------------------------------


def test_tools_are_left_out_when_there_are_none() -> None:
    """With their choice."""
    body = body_of(request(user("hi"), choice="none"))
    assert not {"tools", "tool_choice"} & body.keys()


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", None),
        ("none", "none"),
        ("required", "required"),
        ("price", {"type": "function", "function": {"name": "price"}}),
    ],
)
def test_the_choice_of_a_tool(choice: str, sent: object) -> None:
    """The default is not sent."""
    assert body_of(request(user("hi"), offers=(offer(),), choice=choice)).get("tool_choice") == sent


def test_a_tool_without_a_description_has_none_on_the_wire() -> None:
    """An empty field would say nothing."""
    (sent,) = body_of(request(user("hi"), offers=(offer(description=""),)))["tools"]
    assert sent["function"] == {"name": "price", "parameters": {"type": "object", "properties": {}}}


def test_requests_that_differ_in_their_choice_alone_have_bodies_of_their_own() -> None:
    """What is kept of one is not taken for the other."""
    wire, tool, settings = projection(), offer(), Settings(seed=1)
    for choice, sent in (("auto", None), ("required", "required"), ("none", "none"), ("auto", None)):
        asked = request(user("hi"), offers=(tool,), settings=settings, choice=choice)
        assert body_of(asked, wire).get("tool_choice") == sent


@pytest.mark.parametrize(
    "other",
    [
        projection(dialect=Dialect(developer=True)),
        projection(dialect=Dialect(one_system=True)),
        projection(replace(CARD, arrays=False)),
        projection(replace(CARD, images=False)),
    ],
)
def test_models_that_write_units_differently_share_no_bytes(other: ChatProjection) -> None:
    """A conversation that changes its model, and back, is written for each as if it had no other."""
    shown = (user("hi"), context("be brief", "developer"), user("see", Image(url="https://e.test/a.png"), id="u1"))
    both = Conversation.of(shown)
    for wire in (projection(), other, projection()):
        assert wire.wire(request(conversation=both)) == wire.wire(request(*shown))


def test_a_card_without_tools_leaves_tools_and_choice_out_together() -> None:
    """A choice that insists on one is refused with words."""
    wire = projection(replace(CARD, tools=False))
    for choice, issues in (("auto", 0), ("none", 0), ("required", 1), ("price", 1)):
        asked = request(user("hi"), offers=(offer(),), choice=choice)
        assert not {"tools", "tool_choice"} & body_of(asked, wire).keys()
        assert len(wire.wire(asked).issues) == issues


def test_the_same_offers_in_new_requests_are_encoded_once_and_other_ones_anew() -> None:
    """By identity of the specs: decorated ones are other ones."""
    wire, first, second = projection(), offer(), offer(description="Another.")
    one = wire.wire(request(user("hi"), offers=(first,))).body
    assert wire.wire(request(user("hi"), offers=(first,))).body == one
    assert wire.wire(request(user("hi"), offers=(second,))).body != one
    for n in range(200):  # more than are kept
        assert f'"n{n}"'.encode() in wire.wire(request(user("hi"), offers=(offer(f"n{n}"),))).body


# ---- shapes -----------------------------------------------------------------------------------------------


def test_a_shape_is_asked_for_as_the_card_says() -> None:
    """By schema, as some JSON with the schema in words, or in words alone."""
    asked = request(user("hi"), shape=shape(name="an answer!"), pieces=(system("Be good."),))
    native = body_of(asked)
    assert native["response_format"]["json_schema"]["name"] == "an_answer_"
    assert native["messages"][0]["content"] == "Be good."
    long = body_of(request(user("hi"), shape=shape(name="n" * 65)))["response_format"]["json_schema"]
    assert long["name"] == "n" * 64
    for structured, sent in (("json", {"type": "json_object"}), ("prompt", None)):
        body = body_of(asked, projection(replace(CARD, structured=structured)))
        assert body.get("response_format") == sent
        told = body["messages"][0]["content"]
        assert told.startswith("Be good.\n\n")
        assert '"additionalProperties":false' in told


def test_a_shape_beside_tools_goes_into_the_prompt_where_both_do_not_go_together() -> None:
    """Only on requests that offer tools."""
    wire = projection(replace(CARD, structured_with_tools=False))
    assert "response_format" in body_of(request(user("hi"), shape=shape()), wire)
    with_tools = body_of(request(user("hi"), shape=shape(), offers=(offer(),)), wire)
    assert "response_format" not in with_tools
    assert with_tools["messages"][0]["role"] == "system"


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        ({"type": "object", "properties": {}, "additionalProperties": False}, True),
        ({**CLOSED, "required": []}, False),
        ({**CLOSED, "additionalProperties": True}, False),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, False),
        ({**CLOSED, "properties": {"a": {"type": "object", "properties": {}}}}, False),
        ({**CLOSED, "properties": {"a": {"type": "array", "items": CLOSED}}}, True),
        ({**CLOSED, "properties": {"a": {"anyOf": [CLOSED, {"type": "null"}]}}}, True),
        ({**CLOSED, "properties": {"a": {"anyOf": [{"type": "object"}, {"type": "null"}]}}}, False),
        ({**CLOSED, "$defs": {"b": {"type": "object", "properties": {"c": {}}}}}, False),
        ({**CLOSED, "definitions": {"b": {"type": "object", "properties": {"c": {}}}}}, False),
        ({**CLOSED, "properties": {"a": {"type": ["object", "null"]}}}, False),
        ({**CLOSED, "allOf": []}, False),
        ({"type": "array", "items": {"type": "object", "properties": {"c": {}}}}, False),
        ({"type": "string"}, True),
        (True, True),
    ],
)
def test_strict_is_said_only_of_schemas_that_are(schema: Any, strict: bool) -> None:
    """Vendors refuse a loose schema that calls itself strict."""
    assert is_strict(schema) is strict
    if isinstance(schema, dict):
        sent = body_of(request(user("hi"), shape=shape(schema)))["response_format"]["json_schema"]
        assert sent["strict"] is strict


# ---- settings -----------------------------------------------------------------------------------------------


class Recording:
    """A model that shows the bodies it is asked for."""

    def __init__(self) -> None:
        self.card, self.projection = CARD, projection()

    def wire(self, asked: Request, /) -> Wire:
        """The bytes."""
        return self.projection.wire(asked)

    async def stream(self, asked: Request, /) -> Any:
        """An empty reply."""
        yield Finished()


def test_e17_the_cap_is_max_tokens_and_only_that() -> None:
    """Chat half of the case; left out when nobody set one."""
    body = body_of(request(user("hi"), settings=Settings(max_tokens=512)))
    assert body["max_tokens"] == 512
    assert "max_output_tokens" not in body
    assert not {"max_tokens", "max_output_tokens", "max_completion_tokens"} & body_of(request(user("hi"))).keys()


@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("gpt-4o-mini", "max_tokens"),
        ("gpt-4.1", "max_tokens"),
        ("gpt-3.5-turbo", "max_tokens"),
        ("gpt-5-mini", "max_completion_tokens"),
        ("gpt-5.1", "max_completion_tokens"),
        ("o3", "max_completion_tokens"),
        ("a-model-of-the-future", "max_completion_tokens"),
    ],
)
def test_e17_reasoning_models_of_openai_take_the_cap_under_its_newer_name(model: str, field: str) -> None:
    """They refuse the older one; servers of others know only that."""
    card, dialect = openai_card(model)
    body = body_of(request(user("hi"), settings=Settings(max_tokens=512)), ChatProjection(card, dialect))
    assert body[field] == 512
    assert len({"max_tokens", "max_completion_tokens"} & body.keys()) == 1


def test_e18_the_caps_of_steps_win_over_the_caller_s_which_stands_in() -> None:
    """The case's steps are our requests, its caller's cap a preset: 128, 64, none over 512, then over none."""
    model, bare = preset(Recording(), max_tokens=512), preset(Recording())
    steps = [request(user("hi"), settings=Settings(max_tokens=cap)) for cap in (128, 64, None)]
    assert [json.loads(model.wire(step).body)["max_tokens"] for step in steps] == [128, 64, 512]
    assert "max_tokens" not in json.loads(bare.wire(steps[2]).body)


def test_extra_fields_win_over_settings_and_never_stand_twice() -> None:
    """JSON with a field twice means different things to different readers."""
    settings = Settings(temperature=0.5, extra={"temperature": 0.1, "stream_options": None})
    raw = projection(temperature=0.9).wire(request(user("hi"), settings=settings)).body
    assert raw.count(b'"temperature"') == 1
    assert json.loads(raw)["temperature"] == 0.1
    assert json.loads(raw)["stream_options"] is None


def test_what_is_kept_of_settings_that_change_all_the_time_is_little() -> None:
    """Each has bytes of its own, and the memory of them is bounded."""
    wire = projection()
    for seed in range(200):
        assert body_of(request(user("hi"), settings=Settings(seed=seed)), wire)["seed"] == seed
    assert len(wire._tails) <= 64


@pytest.mark.parametrize("name", ["model", "messages", "stream"])
def test_extra_fields_that_the_request_decides_are_refused(name: str) -> None:
    """With words, before anything is sent."""
    wire = projection().wire(request(user("hi"), settings=Settings(extra={name: "x"})))
    assert [name in issue.what for issue in wire.issues] == [True]
    assert json.loads(wire.body)["stream"] is True


def test_servers_that_know_no_stream_options_are_not_sent_any() -> None:
    """Usage then comes unasked or not at all."""
    assert "stream_options" not in body_of(request(user("hi")), projection(dialect=Dialect(usage=False)))


def test_a_card_says_what_openai_s_models_can_do() -> None:
    """By the model's name."""
    cards: dict[str, ModelCard] = {name: openai_card(name)[0] for name in ("gpt-4", "gpt-4o-audio-preview", "gpt-5")}
    assert [cards[name].structured for name in cards] == ["json", "native", "native"]
    assert [cards[name].audio for name in cards] == [False, True, False]
    assert [cards[name].thinking for name in cards] == ["none", "none", "adaptive"]
    for name in ("gpt-5-chat-latest", "gpt-5.1-chat-latest"):
        chat = openai_card(name)[0]
        assert (chat.thinking, chat.context_tokens) == ("none", 128_000)
    assert openai_card("unheard-of")[0].context_tokens is None
