"""generateContent: what surrounds the contents, where pieces go among them, and what is refused before it is sent."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from onrecord.conversation.content import Image
from onrecord.conversation.conversation import Conversation
from onrecord.jsonio import Json
from onrecord.models.request import Piece, Reading, Request, Settings, Shape, Span, View
from onrecord.providers.google.cards import google_card
from onrecord.providers.google.project import GoogleProjection
from onrecord.providers.google.schema_subset import takeable
from tests.models.requests import call, context, offer, request, said, settled, system, user

pytestmark = pytest.mark.unit

THIRD, SECOND, GEMMA = "gemini-3.8-flash", "gemini-2.5-flash", "gemma-3-27b-it"
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def projection(model: str = THIRD, **extra: Json) -> GoogleProjection:
    """GenerateContent for a model."""
    return GoogleProjection(*google_card(model), extra)


def body_of(asked: Request, wire: GoogleProjection | None = None) -> dict[str, Any]:
    """A body as what it means."""
    held: dict[str, Any] = json.loads((wire or projection()).wire(asked).body)
    return held


def words(asked: Request, wire: GoogleProjection | None = None) -> list[str]:
    """Role and words of each content, instructions first."""
    body = body_of(asked, wire)
    told = [f"system: {part['text']}" for part in body.get("systemInstruction", {}).get("parts", ())]
    return told + [
        f"{entry['role']}: {'|'.join(part.get('text', next(iter(part))) for part in entry['parts'])}"
        for entry in body["contents"]
    ]


def why_not(model: str, **fields: Any) -> list[str]:
    """What a request is refused for."""
    given = {name: fields.pop(name) for name in ("offers", "choice", "shape") if name in fields}
    asked = request(user("hi"), settings=Settings(**fields), **given)
    return [issue.what.removesuffix(".") for issue in projection(model).wire(asked).issues]


def piece(text: str, place: Literal["system", "turn", "trailing"]) -> Piece:
    """A piece at a place."""
    return Piece(source="t", text=text, place=place)


def shape() -> Shape[Any]:
    """What a reply must look like."""
    return Shape(name="answer", schema=CLOSED, read=lambda held: Reading(text=held.text, value=None))


# ---- the whole body -----------------------------------------------------------------------------------------------


def test_a_body_holds_what_is_said_and_nothing_else() -> None:
    """Golden: no field that nobody set, and neither model nor key."""
    assert projection().wire(request(user("hi"))).body == b'{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}'


def test_a_body_with_everything() -> None:
    """Golden: the order of fields is part of what vendors' caches see."""
    settings = Settings(
        temperature=0.5, top_p=0.9, max_tokens=7, stop=("x",), seed=1, thinking="low", search=True,
        extra={"generationConfig": {"topK": 3}, "tools": [{"urlContext": {}}], "labels": {"a": "b"}},
    )  # fmt: skip
    asked = request(
        user("hi"),
        pieces=(system("Be good."), piece("Now.", "turn"), piece("The end.", "trailing")),
        offers=(offer(),),
        shape=shape(),
        settings=settings,
    )
    assert projection(safetySettings=[]).wire(asked).body.decode() == (
        '{"systemInstruction":{"parts":[{"text":"Be good."}]},'
        '"contents":[{"role":"user","parts":[{"text":"hi"},{"text":"Now."},{"text":"The end."}]}],'
        '"tools":[{"googleSearch":{}},{"urlContext":{}},{"functionDeclarations":[{"name":"price",'
        '"description":"The price.","parametersJsonSchema":{"type":"object","properties":{}}}]}],'
        '"toolConfig":{"includeServerSideToolInvocations":true},'
        '"generationConfig":{"temperature":0.5,"topP":0.9,"maxOutputTokens":7,"stopSequences":["x"],"seed":1,'
        '"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"low"},"responseMimeType":"application/json",'
        '"responseJsonSchema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],'
        '"additionalProperties":false},"topK":3},"safetySettings":[],"labels":{"a":"b"}}'
    )


# ---- contents -------------------------------------------------------------------------------------------------------


def test_leading_instructions_are_hoisted_and_later_ones_stay_in_their_place() -> None:
    """As text of the user's side that says what it is."""
    shown = (context("a", "system"), context("b", "developer"), user("hi"), context("c", "developer"), user("so?"))
    told = words(request(*shown, pieces=(system("Be good."),)))
    assert told[0] == "system: Be good.\n\na\n\nb"
    assert told[1].split("|")[0] == "user: hi"
    assert '<instruction from="application" authority="developer">\nc\n' in told[1]
    assert len(told) == 2


def test_neighbours_of_a_side_are_one_content_and_results_stand_alone() -> None:
    """What a user says behind results is a content of its own."""
    rounds = said(settled("r0", "One moment."), settled("r1", calls=[call("r1", 0), call("r1", 1)]))
    assert words(request(user("a"), user("b", id="u1"), rounds, user("c", id="u2"))) == [
        "user: a|b",
        "model: One moment.|functionCall|functionCall",
        "user: functionResponse|functionResponse",
        "user: c",
    ]


def test_a_body_begins_and_ends_on_the_users_side() -> None:
    """With words that say why, where the window does not."""
    assert words(request(said(settled("r", "hello")))) == [
        "user: (earlier messages are not shown)", "model: hello", "user: (continue)",
    ]  # fmt: skip
    answered = request(user("hi"), said(settled("r", calls=[call("r", 0)])))
    assert words(answered)[-1] == "user: functionResponse"


def test_instructions_alone_make_a_request() -> None:
    """Google refuses one without contents."""
    assert words(request(pieces=(system("a"),))) == ["system: a", "user: (continue)"]
    assert words(request(user(" "))) == ["user: (continue)"]


def test_models_without_a_place_for_instructions_read_them_first() -> None:
    """Gemma; the same in each request, so that a prompt cache holds."""
    wire = projection(GEMMA)
    for text in ("a", "b", "a"):
        assert words(request(user("hi"), pieces=(system(text),)), wire) == [f"user: {text}", "user: hi"]
    assert words(request(pieces=(system("a"),)), wire) == ["user: a"]
    assert words(request(), wire) == ["user: (continue)"]


def test_turn_text_and_carried_media_stand_before_the_first_own_unit() -> None:
    """And trailing pieces last."""
    talk = Conversation.of((user("q", Image(url="https://e.test/a.png"), id="u0"), said(settled("r", "mm"))))
    asked = request(conversation=talk, own=1, carries=0, pieces=(piece("say it", "turn"), piece("last", "trailing")))
    assert words(asked) == ["user: say it|fileData", "model: mm", "user: last"]


def test_a_window_of_the_talk_is_a_body_too() -> None:
    """From its middle, and with an insert."""
    talk = Conversation.of((user("a"), said(settled("r", "b")), user("c", id="u1")))
    view = View(spans=(context("news"), Span(1, 3)))
    assert words(request(conversation=talk, own=3, view=view)) == ["user: news", "model: b", "user: c"]


# ---- tools --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", None),
        ("none", {"functionCallingConfig": {"mode": "NONE"}}),
        ("required", {"functionCallingConfig": {"mode": "ANY"}}),
        ("price", {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["price"]}}),
    ],
)
def test_the_choice_of_a_tool(choice: str, sent: object) -> None:
    """The default is not sent; without tools there is none."""
    assert body_of(request(user("hi"), offers=(offer(),), choice=choice)).get("toolConfig") == sent
    assert "toolConfig" not in body_of(request(user("hi"), choice=choice))


def test_models_without_tools_get_no_tools_no_search_and_no_choice() -> None:
    """All of it goes together; a choice that insists is refused."""
    search = Settings(search=True)
    body = body_of(request(user("hi"), offers=(offer(),), choice="none", settings=search), projection(GEMMA))
    assert body.keys() == {"contents"}
    assert why_not(GEMMA, search=True) == []
    assert why_not(GEMMA, offers=(offer(),), choice="required") == [
        "a tool choice 'required': 'google:gemma-3-27b-it' takes no tools"
    ]


def test_search_of_googles_own() -> None:
    """Alone; beside tools where the model's card says so, with the flag that this takes; refused otherwise."""
    search = Settings(search=True)
    assert body_of(request(user("hi"), settings=search), projection(SECOND))["tools"] == [{"googleSearch": {}}]
    both = body_of(request(user("hi"), settings=search, offers=(offer(),), choice="price"))
    assert [next(iter(tool)) for tool in both["tools"]] == ["googleSearch", "functionDeclarations"]
    assert both["toolConfig"] == {
        "includeServerSideToolInvocations": True,
        "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["price"]},
    }
    assert why_not(SECOND, search=True, offers=(offer(),)) == [
        "a search of the provider's own beside tools: 'google:gemini-2.5-flash' takes one or the other"
    ]
    assert why_not("gemini-2.0-flash-lite", search=True) == [
        "a search of the provider's own: 'google:gemini-2.0-flash-lite' has none"
    ]
    assert why_not(THIRD, search=True, offers=(offer(),)) == []


# ---- shapes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "fields", "native"),
    [
        (THIRD, {}, True),
        (THIRD, {"offers": (offer(),)}, True),
        (THIRD, {"offers": (offer(),), "choice": "none"}, True),
        (THIRD, {"offers": (offer(),), "choice": "required"}, False),
        (THIRD, {"settings": Settings(search=True)}, True),
        (SECOND, {}, True),
        (SECOND, {"offers": (offer(),)}, False),
        (SECOND, {"settings": Settings(search=True)}, False),
        (SECOND, {"settings": Settings(extra={"tools": [{"codeExecution": {}}]})}, False),
        (GEMMA, {"offers": (offer(),)}, False),
    ],
)
def test_a_schema_goes_beside_tools_only_where_the_model_takes_both(
    model: str, fields: dict[str, Any], native: bool
) -> None:
    """Otherwise it is asked for in words, behind the instructions."""
    asked = request(user("hi"), shape=shape(), pieces=(system("Be good."),), **fields)
    body, told = body_of(asked, projection(model)), words(asked, projection(model))
    held = body.get("generationConfig", {})
    assert ("responseJsonSchema" in held, "responseMimeType" in held) == (native, native)
    assert ("JSON Schema" in told[0]) is not native
    assert "Be good." in told[0]


def test_a_card_that_says_json_gets_json_with_its_schema_in_words() -> None:
    """As a probe may find it of a model whose name says nothing."""
    asked, own = request(user("hi"), shape=shape()), projection("gemini-3.8-flash")
    said = GoogleProjection(replace(own.card, structured="json"), own.dialect)
    assert body_of(asked, said)["generationConfig"] == {"responseMimeType": "application/json"}
    assert "JSON Schema" in words(asked, said)[0]


def test_schemas_are_sent_without_the_keyword_that_google_does_not_take() -> None:
    """In tools and in shapes, at any depth, and not where it is the name of a property."""
    schema = {
        "type": "object",
        "properties": {"const": {"const": "a"}, "b": {"anyOf": [{"const": 1}, True], "default": {"const": 2}}},
        "$defs": {"c": {"items": {"const": None}, "prefixItems": [{"const": 3}]}},
        "additionalProperties": {"const": 4},
    }
    assert takeable(schema) == {
        "type": "object",
        "properties": {"const": {"enum": ["a"]}, "b": {"anyOf": [{"enum": [1]}, True], "default": {"const": 2}}},
        "$defs": {"c": {"items": {"enum": [None]}, "prefixItems": [{"enum": [3]}]}},
        "additionalProperties": {"enum": [4]},
    }
    assert schema["additionalProperties"] == {"const": 4}


# ---- settings -----------------------------------------------------------------------------------------------------


def test_e17_an_output_cap_is_sent_where_it_was_set() -> None:
    """Under this wire's own name."""
    assert body_of(request(user("hi"), settings=Settings(max_tokens=512)))["generationConfig"] == {
        "maxOutputTokens": 512
    }
    assert "generationConfig" not in body_of(request(user("hi"), settings=Settings(stop=())))


@pytest.mark.parametrize(
    ("model", "fields", "told"),
    [
        (THIRD, {"stop": tuple("abcdef")}, "6 stop sequences: Google takes 5"),
        (THIRD, {"thinking": "none"}, "thinking 'none': 'google:gemini-3.8-flash' always thinks"),
        (
            THIRD, {"thinking": "minimal"},
            "thinking 'minimal': 'google:gemini-3.8-flash' takes low, medium, high",
        ),
        ("gemini-2.5-pro", {"thinking": 64}, "thinking 64: 'google:gemini-2.5-pro' takes 128 to 32768 tokens"),
        (GEMMA, {"thinking": 64}, "thinking 64: 'google:gemma-3-27b-it' has none"),
        (
            THIRD, {"extra": {"contents": []}},
            "settings with an extra field 'contents': the request itself decides it",
        ),
    ],
)  # fmt: skip
def test_settings_that_a_model_cannot_take_are_refused_by_name(model: str, fields: dict[str, Any], told: str) -> None:
    """Before anything is sent."""
    assert why_not(model, **fields) == [told]


def test_requests_that_differ_in_one_thing_have_bodies_of_their_own() -> None:
    """What is kept of one is not taken for the other, however many there are."""
    wire, tool = projection(), offer()
    for n in range(200):
        asked = request(user("hi"), offers=(tool,), settings=Settings(seed=n))
        assert body_of(asked, wire)["generationConfig"] == {"seed": n}
        assert body_of(asked, wire)["generationConfig"] == {"seed": n}


@pytest.mark.parametrize("other", [SECOND, "gemini-2.0-flash", GEMMA])
def test_models_that_write_units_differently_share_no_bytes(other: str) -> None:
    """A conversation that changes its model, and back, is written for each as if it had no other."""
    shown = (user("hi"), said(settled("r", calls=[call("r", 0)])), user("see", Image(data=b"a"), id="u1"))
    both = Conversation.of(shown)
    for model in (THIRD, other, THIRD):
        assert projection(model).wire(request(conversation=both)) == projection(model).wire(request(*shown))
