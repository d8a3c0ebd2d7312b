"""What is printed, and how."""

from __future__ import annotations

import io
import re
import sys

import pytest

from onrecord.cli.reply import Reply
from onrecord.cli.terminal import Keyboard, Screen, cut, plural, quoted, safe
from onrecord.conversation.content import Citation, Mark
from onrecord.conversation.outgoing import (
    CallDelta,
    ChildDelta,
    CitationDelta,
    MarkDelta,
    ReasoningDelta,
    SearchDelta,
    TextDelta,
)
from onrecord.honesty.sentences import call_text
from onrecord.jsonio import dumps, loads
from tests.cli.agents import Terminal

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("ação “ok” 日本\n\ttab", "ação “ok” 日本\n\ttab"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\rb", "ab"),
        ("bell\x07", r"bell\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202eabc", r"\u202eabc"),
    ],
)
def test_control_codes_are_shown_and_not_obeyed(text: str, shown: str) -> None:
    """Words of every script pass; what would steer a terminal becomes visible."""
    assert safe(text) == shown


def test_json_is_the_same_value_and_steers_nothing() -> None:
    """Control codes and marks that turn text around stand escaped; words of every script stand as they are."""
    out = io.StringIO()
    held = {"text": "日本 \x9b31m\x7f\u202eabc\u2028\u2066"}
    Screen(out).json(dumps(held))
    assert out.getvalue() == '{"text":"日本 \\u009b31m\\u007f\\u202eabc\\u2028\\u2066"}\n'
    assert loads(out.getvalue()) == held


def test_texts_are_cut_to_a_line() -> None:
    """White space becomes single blanks, what is too long ends in an ellipsis, 0 is no limit."""
    assert cut("a\n  b", 0) == "a b"
    assert cut("abcdef", 4) == "abc…"
    assert quoted("abc") == "“abc”"
    assert (plural(1, "entry", "entries"), plural(2, "entry", "entries"), plural(0, "call")) == (
        "1 entry",
        "2 entries",
        "0 calls",
    )


@pytest.mark.parametrize(
    ("variables", "styled"),
    [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({}, False)],
)
def test_styles_are_for_terminals_that_can(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], styled: bool
) -> None:
    """Neither a dumb terminal, nor NO_COLOR, nor a pipe."""
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Screen(Terminal()).styled is styled
    assert Screen(io.StringIO()).styled is False


def test_a_line_begins_on_a_line_of_its_own() -> None:
    """After text that has no end, and not after text that has one."""
    out = io.StringIO()
    screen = Screen(out)
    screen.write("no end")
    screen.line("next")
    screen.write("end\n")
    screen.line("last")
    assert out.getvalue() == "no end\nnext\nend\nlast\n"


def test_a_pipe_ends_with_eof_and_its_lines_are_echoed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blank lines are not echoed; bytes that are no text are replaced; the last line needs no end."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\r\n\n\xff\nlast")))
    out = io.StringIO()
    keyboard = Keyboard(Screen(out))
    assert [keyboard.line("> ") for _ in range(4)] == ["one", "", "\ufffd", "last"]
    with pytest.raises(EOFError):
        keyboard.line("> ")
    assert out.getvalue() == "> one\n> \ufffd\n> last\n"


def test_a_call_reads_as_one_would_write_it() -> None:
    """JSON values behind their names, cut where they are long."""
    assert call_text("price", {"city": "Lisbon", "nights": 2}) == 'price(city="Lisbon", nights=2)'
    assert call_text("f", {"a": "x" * 50}, 10) == 'f(a="xxxxxx…)'


def shown(*deltas: object, live: bool = False, monkeypatch: pytest.MonkeyPatch | None = None) -> str:
    """What a reply of these deltas looks like."""
    out = Terminal() if live else io.StringIO()
    if monkeypatch is not None:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
    reply = Reply(Screen(out))
    for delta in deltas:
        reply.show([delta])  # type: ignore[list-item]  # any delta
    reply.end()
    return out.getvalue()


def asked(id: str, status: str) -> CallDelta:
    """A call's delta."""
    return CallDelta(id=id, name="price", status=status, args={"n": id})


def test_calls_words_and_sources_of_a_reply_have_lines_of_their_own() -> None:
    """A call is one line on a pipe; words go on after it on a new line; sources come last, once each."""
    cited = CitationDelta((Citation(url="https://a"), Citation(url="https://a")))
    told = shown(
        TextDelta("Let me "), TextDelta("see."), asked("1", "asked"), asked("1", "returned"), cited,
        ReasoningDelta("hm"), SearchDelta(id="s", status="done"), TextDelta("It is so."),
    )  # fmt: skip
    assert told == 'Let me see.\n  price(n="1"): returned\nIt is so.\n  source: https://a\n'


def test_calls_that_run_together_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a terminal a call's line is finished where nothing came between; else it ends on a line of its own."""
    monkeypatch.setenv("NO_COLOR", "1")
    one = shown(asked("1", "asked"), asked("1", "failed"), live=True)
    assert one == '  price(n="1") … failed\n'
    two = shown(asked("1", "asked"), asked("2", "asked"), asked("1", "returned"), asked("2", "not_run"), live=True)
    assert two == '  price(n="1") …\n  price(n="2") …\n  price(n="1"): returned\n  price(n="2"): not run\n'


def test_reasoning_is_dimmed_and_visible_marks_are_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hidden marks leave no trace."""
    told = shown(
        ReasoningDelta("hm"), TextDelta("a"), MarkDelta(Mark(kind="sticker", raw=":)", hidden=False)),
        MarkDelta(Mark(kind="act", raw="<act>")), live=True, monkeypatch=monkeypatch,
    )  # fmt: skip
    assert told == "\x1b[2mhm\x1b[0m\na:)\n"


def test_lines_break_between_words_where_the_screen_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line's own indent; a pipe gets them whole."""
    monkeypatch.setenv("COLUMNS", "12")
    monkeypatch.setenv("NO_COLOR", "1")
    out, pipe = Terminal(), io.StringIO()
    Screen(out).line("  one two three four\nfive")
    Screen(pipe).line("  one two three four\nfive")
    assert out.getvalue() == "  one two\n  three four\nfive\n"
    assert pipe.getvalue() == "  one two three four\nfive\n"


def test_calls_of_a_sub_agent_stand_before_the_one_that_asked_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line for each that ended, with whose it was; what it asked for is not announced."""
    inner = [ChildDelta(call="a", agent="clerk", delta=asked("b", status)) for status in ("asked", "returned")]
    deep = ChildDelta(call="a", agent="clerk", delta=ChildDelta(call="b", agent="low", delta=asked("c", "failed")))
    for live in (False, True):
        lines = shown(asked("a", "asked"), *inner, deep, asked("a", "returned"), live=live, monkeypatch=monkeypatch)
        assert [line for line in plain(lines).splitlines() if not line.endswith("…")] == [
            '  clerk > price(n="b"): returned',
            '  clerk > low > price(n="c"): failed',
            '  price(n="a"): returned',
        ]


def plain(text: str) -> str:
    """Without what makes it dim."""
    return re.sub(r"\x1b\[\d+m", "", text)


def test_whom_one_waits_for_is_said_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal that can erase it; it leaves no trace in a pipe."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out, pipe = Terminal(), io.StringIO()
    for stream in (out, pipe):
        reply = Reply(Screen(stream))
        reply.wait("openai:x")
        reply.show([TextDelta("Hello.")])
        reply.end()
    assert out.getvalue() == "\x1b[2m  waiting for openai:x …\x1b[0m\r\x1b[KHello.\n"
    assert pipe.getvalue() == "Hello.\n"
