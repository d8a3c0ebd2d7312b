"""A conversation with flows, played turn by turn against a script that each turn must use up exactly.

In the cases of the specification ``U{...}`` is what the understand call replies (``judge=``) and ``S("...", {...})``
what a speak call replies (``speak=[says("...", name="Ana")]``). A `Play` gives both to the model, takes the turn, and
holds that nothing was left over and nothing more was asked for. So every turn in these tests states its model calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Happened, Input, Said, Started, Woke
from onrecord.conversation.outgoing import Outcome
from onrecord.flows import Field, Flow, Flows, Ok
from onrecord.flows.outcomes import END_REASONS, OUTCOME_MESSAGES
from onrecord.flows.state import FlowState, Run
from onrecord.jsonio import Json, dumps
from onrecord.models.request import Request
from onrecord.session.session import Session
from onrecord.testing import FakeEffects, ScriptedModel, reply, shown
from onrecord.testing.scripted import Reply
from onrecord.tools.tool import Tool, ToolContext
from onrecord.turn.result import TurnResult

__all__ = (
    "FIELDS",
    "NOTHING",
    "T0",
    "Play",
    "after",
    "ends",
    "keys",
    "line",
    "lines",
    "said_by",
    "says",
    "sections",
    "skips",
    "starts",
    "told",
    "wakes",
)

Result = TurnResult[Any]

T0 = datetime(2026, 9, 20, 10, tzinfo=UTC)
"""When every play begins: 1789898400000 milliseconds since the epoch."""

FIELDS: Mapping[str, Field] = {
    "name": Field(type="string", ask="Ask the name."),
    "company": Field(type="string", ask="Ask the company."),
    "model": Field(type="string", ask="Ask the model."),
    "budget": Field(type="number", ask="Ask the budget."),
    "size": Field(type="string", ask="Ask the size.", enum=("1-10", "11-50")),
    "ok": Field(type="boolean", ask="Ask whether it is right."),
}

NOTHING: Mapping[str, Json] = {"fields": {}}
"""An understand reply that found nothing: the ``U{}`` of the cases."""


def after(**by: float) -> datetime:
    """An instant so long after the play began: ``after(hours=1)``."""
    return T0 + timedelta(**by)


def says(message: str | None, /, **fields: Json) -> Reply:
    """A speak reply: one envelope with its message and the values that the customer gave."""
    return reply(dumps({"message": message, **fields}).decode())


class Script(ScriptedModel):
    """A scripted model that is given the answers of one turn at a time."""

    def queue(self, judge: Sequence[Any], speak: Sequence[Any]) -> None:
        """These answers alone are left to give."""
        self._queues = {"speak": [*speak], "judge": [*judge], "consult": []}
        self._had = {name: len(queue) for name, queue in self._queues.items()}


def notify_tool(calls: list[tuple[str, str, Mapping[str, Json]]]) -> Tool:
    """The action of the cases: it keeps its keys and what it was given."""

    def handler(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Ok:
        calls.append((ctx.key, ctx.dedupe_key, args))
        return Ok()

    given: Mapping[str, Json] = {
        "text": {"type": "string"},
        "list": {"type": "array", "items": {"type": "string"}},
        "n": {"type": "number"},
    }
    return Tool("notify", handler, "Tells a person.", parameters={"type": "object", "properties": given})


class Play:
    """An agent with flows, a session (its ``id``: ``s1``) as its caller keeps it, and a clock.

    ``data`` begins a session that knows these fields already, ``session`` goes on with a given one; ``given`` are
    options of `Flows`. ``notified`` are the calls of the action ``notify``: key, dedupe key and arguments.
    """

    def __init__(
        self, *flows: Flow, fields: Mapping[str, Field] = FIELDS, tools: Sequence[Tool] = (),
        actions: Sequence[Tool] = (), rounds: int = 5, at: datetime = T0, data: Mapping[str, Json] | None = None,
        session: Session | None = None, id: str = "s1", name: str = "Ana", **given: Any,
    ) -> None:  # fmt: skip
        self.clock = FakeEffects(at)
        self.model = Script()
        self.notified: list[tuple[str, str, Mapping[str, Json]]] = []
        self.flows = Flows(*flows, fields=fields, actions=[notify_tool(self.notified), *actions], **given)
        self.agent: Agent[Any, str] = Agent(self.model, name=name, tools=tools, rounds=rounds, director=self.flows)
        self.id, self.session = id, session
        if data is not None:
            self.session = Session(key=SessionKey(id), data=data, digest_key="d")
        self.requests: list[Request] = []

    # ---- turns

    async def said(self, text: str = "hi", *, key: str | None = "m1", at: datetime | None = None, **how: Any) -> Result:
        """The customer writes."""
        return await self.took(Said(text, key=key, at=at), **how)

    async def woke(self, key: str, **how: Any) -> Result:
        """A wake fires."""
        return await self.took(Woke(key), **how)

    async def happened(self, name: str, *, key: str = "e1", payload: Json = None, **how: Any) -> Result:
        """Something happens in the host."""
        return await self.took(Happened(name, key=key, payload=payload), **how)

    async def started(self, flow: str, *, key: str = "k", input: Json = None, hop: int = 0, **how: Any) -> Result:
        """The host starts a flow by hand."""
        return await self.took(Started(flow, key=key, input=input, hop=hop), **how)

    async def took(self, input: Input, *, judge: Any = None, speak: Sequence[Any] = (), **how: Any) -> Result:
        """One turn with exactly these model calls: one that understands, unless ``judge`` is None, then those."""
        self.script(judge, speak)
        before = len(self.model.requests)
        result = await self.agent.turn(input, session=self.session or self.id, effects=self.clock, **how)
        self.requests = self.model.requests[before:]
        expected = ["judge"] * (judge is not None) + ["speak"] * len(speak)
        assert [r.purpose.replace("wrap_up", "speak") for r in self.requests] == expected
        assert result.llm_calls == len(expected)
        _check(result)
        if result.changed:
            self.session = result.session
            assert sum(run.status == "asking" for run in self.state.runs) <= 1
        return result

    def script(self, judge: Any, speak: Sequence[Any]) -> None:
        """What the model answers from here on, and nothing else."""
        judged = [] if judge is None else [dumps(judge).decode() if isinstance(judge, Mapping) else judge]
        self.model.queue(judged, speak)

    # ---- what is kept

    @property
    def kept(self) -> Session:
        """The session, which is there after the first turn that changed something."""
        assert self.session is not None
        return self.session

    @property
    def state(self) -> FlowState:
        """Live runs and claims."""
        return self.flows.state(self.kept)

    @property
    def statuses(self) -> dict[str, str]:
        """The status of each live run by its flow, in the order in which they started."""
        return {run.flow_id: run.status for run in self.state.runs}

    def run(self, flow: str) -> Run:
        """The one live run of a flow."""
        (found,) = (run for run in self.state.runs if run.flow_id == flow)
        return found

    @property
    def data(self) -> dict[str, Json]:
        """Fields with a value."""
        return {slug: value for slug, value in self.kept.data.items() if value is not None}

    @property
    def claims(self) -> dict[str, datetime]:
        """Claims by their whole key."""
        return dict(self.state.claims)


def _check(result: Result) -> None:
    """What holds of every turn: exact sentences, known end reasons, no key twice."""
    for each in result.lines:
        if each.status == "ended":
            assert each.code in END_REASONS
        elif each.code is not None and each.kind != "input":  # those are the core's own
            assert each.message == OUTCOME_MESSAGES[each.code]  # type: ignore[index]  # any text may be asked for
    outgoing = [m.key for m in result.messages]
    armed = [w.key for w in result.schedule]
    assert len(set(outgoing)) == len(outgoing)
    assert len(set(armed)) == len(armed)


# ---- reading a result ------------------------------------------------------------------------------------------------


def lines(result: Result) -> list[tuple[Json, str, str, str | None]]:
    """Step, kind, status and code of every line about steps."""
    return [(each.about.get("step_id"), each.kind, each.status, each.code) for each in result.outcomes]


def line(result: Result, code: str) -> Outcome:
    """The one line of any kind with this code."""
    (found,) = (each for each in result.lines if each.code == code)
    return found


def said_by(result: Result) -> list[tuple[str, str, str]]:
    """Text, kind and key of every message."""
    return [(m.text, m.kind, m.key) for m in result.messages]


def keys(result: Result) -> list[str]:
    """The key of every message."""
    return [m.key for m in result.messages]


def starts(result: Result) -> list[Json]:
    """The runs that started."""
    return [each.about["run_id"] for each in result.started]


def ends(result: Result) -> list[tuple[Json, str | None]]:
    """The runs that ended, and why."""
    return [(each.about["run_id"], each.code) for each in result.ended]


def skips(result: Result) -> list[tuple[Json, Json, str | None]]:
    """Flow, trigger key and code of every flow that was not begun."""
    return [(each.about["flow_id"], each.about["trigger_key"], each.code) for each in result.skipped]


def wakes(result: Result) -> list[tuple[str, datetime]]:
    """Key and time of every wake that was armed."""
    return [(wake.key, wake.at) for wake in result.schedule]


# ---- reading a request -----------------------------------------------------------------------------------------------


def told(request: Request) -> str:
    """Everything that a call is told beside the conversation and the system's words."""
    seen: Any = shown(request)
    return "\n\n".join([*seen["turn"], *seen["trailing"]])


def sections(request: Request) -> Mapping[str, list[str]]:
    """The properties of the schema that a reply must fit, and the properties of those that are objects."""
    assert request.shape is not None
    properties: Any = request.shape.schema["properties"]
    return {name: [*held.get("properties", {})] for name, held in properties.items()}
