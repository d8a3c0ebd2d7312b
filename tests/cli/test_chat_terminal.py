"""``onrecord chat`` at a terminal: streaming, Ctrl-C, Ctrl-D, questions, and what a kill leaves."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from onrecord.conversation.messages import AssistantMessage, UserMessage
from tests.cli.agents import ASKING, PACED, command, started, stored
from tests.cli.typing_on import CTRL_C, CTRL_D, Person

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the agents of these tests."""
    (tmp_path / "cli_paced.py").write_text(PACED, encoding="utf-8")
    (tmp_path / "cli_asking.py").write_text(ASKING, encoding="utf-8")
    return tmp_path


def stops_a_reply(person: Person) -> None:
    """Presses Ctrl-C in the middle of a slow reply, and gets the next message answered."""
    person.sees("> ")
    person.types("slow please")
    person.sees("word2 ")
    person.presses(CTRL_C)
    person.sees("interrupted")
    person.sees("> ")
    person.types("again")
    person.sees("word0 word1 word2")
    person.sees("> ")


def test_ctrl_c_stops_the_reply_and_not_the_program(folder: Path) -> None:
    """What was shown is kept and marked interrupted, the next message is answered, and the next process knows."""
    with Person(*command("chat", "cli_paced.py", "--store", "t.db"), folder=folder) as person:
        stops_a_reply(person)
        assert person.leaves(CTRL_D) == 0, person.seen
    assert "Traceback" not in person.seen
    kept = stored(folder / "t.db")
    assert kept is not None
    cut, whole = (m for m in kept.conversation.messages if isinstance(m, AssistantMessage))
    assert cut.interrupted == "left"
    assert cut.text.startswith("word0 word1 word2")
    assert "word99" not in cut.text
    assert whole.interrupted is None
    told = started("replay", folder / "t.db")
    assert told.code == 0, told
    assert "[interrupted]" in told.out


def test_ctrl_c_at_the_prompt_ends_the_chat(folder: Path) -> None:
    """An empty prompt and a half-typed line both end it, without an error."""
    for typed in ("", "half a line"):
        with Person(*command("chat", "cli_paced.py"), folder=folder) as person:
            person.sees("> ")
            person.presses(typed)
            assert person.leaves(CTRL_C) == 0, person.seen
        assert "Traceback" not in person.seen


def test_ctrl_c_twice_ends_the_program_although_a_call_runs_on(folder: Path) -> None:
    """A call that may have effects is waited for, and the person is told; the second Ctrl-C does not wait."""
    with Person(*command("chat", "cli_paced.py", "--store", "t.db"), folder=folder) as person:
        person.sees("> ")
        person.types("wait")
        person.sees(r"wait\(\) …")
        person.presses(CTRL_C)
        person.sees("Ctrl-C again ends the program")
        person.presses(CTRL_C)
        assert person.leaves() == 130, person.seen


def test_bytes_that_are_no_text_are_replaced(folder: Path) -> None:
    """A terminal of another encoding types them: the message is taken, and the chat goes on."""
    with Person(*command("chat", "cli_paced.py", "--store", "t.db"), folder=folder) as person:
        person.sees("> ")
        person.types("ol\udcff!")
        person.sees("word2")
        person.sees("> ")
        assert person.leaves(CTRL_D) == 0, person.seen
    assert "Traceback" not in person.seen
    kept = stored(folder / "t.db")
    assert kept is not None
    assert [m.text for m in kept.conversation.messages if isinstance(m, UserMessage)] == ["ol\ufffd!"]


def test_a_terminal_gets_styles_and_a_pipe_or_no_color_does_not(folder: Path) -> None:
    """Bold and dim where the screen can, reasoning dimmed; plain text when NO_COLOR is set."""
    with Person(*command("chat", "cli_paced.py"), folder=folder) as person:
        person.sees("> ")
        person.types("think")
        shown = person.sees("word2")
        assert "\x1b[2mlet me think\x1b[0m" in shown
        person.sees("> ")
        person.leaves(CTRL_D)
        assert "\x1b[1mPaced (paced:words)" in person.seen
    with Person(*command("chat", "cli_paced.py"), folder=folder, NO_COLOR="1", TERM="xterm") as person:
        person.sees("> ")
        person.types("think")
        assert "let me think" not in person.sees("word2")
        person.sees("> ")
        person.leaves(CTRL_D)
        assert "\x1b[1m" not in person.seen
        assert "\x1b[2m" not in person.seen


def test_a_question_is_put_left_and_answered_in_another_process(folder: Path) -> None:
    """The chat ends with the question open; the next one shows it first, and the call runs after the yes."""
    with Person(*command("chat", "cli_asking.py", "--store", "t.db"), folder=folder, NO_COLOR="1") as person:
        person.sees("> ")
        person.types("book it")
        person.sees(r"\? Book a room in Porto\?")
        person.sees("answer> ")
        person.types("hm")
        person.sees("neither a yes nor a no")
        person.types("")
        person.sees("left open")
        person.sees("> ")
        assert person.leaves(CTRL_D) == 0
        person.sees("a question is left open", timeout=0)
    with Person(*command("chat", "cli_asking.py", "--store", "t.db"), folder=folder, NO_COLOR="1") as person:
        person.sees(r"\? Book a room in Porto\?")
        person.sees("answer> ")
        person.types("y, please")
        person.sees(r'book\(city="Porto"\) … returned')
        person.sees("I read: booked Porto")
        person.types("/quit")
        assert person.leaves() == 0
    kept = stored(folder / "t.db")
    assert kept is not None
    assert kept.pending is None


def test_a_chat_killed_in_mid_reply_goes_on_at_the_next_start(folder: Path) -> None:
    """Nothing of the reply was stored, the message was: the next process says so, and answers it before all else."""
    with Person(*command("chat", "cli_paced.py", "--store", "t.db"), folder=folder) as person:
        person.sees("> ")
        person.types("one")
        person.sees("word0 word1 word2")
        person.sees("> ")
        person.types("slow")
        person.sees("word2 ")
        person.process.kill()
        person.leaves()
    ran = started("chat", "cli_paced.py", "--store", "t.db", stdin="two\n", folder=folder)
    assert ran.code == 0, ran
    assert "2 messages so far" in ran.out
    assert re.search(
        r"  going on with what was asked before the interruption:\n> slow\nword0 .*word99 \n> two\n", ran.out
    )
    kept = stored(folder / "t.db")
    assert kept is not None
    assert [m.text for m in kept.conversation.messages if isinstance(m, UserMessage)] == ["one", "slow", "two"]
    assert started("record", "verify", folder / "t.db").code == 0


def test_the_demo_under_make_survives_ctrl_c(folder: Path) -> None:
    """A shell and make between the terminal and the chat get the same signal, and wait for the chat."""
    (folder / "Makefile").write_text(
        f"demo:\n\t@if [ -t 0 ]; then {sys.executable} -m onrecord chat cli_paced.py --store t.db; fi\n",
        encoding="utf-8",
    )
    with Person("make", "demo", folder=folder) as person:
        stops_a_reply(person)
        person.leaves(CTRL_D)
    kept = stored(folder / "t.db")
    assert kept is not None
    assert len(kept.conversation.messages) == 4
