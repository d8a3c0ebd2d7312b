"""Values on their way to another process, and agents and sessions in several threads."""

from __future__ import annotations

import asyncio
import copy
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.log import Log
from onrecord.conversation.messages import Unit, UserMessage
from onrecord.errors import (
    AnswerRefused,
    ConfigurationError,
    FeatureFailed,
    MessageDenied,
    ModelError,
    OnrecordError,
    OutputInvalid,
    SessionConflict,
    StoreError,
    TurnError,
)
from onrecord.record.entry import Entry
from onrecord.record.kinds import ModelRequested
from onrecord.record.record import Record
from onrecord.session.chain import chain_of
from onrecord.session.codec import dumps_session, loads_session
from onrecord.session.folding import refold
from onrecord.session.session import Session
from onrecord.testing import FakeEffects, ScriptedModel, shown
from onrecord.turn.instruction import Instruction
from onrecord.turn.moments import ALLOW, Hooks
from onrecord.turn.receipt import rebuild
from tests.turn.acting import Named, tool, turn

pytestmark = pytest.mark.unit

ERRORS: list[OnrecordError] = [
    OnrecordError("plain", code="c", hint="h"),
    ConfigurationError("plain"),
    ModelError("busy", kind="rate", provider="p", status=429, retry_after=3.0, started=True, hint="h"),
    TurnError("failed", code="c"),
    MessageDenied("input", "rule", "why"),
    AnswerRefused("rule", "why"),
    FeatureFailed("feature", "reply", "why"),
    OutputInvalid("problem", path="a.b", hint="h"),
    StoreError("no", code="c"),
    SessionConflict("s", expected=1, found=2),
]

WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),  # noqa: S301 - what was pickled here
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_whole_from_another_process(error: OnrecordError, way: Callable[[Any], Any]) -> None:
    """An error that cannot be unpickled breaks the pool it comes from."""
    back = way(error)
    assert (type(back), str(back), back.args, vars(back)) == (type(error), str(error), error.args, vars(error))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_what_a_turn_leaves_comes_back_whole(way: Callable[[Any], Any]) -> None:
    """Without what is cached beside a conversation: locks and bytes of this process."""
    result = await turn(Agent(ScriptedModel("done"), instructions="Be brief."))
    assert result.session is not None
    for value in (result, result.session, result.change(), result.entries, result.session.conversation, Log([1, 2])):
        assert way(value) == value
    back: Session = way(result.session)
    again = await turn(Agent(ScriptedModel("again"), instructions="Be brief."), session=back)
    assert again.text == "again"


async def test_a_turn_error_takes_its_result_along() -> None:
    """`error.result` is where the entries of a failed turn are."""

    async def denies(*_: Any) -> Any:
        raise ValueError

    with pytest.raises(MessageDenied) as denied:
        await turn(Agent(ScriptedModel("x"), features=[Named("rule", Hooks(on_input=denies))]))
    back = WAYS["pickle"](denied.value)
    assert back.result == denied.value.result


# ---- threads ---------------------------------------------------------------------------------------------------------


class Echo(ScriptedModel):
    """A model that says what its instructions are."""

    async def stream(self, request: Any, /) -> Any:
        self.add(shown(request)["system"] or "nothing")
        self._queues["speak"], mine = [], self._queues["speak"][-1]
        echo = ScriptedModel(mine)
        async for chunk in echo.stream(request):
            yield chunk


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads that are switched as often as can be."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def in_threads(work: Callable[[int], Any], count: int = 4) -> list[Any]:
    """What each of several threads made of its number."""
    out: list[Any] = [None] * count

    def run(number: int) -> None:
        out[number] = work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out


def test_an_agent_in_several_threads_keeps_their_instructions_apart(eager_threads: None) -> None:
    """Built once, as at import time, and used by every worker of a server."""
    agent = Agent(_echo, instructions=lambda live: f"You serve {live.session.key.id}.", tools=[tool()])

    def work(number: int) -> list[str]:
        async def turns() -> list[str]:
            return [(await agent.turn("hi", session=f"{number}-{at}")).text for at in range(60)]

        return asyncio.run(turns())

    assert in_threads(work) == [[f"You serve {number}-{at}." for at in range(60)] for number in range(4)]


def _echo(live: Any) -> Echo:
    return Echo()


def test_a_session_that_several_threads_go_on_from_stays_one_for_each(eager_threads: None) -> None:
    """Each sees its own turn only, and its receipts verify, though all fill what is kept beside one history."""
    agent = Agent(lambda _: ScriptedModel("done"), instructions="Be brief.")

    async def long() -> tuple[Session, list[Entry]]:
        session, entries = Session(key=SessionKey("shared"), digest_key="k"), list[Entry]()
        for at in range(60):
            result = await agent.turn(f"{at}", session=session)
            assert result.session is not None
            session, entries = result.session, [*entries, *result.entries]
        return session, entries

    session, before = asyncio.run(long())
    for _ in range(5):
        fresh = loads_session(dumps_session(session))  # nothing is kept beside it yet

        def work(number: int, shared: Session = fresh) -> tuple[str, list[str]]:
            result = asyncio.run(agent.turn(f"of {number}", session=shared))
            assert result.session is not None
            entries = [*before, *result.entries]
            record = Record(entries, lambda held: refold(shared.key, held, digest_key=shared.digest_key))
            asked = next(e.seq for e in result.entries if isinstance(e.body, ModelRequested))
            said = result.session.conversation.messages[-2]
            assert isinstance(said, UserMessage)
            return said.text, [gap.what for gap in rebuild(record, asked).gaps]

        assert in_threads(work) == [(f"of {number}", []) for number in range(4)]


def test_digests_beside_a_history_are_made_once_however_many_threads_ask(eager_threads: None) -> None:
    """Two that are made for one unit would shift all that follow, and no receipt would verify any more."""
    now = FakeEffects().now()
    said = [UserMessage(id=f"m{at}", turn="t", content=(Text(f"{at}"),), at=now) for at in range(2000)]
    alone = chain_of(Log(said), "k").upto(Log(said), len(said))
    for _ in range(3):
        units: Log[Unit] = Log(said)
        chain, together = chain_of(units, "k"), threading.Barrier(4)

        def work(number: int, held: Any = (chain, together, units)) -> str:
            shared, ready, log = held
            ready.wait(10)
            return str(shared.upto(log, len(log)))

        assert in_threads(work) == [alone] * 4
        assert len(chain.digests) == len(units)


# ---- very many of everything -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [10, 64, 65, 300])
async def test_the_texts_of_a_long_prompt_are_filed_once(many: int) -> None:
    """However many there are: a record that repeats its prompt at each request grows without end."""
    pieces = [Instruction(f"Text {at}.", name=f"text-{at}") for at in range(many)]
    agent = Agent(ScriptedModel("one", "two", "three"), features=pieces)
    first = await turn(agent)
    second = await turn(agent, session=first.session)
    third = await turn(agent, session=second.session)
    assert len(first.entries) - len(second.entries) == many
    assert len(third.entries) == len(second.entries)


async def test_a_thousand_tools_and_features_are_an_ordinary_turn() -> None:
    """Nothing about them is written into the record of each turn."""

    async def allows(*_: Any) -> Any:
        return ALLOW

    hooks = Hooks(on_input=allows, on_output=allows)
    agent = Agent(
        ScriptedModel("one", "two"), tools=[tool(f"tool-{at}") for at in range(1000)],
        features=[Named(f"feature-{at}", hooks) for at in range(1000)],
    )  # fmt: skip
    first = await turn(agent)
    second = await turn(agent, session=first.session)
    assert (second.text, len(second.entries)) == ("two", 6)
