"""What a server refused is left out of what follows: the same for every wire, tried over Chat Completions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.cli.usable import endpoint_of, example
from onrecord.conversation.content import Image
from onrecord.errors import ModelError
from onrecord.models.learned import Learned
from onrecord.models.model import Model
from onrecord.models.names import PROVIDERS, model_named
from onrecord.models.request import Request, Settings
from onrecord.providers import http_model
from onrecord.providers.openai_chat.cards import Dialect
from onrecord.providers.openai_chat.client import ChatModel
from tests.models.requests import CARD, native, offer, request, said, settled, user
from tests.net.loopback import Script, serving
from tests.providers.chat_server import GOOD, SAID, ask, each, model_at, status
from tests.providers.test_chat_body import shape

pytestmark = pytest.mark.integration

NO_TOOLS = status(400, body='{"error":{"message":"acme/small does not support tools"}}')
NO_LISTS = status(422, body='{"error":{"message":"messages[0]: invalid type: sequence, expected a string"}}')
NO_SCHEMA = status(400, body='{"error":{"message":"invalid_function_parameters"}}')
SEARCH = Dialect(search={"tools": [{"type": "web_search"}]})


class Clock:
    """Monotonic seconds that a test moves."""

    now = 1000.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    """Nothing is known at the start, and nothing afterwards."""
    monkeypatch.setattr(http_model, "LEARNED", Learned())
    monkeypatch.setattr("onrecord.providers.http_model.time.monotonic", lambda: Clock.now)
    Clock.now = 1000.0
    return Clock


def sent(model: Model, asked: Request) -> dict[str, Any]:
    """The body of a request."""
    held: dict[str, Any] = json.loads(model.wire(asked).body)
    return held


def asked(**fields: Any) -> Request:
    """A request with a tool."""
    return request(user("hi"), offers=(offer(),), **fields)


async def taught(script: Script, first: Request, **fields: Any) -> tuple[Model, list[dict[str, Any]]]:
    """A model that failed once and was asked again; the bodies that it sent."""
    async with serving(script) as server:
        model = model_at(server, **fields)
        with pytest.raises(ModelError):
            await ask(model, first)
        await ask(model_at(server, **fields), first)  # another object for the same model: an agent of another user
        return model, [json.loads(one.body) for one in server.requests]


async def test_c9_after_a_refusal_tools_search_and_choice_are_left_out() -> None:
    """The case's learned False, for any wire: the body has no ``tools``, and the reply is a reply."""
    first = asked(choice="required", settings=Settings(search=True, seed=3))
    able = ChatModel(replace(CARD, hosted_search=True), dialect=SEARCH)
    assert len(sent(able, first)["tools"]) == 2
    model, bodies = await taught(each(NO_TOOLS, GOOD), asked(choice="required"))
    assert "tools" in bodies[0]
    assert not {"tools", "tool_choice"} & bodies[1].keys()
    assert not {"tools", "tool_choice"} & sent(model, first).keys()
    assert sent(model, first)["seed"] == 3
    assert model.wire(first).issues == ()  # a choice that insists is no issue: it goes with the tools


@pytest.mark.parametrize("provider", [name for name in PROVIDERS if name not in {"offline", "local"}])
def test_c9_every_provider_with_an_endpoint_has_it(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its wire: the tool is in the body, and after a refusal nowhere."""
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://hotel.test")
    model = endpoint_of(model_named(example(provider)))
    assert model is not None
    first = request(user("hi"), offers=(offer("find_a_room"),), model=model)
    assert b"find_a_room" in model.wire(first).body
    http_model.LEARNED.note(model.card, "tools", Clock.now)
    assert b"find_a_room" not in model.wire(first).body


@pytest.mark.parametrize("provider", [name for name in PROVIDERS if name not in {"offline", "local"}])
def test_every_provider_s_model_can_be_asked_under_another_card(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a probe can try it both ways, whatever its wire; the model itself stays what it is."""
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://hotel.test")
    model = endpoint_of(model_named(example(provider)))
    assert model is not None
    other = model.under(replace(model.card, tools=False))
    first = request(user("hi"), offers=(offer("find_a_room"),), model=model)
    assert other is not None
    assert (b"find_a_room" in model.wire(first).body, b"find_a_room" in other.wire(first).body) == (True, False)
    http_model.LEARNED.note(model.card, "tools", Clock.now)
    same = model.under(model.card)
    assert same is not None
    assert b"find_a_room" in same.wire(first).body  # taken at its word, whatever was learned


async def test_c9_a_card_without_tools_leaves_out_search_too() -> None:
    """The case's ``supports_tools=False``: nothing of it is sent, and search is no issue."""
    model = ChatModel(replace(CARD, tools=False, hosted_search=True), dialect=SEARCH)
    first = asked(settings=Settings(search=True))
    assert not {"tools", "tool_choice"} & sent(model, first).keys()
    assert model.wire(first).issues == ()


async def test_e23_a_step_that_switches_to_a_model_known_to_refuse_leaves_all_of_it_out() -> None:
    """Request 1 has two tools and the choice; request 2, to another model, neither."""
    first = asked(choice="required", settings=Settings(search=True))
    able = ChatModel(replace(CARD, hosted_search=True), dialect=SEARCH)
    other = ChatModel(replace(CARD, model="small", hosted_search=True), dialect=SEARCH)
    http_model.LEARNED.note(other.card, "tools", Clock.now)
    assert [one["type"] for one in sent(able, first)["tools"]] == ["function", "web_search"]
    assert sent(able, first)["tool_choice"] == "required"
    assert not {"tools", "tool_choice"} & sent(other, replace(first, model=other)).keys()


async def test_a_refusal_expires(clock: type[Clock]) -> None:
    """Then the server is asked anew."""
    model, _ = await taught(each(NO_TOOLS, GOOD), asked())
    clock.now += http_model.LEARNED.keeps_s - 1
    assert "tools" not in sent(model, asked())
    clock.now += 1
    assert "tools" in sent(model, asked())


async def test_an_invalid_schema_teaches_nothing() -> None:
    """It is about one tool, and the next request has it again."""
    _, bodies = await taught(each(NO_SCHEMA, GOOD), asked())
    assert all("tools" in body for body in bodies)


async def test_a_card_given_on_purpose_is_taken_at_its_word() -> None:
    """Whoever says that the model takes tools gets to see the error each time."""
    card = replace(CARD, model="m")
    model, bodies = await taught(each(NO_TOOLS, GOOD), asked(), card=card)
    assert all("tools" in body for body in bodies)
    assert "tools" in sent(model, asked())
    assert not http_model.LEARNED


async def test_a_message_that_talks_about_tools_does_not_switch_them_off() -> None:
    """The server only quotes it."""
    first = request(user("what does not support tools?"), offers=(offer(),))
    _, bodies = await taught(each(NO_TOOLS, GOOD), first)
    assert all("tools" in body for body in bodies)


async def test_lists_that_were_refused_are_flattened_and_lanes_keep_both_forms_apart() -> None:
    """Media goes without a word, as on cards that say so; what was encoded before is not mixed in."""
    first = request(user("see ", "this", Image(url="https://e.test/i.png")))
    model, bodies = await taught(each(NO_LISTS, GOOD), first)
    assert [type(body["messages"][0]["content"]) for body in bodies] == [list, str]
    assert bodies[1]["messages"][0]["content"] == "see this"
    assert isinstance(sent(model, first)["messages"][0]["content"], str)
    Clock.now += http_model.LEARNED.keeps_s
    assert isinstance(sent(model, first)["messages"][0]["content"], list)


async def test_native_lists_are_flattened_too_once_lists_were_refused() -> None:
    """A continuation of the same scope stays native, its content becomes a string."""
    held = b'{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}'
    first = request(user("hi"), said(settled("r", "ab", continuation=native(held))), scope="s")
    model, bodies = await taught(each(NO_LISTS, GOOD), first)
    assert isinstance(bodies[0]["messages"][1]["content"], list)
    assert sent(model, first)["messages"][1]["content"] == "ab"


async def test_a_shape_beside_tools_that_are_left_out_is_asked_for_as_without_them() -> None:
    """The prompt form is for requests that really carry tools."""
    card = replace(CARD, structured_with_tools=False)
    model, first = ChatModel(card), asked(shape=shape())
    assert "response_format" not in sent(model, first)
    http_model.LEARNED.note(card, "tools", Clock.now)
    assert "response_format" in sent(model, first)


async def test_a_reply_after_the_refusal_is_heard_and_what_was_shown_is_stable() -> None:
    """The projection that made the body is the one that notes it went out."""
    async with serving(each(NO_TOOLS, GOOD)) as server:
        model = model_at(server)
        first = asked()
        with pytest.raises(ModelError) as caught:
            await ask(model, first)
        assert caught.value.refuses == "tools"
        assert await ask(model, first) == SAID
        assert model.wire(first).stable_until == 1
