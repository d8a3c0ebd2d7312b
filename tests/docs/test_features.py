"""The list of all features, and the drawing of where they attach, are those of the code."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator
from importlib import import_module

import pytest
from msgspec.structs import replace

from gates.report import ROOT
from onrecord import Agent, Allow, Deny, Instruction, Typed, Watch, after_tool, before_tool, on_input, on_output, tool
from onrecord.governance import Budget, CheckIn, Credential, Credentials, Permissions, Redaction
from onrecord.honesty import Commentary, SelfExplain
from onrecord.memory import Corpus, Memory, PlainShelf, Recent, Retrieve
from onrecord.prompt import (
    Artifacts,
    CacheMarks,
    Choose,
    Compaction,
    ContextRegistry,
    Degrade,
    Media,
    PromptBudget,
    RuntimeContext,
    Thinking,
    Window,
)
from onrecord.skills import Skill, SkillGraph, Skills, SkillStep
from onrecord.telemetry import Logs, Otel
from onrecord.testing import ScriptedModel
from onrecord.turn.moments import MOMENTS, SLOTS, Feature, Moment
from onrecord.turn.plan import HOOK_NAMES, Bundle
from tests.docs.test_tables import quoted, rows

pytestmark = pytest.mark.docs

PAGE, DRAWING = "guides/features.md", ROOT / "docs/images/features.svg"
RULES = ("@on_input", "@before_tool", "@after_tool", "@on_output")
BESIDES = {"Flows", "Rule", "Feature"}
"""A director, what the decorators make, and the protocol."""


def judge(turn: object, judged: object) -> Allow[object]:
    """A rule that lets everything pass."""
    return Allow()


def nobody(asked: object) -> Deny:
    """A checker that denies."""
    return Deny("no")


async def vault(wanted: object) -> Credential:
    """Lends what is asked for."""
    return Credential("x")


def nothing(*given: object) -> None:
    """Chooses nothing."""


@tool
def look() -> str:
    """Look."""
    return "nothing"


def every() -> dict[str, Feature]:
    """One of each, by the name that the list gives it."""
    skill = Skill("a", "Does a.", "Do a.", tools=(look,), steps=(SkillStep("look", "look first"),))
    made: list[Feature] = [
        Permissions(check=nobody), CheckIn(), Credentials(vault), Budget(), Redaction(names=["x"]), Instruction("Hi."),
        Typed().mount(int), Choose(nothing), Thinking(1024), Media(), Degrade(), CacheMarks(), Window.last(3),
        Compaction(1000), Artifacts(max_inline_chars=9), RuntimeContext(registry=ContextRegistry()), PromptBudget(9),
        Skills(skill), SkillGraph([skill], start="a", check="off"), Memory(PlainShelf(), (Recent(),)),
        Retrieve(asyncio.run(Corpus.of([]))), Commentary(tell=print), SelfExplain(), Watch(print), Otel(), Logs(),
        Bundle(name="a", version="1"),
    ]  # fmt: skip
    rules = (on_input(judge), before_tool(judge), after_tool(judge), on_output(judge))
    return dict(zip(RULES, rules, strict=True)) | {type(one).__name__: one for one in made}


def attached() -> dict[str, dict[Moment, int]]:
    """At which moments each feature speaks, and in which slot."""
    spec = Agent(ScriptedModel(card=replace(ScriptedModel().card, thinking="adaptive"))).spec
    found: dict[str, dict[Moment, int]] = {}
    for name, feature in every().items():
        hooks = feature.hooks(spec)
        speaks = [moment for moment in MOMENTS if getattr(hooks, HOOK_NAMES[moment]) is not None]
        found[name] = {moment: hooks.order.get(moment, SLOTS[moment]["RULES"]) for moment in speaks}
    return found


def listed() -> dict[str, list[str]]:
    """The rows of the list by the feature they are about."""
    return {quoted([row[0]])[0]: row for row in rows(PAGE, "<!-- table: features -->")}


def classes() -> Iterator[str]:
    """Every class of the package that has hooks as a feature has them."""
    for path in (ROOT / "src/onrecord").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "(self, spec: AgentSpec) -> Hooks" in text:
            for node in ast.parse(text).body:
                if isinstance(node, ast.ClassDef) and any(getattr(one, "name", "") == "hooks" for one in node.body):
                    yield node.name


def test_the_list_has_every_feature_of_the_code() -> None:
    """Every class of the package that has hooks, and the four decorators of rules."""
    assert set(listed()) == set(classes()) - BESIDES | set(RULES)
    assert set(listed()) == every().keys()


def test_the_list_says_at_which_moments_each_speaks() -> None:
    """As its hooks have it, in the order of a turn."""
    assert {name: quoted([row[2]]) for name, row in listed().items()} == {
        name: list(at) for name, at in attached().items()
    }


def test_each_is_imported_from_where_the_list_says() -> None:
    """And says what it does and what it costs."""
    for name, row in listed().items():
        (module,) = quoted([row[4].rstrip("| ")])
        assert hasattr(import_module(module), name.lstrip("@")), name
        assert all(row), name


def test_the_drawing_shows_each_feature_at_its_moments_in_order() -> None:
    """A group for each moment, the names in it by slot, each with its number."""
    drawn = DRAWING.read_text(encoding="utf-8")
    assert re.findall(r'<g id="(\w+)">', drawn) == list(MOMENTS)
    for moment, group in re.findall(r'<g id="(\w+)">(.*?)</g>', drawn, re.DOTALL):
        shown = [(name, int(slot)) for name, slot in re.findall(r">(@?\w+)</text><text [^>]*>(\d+)</text>", group)]
        there = [(name, at[moment]) for name, at in attached().items() if moment in at]
        assert sorted(shown) == sorted(there), moment
        assert [slot for _, slot in shown] == sorted(slot for _, slot in shown), moment
    for name, at in attached().items():
        assert at or re.search(rf"\b{name}\b", drawn), name
