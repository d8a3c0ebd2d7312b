"""``onrecord chat`` with an agent that has flows: quiet, unless outcomes are asked for or nobody answered."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from onrecord.cli.outcome_words import outcome_text, why_unanswered
from onrecord.conversation.outgoing import Outcome
from onrecord.flows import OUTCOME_MESSAGES
from onrecord.turn.result import Status, TurnResult
from tests.cli.agents import Cli
from tests.cli.flow_agents import ODD, STAYS

pytestmark = pytest.mark.integration

SAID = "hello\nPorto, two nights\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the agents of these tests, as the current one."""
    (tmp_path / "flow_stays.py").write_text(STAYS, encoding="utf-8")
    (tmp_path / "flow_odd.py").write_text(ODD, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def when(at: datetime) -> str:
    """An instant in the words of these tests."""
    return f"{at:%H:%M}"


def test_a_chat_is_quiet_about_outcomes(cli: Cli) -> None:
    """A person who talks to the agent sees what is said, and what is done meanwhile."""
    ran = cli("chat", "flow_stays.py:agent", stdin=SAID)
    assert ran.code == 0, ran
    assert ran.out.splitlines()[1:] == [
        "> hello", "Where, and how long?", "> Porto, two nights",
        '  reserve(city="Porto"): returned', "Booked: Porto, {{context.hotel}}.", "  [ticket]",
    ]  # fmt: skip


def test_outcomes_are_shown_when_they_are_asked_for(cli: Cli) -> None:
    """From the start with the option, from there on with the command; the command again takes that back."""
    told = ["    booking started", "    booking/ask collect: replied"]
    assert cli("chat", "flow_stays.py:agent", "--outcomes", stdin="hello\n").out.splitlines()[-2:] == told
    ran = cli("chat", "flow_stays.py:agent", stdin="/outcomes\nhello\n/outcomes\nPorto, two nights\n")
    assert ran.out.splitlines()[1:] == [
        "> /outcomes",
        "  outcomes are shown from here on",
        "> hello",
        "Where, and how long?",
        *told,
        "> /outcomes",
        "  outcomes are not shown from here on",
        "> Porto, two nights",
        '  reserve(city="Porto"): returned',
        "Booked: Porto, {{context.hotel}}.",
        "  [ticket]",
    ]


def test_a_turn_without_a_reply_says_why(cli: Cli) -> None:
    """Also in a quiet chat: somebody waits for an answer."""
    ran = cli("chat", "flow_odd.py:agent", stdin="hello\n")
    assert ran.code == 0, ran
    assert ran.out.splitlines()[-1].startswith("  deferred: the model call failed or came back empty; again at ")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (Outcome(kind="run", status="started", about={"flow_id": "f", "run_id": "f#1"}), "f started"),
        (Outcome(kind="run", status="ended", code="end", about={"flow_id": "f"}), "f ended"),
        (Outcome(kind="run", status="ended", code="flow", about={"flow_id": "f"}),
         "f ended, and handed on to another flow"),
        (Outcome(kind="run", status="ended", code="unheard-of", about={"flow_id": "f"}), "f unheard-of"),
        (Outcome(kind="run", status="skipped", code="cooldown", message="too early", about={"flow_id": "f"}),
         "f did not start: too early"),
        (Outcome(kind="say", status="ok", next="b", about={"flow_id": "f", "step_id": "a"}), "f/a say: said → b"),
        (Outcome(kind="if", status="ok", about={"flow_id": "f", "step_id": "a"}), "f/a if: goes on"),
        (Outcome(kind="do", status="ok", detail={"n": 1}, about={"flow_id": "f"}), 'f do: done ({"n":1})'),
        (Outcome(kind="wait", status="waiting", until=datetime(2026, 9, 20, 12, tzinfo=UTC), about={"flow_id": "f"}),
         "f wait: waits until 12:00"),
        (Outcome(kind="idle", status="ok"), "idle: replied"),
        (Outcome(kind="input", status="ignored", code="duplicate-input", message="seen before"), "seen before"),
        (Outcome(kind="other", status="odd"), "odd"),
    ],
)  # fmt: skip
def test_an_outcome_is_a_sentence(line: Outcome, text: str) -> None:
    """Of which flow and step, what, why, until when, and where it leads."""
    assert outcome_text(line, when) == text


@pytest.mark.parametrize(
    ("status", "lines", "why"),
    [
        ("silent", (), ""),
        ("silent", (Outcome(kind="run", status="ended", code="end"),), ""),
        ("silent", (Outcome(kind="say", status="skipped", code="silenced", message=OUTCOME_MESSAGES["silenced"]),),
         "the host cannot speak right now"),
        ("deferred", (
            Outcome(kind="wait", status="ok", code="replied", message="no reason"),
            Outcome(kind="prompt", status="deferred", code="provider-quota", message="spent",
                    until=datetime(2026, 9, 20, 12, 1, tzinfo=UTC)),
        ), "spent; again at 12:01"),
        ("ignored", (Outcome(kind="wait", status="skipped", code="stale-wake", message="late"),) * 2, "late"),
        ("ignored", (Outcome(kind="input", status="ignored", code="session-reset"),), "session-reset"),
    ],
)  # fmt: skip
def test_why_nobody_answered_is_what_the_outcomes_say(status: Status, lines: tuple[Outcome, ...], why: str) -> None:
    """Those of the status first, each once; what started and ended is no reason."""
    result = TurnResult[str](status=status, session=None, changed=False, lines=lines)
    assert why_unanswered(result, when) == why


def test_a_chat_gives_turns_their_context(cli: Cli) -> None:
    """As a worker does: from the function that --given names."""
    ran = cli("chat", "flow_stays.py:agent", "--given", "flow_stays.py:given", stdin=SAID)
    assert ran.code == 0, ran
    assert "Booked: Porto, Aurora." in ran.out.splitlines()
    ran = cli("chat", "flow_stays.py:agent", "--given", "flow_stays.py:nothing", stdin=SAID)
    assert (ran.code, ran.out) == (2, "")
    assert "--given wants an async function there" in ran.err


RAISING = """
from onrecord import Agent, tool
from onrecord.flows import Do, Flow, Flows, OnMessage, Say
from onrecord.testing import ScriptedModel


@tool
async def page() -> str:
    raise ValueError("no pager")


booking = Flow("booking", on=[OnMessage()], steps=[Do("page"), Say("Sorry.", id="sorry")])
agent = Agent(ScriptedModel(), director=Flows(booking, actions=[page], idle="silent"))
"""


@pytest.mark.parametrize("command", [("chat",), ("flows", "simulate")])
def test_debug_says_where_an_action_raised(cli: Cli, folder: Path, command: tuple[str, ...]) -> None:
    """The line tells what it said; the place is in the log, which --debug shows, and which is gone with the command."""
    (folder / "flow_raising.py").write_text(RAISING, encoding="utf-8")
    for _ in range(2):
        ran = cli(*command, "flow_raising.py:agent", "--debug", stdin="hello\n")
        assert ran.code == 0, ran
        assert ran.err.splitlines() == ["onrecord.tools: tool 'page' raised ValueError (flow_raising.py, line 9)"]
    assert cli(*command, "flow_raising.py:agent", stdin="hello\n").err == ""
