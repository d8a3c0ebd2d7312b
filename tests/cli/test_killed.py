"""``onrecord chat --store`` killed with SIGKILL, again and again: it goes on, and nothing is lost or said twice."""

from __future__ import annotations

import asyncio
import random
import re
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Said, Woke, approved, row_key
from onrecord.conversation.messages import AssistantMessage, UserMessage
from onrecord.conversation.outgoing import Outgoing
from onrecord.record.kinds import ToolStarted, TurnResumed
from onrecord.session.inbox import Box, Row
from onrecord.stores.sqlite import SqliteStore
from tests.cli.agents import ASKING, command, entries_of, started, stored
from tests.cli.typing_on import CTRL_D, Person

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals"),
]

COUNTING = '''
"""Counts to ten slowly, about what was asked; sets a timer, and speaks when it rings."""
import asyncio
from datetime import timedelta

from onrecord import Agent, Woke
from onrecord.models.chunks import Finished, TextChunk
from onrecord.models.model import ModelCard
from onrecord.models.request import Wire
from onrecord.conversation.outgoing import Wake
from onrecord.turn.director import Brief
from onrecord.turn.moments import Hooks


class Counting:
    card = ModelCard(provider="counting", model="slow", protocol="counting")

    def wire(self, request):
        return Wire(body=b"{}", stable_until=0)

    async def stream(self, request):
        asked = request.conversation.units[-1].text
        yield TextChunk(f"<{asked}: ")
        for number in range(10):
            await asyncio.sleep(0.03)
            yield TextChunk(f"{number} ")
        yield TextChunk("end>")
        yield Finished(finish="stop")


class Timed:
    async def direct(self, turn, stage):
        if isinstance(turn.input, Woke):
            await stage.say(f"[{turn.input.key} rang]", key="rang")
            return
        await stage.speak(Brief(key="answer"))
        if "timer" in turn.input.content:
            stage.arm(Wake(key="bell", at=turn.first_now + timedelta(seconds=2)))

    def hooks(self, spec):
        return Hooks()


agent = Agent(Counting(), name="Counting")
timed = Agent(Counting(), name="Timed", director=Timed())
'''

EXAMPLES = Path(__file__).parents[2] / "examples"

AGAIN = ("going on with what was asked", "not known to have been shown yet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the agents of these tests."""
    (tmp_path / "cli_counting.py").write_text(COUNTING, encoding="utf-8")
    (tmp_path / "cli_asking.py").write_text(ASKING, encoding="utf-8")
    return tmp_path


def rows(store: Path, box: Box) -> list[Row]:
    """What a box holds."""

    async def read() -> list[Row]:
        async with SqliteStore(store) as opened:
            return await opened.rows(box)

    return asyncio.run(read())


def put(store: Path, row: Row) -> None:
    """One more row."""

    async def write() -> None:
        async with SqliteStore(store) as opened:
            await opened.put(row)

    asyncio.run(write())


def was_accepted(store: Path, message: str) -> bool:
    """Whether the message waits or is in the conversation."""
    session = stored(store)
    told = [] if session is None else [m.text for m in session.conversation.messages if isinstance(m, UserMessage)]
    waits = [row.body.content for row in rows(store, "in") if isinstance(row.body, Said)]
    return message in (*told, *waits)


def lets_live(store: Path, patience_s: float = 20.0) -> None:
    """Waits for a message that killed processes took several times already: one more, and it would be parked.

    On a busy machine no life of some milliseconds is long enough for a turn.
    """
    until = time.monotonic() + patience_s
    while any(row.attempt >= 3 for row in rows(store, "in")):
        assert time.monotonic() < until, "the chat that is alive took no message of its store"
        time.sleep(0.02)  # another process works, and only its row says when it is done


class Insistent:
    """A person whose program is killed again and again; who types a message anew only when it was not accepted."""

    def __init__(self, folder: Path, chance: random.Random, kills: int) -> None:
        self.folder, self.chance, self.kills = folder, chance, kills
        self.lives = list[str]()

    def talk(self, messages: Sequence[str]) -> None:
        """The whole conversation, over as many lives as it takes."""
        at = 0
        while at < len(messages):
            with Person(*command("chat", "cli_counting.py:agent", "--store", "t.db"), folder=self.folder) as person:
                at = self._live(person, messages, at)
                self.lives.append(person.seen)

    def _live(self, person: Person, messages: Sequence[str], at: int) -> int:
        if at and self._is_killed(person):  # as it starts, or goes on
            return at + was_accepted(self.folder / "t.db", messages[at])
        person.sees(r"(^|\n)> ")
        while at < len(messages):
            person.types(messages[at])
            if self._is_killed(person):
                return at + was_accepted(self.folder / "t.db", messages[at])
            person.sees("end>")
            person.sees(r"\n> ")
            at += 1
        person.leaves(CTRL_D)
        return at

    def _is_killed(self, person: Person) -> bool:
        if self.kills == 0 or self.chance.random() < 0.3:
            return False
        self.kills -= 1
        time.sleep(self.chance.uniform(0.0, 0.9))  # the moment is what is drawn; nothing is waited for
        person.process.kill()
        person.leaves()
        return True


@pytest.mark.parametrize("seed", [1, 2])
def test_a_chat_killed_at_random_points_says_everything_once(folder: Path, seed: int) -> None:
    """The conversation holds each message and each reply once and whole; the screen showed each reply to its end.

    What was shown again was announced: as gone on with, or as not known to have been shown.
    """
    messages = [f"question {number}" for number in range(5)]
    person = Insistent(folder, random.Random(seed), kills=7)  # noqa: S311 - a repeatable course of events
    person.talk(messages)
    ran = started("chat", "cli_counting.py:agent", "--store", "t.db", folder=folder)  # what the last life left
    assert ran.code == 0, ran
    person.lives.append(ran.out)
    whole = [f"<{message}: 0 1 2 3 4 5 6 7 8 9 end>" for message in messages]
    session = stored(folder / "t.db")
    assert session is not None
    told = session.conversation.messages
    assert [m.text for m in told if isinstance(m, UserMessage)] == messages
    assert [m.text for m in told if isinstance(m, AssistantMessage)] == whole
    assert rows(folder / "t.db", "in") == rows(folder / "t.db", "out") == []
    lives = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|“[^”]*”", "", life) for life in person.lives]  # but what recaps quote
    for reply in whole:
        shown = [life for life in lives if reply in life]
        assert shown, lives
        assert all(any(told in life for told in AGAIN) for life in shown[1:]), shown
    assert started("record", "verify", folder / "t.db").code == 0


@pytest.mark.parametrize(
    ("example", "calls"), [("hotel", ["price", "price", "book"]), ("booking", ["price", "price", "price"])]
)
def test_the_demo_is_killed_after_every_line_and_books_one_room(folder: Path, example: str, calls: list[str]) -> None:
    """What ``make demo`` runs (the second), killed while it replies: each line is there once, and one booking."""
    customer = (EXAMPLES / f"{example}_customer.txt").read_text(encoding="utf-8").splitlines()
    chat = ("chat", str(EXAMPLES / f"{example}.py:agent"), "--store", "t.db")
    chance, at = random.Random(3), 0  # noqa: S311 - a repeatable course of events
    while at < len(customer):
        with Person(*command(*chat), folder=folder) as person:
            person.sees(r"(^|\n)(> |.*> $)")
            person.types(customer[at])
            time.sleep(chance.uniform(0.0, 0.04))  # the moment is what is drawn; nothing is waited for
            lets_live(folder / "t.db")
            person.process.kill()
            person.leaves()
        at += was_accepted(folder / "t.db", customer[at])
    assert started(*chat, folder=folder).code == 0
    leases = [row.lease_until for row in rows(folder / "t.db", "out") if row.lease_until is not None]
    if leases:  # the last life died while it showed a message: its lease has to end first
        time.sleep(max(0.0, (max(leases) - datetime.now(UTC)).total_seconds()))
        assert started(*chat, folder=folder).code == 0
    session = stored(folder / "t.db")
    assert session is not None
    told = session.conversation.messages
    assert [m.text for m in told if isinstance(m, UserMessage)] == customer, rows(folder / "t.db", "in")
    assert len([m for m in told if isinstance(m, AssistantMessage)]) == len(customer)
    assert [c.name for m in told if isinstance(m, AssistantMessage) for r in m.rounds for c in r.calls] == calls
    booked = [m.text for m in told if isinstance(m, AssistantMessage) and "H-1001" in m.text]
    assert len(booked) == 1
    assert rows(folder / "t.db", "out") == []
    assert all(row.key.startswith("woke:") for row in rows(folder / "t.db", "in"))  # a silence may be listened for
    assert started("record", "verify", folder / "t.db").code == 0


def killed_at_its_question(folder: Path) -> None:
    """A chat that asked a person, and was ended before anybody answered."""
    with Person(*command("chat", "cli_asking.py", "--store", "t.db"), folder=folder) as person:
        person.sees("> ")
        person.types("book it")
        person.sees("answer> ")
        person.process.kill()
        person.leaves()


def test_a_paused_question_comes_back_and_an_accepted_answer_is_not_asked_for_again(folder: Path) -> None:
    """Killed at the question, the next start asks it; killed once it was answered, the next start goes on."""
    killed_at_its_question(folder)
    session = stored(folder / "t.db")
    assert session is not None
    assert session.question is not None
    with Person(*command("chat", "cli_asking.py", "--store", "t.db"), folder=folder) as person:
        person.sees(r"\? Book a room in Porto\?")
        person.sees("answer> ")
        person.process.kill()
        person.leaves()
    answer = approved(session.question, by="ana")
    put(folder / "t.db", Row(session=SessionKey("default"), box="in", key=row_key(answer, ""), body=answer))
    ran = started("chat", "cli_asking.py", "--store", "t.db", folder=folder)
    assert ran.out.splitlines()[2:] == [
        "  going on with what was asked before the interruption:",
        "answer> yes (by ana)",
        '  book(city="Porto"): returned',
        "I read: booked Porto",
    ]


def test_a_question_of_a_killed_chat_is_answered_in_a_new_one(folder: Path) -> None:
    """Typed by a person who first says neither yes nor no; the call runs once, and the record says who asked."""
    killed_at_its_question(folder)
    with Person(*command("chat", "cli_asking.py", "--store", "t.db"), folder=folder) as person:
        person.sees(r"asked by careful")
        person.sees("answer> ")
        person.types("perhaps")
        person.sees("neither a yes nor a no")
        person.sees("answer> ")
        person.types("yes, a quiet one")
        person.sees("I read: booked Porto")
        person.sees("> ")  # what is shown may not be stored yet; the next prompt comes when it is
        person.process.kill()
        person.leaves()
    session = stored(folder / "t.db")
    assert session is not None
    assert session.question is None
    told = [entry.body for entry in entries_of(folder / "t.db", "default")]
    assert len([body for body in told if isinstance(body, ToolStarted)]) == 1
    (resumed,) = [body for body in told if isinstance(body, TurnResumed)]
    assert (resumed.answer.approved, resumed.answer.note) == (True, "a quiet one")


def test_a_wake_that_came_due_while_nobody_was_there_fires_at_the_next_start(folder: Path) -> None:
    """What it says is shown once, and crossed off once it is shown."""
    first = started("chat", "cli_counting.py:timed", "--store", "t.db", stdin="a timer\n", folder=folder)
    assert first.code == 0, first
    (wake,) = rows(folder / "t.db", "in")
    assert wake.key == "woke::bell"
    assert wake.due is not None
    time.sleep(max(0.0, (wake.due - datetime.now(UTC)).total_seconds()))
    second = started("chat", "cli_counting.py:timed", "--store", "t.db", stdin="two\n", folder=folder)
    assert second.out.count("[bell rang]") == 1
    assert second.out.index("[bell rang]") < second.out.index("> two")
    third = started("chat", "cli_counting.py:timed", "--store", "t.db", folder=folder)
    assert "bell rang" not in third.out.split("\n", 2)[2]
    assert rows(folder / "t.db", "in") == rows(folder / "t.db", "out") == []


def test_messages_that_nobody_is_known_to_have_seen_are_shown_first(folder: Path) -> None:
    """With a line that says so; a delayed one comes when it is due, those of other sessions stay."""
    store, now = folder / "t.db", datetime.now(UTC)
    for session, key, delay in (("default", "a", 0), ("default", "b", 60_000), ("other", "c", 0)):
        message = Outgoing(key=key, text=f"message {key}", after_ms=delay)
        put(store, Row(session=SessionKey(session), box="out", key=key, body=message))
    put(store, Row(session=SessionKey("other"), box="in", key="woke::w", body=Woke("w"), due=now))
    ran = started("chat", "cli_counting.py:agent", "--store", "t.db", stdin="hi\n", folder=folder)
    lines = ran.out.splitlines()
    assert lines[1:4] == ["  not known to have been shown yet:", "message a", "> hi"]
    assert "message b" not in ran.out
    assert "message c" not in ran.out
    assert [row.key for row in rows(store, "out")][:2] == ["b", "c"]
    assert [row.key for row in rows(store, "in")] == ["woke::w"]
