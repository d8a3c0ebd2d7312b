"""A hotel's concierge: two tools, one rule, a small CRM in memory. ``onrecord chat examples/hotel.py:agent``.

Runs without a key on ``offline``, a rule-based stand-in; name another model for conversation: ``--model openai:...``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from onrecord import Agent, Allow, Deny, ToolCall, ToolContext, ToolResult, Turn, before_tool, tool

RATES = {"lisbon": 140, "porto": 110, "curitiba": 90}
"""Price of one night in euros."""
LONGEST_STAY = 14


@dataclass
class Crm:
    """The bookings, by the key of the call that made them: a call that runs again books nothing twice."""

    bookings: dict[str, dict[str, Any]] = field(default_factory=dict)

    def book(self, city: str, nights: int, name: str, *, key: str) -> str:
        """The code of a booking, new or already made under this key."""
        made = self.bookings.setdefault(key, {"code": f"H-{1001 + len(self.bookings)}"})
        made.update(city=city, nights=nights, name=name)
        return str(made["code"])


crm = Crm()


@tool(read_only=True)
async def price(
    city: Annotated[str, "City to stay in."], nights: Annotated[int, "Number of nights."] = 1
) -> ToolResult:
    """Price of a stay in a city."""
    rate = RATES.get(city.casefold())
    if rate is None:
        return ToolResult({"error": f"there is no hotel in {city}"}, status="absent")
    return ToolResult({"total": rate * nights, "currency": "EUR"})


@tool(destructive=True)
async def book(
    ctx: ToolContext[object],
    city: Annotated[str, "City to stay in."],
    nights: Annotated[int, "Number of nights."],
    name: Annotated[str, "Name of the guest."],
) -> ToolResult:
    """Book a room and return the booking code."""
    if city.casefold() not in RATES:
        return ToolResult({"error": f"there is no hotel in {city}"}, status="failed")
    code = crm.book(city, nights, name, key=ctx.key)
    return ToolResult({"code": code}, data={"booking": code})


@before_tool
async def short_stays_only(turn: Turn, call: ToolCall) -> Allow[Mapping[str, Any]] | Deny:
    """A rule: long stays are for people to arrange."""
    if call.args.get("nights", 1) > LONGEST_STAY:
        return Deny(f"stays of more than {LONGEST_STAY} nights are arranged by the reception")
    return Allow()


agent: Agent[object, str] = Agent(
    "offline",
    name="Aurora",
    instructions=(
        "You are Aurora, the concierge of a small group of hotels. Answer briefly. "
        "Quote a price before you book, and give the booking code afterwards. "
        "The hotels are in Lisbon, Porto and Curitiba. "
        "Breakfast is served from 7:00 to 10:30. "
        "Check-in starts at 15:00 and check-out ends at 11:00. "
        "Pets are welcome in Porto."
    ),
    tools=[price, book],
    features=[short_stays_only],
)
