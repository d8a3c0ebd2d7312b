"""One long talk in which every feature has something to do, and everything that was seen of it.

The model answers by what the person said last (``#1`` to ``#8``) and by how many rounds it had since, so that the talk
goes its way whichever features are there: with pauses, revisions, denials and tools that nobody offers.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Image, Text
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.inputs import Answered, Input, Said, approved
from onrecord.conversation.messages import Round, UserMessage
from onrecord.conversation.outgoing import Delta, ReasoningDelta, TextDelta
from onrecord.conversation.usage import Usage
from onrecord.errors import TurnError
from onrecord.jsonio import dumps
from onrecord.models.chunks import CallChunk, Chunk, Finished, TextChunk, ThinkingChunk
from onrecord.models.model import ModelCard
from onrecord.models.request import Request, Wire
from onrecord.record.entry import Entry
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.testing import FakeEffects, call, shown
from onrecord.tools.tool import Tool, ToolContext
from onrecord.turn.moments import Feature, Watch
from onrecord.turn.result import TurnResult

__all__ = ("CARD", "INPUTS", "LONG", "PLAIN", "QUIET", "REFUND", "TOOLS", "Made", "Play", "Talker", "played")

LONG = "A long answer about zebras. " * 30 + "token=abc123"
"""What ``look`` returns: long enough to be stored, with something in it that a rule takes out."""

USED = Usage(input_tokens=100, output_tokens=10, cached_input_tokens=90)
CARD = ModelCard(provider="talk", model="one", protocol="talk", cache_marks=True, thinking="budget")
PLAIN = replace(CARD, cache_marks=False)
WIRE = Wire(body=b"{}")

Step = Sequence[Any] | Callable[[Request], Sequence[Any]]


def _count(request: Request) -> Sequence[Any]:
    """Spends the ticket that the last results showed, or what there is."""
    found = re.findall(r"art_[0-9a-f]{24}", dumps(shown(request)).decode())
    return [call("count", rows=found[-1] if found else "no rows")]


SCRIPT: Mapping[str, Sequence[Step]] = {
    "#1": [["Hello ", "Ana."]],
    "#2": [
        ["Let me see. ", call("look", n=1)],
        [call("rm", path="/"), call("pay", amount=200)],
        _count,
        [call("mail", to="bo")],
        ["Looked at them."],
    ],
    "#3": [[call("read_skill", id="refunds")], [call("refund", order="7")], ["Refunded."]],
    "#4": [["I guarantee ", "it."]],
    "#5": [["Dropped."]],
    "#6": [[call("run_overview", turn=1)], ["That is what I did."]],
    "#7": [["Bye."]],
    "#8": [["You are somebody."]],
    "#9": [["A zebra."]],
}
"""What the model says, by the person's words and by its round."""

INPUTS: Sequence[tuple[str, Input]] = (
    ("s", Said("#1 My name is Ana, my card is 4111-1111.")),
    ("s", Said("#2 look at the zebras")),
    ("s", Said((Text("#3 refunds please"), Image(url="https://h/z.png", description="a zebra at the door")))),
    ("s", Said("#4 promise me something")),
    ("s", Said("#5 drop table")),
    ("s", Said("#6 what did you do?")),
    ("s", Said("#7 bye")),
    ("t", Said("#8 who am I?")),
)
"""What people say, and in which session."""

PICTURE = Said((Text("#9 what is this?"), Image(url="https://h/z.png", description="a zebra at the door")))
QUIET: Sequence[tuple[str, Input]] = (*INPUTS[:2], ("s", PICTURE), *INPUTS[3:5], *INPUTS[6:])
"""The same without what only skills and self-explanation have tools for."""


class Talker:
    """The model of the talk; of every round it thinks aloud. ``requests`` are those that it was sent."""

    def __init__(self, card: ModelCard = CARD, script: Mapping[str, Sequence[Step]] = SCRIPT) -> None:
        self.card, self.script = card, script
        self.requests: list[Request] = []

    def wire(self, request: Request, /) -> Wire:
        """Always the same bytes: tests write requests on wires of vendors."""
        return WIRE

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        """A thought, then the round of the script; for whoever consults it, a sentence."""
        self.requests.append(request)
        steps: Sequence[Any] = [self.summary()] if request.purpose == "consult" else self.steps(request)
        yield ThinkingChunk("I ponder.")
        if request.shape is not None and not any(isinstance(step, CallChunk) for step in steps):
            steps = [dumps({"words": "".join(steps)}).decode()]
        for step in steps:
            yield TextChunk(step) if isinstance(step, str) else step
        asks = any(isinstance(step, CallChunk) for step in steps)
        yield Finished(finish="calls" if asks else "stop", usage=USED, model=self.card.model)

    def summary(self) -> str:
        """What it says to whoever consults it."""
        return "A short summary."

    def steps(self, request: Request) -> Sequence[Any]:
        """The round that is due."""
        units, rounds = request.conversation.units, 0
        for place in range(len(units) - 1, -1, -1):
            unit = units[place]
            if isinstance(unit, UserMessage):
                held = self.script[unit.text[:2]]
                step = held[-1] if request.purpose == "wrap_up" else held[min(rounds, len(held) - 1)]
                return step(request) if callable(step) else step
            rounds += isinstance(unit, Round)
        return ["Nothing was said."]


def _tool(name: str, told: str, **more: Any) -> Tool:
    properties: dict[str, Any] = {key: {"type": kind} for key, kind in more.pop("takes").items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}

    async def run(args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
        ctx.context.ran.append((name, dict(args)))
        return told

    return Tool(name, run, f"About {name}.", parameters=schema, **more)


TOOLS: tuple[Tool, ...] = (
    _tool("look", LONG, takes={"n": "integer"}, read_only=True),
    _tool("rm", "removed", takes={"path": "string"}),
    _tool("pay", "paid", takes={"amount": "integer"}),
    _tool("mail", "sent", takes={"to": "string"}),
    _tool("count", "counted", takes={"rows": "string"}, read_only=True),
    _tool("spare", "never called", takes={"what": "string"}),
)
"""The tools of every agent of the talk. Nobody calls ``spare``; ``refund`` comes with a skill."""

REFUND = _tool("refund", "refunded", takes={"order": "string"})


@dataclass(frozen=True, kw_only=True)
class Made:
    """A feature in a setting: what it is in ``features=``, what it makes of tools, what else the agent is given.

    ``began`` is told of the talk before it begins.
    """

    features: tuple[Feature, ...] = ()
    dress: Mapping[str, Callable[[Tool], Tool]] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    began: Callable[[Play], None] | None = None


@dataclass(kw_only=True)
class Play:
    """A talk that was had: what the model was sent, what ran, what was filed, streamed and seen from outside."""

    model: Talker
    agent: Agent[Any, Any]
    store: MemoryStore
    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    results: list[TurnResult[Any]] = field(default_factory=list)
    """One for each take: a turn that paused has several."""
    deltas: list[Delta] = field(default_factory=list)
    watched: list[Entry] = field(default_factory=list)
    sessions: dict[str, Session] = field(default_factory=dict)

    @property
    def requests(self) -> list[Request]:
        """All but those of consultations."""
        return [request for request in self.model.requests if request.purpose != "consult"]

    @property
    def entries(self) -> list[Entry]:
        """All that was filed."""
        return [entry for result in self.results for entry in result.entries]

    def bodies(self, kind: type[Any]) -> list[Any]:
        """The bodies of one kind, in order."""
        return [entry.body for entry in self.entries if isinstance(entry.body, kind)]

    def of(self, key: str) -> list[Request]:
        """The requests of the turn that these words began."""
        return [request for request in self.requests if said_last(request).startswith(key)]

    @property
    def streamed(self) -> str:
        """The words that were streamed."""
        return "".join(delta.text for delta in self.deltas if isinstance(delta, (TextDelta, ReasoningDelta)))


def said_last(request: Request) -> str:
    """The person's last words in a request's conversation."""
    units = request.conversation.units
    return next((u.text for u in (units[i] for i in range(len(units) - 1, -1, -1)) if isinstance(u, UserMessage)), "")


def agent_of(model: Talker, made: Sequence[Made], watch: Callable[[Entry], Any]) -> Agent[Any, Any]:
    """The agent of the talk with these features, in this order."""
    tools = []
    for tool in TOOLS:
        held = tool
        for one in made:
            held = one.dress[held.id](held) if held.id in one.dress else held
        tools.append(held)
    features = [feature for one in made for feature in one.features]
    given: dict[str, Any] = {}
    for one in made:
        given |= one.given
    features.append(Watch(watch, name="outside"))
    return Agent(model, instructions="You help.", tools=tools, features=features, rounds=6, **given)


def store_of(agent: Agent[Any, Any]) -> MemoryStore:
    """A store that knows the entries of this agent's features."""
    return MemoryStore(bodies=agent.plan.codec.kinds.values())


async def played(*made: Made, inputs: Sequence[tuple[str, Input]] = INPUTS, model: Talker | None = None) -> Play:
    """The talk with an agent of these features. Between two takes a session is stored, and loaded anew."""
    watched: list[Entry] = []
    model = model or Talker()
    agent = agent_of(model, made, watched.append)
    play = Play(model=model, agent=agent, store=store_of(agent), watched=watched)
    for one in made:
        if one.began is not None:
            one.began(play)
    effects = FakeEffects()
    for id, said in inputs:
        await _take(play, id, said, effects)
        effects.advance(minutes=1)
    return play


async def _take(play: Play, id: str, said: Input, effects: FakeEffects) -> None:
    """A turn to its end, with every question answered with yes."""
    owner = Identity(principal="ana")
    session = play.sessions.get(id) or Session(key=SessionKey(id), owner=owner, digest_key="0f" * 8)
    try:
        stream = play.agent.turn_stream(said, session=session, context=play, effects=effects)
        async for delta in stream:
            play.deltas.append(delta)
        result = await stream.result()
    except TurnError as error:
        if error.result is None:
            raise
        result = error.result
    play.results.append(result)
    kept = result.session
    assert kept is not None
    await play.store.commit(result.change())
    kept = await play.store.load(SessionKey(id))
    assert kept is not None
    play.sessions[id] = kept
    if result.question is not None:
        yes: Answered = approved(result.question, by="boss")
        await _take(play, id, yes, effects)
