"""Commands of a simulation as they are typed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from onrecord.cli.failure import Wrong
from onrecord.cli.sim_commands import Command, Leave, Look, NotUnderstood, Pass, Report, command_named
from onrecord.cli.sim_words import cause_text, script_lines
from onrecord.cli.simulated_time import SimulatedTime, instant_named
from onrecord.conversation.inputs import Happened, Woke
from onrecord.flows import FlowState

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/wait 24h", Pass(timedelta(hours=24))),
        ("/wait  1d 12h  30s", Pass(timedelta(days=1, hours=12, seconds=30))),
        ("/next", Pass(None)),
        ("/event paid", Report("event", "paid", None)),
        ('/event paid  {"amount": [1, 2]}', Report("event", "paid", {"amount": [1, 2]})),
        ("/event paid 5", Report("event", "paid", 5)),
        ("/start booking", Report("start", "booking", None)),
        ('/start booking "x y"', Report("start", "booking", "x y")),
        ("/data", Look("data")),
        ("/runs", Look("runs")),
        ("/wakes", Look("wakes")),
        ("/answer", Look("question")),
        ("/?", Look("help")),
        ("/q", Leave()),
    ],
)
def test_a_line_with_a_slash_is_a_command(line: str, command: Command) -> None:
    """With what stands behind its name."""
    assert command_named(line, ["booking"]) == command


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/waits 24h", "there is no /waits; /help lists the commands"),
        ("/", "there is no /; /help lists the commands"),
        ("/wait", "say how much time passes, such as /wait 30m, /wait 24h or /wait 1d 12h"),
        ("/wait 0s", "say how much time passes"),
        ("/wait -1h", 'duration "-1h" does not parse; write a number and one unit'),
        ("/wait 24 h", 'duration "24" does not parse'),
        ("/wait 9999999d", 'duration "9999999d" is longer than a century'),
        ("/data please", "/data takes nothing behind it"),
        ("/event", "/event needs the name of an event, then its JSON"),
        ("/start", "/start needs the name of a flow, then its JSON"),
        ("/start boking", "there is no flow 'boking'; did you mean \"booking\"?"),
        ("/event paid {amount: 5}", "what stands behind paid is no JSON: "),
        ("/event paid " + "[" * 100_000, "what stands behind paid is no JSON: "),
    ],
)
def test_what_is_not_understood_says_why(line: str, told: str) -> None:
    """And with which name it would be."""
    with pytest.raises(NotUnderstood) as raised:
        command_named(line, ["booking", "nudge"])
    assert str(raised.value).startswith(told)


def test_a_script_has_remarks_and_room() -> None:
    """Neither is a message; whatever else stands in a line is."""
    assert list(script_lines("\n# a remark\nhi # not one\n  \n  # one too\n/wait 1h\r\nolá")) == [
        "hi # not one", "/wait 1h", "olá",
    ]  # fmt: skip


def test_what_begins_by_itself_is_told_by_what_it_is_about() -> None:
    """Of a timer nobody waits for, which a flow that was changed can leave, the key is all there is."""
    none = FlowState()
    assert cause_text(Woke("silence:f:g:s:17"), none, "s") == "silence, for f:g"
    assert cause_text(Woke("f#m1:w:17"), none, "s") == "f#m1:w:17, for which no run waits any more"
    assert cause_text(Happened("paid", key="k", payload=5), none, "s") == "again: event paid 5"


def test_a_simulation_begins_when_it_is_told_to() -> None:
    """At an instant with an offset, in whose zone it is told; without one, now, in whole minutes."""
    clock = SimulatedTime(instant_named("2026-09-20T09:30-03:00"))
    assert clock.now() == datetime(2026, 9, 20, 12, 30, tzinfo=UTC)
    assert clock.told(clock.now()) == "2026-09-20 09:30"
    assert clock.told(clock.now() + timedelta(seconds=5)) == "2026-09-20 09:30:05"
    now = instant_named(None)
    assert now.utcoffset() is not None
    assert now.second == now.microsecond == 0


@pytest.mark.parametrize("text", ["noon", "2026-09-20T12:00", "2026-13-01T00:00Z", "0001-01-01T00:00+05:00", ""])
def test_what_is_no_instant_is_refused(text: str) -> None:
    """Also one without an offset: nobody would know which it is."""
    with pytest.raises(Wrong) as raised:
        instant_named(text)
    assert repr(text) in str(raised.value)
    assert "2026-09-20T12:00Z" in raised.value.hint


def test_the_clock_never_goes_back() -> None:
    """Time that has passed stays past."""
    clock = SimulatedTime(datetime(2026, 9, 20, 12, tzinfo=UTC))
    clock.move(datetime(2026, 9, 20, 11, tzinfo=UTC))
    assert clock.now() == datetime(2026, 9, 20, 12, tzinfo=UTC)
    clock.move(datetime(2026, 9, 20, 13, 0, 0, 1999, tzinfo=UTC))
    assert clock.now() == datetime(2026, 9, 20, 13, 0, 0, 1000, tzinfo=UTC)
