"""A hotel that books rooms by described conversations: ``onrecord chat examples/booking.py:agent``.

What is said in which order stands in flows, not in a prompt: what is asked for, when the price is quoted, that nothing
is booked without a yes, what follows a correction, a silence, a check-out. Runs without a key on ``offline``, a
rule-based stand-in, in English, Portuguese or Spanish; name another model for conversation: ``--model openai:...``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from onrecord import Agent, ToolContext, ToolResult, tool
from onrecord.flows import (
    Branch,
    Collect,
    Do,
    Event,
    Failed,
    Field,
    Flow,
    Flows,
    Goto,
    If,
    Ok,
    OnEvent,
    OnMention,
    OnMessage,
    OnSilence,
    Say,
    Talk,
    Wait,
)

RATES = {"lisbon": 140, "lisboa": 140, "porto": 110, "oporto": 110, "curitiba": 90}
"""Price of one night in euros, by the names that a city has."""


@dataclass
class Stay:
    """What is collected."""

    city: Annotated[str, Field(about="City to stay in.", ask="Ask which city they want.")]
    nights: Annotated[int, Field(about="Number of nights.", ask="Ask how many nights they stay.")]
    name: Annotated[str, Field(about="Name of the guest.", ask="Ask under which name to book.")]
    ok: Annotated[bool, Field(ask="Sum up the stay in one line and ask whether it is right.")]


@dataclass
class Desk:
    """The bookings, by the key of the action that made them, and the calls for a colleague."""

    bookings: dict[str, dict[str, Any]] = field(default_factory=dict)
    called: list[str] = field(default_factory=list)

    def book(self, stay: Mapping[str, Any], *, key: str) -> str:
        """The code of a booking, new or already made under this key."""
        made = self.bookings.setdefault(key, {"code": f"H-{1001 + len(self.bookings)}"})
        made.update(city=stay["city"], nights=stay["nights"], name=stay["name"])
        return str(made["code"])


desk = Desk()


@tool(read_only=True)
async def price(
    city: Annotated[str, "City to stay in."], nights: Annotated[int, "Number of nights."] = 1
) -> ToolResult:
    """Price of a stay in a city."""
    rate = RATES.get(city.casefold())
    if rate is None:
        return ToolResult({"error": f"there is no hotel in {city}"}, status="absent")
    return ToolResult({"total": rate * nights, "currency": "EUR"})


@tool
async def book(ctx: ToolContext[object]) -> Ok | Failed:
    """Books what was collected. An action: a step runs it, no model can call it."""
    stay = ctx.data
    if not all(stay.get(wanted) for wanted in ("city", "nights", "name")):
        return Failed("something is still missing")
    if str(stay["city"]).casefold() not in RATES:
        return Failed(f"there is no hotel in {stay['city']}")
    code = desk.book(stay, key=ctx.key)
    told = f"{code}: {stay['city']}, {stay['nights']}, {stay['name']}"
    ctx.set({"booking": told, "city": None, "nights": None, "name": None, "ok": None})  # the next stay is another one
    return Ok(code)


@tool
async def call_reception(ctx: ToolContext[object]) -> Ok:
    """Rings a person."""
    desk.called.append(ctx.key)
    return Ok()


def corrections(step: str, *more: str) -> list[Branch]:
    """What was said before may be taken back: the field is forgotten, and the step reads the same message for it."""
    told = {"city": "the customer changes the city", "nights": "the customer changes the number of nights",
            "name": "the customer changes the name of the guest"}  # fmt: skip
    return [Branch(when, then=Goto(step, clear=(slug, *more))) for slug, when in told.items()]


booking = Flow(
    "booking",
    name="Book a room",
    description="Books a room in a city for some nights.",
    on=[
        OnMessage("wants to book a room", "quer reservar um quarto", "quiere reservar una habitación", repeat="always")
    ],
    steps=[
        Collect("city", "nights", "name", id="stay", max_asks=9, branches=corrections("stay")),
        Collect(
            "city",
            "nights",
            "name",
            "ok",
            id="confirm",
            prompt="Quote the price of the stay, sum it up, and ask whether it is right.",
            tools=["price"],
            max_asks=9,
            branches=corrections("confirm", "ok"),
        ),
        If({"equals": {"ok": True}}, id="agreed", else_=Goto("confirm", clear=["ok"])),
        Do("book", id="book", on_fail="not_there"),
        Say("✓ {{data.booking}}", id="booked", then="end"),
        Say("✗ {{data.city}} · ✓ Lisbon, Porto, Curitiba", id="not_there", then=Goto("stay", clear=["city", "ok"])),
    ],
    tools=["price"],
)

person = Flow(
    "person",
    name="A person",
    on=[OnMention("asks for a human", "wants to talk to a person at the reception")],
    steps=[Do("call_reception"), Say("☎ +351 21 555 0100")],
)

nudge = Flow(
    "nudge",
    name="Gone quiet",
    on=[OnSilence("24h", only_if=lambda ctx: "booking" not in ctx.data)],
    steps=[
        Talk("Pick the conversation up lightly.", id="first"),
        Wait("2d", id="wait", else_="end"),
        Talk("Last try, short.", id="last"),
    ],
)

after_stay = Flow(
    "after_stay",
    name="After the stay",
    on=[OnEvent("checked_out", after="2h")],
    steps=[Talk("Thank them for the stay, and ask how it was.")],
)

flows = Flows(
    booking,
    person,
    nudge,
    after_stay,
    fields=Stay,
    persona="The concierge of a small group of hotels. Brief and friendly.",
    goal="Book rooms.",
    knowledge={
        "hotels": ["Lisbon", "Porto", "Curitiba"],
        "breakfast": "7:00 to 10:30",
        "check-in": "from 15:00",
        "pets": "welcome in Porto",
    },
    actions=[book, call_reception],
    events={"checked_out": Event(about="The guest has left.")},
    lone_flow="score",
)

agent: Agent[object, str] = Agent("offline", name="Aurora", tools=[price], director=flows)
