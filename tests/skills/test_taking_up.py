"""Skills that a model takes up by itself (specification §14.4; seed 004: skill, skills, toolsFromActiveSkill)."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.errors import ConfigurationError, FeatureConflict
from onrecord.record.kinds import ModelRequested
from onrecord.skills import (
    Engagement,
    Keywords,
    Skill,
    SkillGraph,
    SkillProposed,
    SkillRegistry,
    Skills,
    SkillStep,
    Start,
    offered_with,
)
from onrecord.skills.skill_entries import EffectJudged, SkillActivated
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool, ToolResult
from onrecord.tools.toolset import OfferContext
from onrecord.turn.plan import Bundle
from tests.skills.knowing import answering, descriptions, offered, pick, skill, systems
from tests.turn.acting import bodies, results, texts, tool, turn

pytestmark = pytest.mark.unit

BILLING, REFUNDS = skill("billing", "charge"), skill("refunds", "refund")


async def test_a_skill_is_in_use_from_the_next_request_to_the_end_of_the_turn() -> None:
    """And not in the next turn, which begins anew."""
    model = ScriptedModel(pick("billing"), call("lookup"), "done", "later")
    agent = Agent(model, tools=[tool()], features=[Skills(BILLING, REFUNDS)], instructions="Base.")
    first = await turn(agent, "one")
    await turn(agent, "two", session=first.session)
    told = [systems(request) for request in model.requests]
    assert told == ["Base.", "Base.\n\nAbout billing.", "Base.\n\nAbout billing.", "Base."]
    assert [b.skill for b in bodies(first, SkillActivated)] == ["billing"]


async def test_the_description_of_read_skill_is_the_catalogue() -> None:
    """Its argument is one of the ids."""
    requests, _ = await answering("done", features=[Skills(BILLING, REFUNDS)])
    assert descriptions(requests[0])["read_skill"].endswith("- billing: For billing.\n- refunds: For refunds.")
    assert requests[0].offers[0].spec.schema["properties"]["id"]["enum"] == ["billing", "refunds"]


async def test_an_id_that_is_none_is_told_and_takes_nothing_up() -> None:
    """As any other argument that does not fit."""
    requests, result = await answering(pick("nonsense"), "done", features=[Skills(BILLING)])
    assert "Validation failed" in texts(requests[1])[0]
    assert (bodies(result, SkillActivated), systems(requests[1])) == ([], "")


@pytest.mark.parametrize(
    ("surface", "in_system", "in_result"),
    [("auto", True, False), ("system", True, False), ("tool_only", False, True), ("both", True, True)],
)
async def test_where_the_text_stands(surface: Any, in_system: bool, in_result: bool) -> None:
    """Among the instructions, in the result, or both; without it the result says where the text stands."""
    requests, _ = await answering(pick("a"), "done", features=[Skills(skill("a", surface=surface))])
    assert (systems(requests[1]) == "About a.") is in_system
    assert (texts(requests[1])[0] == "About a.") is in_result
    if not in_result:
        assert "'a' is in use" in texts(requests[1])[0]


async def test_two_skills_at_once() -> None:
    """Both texts, in the order in which they were taken up; twice is once."""
    requests, _ = await answering(
        [pick("refunds"), pick("billing")], pick("refunds"), "done", features=[Skills(BILLING, REFUNDS)]
    )
    assert systems(requests[1]) == "About refunds.\n\nAbout billing."
    assert sorted(systems(requests[2]).split("\n\n")) == ["About billing.", "About refunds."]


# ---- which tools are offered -----------------------------------------------------------------------------------------


async def test_tools_of_a_skill_are_offered_from_the_first_request() -> None:
    """Additive visibility is the default (seed 004)."""
    requests, result = await answering(call("refund"), "done", features=[Skills(REFUNDS)])
    assert offered(requests[0]) == ["read_skill", "refund"]
    assert results(result) == [("refund", "returned")]


async def test_186_scoped_tools_are_offered_while_their_skill_is_in_use() -> None:
    """The next turn's first request offers them no more (case 186)."""
    model = ScriptedModel(pick("billing"), "done", "later")
    billing = skill("billing", "refund")
    agent = Agent(model, tools=[tool()], features=[Skills(billing, scoped_tools=True)])
    first = await turn(agent, "one")
    await turn(agent, "two", session=first.session)
    assert [offered(request) for request in model.requests] == [
        ["lookup", "read_skill"], ["lookup", "read_skill", "refund"], ["lookup", "read_skill"],
    ]  # fmt: skip


async def test_186_a_call_to_a_hidden_tool_of_a_skill_still_runs() -> None:
    """Scoping governs the offer, not dispatch (case 186)."""
    requests, result = await answering(call("refund"), "done", features=[Skills(REFUNDS, scoped_tools=True)])
    assert offered(requests[0]) == ["read_skill"]
    assert results(result) == [("refund", "returned")]


async def test_a_skill_may_scope_itself_and_no_other() -> None:
    """One that declares it keeps it; the others stay as they are."""
    requests, _ = await answering("done", features=[Skills(skill("a", "one", scoped=True), skill("b", "two"))])
    assert offered(requests[0]) == ["read_skill", "two"]


async def test_scoping_takes_away_no_tool_that_the_agent_has_by_itself() -> None:
    """Nor one that a skill without a scope brings too."""
    shared, own = tool("shared"), tool("own")
    features = [Skills(skill("a", shared, own, scoped=True), skill("b", shared))]
    requests, _ = await answering("done", tools=[own], features=features)
    assert offered(requests[0]) == ["own", "read_skill", "shared"]


async def test_skills_may_share_a_tool() -> None:
    """It is offered while one of them is in use."""
    shared = tool("shared")
    features = [Skills(skill("a", shared), skill("b", shared), scoped_tools=True)]
    requests, _ = await answering(pick("b"), "done", features=features)
    assert [offered(request) for request in requests] == [["read_skill"], ["read_skill", "shared"]]


# ---- the catalogue as a tool, and who may see what -------------------------------------------------------------------


async def test_a_listed_catalogue_keeps_requests_small() -> None:
    """``list_skills`` tells the skills as JSON; the description of ``read_skill`` does not."""
    requests, _ = await answering(call("list_skills"), "done", features=[Skills(BILLING, REFUNDS, catalog="listed")])
    assert offered(requests[0]) == ["read_skill", "list_skills", "charge", "refund"]
    assert "billing" not in descriptions(requests[0])["read_skill"]
    assert json.loads(texts(requests[1])[0]) == [
        {"id": "billing", "description": "For billing."}, {"id": "refunds", "description": "For refunds."},
    ]  # fmt: skip


@pytest.mark.parametrize("visible", [lambda _, id: id != "refunds", lambda _, id: 1 / (id != "refunds")])
async def test_158_a_hidden_skill_is_refused_and_not_described(visible: Any, caplog: Any) -> None:
    """It is in the schema, which is the same for everyone; a check that raises hides it (case 158)."""
    features = [Skills(BILLING, REFUNDS, visible=visible)]
    with caplog.at_level(logging.WARNING, "onrecord.skills"):
        requests, result = await answering(pick("refunds"), pick("billing"), "done", features=features)
    assert "refunds" not in descriptions(requests[0])["read_skill"]
    assert requests[0].offers[0].spec.schema["properties"]["id"]["enum"] == ["billing", "refunds"]
    assert results(result) == [("read_skill", "denied"), ("read_skill", "returned")]
    assert texts(requests[1]) == ["Permission denied: there is no such skill for this conversation."]
    assert [b.skill for b in bodies(result, SkillActivated)] == ["billing"]


async def test_158_a_list_leaves_hidden_skills_out() -> None:
    """With the same check."""
    features = [Skills(BILLING, REFUNDS, catalog="listed", visible=lambda _, id: id == "billing")]
    requests, _ = await answering(call("list_skills"), "done", features=features)
    assert json.loads(texts(requests[1])[0]) == [{"id": "billing", "description": "For billing."}]


async def test_166_a_skill_may_have_a_model_of_its_own() -> None:
    """It answers while the skill is in use: the one taken up last, where several are (case 166)."""
    big = ScriptedModel("from the big one")
    model = ScriptedModel(pick("a"))
    result = await turn(Agent(model, features=[Skills(skill("a", model=big), BILLING)]))
    assert result.text == "from the big one"
    assert [b.model for b in bodies(result, ModelRequested)] == ["scripted:script"] * 2
    assert len(big.requests) == 1
    one, other = ScriptedModel(pick("b")), ScriptedModel("from the other")
    held = Skills(skill("b", model=other), skill("a", model=one))
    assert (await turn(Agent(ScriptedModel(pick("a")), features=[held]))).text == "from the other"


def test_166_a_name_that_is_no_model_is_refused_while_building() -> None:
    """A provider without a model, or an unknown one (case 166)."""
    with pytest.raises(ConfigurationError, match="'sonnet-9' names no model provider"):
        Skills(skill("a", model="sonnet-9"))


class Server:
    """A toolset, as of a server."""

    async def tools(self, ctx: OfferContext, /) -> Sequence[Tool]:
        return (tool("remote"),)


async def test_a_toolset_may_be_offered_with_a_skill() -> None:
    """In the rounds in which it is in use (seed 004: skillScopedTools)."""
    model = ScriptedModel(pick("billing"), "done", "later")
    agent = Agent(model, tools=[offered_with("billing", Server())], features=[Skills(BILLING)])
    first = await turn(agent, "one")
    await turn(agent, "two", session=first.session)
    assert [("remote" in offered(request)) for request in model.requests] == [False, True, False]


async def test_a_toolset_is_offered_from_the_request_after_a_graph_went_there() -> None:
    """Tools are asked for before it moves. With the default they are there at once, as its text is."""
    for start, there in (([Start("billing", match=Keywords(["hi"]))], [False, True]), ("billing", [True, True])):
        graph = SkillGraph([BILLING], start=start, check="off")
        tools = [offered_with("billing", Server())]
        requests, _ = await answering(call("charge"), "done", tools=tools, features=[graph])
        assert [("remote" in offered(request)) for request in requests] == there


async def test_a_toolset_goes_with_the_default_of_a_graph_and_leaves_with_a_parked_one() -> None:
    """It is in use exactly when its text is."""
    more = [offered_with(id, [tool(f"with_{id}")]) for id in ("home", "zone")]
    start = [Start("zone", match=Keywords(["zone"])), Start("home")]
    held = SkillGraph([skill("home"), skill("zone")], start=start, check="off", engagement=Engagement(2))
    answers = [*[call("look", n=n) for n in range(4)], "done"]
    requests, _ = await answering(*answers, said="the zone", features=[held], tools=[tool("look"), *more])
    told = [("About zone." in systems(request), "with_zone" in offered(request)) for request in requests]
    assert told == [(True, False), (True, True), (False, True), (False, False), (False, False)]
    assert ["with_home" in offered(request) for request in requests] == [True, True, True, False, False]


async def test_a_proposal_needs_a_graph() -> None:
    """A tool that proposes a skill is told so."""
    proposes = tool("p", lambda *_: ToolResult("ok", facts=(SkillProposed(skill="billing"),)))
    requests, result = await answering(call("p"), "done", tools=[proposes], features=[Skills(BILLING)])
    assert texts(requests[1]) == [
        "ok\n\nThe proposal to go on with 'billing' was refused: there is no graph of skills."
    ]
    assert [b.outcome for b in bodies(result, EffectJudged)] == ["refused"]


# ---- a registry that agents share ------------------------------------------------------------------------------------


async def test_185_one_registry_serves_several_agents() -> None:
    """Both offer ``read_skill`` with both ids; the same id given beside it is refused (case 185)."""
    registry = SkillRegistry().register(skill("s1")).register(skill("s2"))
    for name in ("one", "two"):
        requests, _ = await answering("done", name=name, features=[Skills(registry)])
        assert requests[0].offers[0].spec.schema["properties"]["id"]["enum"] == ["s1", "s2"]
    with pytest.raises(ConfigurationError, match="two skills have the id 's1'"):
        Skills(registry, skill("s1", "other"))


def test_a_registry_holds_each_id_once() -> None:
    """What it has, it says; what it cannot do, it refuses by name."""
    registry = SkillRegistry([BILLING])
    with pytest.raises(ConfigurationError, match="two skills have the id 'billing'"):
        registry.register(skill("billing"))
    with pytest.raises(ConfigurationError, match="a str is no skill"):
        registry.register("billing")  # type: ignore[arg-type] # what the test is about
    with pytest.raises(ConfigurationError, match="no skill 'x' to replace"):
        registry.replace("x", skill("x"))
    with pytest.raises(ConfigurationError, match="'refunds' cannot stand in the place of 'billing'"):
        registry.replace("billing", REFUNDS)
    other = skill("billing", "charge", "credit")
    registry.replace("billing", other)
    assert (registry.get("billing"), "billing" in registry, len(registry), list(registry)) == (other, True, 1, [other])
    assert json.loads(registry.catalog()) == [{"id": "billing", "description": "For billing."}]
    assert (registry.unregister("billing"), registry.unregister("billing"), registry.get("billing")) == (
        True,
        False,
        None,
    )
    registry.register(BILLING).clear()
    assert len(registry) == 0


async def test_a_registry_gives_plain_tools_to_hosts_without_an_agent() -> None:
    """``read_skill`` then hands out the text, since nothing else shows it."""
    requests, _ = await answering(
        pick("billing"), "done", tools=SkillRegistry([BILLING, skill("b", surface="both")]).tools()
    )
    assert offered(requests[0]) == ["list_skills", "read_skill"]
    assert texts(requests[1]) == ["About billing."]


# ---- what is refused while building ----------------------------------------------------------------------------------

REFUSED: list[tuple[Any, str]] = [
    (lambda: Skill("", "d", "t"), "no id of a skill"),
    (lambda: Skill("a b", "d", "t"), "no id of a skill"),
    (lambda: Skill("a", " ", "t"), "has no description"),
    (lambda: Skill("a", "d", ""), "has no text"),
    (lambda: skill("a", surface="loud"), "surface cannot be 'loud'"),
    (lambda: skill("a", "t", "t"), "two tools have the id 't'"),
    (lambda: skill("a", "t", steps=()), "steps is empty"),
    (lambda: skill("a", "t", on_skip="hold"), "on_skip without steps"),
    (lambda: skill("a", "t", steps=(SkillStep("t", "n"),), on_skip="stop"), "on_skip cannot be 'stop'"),
    (lambda: skill("a", steps=(SkillStep("t", "n"),)), "has steps but no tools"),
    (lambda: skill("a", "t", steps=(SkillStep("u", "n"),)), "names the tool 'u', which is not one of its own"),
    (lambda: skill("a", "t", steps=(SkillStep("t", " "),)), "step 1 has no note"),
    (lambda: skill("a", "t", steps=("t",)), "step 1 is a str"),
    (lambda: skill("a", cache="sometimes"), "cache cannot be 'sometimes'"),
    (lambda: Skill("a", "d\ud800", "t"), "the description of skill 'a' holds half a character"),
    (lambda: Skill("a", "d", "t\ud800"), "the text of skill 'a' holds half a character"),
    (lambda: Skills(skill("a", model=7)), "model= of Skill is text or a Model or None"),
    (Skills, "Skills has no skill"),
    (lambda: Skills(BILLING, catalog="shown"), "catalog of Skills cannot be 'shown'"),  # type: ignore[arg-type] # no such word
    (lambda: Skills(skill("a", "x"), skill("b", "x")), "different tools with the id 'x'"),
    (lambda: Skills(skill("a", "read_skill")), "that name is taken by skills themselves"),
]


@pytest.mark.parametrize(("make", "told"), REFUSED, ids=[told for _, told in REFUSED])
def test_what_could_never_work_is_refused(make: Any, told: str) -> None:
    """By the skill and the thing."""
    with pytest.raises(ConfigurationError, match=told):
        make()


def test_an_agent_has_no_tool_of_its_own_with_the_name_of_the_door() -> None:
    """The model would call one, and mean the other."""
    with pytest.raises(ConfigurationError, match="has a tool 'read_skill'"):
        Agent(ScriptedModel(), tools=[tool("read_skill")], features=[Skills(BILLING)])


async def test_a_catalogue_too_long_for_a_description_stands_among_the_instructions() -> None:
    """Some vendors refuse a tool with a description of more than 1,024 characters; nothing changes between rounds."""
    many = [skill(f"topic-{n}") for n in range(60)]
    requests, _ = await answering(pick("topic-7"), "done", features=[Skills(*many)], instructions="Base.")
    described = {descriptions(request)["read_skill"] for request in requests}
    assert len(described) == 1
    assert len(described.pop()) <= 1024
    base, catalogue = systems(requests[0]).split("\n\n", 1)
    assert (base, catalogue.count("\n- topic-")) == ("Base.", 60)
    assert systems(requests[1]) == f"{systems(requests[0])}\n\nAbout topic-7."
    hidden = Skills(*many, visible=lambda _, id: id == "topic-1")
    requests, _ = await answering("done", features=[hidden], instructions="Base.")
    assert systems(requests[0]) == "Base."
    assert descriptions(requests[0])["read_skill"].endswith("- topic-1: For topic-1.")


def test_bundles_bring_skills_and_conflicts_name_both_sides() -> None:
    """Two features of skills, two tools with one id; the same tool object on both sides is one tool."""
    desk = Bundle(name="desk", version="1", features=(Skills(BILLING, REFUNDS),))
    agent = Agent(ScriptedModel(), features=[desk], tools=[BILLING.tools[0]])
    assert agent.spec.manifest["skills"] == {"ids": ["billing", "refunds"]}
    assert list(agent.plan.tools) == ["charge", "read_skill", "refund"]
    for more in (Skills(skill("x")), SkillGraph([skill("x")], start="x", check="off")):
        with pytest.raises(
            FeatureConflict, match=r"'skills' is given twice, .*by .*'desk'.* and .*by the agent itself"
        ):
            Agent(ScriptedModel(), features=[desk, more])
    with pytest.raises(ConfigurationError, match=r"two tools have the id 'charge': one of .*, one of .*desk"):
        Agent(ScriptedModel(), features=[desk], tools=[tool("charge")])
