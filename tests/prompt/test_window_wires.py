"""Windows over every wire: whatever a session went through, what is sent is what vendors document as well-formed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered
from onrecord.conversation.usage import Usage
from onrecord.errors import ModelError
from onrecord.jsonio import dumps, loads
from onrecord.models.chunks import NativeItem, ThinkingChunk
from onrecord.prompt.window.evicted import Evicted
from onrecord.prompt.window.window import Window
from onrecord.record.entry import Entry
from onrecord.record.kinds import HistoryChanged
from onrecord.session import pack, refold, unpack
from onrecord.session.codec import dumps_session
from onrecord.session.history import edit_result, remove_message
from onrecord.session.session import Session
from onrecord.testing import FakeEffects, call, raises, reply
from onrecord.turn.result import TurnResult
from tests.models.wired import WiredModel
from tests.prompt.test_stable_prefix import WIRES, Wired
from tests.prompt.window_units import LONG
from tests.providers.vendor_rules import RULES
from tests.turn.acting import read, tool
from tests.turn.pausing.asking import approve

pytestmark = pytest.mark.unit

USED = Usage(input_tokens=99, output_tokens=1)
KINDS = ("look", "fails", "pay", "gone")
"""Tools of a round: one gives a lot, one raises, one asks a person first, one does not exist."""


class Told(NamedTuple):
    """A turn: its rounds of calls side by side, what becomes of it, and what is done to the history behind it."""

    rounds: list[list[str]]
    native: bool
    too_long: bool
    approved: bool
    after: str


turns = st.builds(
    Told, st.lists(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3), max_size=3), st.booleans(),
    st.sampled_from([True, False, False]), st.booleans(), st.sampled_from(["", "", "", "remove", "edit"]),
)  # fmt: skip
windows = st.one_of(
    st.builds(lambda keep, slack, pins: Window.last(keep, slack=slack, keep_last_tool_results=pins),
              st.integers(1, 4), st.integers(0, 3), st.integers(0, 2)),
    st.builds(lambda keep, pins: Window.budget(50, keep=keep, keep_last_tool_results=pins),
              st.integers(1, 4), st.integers(0, 2)),
)  # fmt: skip


def _fails(*_: Any) -> Any:
    raise ValueError(LONG)


def _script(wire: Wired, told: Told, number: int) -> list[Any]:
    script: list[Any] = [raises("context")] if told.too_long else []
    for at, names in enumerate(told.rounds):
        calls = [call(name, n=n, wire_id=f"w{number}-{at}-{n}") for n, name in enumerate(names)]
        script.append(reply("One moment.", *calls, usage=USED))
    answer = f"answer {number} {LONG}"
    native = NativeItem(raw=Raw(dumps(wire.item(answer))))
    said = (ThinkingChunk("hm"), answer, native) if told.native else (answer,)
    return [*script, reply(*said, usage=USED)]


class Talk:
    """A session with a window, over a wire: packed in between, with answers of the person."""

    def __init__(self, wire: Wired, window: Window) -> None:
        self.steps = list[Any]()
        self.model: WiredModel = wire.make(*[lambda _: self.steps.pop(0)] * 200)
        tools = [tool("look", lambda *_: LONG, concurrency_safe=True), tool("fails", _fails), tool("pay")]
        self.agent: Agent[Any, Any] = Agent(self.model, tools=tools, features=[window, approve("pay")])
        self.wire, self.effects, self.entries = wire, FakeEffects(), list[Any]()
        self.session: Session | str = "s"

    async def turn(self, number: int, told: Told) -> None:
        """One turn and all its answers, then what is done to the history."""
        self.steps[:] = _script(self.wire, told, number)
        try:
            result = await self._take(f"#{number} {LONG}")
        except ModelError:  # refused, and nothing could leave: the turn never was
            assert told.too_long
            return
        while result.question is not None:
            result = await self._take(Answered(result.question.key, approved=told.approved))
        assert isinstance(self.session, Session)
        if told.after and (change := _changed(self.session, told.after, self.agent)) is not None:
            self.entries += change.entries
            self.session = unpack(pack(change.session))

    async def _take(self, said: Any) -> TurnResult[Any]:
        result = await self.agent.turn(said, session=self.session, effects=self.effects)
        assert result.session is not None
        self.entries += result.entries
        self.session = unpack(pack(result.session))
        return result


def _changed(session: Session, how: str, agent: Agent[Any, Any]) -> Any:
    about: dict[str, Any] = {"by": "t", "at": FakeEffects().now(), "folds": agent.plan.folds}
    if how == "remove":
        return remove_message(session, session.conversation.messages[0].id, **about)
    for message in session.conversation.messages:
        for held in getattr(message, "rounds", ()):
            for one in held.calls:
                return edit_result(session, message.id, one.id, (), **about)
    return None


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire.name in RULES], ids=lambda wire: wire.name)
@settings(max_examples=25, deadline=None)
@given(windows, st.lists(turns, min_size=1, max_size=5))
async def test_what_is_sent_is_well_formed(wire: Wired, window: Window, told: list[Told]) -> None:
    """Calls side by side, that fail, wait for a person or name nothing; native items; refusals; a changed history.

    The message of the turn is always there. What left was told once, when it left, and does not come back by itself.
    """
    talk = Talk(wire, window)
    for number, each in enumerate(told):
        before = len(talk.model.requests)
        await talk.turn(number, each)
        for request in talk.model.requests[before:]:
            words = [m for m in read(request)["messages"] if m["role"] == "user"]
            assert any(m["content"].startswith(f"#{number} ") for m in words)
    for body in talk.model.bodies:
        RULES[wire.name](loads(body))
    session = talk.session
    if not isinstance(session, Session):
        return
    _check_told_once(talk.entries, [unit.id for unit in session.conversation.units])
    again = refold(session.key, talk.entries, talk.agent.plan.folds, digest_key=session.digest_key)
    assert dumps_session(again) == dumps_session(session)


def _check_told_once(entries: Sequence[Entry], units: Sequence[str]) -> None:
    """No unit leaves twice, unless the history was changed in between: then all is shown once more."""
    gone = set[str]()
    for body in (entry.body for entry in entries):
        if isinstance(body, HistoryChanged):
            gone.clear()
        elif isinstance(body, Evicted) and {body.first, body.last} <= set(units):
            left = units[units.index(body.first) : units.index(body.last) + 1]
            assert not {body.first, body.last} & gone
            assert set(left) - gone
            gone.update(left)
