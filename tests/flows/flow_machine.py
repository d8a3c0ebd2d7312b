"""Random flows under random inputs, judged after every turn by what must always hold."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from onrecord.agent import Agent
from onrecord.conversation.content import Image, Text
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Happened, Input, Interruption, Said, Started, Woke
from onrecord.errors import FeatureFailed, ModelError
from onrecord.flows import Anchor, Claims, Flow, FlowOptions, Flows
from onrecord.governance.rules import on_output
from onrecord.session import pack, unpack
from onrecord.session.codec import dumps_session
from onrecord.session.folding import Folds, refold
from onrecord.session.session import Session
from onrecord.testing import FakeEffects
from onrecord.turn.moments import Allow, Deny
from onrecord.turn.options import Silenced
from onrecord.turn.result import TurnResult
from onrecord.turn.take import Order, take
from onrecord.turn.turn import Turn
from tests.flows.improvising import ACTS, JUDGES, SPEAKS, Improviser, Script
from tests.flows.promises import Ledger
from tests.flows.random_flows import CONDITIONS, EVENTS, FIELDS, IDS, edited_flows, flow_sets, idles

__all__ = ("FlowMachine",)

T0 = datetime(2026, 9, 20, 10, tzinfo=UTC)
ROUNDS = 2
Result = TurnResult[Any]

scripts = st.builds(
    Script, serial=st.just(0), judge=st.sampled_from(JUDGES), speak=st.sampled_from(SPEAKS), act=st.sampled_from(ACTS),
    seed=st.integers(0, 99),
)  # fmt: skip
gates = st.sampled_from(
    (None,) * 20
    + (Silenced("human"), Silenced(""), Silenced("a", understand=True), Silenced("b", skip=True), Silenced("c", understand=True, skip=True))
)
anchors = st.sampled_from(
    (
        None, None,
        FlowOptions(anchors={"customer": "c1"}),
        FlowOptions(anchors={"customer": Anchor("c2", last_inbound_at=T0 + timedelta(hours=3))}),
        FlowOptions(claims=Claims(held={"f0:s:": T0, "f0:s1:s": T0}, active=("f0:s",))),
    )
)  # fmt: skip
contexts = st.fixed_dictionaries(
    {
        "vip": st.booleans(), "blank": st.just(""), "flow": st.sampled_from(IDS), "breaks": st.sampled_from((False,) * 9 + (True,)),
        "denies": st.sampled_from((False,) * 9 + (True,)), "closed": st.booleans(),
    }
)  # fmt: skip
twists = st.sampled_from(("", "again", "stream", "cut", "interrupt", "kept"))
TEXTS = ("I want a room", "Hello", "", "  ", '"""\n## Output {{data.name}}', (Text("Look"), Image(data=b"x", media="image/png")))
HOSTILE = ("silence:", "silence:f0:s:", "silence:f0:s:-1", "silence:gone:s:1", "silence:f0:t:99999999999999999", ":", "f0#m:s0:1:retry:0", "é" * 9)
KINDS = (*("write",) * 6, *("fire",) * 6, *("answer",) * 4, *("event", "start") * 3, "repeat", "nobody", "edit")
hows = st.tuples(scripts, gates, anchors, contexts, twists, st.integers(0, 400))


class Crash(BaseException):
    """The process is gone."""


class Mortal(FakeEffects):
    """Effects of a process that dies at its n-th look at the clock: every entry is one."""

    left = -1

    def now(self) -> datetime:
        self.left -= 1
        if self.left == -1:
            raise Crash
        return self.at


def _stop(turn: Turn, serial: int) -> None:
    turn.interrupt(Interruption(id=f"i{serial}"))


@on_output
async def refuses(turn: Turn, answer: Any) -> Any:
    """Refuses every text of a turn whose context says so."""
    context: Any = turn.context
    return Deny("not today") if context["denies"] else Allow()


def opening(at: datetime, context: Any) -> datetime:
    """Business hours that begin at eleven, and that may even be wrong."""
    return at.replace(hour=11, minute=0) if context["closed"] else at - timedelta(days=1)


class FlowMachine(RuleBasedStateMachine):
    """One customer's session, an agent whose flows are edited meanwhile, and a ledger of what was promised."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.effects, self.model = Mortal(T0), Improviser()
        self.session: Session | None = None
        self.ledger = Ledger()
        self.serial, self.shift = 0, timedelta()
        self.taken: list[tuple[Input, Any]] = []
        self.script = Script(0)

    def teardown(self) -> None:
        if self.session is not None:
            told = refold(self.session.key, self.ledger.entries, Folds(self.agent.plan.folds.all), digest_key=self.session.digest_key)
            assert dumps_session(told) == dumps_session(self.session)
        self.loop.close()

    @initialize(flows=flow_sets(), data=st.data(), idle=idles, lone=st.sampled_from(("start", "score")), strict=st.booleans())
    def begin(self, flows: tuple[Flow, ...], data: st.DataObject, idle: Any, lone: Any, strict: bool) -> None:
        """An agent, and another one after an edit of its flows."""
        self.agents = [self._agent(some, idle, lone, [refuses] if strict else []) for some in (flows, data.draw(edited_flows(flows)))]
        self.agent, self.flows = self.agents[0]

    def _agent(self, flows: tuple[Flow, ...], idle: Any, lone: Any, features: Any) -> tuple[Agent[Any, str], Flows]:
        director = Flows(
            *flows, fields=FIELDS, actions=[self.model.action()], events=EVENTS, conditions=CONDITIONS, idle=idle,
            business_hours=opening, lone_flow=lone,
        )  # fmt: skip
        agent: Agent[Any, str] = Agent(
            self.model, name="Ana", tools=self.model.tools(), rounds=ROUNDS, director=director, features=features
        )
        return agent, director

    # ---- one input

    def take(self, input: Input, how: Any) -> None:
        """Takes an input, perhaps not only once, and keeps what came of it."""
        script, gate, more, context, twist, place = how
        self.script = msgspec.structs.replace(script, serial=self.serial)
        options = [option for option in (gate, more) if option is not None]
        order = {"context": context, "options": options, "effects": self.effects}
        if twist == "cut":
            self.effects.left = place
            with suppress(Crash):
                self._attempt(input, order)
            self.effects.left = -1
        if twist == "interrupt":
            got = self._interrupted(input, order, place)
        else:
            got = self._attempt(input, order)
        requests, acted = self.model.requests, self.model.acted
        if twist in ("again", "cut"):
            assert told(self._attempt(input, order)) == told(got)
        elif twist == "kept":
            assert told(self._attempt(input, order, is_stored=True)) == told(got)
        elif twist == "stream":
            assert essence(self._attempt(input, order, streams=True)) == essence(got)
        self.ledger.check_calls(input, gate, got, requests, rounds=ROUNDS, context=context)
        result = getattr(got, "result", None) if isinstance(got, Exception) else got
        if result is None:
            return
        self.ledger.keep(self.flows, self.session, input, result, gate, acted, self.effects.at)
        if result.changed:
            self.session = result.session
            if isinstance(input, (Said, Happened, Started)) and input.key:
                self.taken.append((input, more))
        if self.session is not None:
            self.ledger.check_state(self.flows, self.session, self.effects.at, context, more)

    def _attempt(self, input: Input, order: Any, *, streams: bool = False, is_stored: bool = False) -> Any:
        """One take of an input. Nothing of it but its result remains."""
        self.effects.names = 0
        self.model.begin(self.script, self.effects.at)
        session = self.session
        if is_stored and session is not None:
            session = unpack(pack(session))
        return self.loop.run_until_complete(self._taken(input, session or "s", order, streams=streams))

    async def _taken(self, input: Input, session: Any, order: Any, *, streams: bool) -> Any:
        try:
            if not streams:
                return await self.agent.turn(input, session=session, **order)
            reading = self.agent.turn_stream(input, session=session, **order)
            async for _ in reading:
                pass
            return await reading.result()
        except (ModelError, FeatureFailed) as error:
            return error

    def _interrupted(self, input: Input, order: Any, place: int) -> Any:
        """Somebody stops the turn while it waits for a model or a tool, if it does so that often."""
        turns: list[Turn] = []
        self.model.begin(self.script, self.effects.at)
        self.model.moments = place % 12
        self.model.trip = lambda: _stop(turns[0], self.serial)
        context, options = order["context"], tuple(order["options"])
        asked = Order(input=input, session=self.session or SessionKey("s"), context=context, options=options, began=turns.append)

        async def run() -> Any:
            try:
                return await take(self.agent.plan, asked, self.effects)
            except (ModelError, FeatureFailed) as error:
                return error

        return self.loop.run_until_complete(run())

    # ---- inputs

    def tick(self) -> str:
        """A moment later: no two inputs come in the same one."""
        self.serial += 1
        self.effects.at = T0 + self.shift + timedelta(milliseconds=self.serial)
        return f"k{self.serial}"

    @rule(kind=st.sampled_from(KINDS), how=hows, which=st.integers(0, 40))
    def go_on(self, kind: str, how: Any, which: int) -> None:
        """Some time passes, or the clock is set back; then the next input, or an edit of the flows.

        Where there is nothing to fire or to answer the customer writes.
        """
        question = None if self.session is None else self.session.question
        self.shift += timedelta(minutes=(0, 0, 0, 0, 1, 5, 60, 60 * 24, -30, -60 * 24)[which % 10])
        if kind == "edit":  # or undo that
            self.agents.reverse()
            self.agent, self.flows = self.agents[0]
        elif kind == "fire" and self.ledger.armed:
            self.take(self._due(which), how)
        elif kind == "answer" and question is not None:
            self.tick()
            key = "s:old/q0" if which == 40 else question.key
            self.take(Answered(key, approved=(True, False, None)[which % 3], value={"when": "now"}, by="ana"), how)
        elif kind == "repeat" and self.taken:
            self.tick()
            input, options = self.taken[which % len(self.taken)]
            script, gate, _, *rest = how
            self.ledger.is_repeat = True
            self.take(input, (script, gate, options, *rest))
            self.ledger.is_repeat = False
        elif kind == "nobody":
            self.tick()
            keys = [*HOSTILE, *self.ledger.fired[-4:], *self.ledger.armed]
            self.take(Woke(keys[which % len(keys)]), how)
        elif kind == "event":
            names = (*tuple(EVENTS) * 4, "undeclared")
            payload = (None, {"quote": "x"}, [1])[which % 3]
            self.take(Happened(names[which % len(names)], key=self.tick(), payload=payload, hop=(0, 0, 0, 4, 5)[which % 5]), how)
        elif kind == "start":
            ids = [*(flow.id for flow in self.flows.declared), "nowhere"]
            self.take(Started(ids[which % len(ids)], key=self.tick(), input=(None, {"quote": "y"})[which % 2]), how)
        else:
            key, late = self.tick(), (None, None, -3600, 3600)[which % 4]
            at = None if late is None else self.effects.at + timedelta(seconds=late)
            self.take(Said(TEXTS[which % len(TEXTS)], key=key if which % 5 else None, at=at), how)

    def _due(self, which: int) -> Woke:
        """One of the wakes that are armed, when it is due."""
        wakes = sorted(self.ledger.armed.items(), key=lambda item: item[1])
        key, at = wakes[which % len(wakes)]
        self.tick()
        if at > self.effects.at:
            self.shift += timedelta(minutes=1 + (at - self.effects.at) // timedelta(minutes=1))
            self.tick()
        return Woke(key)


def told(got: Any) -> Any:
    """Everything that a turn came to, comparable."""
    if isinstance(got, Exception):
        return repr(got), told(getattr(got, "result", None))
    if got is None:
        return None
    session = None if got.session is None else dumps_session(got.session)
    return (
        got.status, got.changed, session, msgspec.json.encode(got.entries), got.messages, got.wakes, got.disarmed, got.lines,
        got.llm_calls, got.question,
    )  # fmt: skip


def essence(got: Any) -> Any:
    """What must be the same however the turn was read."""
    if isinstance(got, Exception):
        return repr(got)
    state = None if got.session is None else (got.session.data, got.session.slots, got.session.last_assistant_at)
    return got.status, got.changed, state, got.messages, got.wakes, got.disarmed, got.lines, got.llm_calls
