"""``onrecord flows simulate`` on a pipe and over a script: days of a customer in an instant."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from onrecord.stores.sqlite import SqliteStore
from tests.cli.agents import Cli, Ran, entries_of, started
from tests.cli.flow_agents import DOUBTFUL, ODD, STAYS

pytestmark = pytest.mark.integration

NOON = ("--at", "2026-09-20T12:00Z")
GIVEN = ("--given", "flow_stays.py:given")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the agents of these tests, as the current one."""
    for name, text in {"stays": STAYS, "odd": ODD, "doubtful": DOUBTFUL}.items():
        (tmp_path / f"flow_{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(ran: Ran) -> list[str]:
    """What was printed below the heading, without the date of these tests in prompts of the first day."""
    return [line.replace("2026-09-20 12:00 > ", "> ") for line in ran.out.splitlines()[1:]]


# ---- a conversation --------------------------------------------------------------------------------------------------


def test_below_each_reply_stands_what_every_step_came_to(cli: Cli) -> None:
    """Messages with their delay and media, a sentence for each outcome with where it leads, what started and ended."""
    ran = cli(
        "flows", "simulate", "flow_stays.py:agent", *NOON, *GIVEN, stdin="hello\nPorto, two nights\nthanks\n/data\n"
    )
    assert ran.code == 0, ran
    assert ran.err == ""
    assert (
        ran.out.splitlines()[0] == "Stays (scripted:script) · a simulation from 2026-09-20 12:00 on · nothing is kept"
    )
    assert lines(ran) == [
        "> hello",
        "Where, and how long?",
        "    booking started",
        "    booking/ask collect: replied",
        "> Porto, two nights",
        "(after 3s) Booked: Porto, Aurora. [ticket]",
        "    booking/ask collect: replied",
        "    booking/reserve do: done (R-1)",
        "    booking/breath wait: a short wait rides on the next message (3000ms)",
        "    booking/booked say: said → end",
        "    booking ended",
        "> thanks",
        "  no reply",
        "> /data",
        '  city = "Porto"',
        "  nights = 2",
    ]


def test_time_passes_when_it_is_told_to_and_everything_due_happens_at_its_own_time(cli: Cli) -> None:
    """A silence, a wait, an event that did not come: in order, each with its instant and what it is about."""
    ran = cli("flows", "simulate", "flow_stays.py:agent", *NOON, stdin="hello\n/wakes\n/wait 12h\n/wait 6d\n/runs\n")
    assert ran.code == 0, ran
    assert lines(ran)[4:] == [
        "> /wakes",
        "  2026-09-21 12:00  silence, for nudge",
        "> /wait 12h",
        "  12h later, at 2026-09-21 00:00, nothing has happened",
        "2026-09-21 00:00 > /wait 6d",
        "2026-09-21 12:00 · silence, for nudge",
        "Still there?",
        "    nudge started",
        "    nudge/first say: said",
        "    nudge/pause wait: waits until 2026-09-23 12:00",
        "2026-09-23 12:00 · the wait of nudge/pause ends",
        "Last try.",
        "    nudge/pause wait: the customer did not reply while the run waited",
        "    nudge/last say: said",
        "    nudge/payment wait: the run is waiting for an event (paid), until 2026-09-26 12:00",
        "2026-09-26 12:00 · nudge/payment stops waiting for paid",
        "    nudge/payment wait: the event did not arrive in time → end",
        "    nudge ended",
        "2026-09-27 00:00 > /runs",
        "  booking#m1 · asking at ask · started 2026-09-20 12:00 · asked city x1, nights x1",
    ]


def test_events_starts_and_the_next_thing_that_is_due(cli: Cli) -> None:
    """An event with its payload, one that nobody declared, a start by hand, and time up to what comes next."""
    said = '/event paid {"amount": 5}\n/runs\n/next\n/next\n/event nope\n/start nudge\n/wakes\nhi\n/wait 1s\n'
    ran = cli("flows", "simulate", "flow_stays.py:agent", *NOON, stdin=said)
    assert ran.code == 0, ran
    assert lines(ran) == [
        '> /event paid {"amount": 5}',
        "    receipt started",
        "    receipt wait: the trigger's delay has not passed, until 2026-09-20 13:00",
        "> /runs",
        "  receipt#m1 · waits until 2026-09-20 13:00 · started 2026-09-20 12:00",
        "> /next",
        "2026-09-20 13:00 · receipt begins after its delay",
        "We got 5.",
        "    receipt/got say: said",
        "    receipt ended",
        "2026-09-20 13:00 > /next",
        "2026-09-21 13:00 · silence, for nudge",
        "Still there?",
        "    nudge started",
        "    nudge/first say: said",
        "    nudge/pause wait: waits until 2026-09-23 13:00",
        "2026-09-21 13:00 > /event nope",
        "    no event by that name is declared on the agent",
        '    there are "paid"',
        "2026-09-21 13:00 > /start nudge",
        "    nudge did not start: a run of this flow is already live here",
        "2026-09-21 13:00 > /wakes",
        "  2026-09-23 13:00  the wait of nudge/pause ends",
        "2026-09-21 13:00 > hi",
        "Where, and how long?",
        "    nudge/pause wait: the customer replied while the run waited → end",
        "    nudge ended",
        "    booking started",
        "    booking/ask collect: replied",
        "2026-09-21 13:00 > /wait 1s",
        "  1s later, at 2026-09-21 13:00:01, nothing has happened",
    ]


def test_a_script_is_read_instead_of_standard_input(cli: Cli, folder: Path) -> None:
    """Line by line, with remarks; it ends with the script, whatever else could be typed."""
    script = folder / "silence.txt"
    script.write_text("# a day of silence\nhello\n\n/wait 24h\n//not a command\n", encoding="utf-8")
    ran = cli("flows", "simulate", "flow_stays.py:agent", *NOON, "--script", script, stdin="never read\n")
    assert ran.code == 0, ran
    prompted = [line for line in lines(ran) if "> " in line]
    assert prompted == ["> hello", "> /wait 24h", "2026-09-21 12:00 > //not a command"]


def test_equal_scripts_print_equal_lines(cli: Cli) -> None:
    """Nothing of it is left to chance: what is printed can be kept and compared."""
    said = "hello\n/wait 25h\n/runs\n"
    first = cli("flows", "simulate", "flow_stays.py:agent", *NOON, stdin=said)
    assert cli("flows", "simulate", "flow_stays.py:agent", *NOON, stdin=said).out == first.out


def test_it_runs_with_the_offline_model(cli: Cli) -> None:
    """Which says what it is."""
    said = "I want a room in Porto for 2 nights\n/data\n/wait 24h\n"
    ran = cli("flows", "simulate", "flow_stays.py:agent", *NOON, *GIVEN, "--model", "offline", stdin=said)
    assert ran.code == 0, ran
    assert "not a language model" in ran.out
    assert "Booked: Porto, Aurora. [ticket]" in ran.out
    assert "2026-09-21 12:00 · silence, for nudge\nStill there?" in ran.out


# ---- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_model_that_fails_is_told_and_its_run_speaks_again_when_its_time_comes(cli: Cli) -> None:
    """The sentence, the code's words, when the next try is; and then the answer."""
    ran = cli("flows", "simulate", "flow_odd.py:agent", *NOON, stdin="hello\n/wakes\n/wait 2m\n")
    assert ran.code == 0, ran
    assert lines(ran) == [
        "> hello",
        "    talk started",
        "    talk/t prompt: the model call failed or came back empty; again at 2026-09-20 12:01",
        "> /wakes",
        "  2026-09-20 12:01  talk/t tries again",
        "> /wait 2m",
        "2026-09-20 12:01 · talk/t tries again",
        "Fine.",
        "    talk/t prompt: replied",
    ]


def test_a_turn_that_fails_is_tried_again_as_a_host_does_it(cli: Cli) -> None:
    """It is told in a line, and so is when the host takes it again; a script learns it from the exit code."""
    given = ("--given", "flow_odd.py:broken")
    ran = cli("flows", "simulate", "flow_odd.py:agent", *NOON, *given, stdin="hello\n/wakes\n/wait 2m\n")
    assert ran.code == 1
    assert lines(ran) == [
        "> hello",
        "  it is tried again at 2026-09-20 12:01",
        "> /wakes",
        "  2026-09-20 12:01  again: “hello”",
        "> /wait 2m",
        "2026-09-20 12:01 · again: “hello”",
        "  it is tried again at 2026-09-20 12:06",
    ]
    assert ran.err.count("onrecord: RuntimeError: no database") == 2
    assert "Traceback" not in ran.err


def test_a_message_that_a_rule_denies_is_told_in_a_line(cli: Cli) -> None:
    """It is over with that: nothing of it is tried again."""
    ran = cli("flows", "simulate", "flow_odd.py:agent", *NOON, stdin="damn\n/wakes\n/runs\n")
    assert ran.code == 1
    assert lines(ran) == ["> damn", "> /wakes", "  nothing is due later", "> /runs", "  no run is live"]
    assert ran.err.startswith("onrecord: rule 'polite' denied the message at input: please be polite\n")


def test_a_turn_that_is_tried_too_often_is_set_aside(cli: Cli) -> None:
    """Where it stays to be seen."""
    given = ("--given", "flow_odd.py:broken")
    ran = cli("flows", "simulate", "flow_odd.py:agent", *NOON, *given, stdin="hello\n/wait 2d\n/wakes\n/next\n")
    assert lines(ran)[-3:] == [
        "  set aside (retries-used-up)  again: “hello”",
        "2026-09-22 12:00 > /next",
        "  nothing is due later",
    ]


def test_a_flow_that_goes_round_without_time_ends_the_simulation(cli: Cli) -> None:
    """It would never be done: that is told, with what to do."""
    ran = cli("flows", "simulate", "flow_odd.py:agent", *NOON, stdin="/event spin\nhello\n")
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "onrecord: 500 turns were taken and no time has passed",
        "  hint: a flow waits for no time at all, again and again: give its wait a length",
    ]
    assert "hello" not in ran.out


def test_what_is_not_understood_is_told_and_counts_as_a_failure_of_a_script(cli: Cli) -> None:
    """So that a misspelt command cannot pass for a day without events."""
    ran = cli(
        "flows", "simulate", "flow_stays.py:agent", *NOON, stdin="/waits 24h\n/start boking\n/help\n/later\n/quit\nx\n"
    )
    assert ran.code == 1
    assert ran.err == ""
    assert lines(ran)[:5] == [
        "> /waits 24h",
        "  there is no /waits; /help lists the commands",
        "> /start boking",
        "  there is no flow 'boking'; did you mean \"booking\"?",
        "> /help",
    ]
    assert lines(ran)[-3:] == ["> /later", "  no question is open", "> /quit"]
    assert cli("flows", "simulate", "flow_stays.py:agent", *NOON, stdin="/runs\n/wakes\n/data\n/next\n").code == 0


def test_the_calendar_has_an_end(cli: Cli) -> None:
    """Centuries pass, but not for ever."""
    ran = cli("flows", "simulate", "flow_doubtful.py:sound", "--at", "9950-01-01T00:00Z", stdin="/wait 36500d\n/data\n")
    assert lines(ran)[1:] == [
        "9950-01-01 00:00 > /wait 36500d",
        "  the calendar ends before that",
        "9950-01-01 00:00 > /data",
        "  nothing is known yet",
    ]


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (("--at", "noon"), "--at 'noon' is no instant"),
        (("--at", "2026-09-20T12:00"), "--at '2026-09-20T12:00' has no UTC offset"),
        (("--script", "nowhere.txt"), "there is no script 'nowhere.txt'"),
        (("--script", "."), "the script '.' is no file"),
        (("--session", " "), "--session needs a name"),
        (("--given", "x"), "--given 'x' names no function"),
        (("--given", "flow_stays.py:agent"), "flow_stays.py:agent is no async function"),
        (("--store", "no/such/x.db"), "its folder does not exist"),
        (("--model", "gpt:5"), "unknown model provider in 'gpt:5'"),
        (("--sript", "x"), "it does not take '--sript'"),
    ],
)
def test_a_simulation_that_cannot_begin_says_why(cli: Cli, option: tuple[str, str], told: str) -> None:
    """Before any line is read, with exit code 2."""
    ran = cli("flows", "simulate", "flow_stays.py:agent", *option, stdin="hello\n")
    assert (ran.code, ran.out) == (2, ""), ran
    assert told in ran.err
    assert len(ran.err.splitlines()) == 2


# ---- people, and stores ----------------------------------------------------------------------------------------------


def test_a_question_to_a_person_is_answered_by_the_next_line(cli: Cli) -> None:
    """Commands work at its prompt; it can be left, and come back to, while messages are handled beside it."""
    said = "/event sign\n/runs\nn, too early\n/event sign\n/later\nhello\n/answer\ny\n"
    ran = cli("flows", "simulate", "flow_odd.py:agent", *NOON, stdin=said)
    assert ran.code == 0, ran
    asked = ["? Sign it?", "  asked by careful · meant for: approver · sign()"]
    how = "  y or n, and a note behind it if you like; /later leaves the question open"
    started = ["    sign started", "    sign/do do: the run waits for a person's answer"]
    assert lines(ran) == [
        "> /event sign", *started, *asked, how,
        "answer> /runs",
        "  sign#m1 · waits at do for a person's answer · started 2026-09-20 12:00",
        "answer> n, too early",
        "Not signed.",
        "    sign/do do: the action failed (Declined by a person: too early) → no",
        "    sign/no say: said",
        "    sign ended",
        "> /event sign", *started, *asked, how,
        "answer> /later",
        "  left open: /answer comes back to it",
        "> hello",
        "    talk started",
        "    talk/t prompt: the model call failed or came back empty; again at 2026-09-20 12:01",
        "> /answer", *asked, how,
        "answer> y",
        "Signed.",
        "    sign/do do: done",
        "    sign/yes say: said → end",
        "    sign ended",
    ]  # fmt: skip


def test_an_action_that_puts_off_runs_again_at_its_time(cli: Cli) -> None:
    """As often as it does so."""
    ran = cli("flows", "simulate", "flow_odd.py:agent", *NOON, stdin="/event defer\n/wait 150m\n")
    assert [line for line in lines(ran) if "·" in line or "again" in line] == [
        "    defer/do do: the action asked to run again later (not yet); again at 2026-09-20 13:00",
        "2026-09-20 13:00 · the wait of defer/do ends",
        "    defer/do do: the action asked to run again later (not yet); again at 2026-09-20 14:00",
        "2026-09-20 14:00 · the wait of defer/do ends",
        "    defer/do do: the action asked to run again later (not yet); again at 2026-09-20 15:00",
    ]


def test_a_store_keeps_the_session_and_the_clock_goes_on_where_it_stood(folder: Path) -> None:
    """Another process has the same runs and wakes; its clock is not set back before what happened."""
    store = folder / "days.db"
    first = started("flows", "simulate", "flow_stays.py:agent", *NOON, "--store", store, stdin="hello\n/wait 1d\n")
    assert first.code == 0, first
    assert first.out.startswith(
        "Stays (scripted:script) · a simulation from 2026-09-20 12:00 on · session 'customer' in"
    )
    second = started(
        "flows", "simulate", "flow_stays.py:agent", *NOON, "--store", store, stdin="/runs\n/wait 2d\n", folder=folder
    )
    assert second.code == 0, second
    assert "a simulation from 2026-09-21 12:00 on" in second.out
    assert re.search(r"booking#\w+-1 · asking at ask", second.out)
    assert "2026-09-23 12:00 · the wait of nudge/pause ends\nLast try." in second.out
    assert started("store", "check", store, "--agent", "flow_stays.py:agent", folder=folder).code == 0


def test_the_record_of_a_simulation_tells_simulated_time(folder: Path, cli: Cli) -> None:
    """Everything else is as it would have been: a host took the turns, and a store holds them."""
    store = folder / "days.db"
    cli("flows", "simulate", "flow_stays.py:agent", *NOON, "--store", store, stdin="hello\n/wait 1d\n")
    entries = entries_of(store, "customer")
    assert {f"{entry.at:%m-%d %H:%M}" for entry in entries} == {"09-20 12:00", "09-21 12:00"}

    async def rows() -> list[str]:
        async with SqliteStore(store) as opened:
            return [f"{row.due:%m-%d %H:%M}" for row in await opened.rows("in")]

    assert asyncio.run(rows()) == ["09-23 12:00"]
