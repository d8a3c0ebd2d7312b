"""The check-up of a graph when it is made: every code of specification §15.2, and what is refused outright."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.errors import ConfigurationError
from onrecord.skills import AllOf, Decide, Escalation, Intent, Keywords, Pattern, Route, SkillGraph, Start
from onrecord.testing import ScriptedModel
from tests.skills.knowing import procedure, skill
from tests.turn.acting import tool

pytestmark = pytest.mark.unit

LONG = "Do this and that, in this order, and mind what the person said. " * 5


def some(*ids: str, **more: Any) -> list[Any]:
    """Skills with two tools each, about which there is nothing to remark."""
    return [skill(id, f"{id}one", f"{id}two", **more) for id in ids]


def codes(*skills: Any, **declared: Any) -> dict[str, str]:
    """What the check-up finds: code to severity."""
    held = SkillGraph(skills, check="off", **declared)
    return {each.code: each.severity for each in held.checkup()}


ROUND = [Route("a", "b", on_tool="x"), Route("b", "a", on_tool="y")]
NEVER = ["what is the weather"]
KEY = Keywords(["refund"])


def broken(_: Any) -> bool:
    """Code that raises."""
    raise LookupError


async def classify(*_: Any) -> Any:
    """Never asked here."""


class Scorer:
    """Judges nothing here."""

    name, floor, categorical = "s", None, False
    score = staticmethod(classify)


CASES: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    ("no-entry", "error", some("a", "b"), {"routes": ROUND}),
    ("unreachable-skill", "error", some("a", "b"), {"start": "a"}),
    ("self-loop", "error", some("a", "b"), {"start": "a", "routes": [*ROUND, Route("a", "a", on_tool="z")]}),
    ("multi-entry-fanout", "warning", some("a", "b"), {"start": ["a", "b"], "routes": ROUND}),
    (
        "ambiguous-routes", "warning", some("a", "b", "c"),
        {"start": "a", "routes": [Route("a", "b", on_tool="x"), Route("a", "c", on_tool="x")]},
    ),
    (
        "overlapping-rules", "warning", some("a", "b"),
        {"start": [Start("a", match=KEY), Start("b", match=Keywords(["Refund", "bill"]))]},
    ),
    ("rules-shadowed-by-order", "error", some("a", "b"), {"start": ["a", Start("b", match=KEY)]}),
    (
        "rules-shadowed-by-order", "error", some("a", "b"),
        {"start": [Start("a", match=Keywords(["bill", "refund"])), Start("b", match=AllOf([KEY, Pattern("x")]))]},
    ),
    (
        "rules-shadowed-by-order", "error", some("a", "b"),
        {"start": [Start("a", match=Pattern("x")), Start("b", match=Pattern("x"))]},
    ),
    (
        "overlapping-intents", "warning", some("a", "b"),
        {
            "start": [Start("a", match=Intent("pay a bill")), Start("b", match=Intent("pay the bill"))],
            "classify": Scorer(),
        },
    ),
    (
        "duplicate-intent-example", "error", some("a", "b"),
        {
            "start": [Start("a", match=Intent("pay", ["The  bill"])), Start("b", match=Intent("see", ["the bill"]))],
            "classify": Scorer(),
        },
    ),
    ("intent-without-classify", "error", some("a"), {"start": [Start("a", match=Intent("pay"))]}),
    ("model-edge-only", "warning", some("a", "b"), {"start": "a", "routes": [Route("a", "b")]}),
    (
        "guard-unsatisfiable", "error", some("a", "b"),
        {"start": "a", "routes": [Route("a", "b", guard={"status": {"eq": "failure"}})]},
    ),
    (
        "dead-entry-step", "error", some("a", "b", "c"),
        {"start": ["a", Start("b", match=KEY)], "routes": [Route("b", "c", on_tool="x")]},
    ),
    (
        "example-misses-own-rule", "error", some("a"),
        {"start": [Start("a", match=KEY, examples=["my refunds"])], "never_routes": NEVER},
    ),
    ("example-misses-own-rule", "error", some("a"), {"start": [Start("a", only_if=broken, examples=["x"])]}),
    ("example-misses-own-rule", "warning", some("a"), {"start": [Start("a", only_if=lambda _: False, examples=["x"])]}),
    ("example-unclaimed", "warning", some("a"), {"start": [Start("a", only_if=lambda _: False, examples=["x"])]}),
    (
        "example-shadowed-by-earlier", "error", some("a", "b"),
        {"start": [Start("a", match=Pattern("bill")), Start("b", match=KEY, examples=["refund my bill"])]},
    ),
    (
        "example-shadowed-by-default", "warning", some("a", "b"),
        {"start": ["a", Start("b", match=KEY, examples=["refund"])]},
    ),
    ("never-routes-claimed", "error", some("a"), {"start": [Start("a", match=KEY)], "never_routes": ["no refund"]}),
    ("never-routes-by-default", "warning", some("a"), {"start": "a", "never_routes": NEVER}),
    (
        "never-routes-contradicts-example", "error", some("a"),
        {"start": [Start("a", match=KEY, examples=["Refund me"])], "never_routes": ["refund  me"]},
    ),
    (
        "never-routes-contradicts-example", "error", some("a", "b"),
        {
            "start": [Start("a", match=Intent("a refund", examples=["Refund me"])), Start("b", match=Intent("b"))],
            "classify": Scorer(), "routes": ROUND, "never_routes": ["refund  me"],
        },
    ),
    ("no-negative-evidence", "warning", some("a"), {"start": [Start("a", match=KEY)]}),
    ("few-declared-edges", "warning", some(*"abcde"), {"start": "a", "routes": [Route("a", "b")]}),
    (
        "one-way-entries", "warning", some("a", "b", "c"),
        {
            "start": [Start("a", match=KEY), Start("b", match=Pattern("x"))], "strictness": "rails",
            "routes": [Route("a", "c", on_tool="x")],
        },
    ),
    ("skill-wraps-one-tool", "warning", [skill("a", "x")], {"start": "a"}),
    (
        "tools-share-prefix", "warning", [skill("a", "crm_read", "crm_find"), skill("b", "crm_write", "crm_drop")],
        {"start": "a", "routes": ROUND},
    ),
    ("artifact-kind-unsatisfied", "warning", some("a", consumes="invoice"), {"start": "a"}),
    (
        "body-foreign-tool", "error",
        [*some("a"), skill("b", "bone", "btwo")],
        {"start": "b", "routes": [*ROUND, Route("a", "c", on_tool="x")], "scope_tools": True, "known_tools": ["cone"]},
    ),
    ("body-unknown-tool", "error", some("a"), {"start": "a", "known_tools": ["aone", "atwo"]}),
    ("unusable-tool-name", "error", [skill("a", "a tool", "b")], {"start": "a"}),
    (
        "route-unknown-tool", "error", some("a", "b"),
        {"start": "a", "routes": [*ROUND, Route("a", "b", on_tool="lokup")], "known_tools": ["x", "y", "lookup"]},
    ),
]  # fmt: skip


def with_text(skills: list[Any], code: str) -> list[Any]:
    """For checks of texts: one that names a tool which is not there."""
    from msgspec.structs import replace

    if code == "body-foreign-tool":
        return [replace(skills[0], text="Call `cone` first."), skills[1], *some("c")]
    return [replace(skills[0], text="Call `missing(id)` first.")] if code == "body-unknown-tool" else skills


@pytest.mark.parametrize(
    ("code", "severity", "skills", "declared"), CASES, ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)]
)
def test_each_code_is_found(code: str, severity: str, skills: list[Any], declared: dict[str, Any]) -> None:
    """With its severity: an error is what holds whatever is said and done."""
    assert codes(*with_text(skills, code), **declared).get(code) == severity


def test_tools_of_which_some_share_a_prefix_are_no_remark() -> None:
    """Only skills whose every tool bears it may be one."""
    skills = [skill("a", "crm_read", "find"), skill("b", "crm_write", "crm_drop")]
    assert "tools-share-prefix" not in codes(*skills, start="a", routes=ROUND)


def test_every_code_of_the_specification_has_a_case() -> None:
    """``unknown-skill`` is refused outright, since nothing could be made of it; so is an intent inside of AllOf.

    ``route-unknown-tool`` is ours. What `SkillGraph.checkup_intents` finds besides is in its own test.
    """
    named = set(
        "no-entry unreachable-skill self-loop multi-entry-fanout ambiguous-routes overlapping-rules "
        "rules-shadowed-by-order overlapping-intents duplicate-intent-example intent-without-classify model-edge-only "
        "guard-unsatisfiable dead-entry-step example-misses-own-rule example-shadowed-by-earlier "
        "example-shadowed-by-default example-unclaimed never-routes-claimed never-routes-by-default "
        "never-routes-contradicts-example no-negative-evidence few-declared-edges one-way-entries skill-wraps-one-tool "
        "tools-share-prefix artifact-kind-unsatisfied body-foreign-tool body-unknown-tool unusable-tool-name "
        "route-unknown-tool".split()
    )
    assert {case[0] for case in CASES} == named
    scored = {"scorer-failed": "error", "example-stands-alone": "warning"}
    page = (Path(__file__).parents[2] / "docs" / "reference" / "skills.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `([a-z-]+)` \| (error|warning)", page, re.MULTILINE))
    assert told == scored | {code: severity for code, severity, *_ in reversed(CASES)}


def test_a_graph_that_is_well_made_has_no_findings() -> None:
    """Rules with examples, messages that match none, ways back."""
    start = [
        Start("a", match=KEY, examples=["refund me"]), Start("b", match=Pattern("bill"), examples=["my bill"]),
    ]  # fmt: skip
    skills = [*some("a", "b", consumes="case"), skill("c", "cone", "ctwo", produces="case")]
    routes = [*ROUND, Route("b", "c", guard={"total": {"gt": 3}}), Route("c", "a", on_tool="z")]
    assert codes(*skills, start=start, routes=routes, never_routes=NEVER) == {}


def test_a_small_graph_needs_few_routes() -> None:
    """From five skills on, half as many routes as skills are asked about."""
    away = [Route("a", "b", on_tool="x"), Route("b", "c", on_tool="y")]
    assert "few-declared-edges" not in codes(*some(*"abcd"), start="a")
    assert "few-declared-edges" not in codes(*some(*"abcde"), start="a", routes=away)
    assert "few-declared-edges" in codes(*some(*"abcdef"), start="a", routes=away)


def test_errors_are_thrown_and_warnings_logged(caplog: Any) -> None:
    """Or both logged; or neither."""
    with caplog.at_level(logging.WARNING, "onrecord.skills"):
        with pytest.raises(ConfigurationError, match=r"no-entry at start.* \(and 1 more\)") as thrown:
            SkillGraph(some("a", "b"), routes=[Route("a", "a", on_tool="x")])
        assert (thrown.value.code, caplog.text) == ("no-entry", "")
        SkillGraph(some("a"), check="warn")
        assert "no-entry" in caplog.text
        caplog.clear()
        SkillGraph(some("a"), check="off")
        assert caplog.text == ""
        SkillGraph([skill("a", "x")], start="a")
        assert "skill-wraps-one-tool at a" in caplog.text


def test_texts_are_checked_against_the_agent_when_the_tools_are_not_told() -> None:
    """Once it is built; toolsets may bring more, so an unknown tool then proves nothing."""
    from msgspec.structs import replace

    (one,) = some("a")
    held = SkillGraph([replace(one, text="Call `lookup(id)` and `aone`, `NULL` or `x = 1`.")], start="a")
    Agent(ScriptedModel(), tools=[tool()], features=[held])
    with pytest.raises(ConfigurationError, match="calls 'lookup', and there is no such tool") as thrown:
        Agent(ScriptedModel(), features=[held])
    assert thrown.value.code == "body-unknown-tool"
    away = [Route("a", "b", on_tool="lokup", label="a slip"), Route("b", "a", on_tool="bone")]
    with pytest.raises(ConfigurationError, match="waits for 'lokup', and there is no such tool"):
        Agent(ScriptedModel(), tools=[tool()], features=[SkillGraph(some("a", "b"), start="a", routes=away)])
    told_so = [Route("a", "b", on_tool="lokup", on_status="absent"), away[1]]
    Agent(ScriptedModel(), features=[SkillGraph(some("a", "b"), start="a", routes=told_so)])

    class Shop:
        async def tools(self, ctx: Any, /) -> Any:
            return ()

    Agent(ScriptedModel(), tools=[Shop()], features=[held])


# ---- refused outright ------------------------------------------------------------------------------------------------

TREE = Decide(lambda _: True, "a", "b")
REFUSED: list[tuple[list[Any], dict[str, Any], str]] = [
    ([], {}, "the graph has no skills"),
    (["a"], {}, "a str is no skill"),
    ([skill("a"), skill("a", "x")], {"start": "a"}, "two skills have the id 'a'"),
    (some("a"), {"start": "b"}, "a start names 'b', which is no skill of the graph"),
    (some("a"), {"entries": ["b"]}, "entries names 'b'"),
    (some("a"), {"start": "a", "routes": [Route("a", "b")]}, "the route from 'a' to 'b' names 'b'"),
    (some("a"), {"start": "a", "loose": some("b"), "routes": [Route("a", "b")]}, "it is loose, so no way leads there"),
    (some("a"), {"start": "a", "loose": some("a")}, "is in the graph and loose beside it"),
    (some("a"), {"start": 7}, "start= takes skills, ids and Start rules, not a int"),
    (some("a"), {"start": "a", "strictness": "loose"}, "strictness cannot be 'loose'"),
    (some("a"), {"start": "a", "continuity": "ever"}, "continuity cannot be 'ever'"),
    (some("a"), {"start": "a", "check": "maybe"}, "check cannot be 'maybe'"),
    (some("a"), {"start": "a", "models": {"b": ScriptedModel()}}, "models= names 'b'"),
    (some("a", model=ScriptedModel()), {"start": "a", "models": {"a": ScriptedModel()}}, "name different models"),
    (some("a", surface="tool_only"), {"start": "a"}, "nobody would read it"),
    (some("a", "b"), {"tree": TREE, "start": "a"}, "so start= says nothing"),
    (some("a", "b"), {"tree": TREE, "routes": ROUND}, "so routes= says nothing"),
    (some("a", "b"), {"tree": TREE, "never_routes": NEVER}, "so never_routes= says nothing"),
    (some("a", "b"), {"tree": TREE, "scope_tools": True}, "leave scope_tools out|chose"),
    (some("a", "b"), {"tree": TREE, "continuity": "conversation"}, "continuity is 'turn'"),
    (some("a", "b"), {"tree": TREE, "classify": Scorer()}, "so classify= says nothing"),
    (some("a", "b", "c"), {"tree": TREE}, "'c' is no leaf of the tree"),
    (some("a"), {"tree": TREE}, "the tree names 'b'"),
    (some("a", "b", surface="tool_only"), {"tree": TREE}, "the tree leads to the skill"),
    (some("a"), {"graph": object()}, "beside a declaration of its own"),
    ([], {"graph": object()}, "a object is no graph"),
]


@pytest.mark.parametrize(("skills", "declared", "told"), REFUSED, ids=[told for *_, told in REFUSED])
def test_what_cannot_be_made_is_refused(skills: list[Any], declared: dict[str, Any], told: str) -> None:
    """Whatever is checked."""
    with pytest.raises(ConfigurationError, match=told):
        SkillGraph(skills, **{"check": "off", **declared})


def test_a17_steps_need_a_place_of_their_own() -> None:
    """Not in a tree, and not on a skill that the cursor never stands on (case A17; there is no classic mode here)."""
    with pytest.raises(ConfigurationError, match="'returns' has steps: a tree decides anew"):
        SkillGraph([procedure(), *some("a")], tree=Decide(lambda _: True, "a", "returns"), check="off")
    with pytest.raises(ConfigurationError, match="'returns' has steps and is loose"):
        SkillGraph(some("a"), start="a", loose=[procedure()], check="off")


def test_118_a_text_that_only_read_skill_hands_out_is_not_led_to_by_code() -> None:
    """A rule or a route would bring in a skill whose text nobody reads (case 118)."""
    silent = skill("b", "bone", surface="tool_only")
    with pytest.raises(ConfigurationError, match="a route leads to the skill 'b'"):
        SkillGraph([*some("a"), silent], start="a", routes=[Route("a", "b", on_tool="x")], check="off")
    SkillGraph([*some("a"), silent], start="a", routes=[Route("a", "b")], check="off")


def test_194_a_shape_that_classifies_must_say_how() -> None:
    """``entry_selection="classify"`` without ``turn_routing`` (case 194)."""

    class Shape:
        skills = tuple(some("a"))
        entry_selection = "classify"

        def next_skill(self, hop: Any) -> str:
            return "a"

    with pytest.raises(ConfigurationError, match="it has no turn_routing"):
        SkillGraph(graph=Shape())
    Shape.entry_selection = "scorer"
    SkillGraph(graph=Shape())
    for wrong, told in (
        ({"classify": Scorer()}, "classify= goes with starts"),
        ({"strictness": "x"}, "strictness cannot"),
    ):
        with pytest.raises(ConfigurationError, match=told):
            SkillGraph(graph=Shape(), **wrong)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Route("a", "b", on_tool="x", only_if=lambda _: True), "says twice when it is taken"),
        (lambda: Route("a", "b", on_status=["failed"], guard={"x": {"eq": 1}}), "says twice when it is taken"),
        (lambda: Route("a", "b", on_status=[]), "empty on_status"),
        (lambda: Route("a", "b", on_status="failure"), "waits for the status 'failure', which no call ends with"),
        (lambda: Route("a", "b", on_tool="x", on_status=["failed", "asked"]), "the status 'asked'"),
        (lambda: SkillGraph(some("a"), start="a", routes=["a"]), "takes Route, not a str"),  # type: ignore[list-item] # no such kind
        (lambda: SkillGraph(some("a"), start="a", models={"a": 7}), "the model of the skill 'a' is a int"),  # type: ignore[dict-item] # nor this
        (lambda: Route("a", "b", guard={}), "the guard of the route from 'a' to 'b' says nothing"),
        (lambda: Start("a", match=KEY, only_if=lambda _: True), "both match= and only_if="),
        (lambda: Escalation(ScriptedModel(), after_refusals=0), "after_refusals of Escalation is a whole number"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(make: Any, told: str) -> None:
    """Where it is written."""
    with pytest.raises(ConfigurationError, match=told):
        make()
