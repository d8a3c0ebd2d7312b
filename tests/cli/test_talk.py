"""The chat's own ways: Ctrl-C as a signal, a store that refuses, ends that are no answers."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.cli.interrupts import on_interrupt
from onrecord.cli.talk import Talk
from onrecord.cli.terminal import Keyboard, Screen
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.messages import AssistantMessage
from onrecord.conversation.outgoing import Outcome
from onrecord.errors import ConfigurationError, StoreError
from onrecord.models.chunks import Chunk, Finished, TextChunk
from onrecord.models.model import ModelCard
from onrecord.models.request import Request, Wire
from onrecord.record.entry import Entry
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.session.store import Change, Store
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool
from onrecord.turn.director import Stage
from onrecord.turn.moments import Hooks
from onrecord.turn.turn import Turn
from tests.cli.agents import Terminal

pytestmark = pytest.mark.integration


class Keys(Keyboard):
    """Lines in order, then the end; a function among them is run instead, as something that happens meanwhile."""

    def __init__(self, screen: Screen, *lines: str | Callable[[], object], live: bool) -> None:
        self.screen, self.live, self.lines = screen, live, list(lines)

    def line(self, prompt: str) -> str:
        while self.lines:
            line = self.lines.pop(0)
            if isinstance(line, str):
                return line
            line()
        raise EOFError


def chat(
    agent: Agent[Any, Any], *lines: str | Callable[[], object], store: Store | None = None, live: bool = True
) -> tuple[Talk, str]:
    """A chat with these lines, and what was shown."""
    out = io.StringIO()
    screen = Screen(out)
    talk = Talk(agent, store, SessionKey("s"), screen, Keys(screen, *lines, live=live))
    with asyncio.Runner() as runner:
        talk.runner = runner
        talk.begin("x.db" if store else None)
        talk.go_on()
        runner.run(talk.host.close())
    return talk, out.getvalue()


class Signalled:
    """Presses Ctrl-C in the middle of its reply."""

    card = ModelCard(provider="test", model="signalled", protocol="test")

    def wire(self, request: Request, /) -> Wire:
        return Wire(body=b"{}", stable_until=0)

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        yield TextChunk("Half")
        await asyncio.sleep(0.01)
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()  # for good: only the signal ends it
        yield TextChunk(" and whole")
        yield Finished(finish="stop")


def test_a_signal_stops_the_reply_and_is_itself_again_afterwards() -> None:
    """What was shown is kept as interrupted; outside a turn Ctrl-C does what it always did."""
    before = signal.getsignal(signal.SIGINT)
    talk, shown = chat(Agent(Signalled()), "hi", store=MemoryStore())
    assert "Half\n  interrupted\n" in shown
    assert talk.session is not None
    (_, message) = talk.session.conversation.messages
    assert isinstance(message, AssistantMessage)
    assert (message.text, message.interrupted) == ("Half", "left")
    assert talk.code == 0
    assert signal.getsignal(signal.SIGINT) is before


def test_on_a_pipe_a_signal_ends_the_chat_after_its_turn_is_kept() -> None:
    """A script that is stopped must stop, in a turn and between two: no further line is read, the exit code says so."""

    def pressed() -> None:
        raise KeyboardInterrupt

    store = MemoryStore()
    talk, shown = chat(Agent(Signalled()), "hi", "never read", store=store, live=False)
    assert talk.code == 130
    assert "never read" not in shown
    kept = asyncio.run(store.load("s"))
    assert kept is not None
    assert [m.text for m in kept.conversation.messages if isinstance(m, AssistantMessage)] == ["Half"]
    talk, _ = chat(Agent(ScriptedModel("One.")), "one", pressed, "never read", live=False)
    assert (talk.code, talk.session and talk.session.seq) == (130, 6)
    talk, _ = chat(Agent(ScriptedModel("One.")), "one", pressed, live=True)
    assert talk.code == 0


def test_a_second_signal_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even though a call that may have effects still runs."""
    left: list[int] = []

    async def stubborn(args: Any, ctx: Any) -> str:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0.4)
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0.2)
        return "done"

    monkeypatch.setattr(os, "_exit", left.append)
    agent: Agent[Any, Any] = Agent(ScriptedModel([call("stubborn")], "Done."), tools=[Tool("stubborn", stubborn)])
    _, shown = chat(agent, "hi")
    assert left == [130]
    assert "waiting for what was started; Ctrl-C again ends the program without it" in shown


def test_signals_where_a_loop_cannot_catch_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows: through Python's own handler, which is put back."""
    before = signal.getsignal(signal.SIGINT)
    caught: list[str] = []

    async def signalled() -> None:
        loop = asyncio.get_running_loop()

        def refused(*_: object) -> None:
            raise NotImplementedError

        monkeypatch.setattr(loop, "add_signal_handler", refused)
        with on_interrupt(lambda: caught.append("here")):
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0.01)

    asyncio.run(signalled())
    assert caught == ["here"]
    assert signal.getsignal(signal.SIGINT) is before


def test_signals_belong_to_the_main_thread() -> None:
    """In another thread a chat runs on without them."""

    async def inside() -> str:
        with on_interrupt(lambda: None):
            return "ran"

    async def outside() -> str:
        return await asyncio.to_thread(asyncio.run, inside())

    assert asyncio.run(outside()) == "ran"


def test_a_turn_that_the_session_moved_away_under_ends_there() -> None:
    """What the person read of it is kept, they are told, and the next turn goes on from what is stored."""
    store = MemoryStore()

    async def other() -> None:
        agent: Agent[Any, Any] = Agent(ScriptedModel("From elsewhere."))
        held = await store.load("s")
        await store.commit((await agent.turn("elsewhere", session=held or "s")).change())

    async def meddle(args: Any, ctx: Any) -> str:
        await other()
        return "meddled"

    agent: Agent[Any, Any] = Agent(
        ScriptedModel("One.", [call("meddle")], "Two.", "Three."), tools=[Tool("meddle", meddle)]
    )
    talk, shown = chat(agent, "one", "two", "three", store=store, live=False)
    assert "  cut short: the session was changed elsewhere meanwhile; what was said is kept" in shown
    assert talk.session is not None
    assert [m.text for m in talk.session.conversation.messages if isinstance(m, AssistantMessage)] == [
        "One.",
        "From elsewhere.",
        "Two.",
        "Three.",
    ]
    assert talk.code == 0


def test_a_session_that_is_gone_begins_again() -> None:
    """Somebody emptied the store between two turns."""
    store = MemoryStore()

    def forget() -> None:
        store._kept.clear()

    talk, shown = chat(Agent(ScriptedModel("One.", "Two.")), "one", forget, "two", store=store)
    assert "it is not there any more" in shown
    assert talk.session is not None
    assert len(talk.session.conversation.messages) == 2


class Full(MemoryStore):
    """A store whose disk is full for one commit."""

    refusals = 1

    async def commit(self, change: Change, /) -> Session:
        if self.refusals:
            self.refusals -= 1
            raise StoreError("the disk is full", code="store-full", hint="make room")
        return await super().commit(change)


def test_a_turn_that_cannot_be_stored_is_not_part_of_the_chat() -> None:
    """The person is told why; the next turn goes on from what is stored."""
    talk, shown = chat(Agent(ScriptedModel("One.", "Two.")), "one", "two", store=Full())
    assert "! this turn was not kept\n" in shown
    assert talk.session is not None
    assert [m.text for m in talk.session.conversation.messages if isinstance(m, AssistantMessage)] == ["Two."]


class Ending:
    """A director that ends its turns in ways of its own."""

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        said = str(getattr(turn.input, "content", ""))
        if said == "ignore":
            turn.ignore(Outcome(kind="input", status="ignored", code="not-mine", message="not for me"))
        elif said == "defer":
            stage.outcome(Outcome(kind="talk", status="deferred", code="later"))
        elif said == "media":
            await stage.say("See this.", key="m", media="image.png")
        elif said == "fault":
            raise ZeroDivisionError("a fault of the agent's author")

    def hooks(self, spec: object) -> Hooks:
        return Hooks()


def test_ends_that_are_no_answers_have_a_line_each() -> None:
    """Silent, ignored, deferred; what is attached; and a fault in the agent's own code."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(), director=Ending())
    talk, shown = chat(agent, "hm", "ignore", "defer", "media", "fault", "/record", live=False)
    lines = shown.splitlines()
    assert "  no answer" in lines
    assert "  ignored: not for me" in lines
    assert "  deferred: later" in lines
    assert lines[lines.index("See this.") + 1] == "  [image.png]"
    assert talk.code == 1


class Moved(asyncio.SelectorEventLoop):
    """A loop whose clock a test moves on."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def test_a_turn_that_failed_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whom it would have waited for is not told in the middle of the next turn."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def chosen(_: object) -> ScriptedModel:
        raise ConfigurationError("no key is set")

    loop, out = Moved(), Terminal()
    screen = Screen(out)
    keys = Keys(screen, "one", lambda: setattr(loop, "ahead", 60.0), "two", live=True)
    talk = Talk(Agent(chosen), None, SessionKey("s"), screen, keys)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        talk.runner = runner
        talk.go_on()
    assert out.getvalue().count("! no key is set") == 2
    assert "waiting for" not in out.getvalue()


def test_a_reply_that_has_begun_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long its next word takes."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    class Slow(Signalled):
        async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
            yield TextChunk("One.\n")
            for ahead in (0.0, 60.0, 60.0):
                loop.ahead = ahead
                await asyncio.sleep(0.001)
            yield TextChunk("Two.")
            yield Finished(finish="stop")

    loop, out = Moved(), Terminal()
    screen = Screen(out)
    talk = Talk(Agent(Slow()), None, SessionKey("s"), screen, Keys(screen, "hi", live=True))
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        talk.runner = runner
        talk.go_on()
    assert out.getvalue() == "One.\nTwo.\n"


def test_the_last_entry_has_a_why_and_the_one_behind_it_is_not_there() -> None:
    """A number that there is not is told, and the chat goes on."""
    talk, shown = chat(Agent(ScriptedModel("Fine.")), "hi", "/why 5", "/why 6", "/quit")
    assert talk.session is not None
    assert talk.session.seq == 6
    assert "Why turn.closed (5)" in shown
    assert "there is no entry 6" in shown


@pytest.mark.parametrize("others", [MemoryStore, lambda: None])
def test_record_shows_the_last_turn_with_its_number(others: Callable[[], Store | None]) -> None:
    """Of a session that goes on, too: there the last turn is the one of before."""
    store = others()
    _, shown = chat(Agent(ScriptedModel("One.", "Two.")), "/record", "first", "second", "/record", store=store)
    assert shown.count("nothing happened yet") == 1
    assert "turn 2 · " in shown
    assert "turn 1 · " not in shown
    assert "turn.input         “second”" in shown
    if store is not None:
        _, again = chat(Agent(ScriptedModel()), "/record", store=store)
        assert again.splitlines()[-7:] == shown.splitlines()[-7:]


class Unreadable(MemoryStore):
    """A store whose entries cannot be read."""

    async def entries(self, key: SessionKey | str, /, *, after: int = -1) -> AsyncGenerator[Entry, None]:
        raise StoreError("the disk reported an error", hint="check the disk")
        yield  # type: ignore[unreachable]  # what makes it a generator


def test_a_record_that_cannot_be_read_does_not_end_the_chat() -> None:
    """It is told like a turn that failed."""
    talk, shown = chat(Agent(ScriptedModel("Fine.")), "/record", "/why", "hi", store=Unreadable(), live=False)
    assert shown.endswith("Fine.\n")
    assert talk.code == 1


def test_the_recap_says_how_the_last_answer_ended() -> None:
    """Interrupted, or a message that nobody answered."""
    store = MemoryStore()
    chat(Agent(Signalled()), "hi", store=store)
    _, shown = chat(Agent(Signalled()), store=store)
    assert "the agent said “Half” (interrupted)" in shown
    if sys.platform != "win32":
        assert "2 messages so far" in shown


def test_a_model_that_is_chosen_by_the_turn_has_no_name_yet() -> None:
    """The heading names the agent alone, and whom one waits for is the agent."""
    _, shown = chat(Agent(lambda _: ScriptedModel("Fine."), name="Chooser"), "hi")
    assert shown.startswith("Chooser · this session is not kept")
    assert "Fine." in shown
