"""Every function that says yes or no: an async one is refused where it is declared, and a promise never holds."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import onrecord
from onrecord import Agent, ConfigurationError, Instruction, tool
from onrecord.errors import FeatureFailed
from onrecord.memory import load_folder
from onrecord.models.call_rules import CallRule, first_match
from onrecord.prompt import CacheMarks
from onrecord.skills import Decide, Route, Skill, SkillGraph, Skills, Start
from onrecord.testing import ScriptedModel, shown
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import gated

pytestmark = pytest.mark.unit

SKILL = Skill("a", "About a.", "Do a.")


@tool
def f() -> str:
    """Do it."""
    return "done"


async def later(*_: Any) -> bool:
    """A promise, which Python takes for true."""
    return False


class Waited:
    """An object whose call is async."""

    async def __call__(self, *_: Any) -> bool:
        return False


def promise(*_: Any) -> Any:
    """A plain function that hands out a promise."""
    return later()


def flagged(**flags: Any) -> Tool:
    """A tool with some flags."""
    return replace(f, **flags)


DECLARED: dict[str, Callable[[Any], object]] = {
    "gated.only_if": lambda given: gated([f], given),
    "Tool.read_only": lambda given: flagged(read_only=given),
    "Tool.concurrency_safe": lambda given: flagged(concurrency_safe=given),
    "Tool.destructive": lambda given: flagged(destructive=given),
    "CallRule.only_if": lambda given: CallRule(only_if=given, then="ok"),
    "Instruction.only_if": lambda given: Instruction("x", only_if=given),
    "Start.only_if": lambda given: Start("a", only_if=given),
    "Route.only_if": lambda given: Route("a", "b", only_if=given),
    "Decide.only_if": lambda given: Decide(given, "a", "b"),
    "Skills.visible": lambda given: Agent(ScriptedModel(), features=[Skills(SKILL, visible=given)]),
    "SkillGraph.visible": lambda given: Agent(
        ScriptedModel(), features=[SkillGraph([SKILL], start="a", visible=given, check="off")]
    ),
    "CacheMarks.policies": lambda given: CacheMarks(policies={"me": given}),
    "load_folder.skip": lambda given: next(load_folder(".", skip=given)),
}


@pytest.mark.parametrize("condition", [later, partial(later), Waited(), Waited, 12])
@pytest.mark.parametrize("where", DECLARED)
def test_what_could_not_answer_at_once_is_refused_where_it_is_declared(where: str, condition: object) -> None:
    """It would hold always. The error names the argument, and says what to do."""
    with pytest.raises(ConfigurationError) as caught:
        DECLARED[where](condition)
    owner, _, argument = where.partition(".")
    assert argument in str(caught.value) or owner in str(caught.value) or "policy" in str(caught.value)
    assert caught.value.hint


def test_the_table_above_is_whole() -> None:
    """Every public parameter and field of the library that is annotated as a function to bool, or an alias of one."""
    folders = ("governance", "honesty", "mcp_bridge", "memory", "models", "prompt", "skills", "tools", "turn")
    sources = [path.read_text() for folder in folders for path in (HERE / folder).rglob("*.py")]
    trees = [ast.parse(source) for source in sources if "bool" in source and "Callable" in source]
    aliases = {name for tree in trees for name in _aliases(tree)}
    found = {where for tree in trees for where in _conditions(tree, aliases)}
    assert aliases == {"Demand", "Flag", "Until", "Visible"}
    ours = {"Hooks.built", "Order.was_read", "SkillHooks.visible", "held.condition"}  # nothing that anybody declares
    more = {"CallRule.only_if", "Skills.visible", "SkillGraph.visible"}  # annotated as object, or by an imported alias
    assert (found - ours) | more == set(DECLARED)


HERE = Path(onrecord.__file__).parent
CONDITION = re.compile(r"Callable\[\[.*?\], bool( \| Awaitable\[bool\])?\]")


def _aliases(tree: ast.Module) -> Iterator[str]:
    """Names that a module gives to such a type."""
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            name = ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
            if CONDITION.search(ast.unparse(node.value)) and not isinstance(node.value, ast.Dict | ast.Call):
                yield name


def _conditions(tree: ast.Module, aliases: set[str]) -> Iterator[str]:
    """Public fields and parameters that take one, as ``Owner.name``."""
    known = re.compile(rf"{CONDITION.pattern}|\b({'|'.join(aliases)})\b")
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name.startswith("_"):
            continue
        parts = node.body if isinstance(node, ast.ClassDef) else [node]
        for part in parts:
            if isinstance(part, ast.AnnAssign) and known.search(ast.unparse(part.annotation)):
                yield f"{node.name}.{ast.unparse(part.target)}"
            elif isinstance(part, ast.FunctionDef) and (part is node or part.name == "__init__"):
                taken = part.args
                for one in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs):
                    if one.annotation is not None and known.search(ast.unparse(one.annotation)):
                        yield f"{node.name}.{one.arg}"


# ---- promises --------------------------------------------------------------------------------------------------------


def test_a_promise_offers_no_tool() -> None:
    """Of a toolset it ends the turn; nothing was offered."""
    model = ScriptedModel("hi")
    with pytest.raises(FeatureFailed):
        Agent(model, tools=[gated([f], promise)]).turn_sync("Hello")
    assert not model.requests


def test_a_promise_shows_no_instruction() -> None:
    """And the record says so."""
    model = ScriptedModel("hi")
    result = Agent(model, features=[Instruction("Secret.", only_if=promise, name="s")]).turn_sync("Hello")
    assert "system" not in shown(model.requests[0]) or "Secret." not in shown(model.requests[0])["system"]
    assert any("only_if failed" in getattr(entry.body, "text", "") for entry in result.entries)


@pytest.mark.parametrize("flag", ["read_only", "concurrency_safe"])
def test_a_promise_makes_no_tool_harmless(flag: str) -> None:
    """A flag that cannot say yes raises, and whoever asks takes that for no."""
    held = flagged(**{flag: promise})
    with pytest.raises(TypeError, match="has to be awaited"):
        held.is_safe({})


def test_a_promise_matches_no_rule_of_a_call() -> None:
    """So a model is not asked again for ever."""
    scope: Any = None
    assert first_match([CallRule(only_if=promise, then="retry")], scope) is None


def test_a_promise_skips_no_file(tmp_path: Path) -> None:
    """Half an index would look like a whole one."""
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(TypeError, match="has to be awaited"):
        list(load_folder(tmp_path, skip=promise))
