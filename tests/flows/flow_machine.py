"""Random flows under random inputs, judged after every turn by what must always hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from msgspec import Struct
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Image, Text
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Happened, Input, Interruption, Said, Started, Woke
from onrecord.conversation.outgoing import TextDelta
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
from onrecord.turn.take import Order, take
from onrecord.turn.turn import Turn
from tests.flows.improvising import ACTS, JUDGES, SPEAKS, Improviser, Script
from tests.flows.promises import ROUNDS, Ledger
from tests.flows.random_flows import CONDITIONS, EVENTS, FIELDS, IDS, edited_flows, flow_sets, idles

__all__ = ("Crash", "FlowMachine", "Mortal", "dying", "told")

T0 = datetime(2026, 9, 20, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class How(Struct, frozen=True):
    """How an input is taken: with which behaviour of the world, options and context, and what befalls its turn.

    ``twist`` is what is done besides: the same again, as a stream, from a stored session; or the process dies, or
    somebody interrupts, at the moment ``place``. ``is_outside``: over a conversation that its caller keeps.
    """

    script: Script
    gate: Silenced | None
    flow: FlowOptions | None
    context: Any
    twist: str
    place: int
    is_outside: bool

    @property
    def options(self) -> tuple[object, ...]:
        """The options of the turn."""
        return tuple(option for option in (self.gate, self.flow) if option is not None)


GATES = (
    *(None,) * 20, Silenced("human"), Silenced(""), Silenced("a", understand=True), Silenced("b", skip=True),
    Silenced("c", understand=True, skip=True),
)  # fmt: skip
FLOW_OPTIONS = (
    None, None, FlowOptions(anchors={"customer": "c1"}),
    FlowOptions(anchors={"customer": Anchor("c2", last_inbound_at=T0 + timedelta(hours=3))}),
    FlowOptions(claims=Claims(held={"f0:s:": T0, "f0:s1:s": T0}, active=("f0:s",))),
)  # fmt: skip
rarely = st.sampled_from((*(False,) * 9, True))
hows = st.builds(
    How,
    script=st.builds(
        Script, serial=st.just(0), judge=st.sampled_from(JUDGES), speak=st.sampled_from(SPEAKS),
        act=st.sampled_from(ACTS), seed=st.integers(0, 99),
    ),
    gate=st.sampled_from(GATES),
    flow=st.sampled_from(FLOW_OPTIONS),
    context=st.fixed_dictionaries(
        {
            "vip": st.booleans(), "blank": st.just(""), "flow": st.sampled_from(IDS), "breaks": rarely,
            "denies": rarely, "closed": st.booleans(),
        }
    ),
    twist=st.sampled_from(("", "again", "stream", "cut", "interrupt", "kept")),
    place=st.integers(0, 400),
    is_outside=rarely,
)  # fmt: skip

TEXTS = (
    "I want a room", "Hello", "", "  ", '"""\n## Output {{data.name}}',
    (Text("Look"), Image(data=b"x", media="image/png")),
)  # fmt: skip
OUTSIDE = [{"role": "user", "content": "Before."}, {"role": "assistant", "content": "Well."}]
HOSTILE = (
    "silence:", "silence:f0:s:", "silence:f0:s:-1", "silence:gone:s:1", "silence:f0:t:99999999999999999", ":",
    "f0#m:s0:1:retry:0", "é" * 9,
)  # fmt: skip
PAUSES = (0, 0, 0, 0, 1, 5, 60, 60 * 24, -30, -60 * 24)
"""Minutes between two inputs; the clock may be set back."""
KINDS = (*("write",) * 6, *("fire",) * 6, *("answer",) * 4, *("event", "start") * 3, "repeat", "nobody", "edit")


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


@contextmanager
def dying() -> Iterator[None]:
    """Where the process may be gone; calls that run side by side die together, as a group."""
    try:
        yield
    except* Crash:
        pass


@on_output
async def refuses(turn: Turn, answer: Any) -> Any:
    """Refuses every text of a turn whose context says so."""
    context: Any = turn.context
    return Deny("not today") if context["denies"] else Allow()


def opening(at: datetime, context: Any) -> datetime:
    """Business hours that begin at eleven, and that may even be wrong."""
    return at.replace(hour=11, minute=0) if context["closed"] else at - timedelta(days=1)


Door = list[tuple[Agent[Any, str], Flows]]
"""An agent in its versions, the one that is served now first."""


class FlowMachine(RuleBasedStateMachine):
    """One customer's session, agents whose flows are edited meanwhile, and a ledger of what was promised."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.effects, self.model = Mortal(T0), Improviser()
        self.session: Session | None = None
        self.ledger = Ledger()
        self.doors: list[Door] = []
        self.serial, self.shift = 0, timedelta()
        self.taken: list[tuple[int, Input, How]] = []

    def teardown(self) -> None:
        if self.session is not None:
            folds = Folds(self.doors[0][0][0].plan.folds.all)
            again = refold(self.session.key, self.ledger.entries, folds, digest_key=self.session.digest_key)
            assert dumps_session(again) == dumps_session(self.session)
        self.loop.close()

    @initialize(data=st.data(), is_shared=st.sampled_from((False, False, True)))
    def begin(self, data: st.DataObject, is_shared: bool) -> None:
        """One agent, or two that share the session; each as it is, and after an edit of its flows."""
        for name in ("f", "g") if is_shared else ("f",):
            flows = data.draw(flow_sets(name))
            how = {"idle": data.draw(idles), "lone_flow": data.draw(st.sampled_from(("start", "score"))), "name": name}
            features = [refuses] if data.draw(st.booleans()) else []
            self.doors.append([self._agent(some, features, how) for some in (flows, data.draw(edited_flows(flows)))])

    def _agent(self, flows: tuple[Flow, ...], features: list[Any], how: Any) -> tuple[Agent[Any, str], Flows]:
        director = Flows(
            *flows, fields=FIELDS, actions=[self.model.action()], events=EVENTS, conditions=CONDITIONS,
            business_hours=opening, **how,
        )  # fmt: skip
        agent: Agent[Any, str] = Agent(
            self.model, name="Ana", tools=self.model.tools(), rounds=ROUNDS, director=director, features=features
        )
        return agent, director

    # ---- one input

    def take(self, door: int, input: Input, how: How) -> None:
        """Takes an input, perhaps not only once, and keeps what came of it."""
        agent, flows = self.doors[door][0]
        script = replace(how.script, serial=self.serial)
        if how.twist == "cut":
            self.effects.left = how.place
            with dying():
                self._attempt(agent, script, input, how)
            self.effects.left = -1
        if how.twist == "interrupt":
            got = self._interrupted(agent, script, input, how)
        else:
            got = self._attempt(agent, script, input, how)
        requests, acted = self.model.requests, self.model.acted
        if how.twist in ("again", "cut", "kept"):
            again = self._attempt(agent, script, input, how, is_stored=how.twist == "kept")
            assert told(again) == told(got), "the same input on the same session gives the same turn"
        elif how.twist == "stream":
            assert essence(self._attempt(agent, script, input, how, streams=True)) == essence(got)
        self.ledger.check_calls(input, how.gate, got, requests, breaks=how.context["breaks"])
        result = getattr(got, "result", None) if isinstance(got, Exception) else got
        if result is None:
            return
        self.ledger.keep(flows, self.session, input, result, gate=how.gate, acted=acted, now=self.effects.at, door=door)
        if result.changed:
            self.session = result.session
            if isinstance(input, (Said, Happened, Started)) and input.key:
                self.taken.append((door, input, how))
        if self.session is not None:
            context = {**how.context, "breaks": False}  # where no turn runs, a condition that breaks is its caller's
            options = () if how.flow is None else (how.flow,)
            pending = flows.pending_wakes(self.session, now=self.effects.at, context=context, options=options)
            self.ledger.check_state(flows, self.session, pending, door=door)

    def _attempt(
        self, agent: Agent[Any, str], script: Script, input: Input, how: How, *, streams: bool = False,
        is_stored: bool = False,
    ) -> Any:  # fmt: skip
        """One take of an input. Nothing of it but its result remains."""
        self.effects.names = 0
        self.model.begin(script, self.effects.at)
        session = unpack(pack(self.session)) if is_stored and self.session is not None else self.session

        async def run() -> Any:
            order: Any = {
                "session": session or "s", "context": how.context, "options": how.options, "effects": self.effects
            }  # fmt: skip
            if how.is_outside and (self.session is None or self.session.pending is None):
                order["history"] = OUTSIDE
            if not streams:
                return await agent.turn(input, **order)
            reading = agent.turn_stream(input, **order)
            text = "".join([delta.text async for delta in reading if isinstance(delta, TextDelta)])
            result = await reading.result()
            assert all(message.text in text for message in result.messages), "what is said is streamed"
            return result

        return self._run(run())

    def _run(self, turn: Any) -> Any:
        """What a turn comes to: its result, or the error that it may raise."""

        async def run() -> Any:
            try:
                return await turn
            except (ModelError, FeatureFailed) as error:
                return error

        return self.loop.run_until_complete(run())

    def _interrupted(self, agent: Agent[Any, str], script: Script, input: Input, how: How) -> Any:
        """Somebody stops the turn while it waits for a model or a tool, if it does so that often."""
        turns: list[Turn] = []
        self.model.begin(script, self.effects.at)
        self.model.moments = how.place % 12
        self.model.trip = lambda: self._stop(turns[0])
        session = self.session or SessionKey("s")
        order = Order(input=input, session=session, context=how.context, options=how.options, began=turns.append)
        return self._run(take(agent.plan, order, self.effects))

    def _stop(self, turn: Turn) -> None:
        turn.interrupt(Interruption(id=f"i{self.serial}"))

    # ---- inputs

    def tick(self) -> str:
        """A moment later: no two inputs come in the same one."""
        self.serial += 1
        self.effects.at = T0 + self.shift + timedelta(milliseconds=self.serial)
        return f"k{self.serial}"

    @rule(kind=st.sampled_from(KINDS), how=hows, which=st.integers(0, 40))
    def go_on(self, kind: str, how: How, which: int) -> None:
        """Some time passes, or the clock is set back; then the next input, or an edit of the flows.

        Where there is nothing to fire or to answer the customer writes.
        """
        question = None if self.session is None else self.session.question
        self.shift += PAUSES[which % len(PAUSES)] * MINUTE
        door = which % len(self.doors)
        if kind == "edit":  # or undo that
            self.doors[door].reverse()
        elif kind == "fire" and self.ledger.armed:
            self._fire(which, how)
        elif kind == "answer" and question is not None:
            if which % 4:  # or in the moment of the question
                self.tick()
            key = "s:old/q0" if which == 40 else question.key
            given = Answered(key, approved=(True, False, None)[which % 3], value={"when": "now"}, by="ana")
            self.take(self.ledger.asker, given, how)
        elif kind == "repeat" and self.taken:
            self._repeat(which, how)
        elif kind in ("nobody", "event", "start"):
            self.take(door, self._other(kind, which, self.doors[door][0][1].declared), how)
        else:
            key, late = self.tick(), (None, None, -60, 60)[which % 4]
            at = None if late is None else self.effects.at + late * MINUTE
            if question is not None and question.on_message == "answer":
                door = self.ledger.asker  # to whom the host gives a message that counts as the answer (0042)
            self.take(door, Said(TEXTS[which % len(TEXTS)], key=key if which % 5 else None, at=at), how)

    def _fire(self, which: int, how: How) -> None:
        """One of the wakes that are armed comes due."""
        wakes = sorted(self.ledger.armed.items(), key=lambda item: item[1])
        key, (at, door) = wakes[which % len(wakes)]
        self.tick()
        if at > self.effects.at:
            self.shift += (1 + (at - self.effects.at) // MINUTE) * MINUTE
            self.tick()
        self.take(door, Woke(key), how)

    def _repeat(self, which: int, how: How) -> None:
        """An input that was taken comes again, with the options that it came with."""
        door, input, first = self.taken[which % len(self.taken)]
        self.tick()
        self.ledger.is_repeat = True
        self.take(door, input, replace(how, flow=first.flow))
        self.ledger.is_repeat = False

    def _other(self, kind: str, which: int, flows: Sequence[Flow]) -> Input:
        """A wake for nobody, an event, or a start by hand."""
        key = self.tick()
        if kind == "nobody":
            keys = [*HOSTILE, *self.ledger.fired[-4:]]
            return Woke(keys[which % len(keys)])
        if kind == "event":
            names = (*tuple(EVENTS) * 4, "undeclared")
            payload = (None, {"quote": "x"}, [1])[which % 3]
            return Happened(names[which % len(names)], key=key, payload=payload, hop=(0, 0, 0, 4, 5)[which % 5])
        ids = [*(flow.id for flow in flows), "nowhere"]
        return Started(ids[which % len(ids)], key=key, input=(None, {"quote": "y"})[which % 2])


def told(got: Any) -> Any:
    """Everything that a turn came to, comparable."""
    if isinstance(got, Exception):
        return repr(got), told(getattr(got, "result", None))
    if got is None:
        return None
    session = None if got.session is None else dumps_session(got.session)
    return (
        got.status, got.changed, session, msgspec.json.encode(got.entries), got.messages, got.wakes, got.disarmed,
        got.lines, got.llm_calls, got.question,
    )  # fmt: skip


def essence(got: Any) -> Any:
    """What must be the same however the turn was read."""
    if isinstance(got, Exception):
        return repr(got)
    state = None if got.session is None else (got.session.data, got.session.slots, got.session.last_assistant_at)
    return got.status, got.changed, state, got.messages, got.wakes, got.disarmed, got.lines, got.llm_calls
