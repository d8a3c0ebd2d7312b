"""Conversations with the stand-in, through a real agent: what was called with what, and what was said."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from onrecord import Agent, Said, Session, Tool, ToolResult
from onrecord.providers.offline.client import named
from onrecord.tools.tool import Flag, Permission

pytestmark = pytest.mark.unit

BRIEF = (
    "You are Aurora, the concierge. Never discuss politics. Breakfast is served from 7:00 to 10:30.\n"
    "# House\n- Pets are welcome in Porto."
)
STRING = {"type": "string"}
NIGHTS = {"type": "integer", "minimum": 1, "description": "How many nights."}
CITY = {"type": "string", "description": "City to stay in."}
GUEST = {"type": "string", "description": "Name of the guest."}


class Desk:
    """An agent over tools of the test's making, its calls in order, and its session."""

    def __init__(self, *tools: Tool, results: Mapping[str, Any] | None = None, brief: str = BRIEF) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.results = results or {}
        for tool in tools:
            assert tool.handler is _unset
        self.agent: Agent[object, str] = Agent(
            "offline", instructions=brief, tools=[self._heard(tool) for tool in tools]
        )
        self.session: Session | None = None

    def _heard(self, tool: Tool) -> Tool:
        def handler(args: dict[str, Any], _ctx: object) -> ToolResult:
            self.calls.append((tool.id, args))
            return ToolResult(self.results.get(tool.id, {"ok": True}))

        fields = {name: getattr(tool, name) for name in tool.__struct_fields__ if name not in {"id", "handler"}}
        return Tool(tool.id, handler, **fields)

    async def say(self, text: str) -> str:
        """One turn; what the stand-in said."""
        result = await self.agent.turn(Said(text), session=self.session)
        self.session = result.session
        return result.text

    async def talk(self, *texts: str) -> list[str]:
        """Several turns."""
        return [await self.say(text) for text in texts]


def _unset(args: object, ctx: object) -> None:
    raise NotImplementedError


def tool(
    name: str, about: str, properties: Mapping[str, Any], required: Sequence[str] = (), *, destructive: Flag = False
) -> Tool:
    """A tool with a hand-written schema."""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(name, _unset, description=about, parameters=schema, destructive=destructive)


PRICE = tool("price", "Price of a stay in a city.", {"city": CITY, "nights": NIGHTS | {"default": 1}}, ["city"])
BOOK = tool(
    "book",
    "Book a room and return its booking code.",
    {"city": CITY, "nights": NIGHTS, "name": GUEST},
    ["city", "nights", "name"],
    destructive=True,
)
CANCEL = tool("cancel", "Cancel a booking.", {"code": {"type": "string"}}, ["code"], destructive=True)
WEATHER = tool(
    "get_weather",
    "Current weather for a location.",
    {"location": STRING, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
    ["location"],
)
MAIL = tool(
    "send_email",
    "Send an email to someone.",
    {"to": {"type": "string", "format": "email"}, "subject": STRING, "body": STRING},
    ["to", "subject", "body"],
    destructive=True,
)
SEARCH = tool("search_docs", "Search the documentation.", {"query": STRING}, ["query"])
ORDER = tool("order_status", "Status of an order.", {"order_id": STRING}, ["order_id"])
ADD = tool("add", "Add two numbers.", {"a": {"type": "integer"}, "b": {"type": "integer"}}, ["a", "b"])
FLIGHTS = tool(
    "find_flights",
    "Find flights between two cities.",
    {"origin": STRING, "destination": STRING, "date": {"type": "string", "format": "date"}},
    ["origin", "destination", "date"],
)
KYOTO = tool("price", "都市の宿泊料金", {"city": {"type": "string", "enum": ["東京", "京都"]}}, ["city"])

CALLS = [
    ([PRICE, BOOK], "How much is a room in Lisbon for two nights?", ("price", {"city": "Lisbon", "nights": 2})),
    ([PRICE, BOOK], "price in porto", ("price", {"city": "porto"})),
    ([PRICE, BOOK], "Quanto custa um quarto no Porto por três noites?", ("price", {"city": "Porto", "nights": 3})),
    (
        [PRICE, BOOK],
        "¿Cuánto cuesta una habitación en Madrid para dos noches?",
        ("price", {"city": "Madrid", "nights": 2}),
    ),
    ([PRICE, BOOK], "Don't book anything. What does Lisbon cost?", ("price", {"city": "Lisbon"})),
    ([PRICE, BOOK], "Two nights in Curitiba?", ("price", {"city": "Curitiba", "nights": 2})),
    ([PRICE, ORDER], "Where is my order AB-1234?", ("order_status", {"order_id": "AB-1234"})),
    (
        [WEATHER, MAIL],
        "What's the weather in São Paulo in fahrenheit?",
        ("get_weather", {"location": "São Paulo", "unit": "fahrenheit"}),
    ),
    ([WEATHER, SEARCH], "search the docs for retry policy", ("search_docs", {"query": "retry policy"})),
    ([ADD, FLIGHTS], "add 2 and 3", ("add", {"a": 2, "b": 3})),
    (
        [ADD, FLIGHTS],
        "flights to Oslo from Rio de Janeiro on May 5, 2026",
        ("find_flights", {"origin": "Rio de Janeiro", "destination": "Oslo", "date": "2026-05-05"}),
    ),
    ([KYOTO], "東京の宿泊料金は？", ("price", {"city": "東京"})),  # noqa: RUF001 - what people there type
]


@pytest.mark.parametrize(("tools", "text", "expected"), CALLS)
async def test_calls_what_the_message_asks_for(tools: list[Tool], text: str, expected: tuple[str, object]) -> None:
    """One message, one call, with arguments that stand in it; the answer names the call it comes from."""
    desk = Desk(*tools)
    said = await desk.say(text)
    assert desk.calls == [expected]
    assert expected[0] in said


QUIET = [
    ([PRICE, BOOK], "asdf qwer", "rule-based stand-in"),
    ([PRICE, BOOK], "Thanks for the booking, bye!", "You are welcome. Goodbye!"),
    ([PRICE, BOOK], "Hello!", "Hello! I can help with: price (Price of a stay in a city)"),
    ([PRICE, BOOK], "yes", "nothing open"),
    ([PRICE, BOOK], "I would rather not book a room", "no rule for that"),
    ([PRICE, BOOK], "What can you do?", "I can help with: price"),
    ([PRICE, BOOK], "Are you a human?", "not a language model"),
    ([PRICE, BOOK], "When is breakfast served?", "My brief says: “Breakfast is served from 7:00 to 10:30.”"),
    ([PRICE, BOOK], "Do you allow pets?", "My brief says: “Pets are welcome in Porto.”"),
    ([PRICE], "Do you discuss politics?", "rule-based stand-in"),
    ([PRICE], "Price?", "For price I still need: city to stay in. What is it?"),
    ([FLIGHTS], "flights from Rome to Oslo tomorrow", "date (YYYY-MM-DD)"),
    ([], "is there a pool?", "without tools"),
    ([], "", "stand-in"),
]


@pytest.mark.parametrize(("tools", "text", "expected"), QUIET)
async def test_calls_nothing_otherwise(tools: list[Tool], text: str, expected: str) -> None:
    """Courtesy, quotations of facts, one question for what is missing, or plainly that no rule fits."""
    desk = Desk(*tools)
    assert expected in await desk.say(text)
    assert desk.calls == []


async def test_a_destructive_tool_waits_for_a_clear_yes() -> None:
    """It names call and arguments, asks, takes corrections, and runs once with what was confirmed."""
    desk = Desk(PRICE, BOOK, results={"book": {"code": "H-7"}})
    said = await desk.talk("i want to book a room in lisbon", "2 nights", "my name is ana", "wait, make it 3 nights")
    assert "how many nights" in said[0]
    assert "name of the guest" in said[1]
    assert said[2].startswith("I am about to run book (city: lisbon, nights: 2, name: ana).")
    assert "nights: 3" in said[3]
    assert "Bob Silva" in await desk.say("yes but for Bob Silva")
    assert "Shall I go ahead?" in await desk.say("hmm")
    assert desk.calls == []
    assert "code: H-7" in await desk.say("Yes, please")
    assert desk.calls == [("book", {"city": "lisbon", "nights": 3, "name": "Bob Silva"})]
    assert "nothing open" in await desk.say("yes")
    assert "gave code: H-7" in await desk.say("What was my booking code again?")
    assert len(desk.calls) == 1


@pytest.mark.parametrize("reply", ["no", "No thanks", "Never mind", "What does Porto cost?", "bye", "yes?", "not yet"])
async def test_anything_but_a_yes_runs_nothing(reply: str) -> None:
    """A no, a question, a farewell or doubt."""
    desk = Desk(PRICE, BOOK)
    await desk.talk("Book a room in Paris for Ana Costa for 4 nights", reply)
    assert not any(name == "book" for name, _ in desk.calls)


async def test_a_yes_that_changes_a_value_is_asked_about_again() -> None:
    """Neither the call that was confirmed nor the changed one runs on it."""
    desk = Desk(PRICE, BOOK)
    said = await desk.talk("Book a room in Paris for Ana Costa for 4 nights", "Yes, for 3 nights")
    assert said[1].startswith("I am about to run book (city: Paris, nights: 3, name: Ana Costa).")
    assert desk.calls == []
    await desk.say("yes")
    assert desk.calls == [("book", {"city": "Paris", "nights": 3, "name": "Ana Costa"})]


async def test_a_yes_to_something_else_runs_nothing() -> None:
    """The question must be the last thing that was said."""
    desk = Desk(PRICE, BOOK)
    await desk.talk("Book a room in Paris for Ana Costa for 4 nights", "When is breakfast?", "yes")
    assert desk.calls == []


async def test_asks_by_description_and_hears_the_answer_freely() -> None:
    """In Portuguese too; a lower-case name, a whole sentence for free text."""
    desk = Desk(PRICE, BOOK, results={"book": {"code": "H-7"}})
    said = await desk.talk("Quanto custa um quarto no Porto por três noites?", "Quero reservar", "João da Silva", "sim")
    assert said[1] == "Para book ainda preciso de: name of the guest. Qual é?"
    assert desk.calls[-1] == ("book", {"city": "Porto", "nights": 3, "name": "João da Silva"})
    assert await desk.say("Obrigado, até logo!") == "De nada. Até logo!"
    mail = Desk(MAIL)
    await mail.talk("Send an email to ana@example.com", "Lunch", "See you at noon", "yes")
    assert mail.calls == [("send_email", {"to": "ana@example.com", "subject": "Lunch", "body": "See you at noon"})]


async def test_another_wish_in_place_of_an_answer_is_followed() -> None:
    """A question for a value does not hold the conversation."""
    desk = Desk(PRICE, BOOK)
    said = await desk.talk(
        "Book a room in Lisbon", "What is the price in Porto for 2 nights?", "thanks!", "Book it", "no"
    )
    assert desk.calls == [("price", {"city": "Porto", "nights": 2})]
    assert said[2] == "You are welcome."
    assert said[4] == "All right, I did not run book."


async def test_a_short_change_repeats_the_last_call() -> None:
    """The words "And in Porto?" change one value; a question about something else repeats nothing."""
    desk = Desk(PRICE, BOOK)
    await desk.talk("Price of 2 nights in Lisbon", "And in Porto?", "Do you allow pets in Lisbon?")
    assert [args["city"] for _, args in desk.calls] == ["Lisbon", "Porto"]
    assert desk.calls[1][1]["nights"] == 2


async def test_values_come_from_earlier_results() -> None:
    """A code that a tool returned; what a finished booking used up is asked for again."""
    desk = Desk(BOOK, CANCEL, results={"book": {"code": "H-7"}})
    await desk.talk("Book a room in Paris for Ana Costa for 4 nights", "yes")
    assert "cancel (code: H-7)" in await desk.say("Please cancel that")
    await desk.say("yes")
    assert desk.calls[-1] == ("cancel", {"code": "H-7"})
    assert "I still need" in await desk.say("Book another room")


async def test_a_command_before_a_place_is_no_part_of_its_name() -> None:
    """Both are capitalised, and only one of them is the place."""
    desk = Desk(PRICE, BOOK, results={"price": {"total": 560}})
    assert "book (city: Faro, nights: 3, name: Ana Costa)" in await desk.say("Book Faro for 3 nights for Ana Costa")
    await desk.talk("no", "Price Lisbon for 2 nights")
    assert desk.calls == [("price", {"city": "Lisbon", "nights": 2})]


async def test_one_message_may_want_two_tools() -> None:
    """The second follows the first result; a destructive one is only asked about."""
    desk = Desk(PRICE, BOOK, results={"price": {"total": 560}})
    said = await desk.say("What is the price in Porto for 2 nights? Then book it for Ana Costa.")
    assert desk.calls == [("price", {"city": "Porto", "nights": 2})]
    assert "total: 560" in said
    assert "I am about to run book (city: Porto, nights: 2, name: Ana Costa)" in said


async def test_one_message_makes_at_most_four_calls() -> None:
    """However many tools it names."""
    names = ("alpha", "bravo", "carrot", "delta", "eagle", "falcon")
    desk = Desk(*(tool(name, f"The {name}.", {}) for name in names))
    await desk.say(", ".join(names))
    assert [name for name, _ in desk.calls] == list(names[:4])


RESULTS = [
    ({"total": 420, "currency": "EUR", "breakfast": True}, "total: 420, currency: EUR, breakfast: yes."),
    ({"city": "Rome", "total": 420}, "From price (city: Rome): total: 420."),
    (
        {"room": {"kind": "double", "beds": 2}, "notes": []},
        "room kind: double, room beds: 2, notes: nothing came back.",
    ),
    ([{"a": 1}, 2, None, "x", 5, 6, 7], "a: 1; 2; -; x; 5; and 2 more."),
    ({"ok": True}, "done."),
    ({}, "nothing came back."),
    ("", "nothing came back."),
    ("plain\nwords", "plain words."),
    ({"error": "no hotel there"}, "price (city: Rome) did not work: no hotel there."),
    ("x" * 2000, "…"),
]


@pytest.mark.parametrize(("value", "expected"), RESULTS)
async def test_results_become_plain_sentences(value: object, expected: str) -> None:
    """Every kind of JSON; what the call was given is not told twice; errors are stated."""
    desk = Desk(PRICE, results={"price": value})
    assert expected in await desk.say("price in Rome")
    assert len(desk.calls) == 1


async def test_a_denial_is_told_and_not_retried() -> None:
    """The tool's own permission check says no."""
    held = Tool(
        "price",
        _unset,
        description=PRICE.description,
        parameters=PRICE.parameters,
        check_permissions=lambda _args, _ctx: Permission(allowed=False, reason="not for you"),
    )
    agent: Agent[object, str] = Agent("offline", tools=[held])
    result = await agent.turn("price in Rome")
    assert "was not allowed: Permission denied: not for you" in result.text
    assert result.llm_calls == 2


async def test_a_flag_that_cannot_tell_counts_as_destructive() -> None:
    """A function of the arguments that raises."""
    risky = tool("price", "Price of a stay.", {"city": CITY}, ["city"], destructive=lambda args: args["nope"])
    desk = Desk(risky)
    assert "Shall I go ahead?" in await desk.say("price in Rome")
    assert desk.calls == []


def test_the_card_is_honest() -> None:
    """It says that it is no language model, where the command line shows it."""
    card = named("offline", "").card
    assert "rule-based" in card.honest
    assert "not a language model" in card.honest
    assert card.about
    assert card.name == "offline:rules"
