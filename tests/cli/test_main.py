"""The command itself: help, version, wrong usage, tracebacks on request, and how fast it starts."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from onrecord import __version__
from onrecord.cli import talk
from onrecord.cli.main import main
from tests.cli.agents import PACED, Ran, command, environment, run, started

pytestmark = pytest.mark.integration

COMMANDS = (
    "", "chat", "record", "record show", "record why", "record export", "record verify", "replay", "models",
    "store", "store check", "store migrate", "store backup", "store erase",
    "flows", "flows check", "flows draw", "flows simulate", "inbox", "inbox list", "inbox retry", "inbox drop",
)  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its purpose, its exit codes and, where it does something itself, examples."""
    ran = run(capsys, monkeypatch, *name.split(), "--help")
    assert ran.code == 0
    assert "exit codes:" in ran.out
    assert "examples" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 120


def test_the_help_of_a_chat_names_what_can_be_typed_in_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command that `/help` lists there, those about an open question too; in a simulation as well."""
    typed = set(re.findall(r"(?<!\w)/[a-z]+", talk.COMMANDS))
    assert typed >= {"/later", "/decline"}
    assert typed <= set(re.findall(r"/[a-z]+", run(capsys, monkeypatch, "chat", "--help").out))
    assert {"/later", "/decline"} <= set(
        re.findall(r"/[a-z]+", run(capsys, monkeypatch, "flows", "simulate", "--help").out)
    )


def test_the_version_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """By both ways of starting it."""
    assert run(capsys, monkeypatch, "--version").out == f"onrecord {__version__}\n"
    assert started("--version").out == f"onrecord {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "onrecord: the following arguments are required: COMMAND"),
        (("nonsense",), "onrecord: argument COMMAND: invalid choice: 'nonsense'"),
        (("chat",), "onrecord chat: the following arguments are required: MODULE:AGENT"),
        (("chat", "x", "--sesion", "y"), "onrecord chat: it does not take '--sesion' 'y'"),
        (("--bogus",), "onrecord: it does not take '--bogus'"),
        (("chat", "--bogus=x", "-z"), "onrecord chat: it does not take '--bogus' '-z'"),
        (("record", "export", "-ofile"), "onrecord record export: the following arguments are required: FILE"),
        (("record",), "onrecord record: the following arguments are required: COMMAND"),
        (("record", "show"), "onrecord record show: the following arguments are required: FILE"),
        (("replay", "x", "--at", "y"), "onrecord replay: argument --at: invalid int value: 'y'"),
        (("chat", "x", "--session"), "onrecord chat: argument --session: expected one argument"),
    ],
)
def test_wrong_usage_is_a_line_and_a_hint(
    arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On stderr, with exit code 2; the hint names the command whose help to read."""
    ran = run(capsys, monkeypatch, *arguments)
    assert ran.code == 2
    assert ran.out == ""
    line, hint = ran.err.splitlines()
    assert line.startswith(told)
    assert hint.endswith("--help shows how it is used")


@pytest.mark.parametrize(
    ("option", "code", "told"),
    [
        (("--model", "gpt:5"), 2, "unknown model provider in 'gpt:5'"),
        (("--model", "offline:zzz"), 2, "there is no model 'zzz' of provider 'offline'"),
        (("--store", "."), 2, "is a folder"),
        (("--store", " "), 2, "' ' does not name a file"),
        (("--store", "no/such/x.db"), 2, "its folder does not exist"),
        (("--store", "words/x.db"), 2, "its folder is not a folder"),
        (("--store", "words"), 1, "is not a SQLite file; it was not touched"),
        (("--session", ""), 2, "--session needs a name"),
        (("--session", " \t"), 2, "--session needs a name"),
    ],
)
def test_a_chat_that_cannot_begin_says_why(
    option: tuple[str, str], code: int, told: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Before any line is read; a name that leads nowhere is wrong usage, a file that cannot be used is a failure."""
    (tmp_path / "cli_paced.py").write_text(PACED, encoding="utf-8")
    (tmp_path / "words").write_text("not a store", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    ran = run(capsys, monkeypatch, "chat", "cli_paced.py", *option, stdin="hi\n")
    assert ran.code == code, ran
    assert ran.out == ""
    assert told in ran.err
    assert len(ran.err.splitlines()) == 2, ran
    assert (tmp_path / "words").read_text(encoding="utf-8") == "not a store"


def test_a_traceback_is_shown_when_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --debug before or behind the command, or ONRECORD_DEBUG; the line and the hint are there as well."""
    file = tmp_path / "cli_broken.py"
    file.write_text("raise ValueError('broken')\n", encoding="utf-8")

    def ran(*arguments: str) -> Ran:
        return run(capsys, monkeypatch, *arguments)

    assert "Traceback" not in ran("chat", str(file)).err
    for arguments in (("--debug", "chat", str(file)), ("chat", str(file), "--debug")):
        told = ran(*arguments)
        assert told.code == 1
        assert "Traceback" in told.err
        assert f"onrecord: {str(file)!r} cannot be imported: ValueError: broken" in told.err
    monkeypatch.setenv("ONRECORD_DEBUG", "1")
    assert "Traceback" in ran("chat", str(file)).err
    monkeypatch.setenv("ONRECORD_DEBUG", "0")
    assert "Traceback" not in ran("chat", str(file)).err


def test_a_failed_turn_shows_its_traceback_when_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chat goes on all the same."""
    (tmp_path / "cli_failing.py").write_text(
        "from onrecord import Agent\nfrom onrecord.testing import ScriptedModel, raises\n"
        "agent = Agent(ScriptedModel(raises('auth'), 'back'))\n",
        encoding="utf-8",
    )
    ran = run(capsys, monkeypatch, "chat", tmp_path / "cli_failing.py", "--debug", stdin="a\nb\n")
    assert "Traceback" in ran.err
    assert ran.out.splitlines()[-1] == "back"


def test_an_unforeseen_error_is_a_line_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours names itself and says how to see more."""

    def broken(args: object) -> int:
        raise RuntimeError("a\nfault")

    monkeypatch.setattr("onrecord.cli.models.run", broken)
    ran = run(capsys, monkeypatch, "models")
    assert ran.code == 1
    assert ran.err.splitlines()[0] == "onrecord: RuntimeError: a fault"
    assert "--debug" in ran.err


def test_ctrl_c_outside_a_chat_is_130(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word."""

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    for place in ("models.run", "main._parser"):  # the second: while it starts
        with monkeypatch.context() as patched:
            patched.setattr(f"onrecord.cli.{place}", interrupted)
            ran = run(capsys, monkeypatch, "models")
        assert (ran.code, ran.out, ran.err) == (130, "", ""), place


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """As with any other command behind a pipe: exit code 141 and not a word."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command("models"), stdout=writing, stderr=subprocess.PIPE, env=environment(), cwd=tmp_path, check=False
    )
    os.close(writing)
    assert done.returncode == 141
    assert done.stderr == b""


def test_output_that_the_screen_cannot_show_is_replaced(tmp_path: Path) -> None:
    """A terminal without Unicode gets question marks, not an error."""
    (tmp_path / "cli_paced.py").write_text(PACED, encoding="utf-8")
    done = subprocess.run(
        command("chat", "cli_paced.py"), input="olá\n".encode(), capture_output=True, cwd=tmp_path, check=False,
        env=environment(PYTHONIOENCODING="ascii", PYTHONUTF8="0"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"word0 word1 word2" in done.stdout


LOADED = "import json, sys; from onrecord.cli.main import main\ntry: main({arguments!r})\nexcept SystemExit: pass\n"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["record", "show", "nowhere.db"]])
def test_nothing_heavy_is_loaded_before_it_is_needed(arguments: list[str], tmp_path: Path) -> None:
    """Neither the transport nor a provider nor SQLite, and for help not even the loop."""
    code = LOADED.format(arguments=arguments) + "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), cwd=tmp_path, check=True
    )
    loaded = set(re.findall(r'"([^"]+)"', done.stderr.splitlines()[-1]))
    assert not loaded & {"aiohttp", "sqlite3", "onrecord.net.transport", "onrecord.providers.offline.client"}
    if arguments[0].startswith("--"):
        assert not loaded & {"asyncio", "msgspec", "onrecord.agent"}


def test_main_can_be_called_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """It returns its exit code, and takes its arguments from the command line when none are given."""
    monkeypatch.setattr(sys, "argv", ["onrecord", "record", "show", "nowhere.db"])
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert main() == 2
