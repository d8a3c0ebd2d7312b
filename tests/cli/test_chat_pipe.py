"""``onrecord chat`` on a pipe: one message a line, plain text out."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from gates.report import ROOT
from onrecord.conversation.messages import AssistantMessage
from tests.cli.agents import ASKING, PACED, RULED, command, environment, run, started, stored

pytestmark = pytest.mark.integration


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the agents of these tests, as the current one."""
    for name, text in {"paced.py": PACED, "asking.py": ASKING, "ruled.py": RULED}.items():
        (tmp_path / f"cli_{name}").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_line_is_a_message_and_the_output_reads_as_it_went(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages are echoed, calls and answers follow, nothing is styled, and the end of the input ends it well."""
    ran = run(capsys, monkeypatch, "chat", "cli_ruled.py", stdin="How much in Lisbon?\n\nAnd in Paris?\n")
    assert ran.code == 0, ran
    lines = ran.out.splitlines()
    assert lines[0].startswith("Ruled (scripted:script) · this session is not kept")
    assert lines[1:] == [
        "> How much in Lisbon?",
        "Let me see. ",
        '  price(city="Lisbon"): returned',
        "It costs 280.",
        "> And in Paris?",
        '  price(city="Paris"): denied',
        "Not in Paris.",
    ]
    assert "\x1b" not in ran.out


def test_a_failed_turn_is_told_in_a_line_and_the_chat_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model error, a reply that breaks off and a denied message cost one line each; a script learns it at the end."""
    lines = "a\nb\nfails\nbreaks off\ndamn\nstill there?\n"
    ran = run(capsys, monkeypatch, "chat", "cli_ruled.py", "--store", "t.db", stdin=lines)
    assert ran.code == 1
    assert ran.out.splitlines()[-4:] == ["Half an", "> damn", "> still there?", "Fine."]
    assert [line for line in ran.err.splitlines() if not line.startswith("  hint")] == [
        "onrecord: scripted overload",
        "onrecord: scripted network",
        "onrecord: rule 'polite' denied the message at input: please be polite",
    ]
    assert "Traceback" not in ran.err
    kept = stored(folder / "t.db")
    assert kept is not None
    cut = [m for m in kept.conversation.messages if isinstance(m, AssistantMessage) and m.interrupted]
    assert [m.text for m in cut] == ["Half an"]


def test_a_session_goes_on_in_another_process_with_a_line_about_it(folder: Path) -> None:
    """The store keeps it; the second chat says what was said last."""
    first = started("chat", "cli_paced:agent", "--store", "t.db", "--session", "ana", stdin="one\n", folder=folder)
    assert first.code == 0, first
    second = started("chat", "cli_paced.py", "--store", "t.db", "--session", "ana", stdin="two\n", folder=folder)
    assert second.code == 0, second
    lines = second.out.splitlines()
    assert lines[1] == "I only count."
    assert re.match(r"2 messages so far · last on .* · the agent said “word0 word1 word2”", lines[2])
    kept = stored(folder / "t.db", "ana")
    assert kept is not None
    assert [m.text.strip() for m in kept.conversation.messages if hasattr(m, "text")] == [
        "one", "word0 word1 word2", "two", "word0 word1 word2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("y", "booked Porto"),
        ("Yes, go ahead", "booked Porto"),
        ("sim", "booked Porto"),
        ("n, too expensive", "Declined by a person: too expensive"),
        ("não", "Declined by a person."),
        ("perhaps\nok", "booked Porto"),
    ],
)
def test_an_open_question_is_answered_by_the_next_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: str, read: str
) -> None:
    """A yes or a no in several languages, with a note behind it; what is neither is asked again."""
    ran = run(capsys, monkeypatch, "chat", "cli_asking.py", stdin=f"book it\n{answer}\n")
    assert ran.code == 0, ran
    assert "? Book a room in Porto?" in ran.out
    assert 'asked by careful · meant for: approver · book(city="Porto")' in ran.out
    assert ran.out.splitlines()[-1] == f"I read: {read}"


def test_a_question_with_fields_takes_a_line_for_each(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values are read by their schema, asked for again where they do not fit; private links are shown, not kept."""
    lines = "form\nAna\nold\n33\ntriple\ndouble\n"
    ran = run(capsys, monkeypatch, "chat", "cli_asking.py", "--store", "t.db", stdin=lines)
    assert ran.code == 0, ran
    assert "  link: https://consent.example/secret" in ran.out
    assert "  expected a whole number" in ran.out
    assert "  expected one of single, double; found “triple”" in ran.out
    assert ran.out.splitlines()[-1] == 'I read: {"name":"Ana","age":33,"room":"double"}'
    assert b"consent.example" not in (folder / "t.db").read_bytes()


def test_a_free_question_takes_words_and_knows_a_yes(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler gets the words, and whether they begin with a yes."""
    ran = run(capsys, monkeypatch, "chat", "cli_asking.py", stdin="sure\nyes, quite\nsure\nwho knows\n")
    assert "I read: True yes, quite" in ran.out
    assert "I read: None who knows" in ran.out


def test_a_question_left_open_is_shown_first_in_the_next_process(folder: Path) -> None:
    """The end of the input leaves it open; the resumed session asks before anything else, and the turn goes on."""
    first = started("chat", "cli_asking.py", "--store", "t.db", stdin="book it\n", folder=folder)
    assert first.code == 0, first
    assert first.out.splitlines()[-1] == "  a question is left open; the same --session answers it later"
    second = started("chat", "cli_asking.py", "--store", "t.db", stdin="y\n", folder=folder)
    assert second.out.splitlines()[2].startswith("? Book a room in Porto?")
    assert second.out.splitlines()[-1] == "I read: booked Porto"


def test_later_leaves_a_question_open_and_answer_comes_back_to_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other messages are taken meanwhile; commands work at the answer's prompt too."""
    lines = "/answer\nbook it\n/record\n/answer\n/later\nhello\n/answer now\ny\n"
    ran = run(capsys, monkeypatch, "chat", "cli_asking.py", stdin=lines)
    assert ran.code == 0, ran
    assert "  no question is open" in ran.out
    assert "turn.paused" in ran.out
    assert ran.out.count("? Book a room in Porto?") == 3
    assert "there is no /answer" not in ran.out
    assert "  left open: /answer comes back to it" in ran.out
    assert ran.out.index("Nothing to do.") < ran.out.index("I read: booked Porto")


def test_commands_show_the_last_turn_and_why_it_answered(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """/record lists entries, /why tells sentences, /help the commands, an unknown one says so, /quit ends the chat."""
    lines = "/why\nLisbon?\n/record\n/why\n/help\n/nonsense\n/quit\nnot read\n"
    ran = run(capsys, monkeypatch, "chat", "cli_ruled.py", stdin=lines)
    assert ran.code == 0, ran
    assert "  nothing happened yet" in ran.out
    assert re.search(r"│ └ tool.started +price\(city=\"Lisbon\"\)", ran.out)
    assert "A person said “Lisbon?”." in ran.out
    assert 'price returned {"total":280}' in ran.out
    assert "there is no /nonsense" in ran.out
    assert "not read" not in ran.out


def test_why_explains_one_entry_too(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the number that /record shows; a number that there is not is told, and so is /later without a question."""
    lines = "Lisbon?\n/why 1\n/why 99\n/why me\n/later\n"
    ran = run(capsys, monkeypatch, "chat", "cli_ruled.py", stdin=lines)
    assert ran.code == 0, ran
    assert "Why turn.input (1)" in ran.out
    assert "there is no entry 99; /record shows those of the last turn" in ran.out
    assert "there is no entry me" in ran.out
    assert "  no question is open" in ran.out


class Piped:
    """A chat with the paced agent in a process of its own, kept in ``t.db``, on pipes that a test holds."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            command("chat", "cli_paced.py", "--store", "t.db"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment(PYTHONUNBUFFERED="1"), cwd=folder, text=True,
        )  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.into, self.out, self.err = self.process.stdin, self.process.stdout, self.process.stderr

    def says(self, lines: str, *, until: str) -> None:
        """Writes lines, and waits until the output has come to this text."""
        self.into.write(lines)
        self.into.flush()
        seen = ""
        while not seen.endswith(until):
            shown = self.out.read(1)
            assert shown, self.err.read()
            seen += shown

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.process:
            if kind is not None:
                self.process.kill()


def test_a_session_changed_elsewhere_is_loaded_again(folder: Path) -> None:
    """Two chats share a session: the one that stood still reads what the other said before its next turn."""
    with Piped(folder) as still:
        still.says("one\n", until="word0")
        other = started("chat", "cli_paced.py", "--store", "t.db", stdin="two\n", folder=folder)
        assert other.code == 0, other
        out, _ = still.process.communicate("three\n")
    assert "the session was changed elsewhere and is loaded again: 4 messages" in out
    kept = stored(folder / "t.db")
    assert kept is not None
    assert len(kept.conversation.messages) == 6


def test_two_chats_of_one_session_take_turns(folder: Path) -> None:
    """What is said in one while the other replies waits for that reply; nothing is lost, and both go on."""
    with Piped(folder) as slow:
        slow.says("one\nslow\n", until="> slow")
        other = started("chat", "cli_paced.py", "--store", "t.db", stdin="two\n", folder=folder)
        assert other.code == 0, other
        out, _ = slow.process.communicate("three\n", timeout=18)
        assert slow.process.returncode == 0
    assert "word99" in out
    kept = stored(folder / "t.db")
    assert kept is not None
    assert [m.text.strip() for m in kept.conversation.messages if hasattr(m, "text")][::2] == [
        "one",
        "slow",
        "two",
        "three",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("lines", "until"), [("one\n", "word2 \n"), ("slow\n", "word2 ")])
def test_ctrl_c_ends_a_chat_on_a_pipe(folder: Path, lines: str, until: str) -> None:
    """Between two lines and in the middle of a reply: exit code 130, without a traceback, and the turn is kept."""
    with Piped(folder) as chat:
        chat.says(lines, until=until)
        chat.process.send_signal(signal.SIGINT)
        out, err = chat.process.communicate("never read\n", timeout=18)
    assert (chat.process.returncode, err) == (130, "")
    assert "never read" not in out
    kept = stored(folder / "t.db")
    assert kept is not None
    assert len(kept.conversation.messages) == 2


def test_a_reader_that_goes_away_ends_the_chat_quietly(folder: Path) -> None:
    """The reply is left, what was shown is kept, and nobody sees a traceback."""
    with Piped(folder) as chat:
        chat.says("one\n", until="word0")
        chat.out.close()
        chat.into.write("lines\nnever read\n")
        chat.into.close()
        err = chat.err.read()
    assert chat.process.returncode == 141
    assert err == ""
    kept = stored(folder / "t.db")
    assert kept is not None
    assert len(kept.conversation.messages) >= 2


def test_control_codes_of_a_model_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a model says cannot move the cursor, change a title or hide text."""
    (tmp_path / "cli_codes.py").write_text(
        "from onrecord import Agent\nfrom onrecord.testing import ScriptedModel\n"
        "agent = Agent(ScriptedModel('red \\x1b[31m title \\x1b]0;x\\x07 back\\rover \\u202e'))\n",
        encoding="utf-8",
    )
    ran = run(capsys, monkeypatch, "chat", tmp_path / "cli_codes.py", stdin="hi\n")
    assert ran.out.splitlines()[-1] == r"red \x1b[31m title \x1b]0;x\x07 backover \u202e"


def test_typed_output_that_does_not_fit_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text stays the model's; a fallback or a failure of the typed value has a line of its own."""
    (tmp_path / "cli_typed.py").write_text(
        "from onrecord import Agent, Typed\nfrom onrecord.testing import ScriptedModel\n"
        "plain = Agent(ScriptedModel('no', 'no'), output=dict[str, int])\n"
        "canned = Agent(ScriptedModel('no', 'no'), output=dict[str, int], features=[Typed(canned={'a': 1})])\n",
        encoding="utf-8",
    )
    plain = run(capsys, monkeypatch, "chat", f"{tmp_path / 'cli_typed.py'}:plain", stdin="hi\n")
    assert "the answer is not a valid output" in plain.out
    canned = run(capsys, monkeypatch, "chat", f"{tmp_path / 'cli_typed.py'}:canned", stdin="hi\n")
    assert "output (canned): {'a': 1}" in canned.out


def test_the_demo_without_a_terminal_ends_with_a_booked_room(tmp_path: Path) -> None:
    """The command of ``make demo``: a scripted customer, exit code 0, a booking, and a record that verifies."""
    customer = (ROOT / "examples" / "hotel_customer.txt").read_text(encoding="utf-8")
    agent, store = f"{ROOT / 'examples' / 'hotel.py'}:agent", tmp_path / "demo.db"
    ran = started("chat", agent, "--store", store, "--session", "demo", stdin=customer)
    assert ran.code == 0, ran
    assert "rule-based stand-in" in ran.out
    assert 'book(city="Porto", nights=2, name="Ana Costa"): returned' in ran.out
    assert re.search(r"code: H-\d+", ran.out)
    kept = stored(store, "demo")
    assert kept is not None
    assert str(kept.data["booking"]).startswith("H-")
    why = started("record", "why", store, "demo", "last")
    assert "said" in why.out
    assert started("record", "verify", store, "demo").code == 0
