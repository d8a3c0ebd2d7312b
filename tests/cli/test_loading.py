"""MODULE:AGENT, in all the ways in which it leads somewhere or nowhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onrecord.cli.failure import Wrong
from onrecord.cli.loading import ModuleFailed, agent_named
from onrecord.errors import ConfigurationError

pytestmark = pytest.mark.integration

MODULE = '''
from dataclasses import dataclass
from functools import cache, partial
from onrecord import Agent, on_input, tool
from cli_beside import NAME

@dataclass
class Holder:
    agent: "Agent"

number = 3
first = Agent("offline", name=NAME)
second = Agent("offline")
held = Holder(second)

@on_input
async def rule(turn, input):
    raise RuntimeError("called")

@tool
def greet() -> str:
    """Greets."""
    raise RuntimeError("called")

def named(name):
    return Agent("offline", name=name)

bound = partial(named, "bound")

@cache
def once():
    return Agent("offline", name="once")

class Maker:
    def made(self):
        return Agent("offline", name="method")

maker = Maker()

def made():
    return Agent("offline", name="made")

def needs(a):
    return first

def wrong():
    return 5

def raising():
    raise KeyError("k")

async def later():
    return first
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module and one beside it, as the current one; imports are undone afterwards."""
    (tmp_path / "cli_agents.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "cli_beside.py").write_text('NAME = "first"\n', encoding="utf-8")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "cli_inner.py").write_text(
        'from onrecord import Agent\nonly = Agent("offline", name="inner")\n', encoding="utf-8"
    )
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "loose.py").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith(("cli_", "inner", "onrecord_chat_")):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("cli_agents.py:first", "first"),
        ("cli_agents:first", "first"),
        ("./cli_agents.py:made", "made"),
        ("cli_agents:made", "made"),
        ("cli_agents:held.agent", "agent"),
        ("cli_agents:bound", "bound"),
        ("cli_agents:once", "once"),
        ("cli_agents:maker.made", "method"),
        ("inner/cli_inner.py", "inner"),
        ("inner/cli_inner.py:only", "inner"),
        ("inner.cli_inner:only", "inner"),
    ],
)
def test_an_agent_is_found(folder: Path, name: str, found: str) -> None:
    """In a file or an importable module, by attribute, through a function, or as the only one there."""
    assert agent_named(name).name == found


def test_the_same_file_is_loaded_although_its_name_is_taken(folder: Path) -> None:
    """A file whose name is that of a loaded module does not replace it."""
    (folder / "json.py").write_text('from onrecord import Agent\nagent = Agent("offline", name="mine")\n')
    import json

    assert agent_named("./json.py").name == "mine"
    assert sys.modules["json"] is json


def test_another_model_can_be_named(folder: Path) -> None:
    """The agent is the same but for its model; a wrong name is a configuration error with a hint."""
    agent = agent_named("cli_agents.py:first", model="groq:other")
    assert "groq:other" in repr(agent)
    with pytest.raises(ConfigurationError, match="unknown model provider") as caught:
        agent_named("cli_agents.py:first", model="ofline")
    assert caught.value.hint == "did you mean 'offline'?"


@pytest.mark.parametrize(
    ("name", "told", "hint"),
    [
        ("nowhere.py:agent", "there is no file 'nowhere.py'", "write MODULE:AGENT"),
        ("cli_agent.py:first", "there is no file 'cli_agent.py'", "did you mean 'cli_agents.py'?"),
        ("nofolder/x.py", "there is no file", "write MODULE:AGENT"),
        ("nowhere:agent", "there is no module 'nowhere'", "write MODULE:AGENT"),
        ("cli_agents.py", "which agent of 'cli_agents.py' is not said", "cli_agents.py:first, cli_agents.py:second"),
        ("cli_beside.py", "which agent of", "write MODULE:AGENT"),
        ("cli_agents.py:firstly", "has no 'firstly'", "did you mean cli_agents.py:first?"),
        ("cli_agents.py:zzz", "has no 'zzz'", "agents there: cli_agents.py:first"),
        ("cli_agents.py:number", "is no agent but of type int", "agents there"),
        ("cli_agents.py:rule", "is no agent but of type Rule", "agents there"),
        ("cli_agents.py:greet", "is no agent but of type Tool", "agents there"),
        ("cli_agents.py:", "'cli_agents.py:' names nothing behind its colon", "write MODULE:AGENT"),
        ("cli_agents:", "'cli_agents:' names nothing behind its colon", "write MODULE:AGENT"),
        ("folder.py", "'folder.py' is a folder", "write MODULE:AGENT"),
        ("./folder.py:agent", "'./folder.py' is a folder", "write MODULE:AGENT"),
        ("loose.py", "'loose.py' is a link that leads nowhere", "write MODULE:AGENT"),
        ("cli_agents.py:Holder", "is no agent but a class", "agents there"),
        ("cli_agents.py:needs", "cannot be called without arguments", "a function without arguments"),
        ("cli_agents.py:wrong", "is no agent but of type int", "agents there"),
        ("cli_agents.py:later", "is an async function", "a plain function"),
        ("a..b:c", "there is no module 'a..b'", "write MODULE:AGENT"),
        ("..:c", "names no module", "write MODULE:AGENT"),
        (":", "there is no module", "write MODULE:AGENT"),
        ("./cli_agents.txt:x", "there is no file", "did you mean 'cli_agents.py'?"),
    ],
)
def test_a_name_that_leads_nowhere_says_so(folder: Path, name: str, told: str, hint: str) -> None:
    """One line, and where it could have led."""
    with pytest.raises(Wrong) as caught:
        agent_named(name)
    assert told in str(caught.value)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "told", "hint"),
    [
        ("x = 1\nraise ValueError('broken')\n", "ValueError: broken (cli_bad.py, line 2)", "--debug"),
        ("def f(:\n", "SyntaxError: invalid syntax (cli_bad.py, line 1)", "--debug"),
        ("import not_there_at_all\n", "No module named 'not_there_at_all'", "install what it needs"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3", "--debug"),
        (
            "from onrecord import Agent\nagent = Agent('offline', rounds=99)\n",
            "rounds must be a whole number from 0 to 50, got 99",
            "--debug",
        ),
        ("def agent():\n    raise KeyError('k')\n", "raised KeyError: 'k' (cli_bad.py, line 2)", "--debug"),
    ],
)
@pytest.mark.parametrize("form", ["cli_bad.py", "cli_bad:agent"])
def test_a_module_that_fails_says_what_and_where(folder: Path, form: str, text: str, told: str, hint: str) -> None:
    """The user's own error, with its file and line, and no traceback."""
    (folder / "cli_bad.py").write_text(text, encoding="utf-8")
    with pytest.raises(ModuleFailed) as caught:
        agent_named(form)
    assert told in str(caught.value)
    assert hint in caught.value.hint


def test_a_file_named_without_its_suffix_is_hinted_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that Python does not find, though a file of that name is elsewhere on the path given."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cli_notes.txt").write_text("", encoding="utf-8")
    with pytest.raises(Wrong, match="is no Python file"):
        agent_named("./cli_notes.txt")
    with pytest.raises(Wrong, match=r"'cli_notes\.txt' is no Python file"):
        agent_named("cli_notes.txt")
