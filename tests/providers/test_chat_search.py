"""Search that a vendor runs itself: how it is asked for, and how its sources come back as citations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.conversation.content import Citation
from onrecord.models.chunks import CitationChunk, TextChunk
from onrecord.models.names import model_named
from onrecord.models.request import Settings
from onrecord.providers.openai_chat.cards import Dialect
from tests.models.requests import CARD, offer, projection, request, user
from tests.providers.chat_events import DONE, STOP, event, read

pytestmark = pytest.mark.unit

SEARCHING = Settings(search=True)
A, B = "https://a.test/1", "https://b.test/2"


def body(name: str, **fields: Any) -> dict[str, Any]:
    """What a named model is sent."""
    held: dict[str, Any] = json.loads(model_named(name).wire(request(user("hi"), **fields)).body)
    return held


@pytest.mark.parametrize(
    ("name", "tools", "fields"),
    [
        ("openai:gpt-4o-search-preview", [], {"web_search_options": {}}),
        ("openai:gpt-5-search-api", [], {"web_search_options": {}}),
        ("openrouter:qwen/qwen3", ["openrouter:web_search"], {}),
        ("groq:openai/gpt-oss-20b", ["browser_search"], {}),
        ("zai:glm-5.3", ["web_search"], {}),
    ],
)
def test_search_is_asked_for_as_the_vendor_has_it(name: str, tools: list[str], fields: dict[str, Any]) -> None:
    """Behind the tools of the request, whose choice stays what it is; and only when it is asked for."""
    asked = body(name, offers=(offer(),), settings=SEARCHING)
    assert [tool["type"] for tool in asked["tools"]] == ["function", *tools]
    assert {field: asked.get(field) for field in fields} == fields
    alone = body(name, settings=SEARCHING)
    assert [tool["type"] for tool in alone.get("tools", ())] == tools
    assert "tool_choice" not in alone
    for plain in (body(name, offers=(offer(),)), body(name, offers=(offer(),), settings=Settings(search=False))):
        assert [tool["type"] for tool in plain["tools"]] == ["function"]
        assert not fields.keys() & plain.keys()


@pytest.mark.parametrize(
    "name", ["openai:gpt-5", "mistral:mistral-large-latest", "xai:grok-4.3", "deepseek:deepseek-chat", "ollama:qwen3"]
)
def test_search_that_there_is_not_is_refused_by_name(name: str) -> None:
    """Before anything is sent: an answer without sources would look like one with them."""
    wire = model_named(name).wire(request(user("hi"), settings=SEARCHING))
    assert [issue.what for issue in wire.issues] == [
        f"a search of the provider's own: {name!r} has none over Chat Completions"
    ]
    assert model_named(name).wire(request(user("hi"), settings=Settings(search=False))).issues == ()


def test_a_card_alone_or_a_dialect_alone_makes_no_search() -> None:
    """Who can, and how it is asked for, both have to be known."""
    for card, dialect in (
        (replace(CARD, hosted_search=True), Dialect()),
        (CARD, Dialect(search={"web_search_options": {}})),
    ):
        assert projection(card, dialect).wire(request(user("hi"), settings=SEARCHING)).issues


def cited(*events: bytes) -> list[Citation]:
    """All sources of a reply."""
    chunks = read(*events, STOP, DONE)
    return [one for chunk in chunks if isinstance(chunk, CitationChunk) for one in chunk.citations]


def test_passages_keep_their_places() -> None:
    """Offsets address the text of the reply."""
    about = {"url": A, "title": "A page", "start_index": 0, "end_index": 6, "content": "more"}
    notes = [{"type": "url_citation", "url_citation": about}, {"type": "file", "file": {"hash": "x"}}]
    told = cited(event({"content": "Sunny."}), event({"annotations": notes}))
    assert told == [Citation(url=A, title="A page", start=0, stop=6)]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"citations": [A, B, A]}, [Citation(url=A), Citation(url=B)]),
        ({"web_search": [{"title": "A", "link": A, "content": "x"}]}, [Citation(url=A, title="A")]),
        ({"citations": {"no": "list"}, "web_search": ["", {"title": "none"}, 3, None]}, []),
    ],
)
def test_sources_of_the_whole_text_are_told_once(fields: dict[str, Any], expected: list[Citation]) -> None:
    """Vendors repeat them in every event, also while the short way reads the text."""
    events = [event({"content": f"word{n} "}, **fields) for n in range(30)]
    assert cited(*events) == expected
    assert sum(isinstance(chunk, TextChunk) for chunk in read(*events, STOP, DONE)) == 30


def test_what_a_vendor_s_own_searches_found_are_sources() -> None:
    """Whatever else it ran is passed over."""
    found = {"type": "search", "search_results": {"results": [{"title": "A", "url": A}, {"url": B}]}}
    told = cited(event({"executed_tools": [found, {"type": "python", "output": "3"}, "odd"]}), event({"content": "x"}))
    assert told == [Citation(url=A, title="A"), Citation(url=B)]
    assert cited(event({"content": "x", "executed_tools": {"odd": 1}})) == []


def test_a_call_cannot_be_demanded_where_the_vendor_has_no_such_thing() -> None:
    """``none`` leaves the tools out instead; a demand is refused by name."""
    asked = body("zai:glm-5", offers=(offer(),), choice="none", settings=SEARCHING)
    assert [tool["type"] for tool in asked["tools"]] == ["web_search"]
    assert "tool_choice" not in asked
    for choice in ("required", "price"):
        wire = model_named("zai:glm-5").wire(request(user("hi"), offers=(offer(),), choice=choice))
        assert "cannot be made to call a tool" in wire.issues[0].what
    assert "tool_choice" not in body("zai:glm-5", offers=(offer(),))
