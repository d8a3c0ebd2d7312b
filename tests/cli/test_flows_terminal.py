"""``onrecord flows simulate`` at a terminal: typed lines, styles, Ctrl-C and Ctrl-D."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.agents import PACED, command
from tests.cli.flow_agents import ODD, SLOW, STAYS
from tests.cli.typing_on import CTRL_C, CTRL_D, Person

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the agents of these tests."""
    for name, text in {"flow_stays": STAYS, "flow_odd": ODD, "flow_slow": SLOW, "cli_paced": PACED}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


def simulated(agent: str, folder: Path, **more: str) -> Person:
    """A person at a simulation that begins at noon."""
    return Person(
        *command("flows", "simulate", agent, "--at", "2026-09-20T12:00Z"), folder=folder, COLUMNS="200", **more
    )


def test_a_person_types_and_lets_time_pass(folder: Path) -> None:
    """The prompt tells the time; what was not understood is told and no failure; Ctrl-D ends it well."""
    with simulated("flow_stays.py:agent", folder) as person:
        person.sees("/wait 24h lets time pass, /help lists commands, Ctrl-D ends it")
        person.sees("2026-09-20 12:00 > ")
        person.types("/help")
        person.sees("/event NAME")
        person.sees("2026-09-20 12:00 > ")
        person.types("/waits")
        person.sees("there is no /waits")
        person.types("hello")
        person.sees("Where, and how long")
        person.sees("> ")
        person.types("/wait 1d")
        person.sees("silence, for nudge")
        person.sees("Still there?")
        person.sees("2026-09-21 12:00 > ")
        assert person.leaves(CTRL_D) == 0, person.seen
    assert "\x1b[1m2026-09-21 12:00 · silence, for nudge\x1b[0m" in person.seen
    assert "\x1b[2m    nudge/first say: said\x1b[0m" in person.seen
    assert "Traceback" not in person.seen


def test_ctrl_c_stops_a_turn_and_not_the_simulation(folder: Path) -> None:
    """Somebody who waits is told so, and that is gone once there is something else to see."""
    with simulated("flow_slow.py:agent", folder) as person:
        person.sees("> ")
        person.types("slow please")
        person.sees("waiting …")
        person.presses(CTRL_C)
        person.sees("interrupted")
        person.sees("12:00 > ")
        person.types("again")
        person.sees("word0 word1 word2")
        person.sees("12:00 > ")
        person.types("/quit")
        assert person.leaves() == 0, person.seen
    assert "\x1b[2m  waiting …\x1b[0m" in person.seen
    assert "\r\x1b[K" in person.seen


def test_ctrl_c_stops_time_where_it_has_come_to(folder: Path) -> None:
    """A wait that would never be done is left in the middle; what is due later is still there."""
    with simulated("flow_odd.py:agent", folder, NO_COLOR="1") as person:
        person.sees("> ")
        person.types("/event tick")
        person.sees("until 2026-09-20 13:00")
        person.types("/wait 36500d")
        person.sees("2026-09-20 23:00 · the wait of tick/w ends")
        person.presses(CTRL_C)
        stopped = person.sees(r"\n20\d\d-\d\d-\d\d \d\d:00 > ")
        person.types("/wakes")
        person.sees("the wait of tick/w ends")
        assert person.leaves(CTRL_D) == 0, person.seen
    assert stopped.rsplit("\n", 1)[1] < "2126"


def test_ctrl_c_twice_ends_the_program_although_an_action_runs_on(folder: Path) -> None:
    """What may have effects is waited for, and that is told; the second Ctrl-C does not wait."""
    with simulated("flow_odd.py:agent", folder) as person:
        person.sees("> ")
        person.types("/event linger")
        person.sees("waiting …")
        person.presses(CTRL_C)
        person.sees("Ctrl-C again ends the program")
        person.presses(CTRL_C)
        assert person.leaves() == 130, person.seen


def test_ctrl_c_at_the_prompt_ends_it(folder: Path) -> None:
    """As in a chat, without an error."""
    with simulated("flow_stays.py:agent", folder) as person:
        person.sees("> ")
        assert person.leaves(CTRL_C) == 0, person.seen
    assert "Traceback" not in person.seen
