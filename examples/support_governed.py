"""A lamp shop's support agent with every kind of feature. ``onrecord chat examples/support_governed.py:agent``.

It runs without a key on ``offline``, a rule-based stand-in; ``--model openai:...`` names another model.
"What is order A-17?" is answered without the card number. "Refund 30 euros of order A-17" is paid at once, and 80 wait
for a person: answer, or leave the chat and answer next time. "How long does delivery take?" is read from a document.
How it grew, one line at a time: docs/guides/growing.md.
"""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from onrecord import (
    Agent,
    Allow,
    Ask,
    Instruction,
    Returned,
    ToolCall,
    ToolContext,
    Turn,
    after_tool,
    before_tool,
    tool,
)
from onrecord.governance import Budget, Limit, Permissions, Policy, Redaction
from onrecord.honesty import SelfExplain
from onrecord.memory import Corpus, Document, Facts, Memory, PlainShelf, Retrieve
from onrecord.prompt import Artifacts, Window
from onrecord.skills import Skill, Skills
from onrecord.turn import Bundle, OnReturn, Rank

ORDERS = {
    "A-17": {"lamp": "Orion", "euros": 90, "card": "4111 1111 1111 1111"},
    "B-20": {"lamp": "Vega", "euros": 40, "card": "5500 0000 0000 0004"},
}
CARD = r"\b\d{4}( \d{4}){3}\b"

paid: dict[str, str] = {}
"""What was paid back, by the key of the call: a call that runs again pays nothing twice."""


# ---- tools -----------------------------------------------------------------------------------------------------------


@tool(read_only=True)
def find_order(order: Annotated[str, "Number of the order, such as A-17."]) -> dict[str, Any]:
    """Find an order by its number."""
    return ORDERS.get(order.upper()) or {"error": f"there is no order {order}"}


@tool
def refund(
    ctx: ToolContext[object],
    order: Annotated[str, "Number of the order, such as A-17."],
    euros: Annotated[int, "Amount in euros."],
) -> str:
    """Pay money of an order back."""
    return paid.setdefault(ctx.key, f"{euros} euros of order {order} are on their way")


@tool
def change_price(lamp: str, euros: int) -> str:
    """Change what a lamp costs."""
    return f"{lamp} costs {euros} euros"


# ---- rules -----------------------------------------------------------------------------------------------------------


@after_tool
def no_card_numbers(turn: Turn, returned: Returned) -> Allow[Returned]:
    """The model does not read how somebody pays."""
    if not isinstance(returned.value, dict) or "card" not in returned.value:
        return Allow()
    told = ", ".join(f"{name}: {value}" for name, value in returned.value.items() if name != "card")
    return Allow(returned.with_text(told), "card number left out")


@before_tool
def a_person_approves_large_refunds(turn: Turn, call: ToolCall) -> Allow[Mapping[str, Any]] | Ask:
    """More than 50 euros are for a person to decide."""
    euros = call.args.get("euros", 0)
    return Ask(f"Pay {euros} euros back?") if call.name == "refund" and euros > 50 else Allow()


def who(turn: Turn) -> str:
    """Which role acts: what the program says of the caller, as ``context=``."""
    return "staff" if turn.context == "staff" else "customer"


# ---- the agent -------------------------------------------------------------------------------------------------------

HOUSE = """\
# Returns

A broken lamp is paid back in full.

# Delivery

Delivery takes two days.
"""
house = asyncio.run(Corpus.of([Document("house.md", HOUSE)]))
returns = Skill("returns", "Sends broken lamps back.", "Ask for a photo before a lamp is sent back.")

governed = Bundle(
    name="governed-support",
    version="1",
    features=(
        no_card_numbers,
        Permissions(policies=[Policy(name="staff-only", tools=("change_price",), roles=("customer",))], role=who),
        a_person_approves_large_refunds,
        Redaction(patterns=[CARD]),
        Window.last(40),
        Instruction("Be brief.", rank=Rank.STEERING, name="style"),
        Instruction("Say when the money arrives: in ten days.", only_if=OnReturn("refund"), name="ten-days"),
        Skills(returns),
        Memory(PlainShelf(), (Facts(),)),
        Retrieve(house, top=1),
        Artifacts(max_inline_chars=2000),
        Budget(turn=Limit(tokens=50_000)),
        SelfExplain(),
    ),
)

agent: Agent[object, str] = Agent(
    "offline",
    name="support",
    instructions="You help customers of a lamp shop. The shop closes at six.",
    tools=[find_order, refund, change_price],
    features=[governed],
)
