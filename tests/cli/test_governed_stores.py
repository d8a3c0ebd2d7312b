"""The command line on stores of governed agents: open questions, agents below others, entries of features."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.cli.sources import folds_for
from onrecord.prompt import Window
from onrecord.session.folding import NO_FOLDS
from onrecord.stores.sqlite import SqliteStore
from tests.cli.agents import Cli

pytestmark = pytest.mark.integration

GOVERNED = '''
from onrecord import Agent, Allow, Ask, before_tool, tool
from onrecord.governance import Redaction
from onrecord.prompt import Window
from onrecord.skills import Skill, SkillGraph
from onrecord.testing import ScriptedModel, call


@tool
def remove() -> str:
    """Removes it."""
    return "removed"


@before_tool
def sure(turn, made):
    return Ask("Remove canary-4417?") if made.name == "remove" and turn.resumed is None else Allow()


def agent():
    below = Agent(ScriptedModel("Deep.", "Deeper."), name="below")
    model = ScriptedModel([call("helper", message="?")], "Hello.", call("remove"))
    graph = SkillGraph([Skill("a", "About a.", "Do a.")], start="a")
    return Agent(
        model, name="above", tools=[remove, below.as_tool(id="helper")],
        features=[sure, Redaction(patterns=["canary-[0-9]+"]), Window.last(6), graph],
    )
'''


@pytest.fixture
def governed(tmp_path: Path) -> tuple[Path, str]:
    """A store with a session that waits for a person and one below it; and how its agent is named."""
    path, code = tmp_path / "talk.db", tmp_path / "governed.py"
    code.write_text(GOVERNED, encoding="utf-8")
    namespace: dict[str, object] = {}
    exec(GOVERNED, namespace)  # noqa: S102  # the text of a test agent

    async def fill() -> None:
        agent = namespace["agent"]()  # type: ignore[operator]  # the function of the text above
        async with SqliteStore(path) as store:
            session = await store.commit((await agent.turn("Hi", session="ana")).change())
            await store.commit((await agent.turn("Remove it", session=session)).change())

    asyncio.run(fill())
    return path, f"{code}:agent"


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_open_question_is_redacted_in_the_list_too(
    governed: tuple[Path, str], cli: Cli, more: tuple[str, ...]
) -> None:
    """As the agent says, as the options say, or without any text."""
    path, agent = governed
    assert "canary-4417" in cli("record", "show", path, *more).out
    for options in (("--agent", agent), ("--redact", "canary-[0-9]+"), ("--no-texts",)):
        shown = cli("record", "show", path, *more, *options)
        assert shown.code == 0, shown
        assert "canary" not in shown.out
        assert "[redacted]" in shown.out


def test_the_agent_above_is_no_judge_of_the_state_of_one_below(governed: tuple[Path, str], cli: Cli) -> None:
    """It has a window, the one below has none."""
    path, agent = governed
    checked = cli("store", "check", path, "--agent", agent)
    assert checked.code == 0, checked
    assert "2 sessions" in checked.out


def test_an_export_without_texts_is_read_with_the_agent_too(
    governed: tuple[Path, str], cli: Cli, tmp_path: Path
) -> None:
    """Although it was made without: words that only the agent knows to be names are taken out then."""
    path, agent = governed
    file = tmp_path / "ana.jsonl"
    assert cli("record", "export", path, "ana", "--no-texts", "-o", file).code == 0
    for command in (("record", "verify"), ("record", "show"), ("record", "why"), ("replay",)):
        ran = cli(*command, file, "--agent", agent)
        assert ran.code == 0, ran


async def test_features_fold_the_turns_of_their_agent_alone() -> None:
    """There is its name to go by; below another agent, what the record says of it, since names are easily the same."""
    agent, other = Agent("offline", features=[Window.last(5)]), Agent("offline", instructions="Be brief.")
    mine, theirs = await agent.turn("Hi", session="s"), await other.turn("Hi", session="s")
    assert mine.session is not None
    below = replace(mine.session, parent="above")
    assert folds_for(agent, mine.entries, mine.session) is agent.plan.folds
    assert folds_for(agent, mine.entries, below) is agent.plan.folds
    assert folds_for(agent, theirs.entries, below) is NO_FOLDS
