"""Agents with flows as a user's file holds them, for tests of what can be seen of flows."""

__all__ = ("DOUBTFUL", "ODD", "SLOW", "STAYS")

STAYS = '''
"""Sells stays: a booking, a follow-up when the customer goes quiet, a receipt an hour after the payment."""
from onrecord import Agent, tool
from onrecord.flows import (
    Collect, Do, Failed, Field, Flow, Flows, If, Ok, OnEvent, OnMessage, OnSilence, Say, Talk, Wait, WaitEvent,
)
from onrecord.host import Given
from onrecord.testing import ScriptedModel

FIELDS = {"city": Field(type="string", ask="Ask the city."), "nights": Field(type="integer", ask="Ask the nights.")}


@tool
async def reserve(city: str) -> Ok | Failed:
    """Books."""
    return Ok("R-1") if city == "Porto" else Failed(f"there is nothing in {city}")


@tool
async def price(city: str) -> str:
    """A price."""
    return "100"


booking = Flow(
    "booking", name="Book a stay", description="Books a stay in a city.", on=[OnMessage("wants a room")],
    steps=[
        Collect("city", "nights", id="ask"),
        Do("reserve", id="reserve", args={"city": "{{data.city}}"}, on_fail="sorry"),
        Wait("3s", id="breath"),
        Say("Booked: {{data.city}}, {{context.hotel}}.", id="booked", media="ticket", then="end"),
        Say("Sorry.", id="sorry"),
    ],
)
nudge = Flow(
    "nudge", on=[OnSilence("24h")],
    steps=[
        Say("Still there?", id="first"), Wait("2d", id="pause", else_="end"), Say("Last try.", id="last"),
        WaitEvent("paid", id="payment", up_to="3d"), Say("Thanks!", id="thanks"),
    ],
)
receipt = Flow("receipt", on=[OnEvent("paid", after="1h")], steps=[Say("We got {{input.amount}}.", id="got")])


async def given(session, input):
    return Given(context={"hotel": "Aurora"})


def agent():
    model = ScriptedModel(
        '{"message": "Where, and how long?", "city": null, "nights": null}',
        judge=["{}", '{"fields": {"city": "Porto", "nights": 2}}'],
    )
    flows = Flows(booking, nudge, receipt, fields=FIELDS, actions=[reserve], events=["paid"], idle="silent")
    return Agent(model, name="Stays", tools=[price], director=flows)
'''

ODD = '''
"""Waits for nothing without end, for long, for a person, and has a model that fails."""
import asyncio

from onrecord import Agent, Allow, Ask, Deny, before_tool, on_input, tool
from onrecord.flows import Defer, Do, Flow, Flows, Goto, Ok, OnEvent, OnMessage, OnSilence, Say, Talk, Wait
from onrecord.testing import ScriptedModel, raises


@tool
async def linger() -> Ok:
    """Takes for ever."""
    await asyncio.Event().wait()
    return Ok()


@tool
async def sign() -> Ok:
    """Signs."""
    return Ok()


@tool
async def deferred() -> Defer:
    """Never today."""
    return Defer("1h", "not yet")


@before_tool
async def careful(turn, call):
    return Ask("Sign it?") if call.name == "sign" else Allow()


@on_input
async def polite(turn, input):
    return Deny("please be polite") if "damn" in str(getattr(input, "content", "")) else Allow()


async def broken(session, input):
    raise RuntimeError("no database")


NAMES = ["spin", "tick", "linger", "sign", "defer"]
flows = Flows(
    Flow("spin", on=[OnEvent("spin")], steps=[Wait("0s", id="w", then=Goto("w"))]),
    Flow("tick", on=[OnEvent("tick")], steps=[Wait("1h", id="w", then=Goto("w"))]),
    Flow("linger", on=[OnEvent("linger")], steps=[Do("linger", id="do"), Say("Over.")]),
    Flow("sign", on=[OnEvent("sign")],
         steps=[Do("sign", id="do", on_fail="no"), Say("Signed.", id="yes", then="end"), Say("Not signed.", id="no")]),
    Flow("defer", on=[OnEvent("defer")], steps=[Do("deferred", id="do"), Say("Done.")]),
    Flow("talk", on=[OnMessage()], steps=[Talk("Talk.", id="t", then=Goto("t"))]),
    actions=[linger, sign, deferred], events=NAMES,
)


def agent():
    model = ScriptedModel(raises("overload"), "Fine.", raises("overload"), "Fine again.")
    return Agent(model, name="Odd", director=flows, features=[careful, polite])
'''

DOUBTFUL = '''
"""Works, but for a step that nobody comes to, and a wait that asks a model."""
from onrecord import Agent
from onrecord.flows import Branch, Chain, Collect, Field, Flow, Flows, Say, Talk, Wait

agent = Agent("offline", name="Doubtful", director=Flows(
    Flow("a", steps=[Wait("1d", id="w", else_="end", branches=[Branch("says yes", then="end")]), Talk("Hi", id="t")]),
    Flow("b", name="B\\x1b[31m", steps=[Say("x\\u202e", id="x", then=Chain("gone")), Say("y", id="y")]),
))
full = Agent("offline", name="Full", director=Flows(
    Flow("a", collect=["city", "name"], clear_on_start=["city"], while_={"known": ["name"]}, on_end="stay", tools=[],
         steps=[Collect("city", id="c"), Talk("Hi", id="t", label="Greets")]),
    fields={"city": Field(type="string", ask="Ask."), "name": Field(type="string", ask="Ask.")}))
sound = Agent("offline", name="Sound", director=Flows(Flow("a", steps=[Talk("Hi", id="t")])))
warned = Agent("offline", name="Warned", director=Flows(Flow("a", steps=[Talk("Hi", id="t", then="t")])))
empty = Agent("offline", name="Empty", director=Flows())
plain = Agent("offline", name="Plain")


def misspelt():
    from onrecord.flows import Collect, Field

    return Agent("offline", director=Flows(
        Flow("booking", steps=[Collect("names", id="ask")]), fields={"name": Field(type="string", ask="Ask.")}))
'''

SLOW = '''
"""Its idle speaker counts, slowly when it is told so."""
from cli_paced import Paced
from onrecord import Agent
from onrecord.flows import Flows

agent = Agent(Paced(), name="Slow", director=Flows())
'''
