"""A question outlives the build that asked it: what changed meanwhile is on the record, or is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask
from onrecord.errors import UsageError
from onrecord.governance import CheckIn, NeedsCheckIn, Permissions, Policy, after_tool, before_tool
from onrecord.record.kinds import TurnOpened, TurnResumed
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import StaticTools
from onrecord.turn.moments import Allow, Deny, Hooks
from tests.turn.acting import Named, bodies, keeping, texts, turn
from tests.turn.pausing.asking import answered, approve, checked
from tests.turn.pausing.asking import asks as asking

pytestmark = pytest.mark.unit

EUROS: Mapping[str, Any] = {"type": "object", "properties": {"euros": {"type": "integer"}}, "required": ["euros"]}


def pay(ran: list[Any], told: str = "paid", **more: Any) -> Tool:
    """The tool that waits."""
    return Tool("pay", keeping(ran, lambda args: args["euros"], told), **{"parameters": EUROS, **more})


def built(tools: list[Any], features: list[Any], **more: Any) -> Agent[Any, Any]:
    """A build of the agent; its model says what is left to say."""
    return Agent(ScriptedModel([call("pay", euros=8)], "Done."), tools=tools, features=features, **more)


def denies(name: str) -> Any:
    """A rule of this name that lets nothing pass."""

    def rule(turn: Any, asked: Any) -> Deny:
        return Deny(f"{name} is against it")

    rule.__name__ = name
    return before_tool(rule)


asks = approve("pay")


def rewrites(*_: Any) -> Allow[Any]:
    """Puts another amount in place."""
    return Allow({"euros": 9}, "nine")


hides = after_tool(lambda *_: Deny("hidden"))
NINE = Policy(name="nine", tools=("*",), args={"euros": 9}, tell="no")

GOES_ON: list[tuple[str, Any, list[Any], str]] = [
    ("another name", lambda ran: built([pay(ran)], [asks], name="v2"), [8], "paid"),
    ("other words about the tool", lambda ran: built([pay(ran, description="Pays a bill.")], [asks]), [8], "paid"),
    ("another handler", lambda ran: built([pay(ran, "paid by v2")], [asks]), [8], "paid by v2"),
    ("one more tool", lambda ran: built([pay(ran), Tool("see", lambda *_: "seen")], [asks]), [8], "paid"),
    ("the tool from a toolset", lambda ran: built([StaticTools([pay(ran)])], [asks]), [8], "paid"),
    ("a rule behind the asker", lambda ran: built([pay(ran)], [asks, denies("late")]), [], "late is against it"),
    ("a rule before the asker", lambda ran: built([pay(ran)], [denies("early"), asks]), [8], "paid"),
    ("a rule over results", lambda ran: built([pay(ran)], [asks, hides]), [8], "hidden"),
    (
        "a permission less",
        lambda ran: built([pay(ran)], [asks, Permissions(policies=[Policy(name="p", tools=("pay",), tell="no")])]), [],
        "no",
    ),
    (
        "a permission less, for what a new rule makes of it",
        lambda ran: built([pay(ran)], [asks, before_tool(rewrites), Permissions(policies=[NINE])]), [], "no",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("what", "build", "runs", "told"), GOES_ON, ids=[row[0] for row in GOES_ON])
async def test_a_newer_build_goes_on_and_says_what_it_is(what: str, build: Any, runs: list[Any], told: str) -> None:
    """Its own rules, permissions and handlers count from here on; both manifests are on the record."""
    ran: list[Any] = []
    old, new = built([pay([])], [asks]), build(ran)
    paused = await turn(old)
    model = ScriptedModel("Done.")
    held = new.with_(model=model)
    done = await answered(held, paused, approved=True)
    assert (ran, done.text) == (runs, "Done.")
    assert told in texts(model.requests[0])[0]
    (began,), (went_on,) = bodies(paused, TurnOpened), bodies(done, TurnResumed)
    assert began.manifest == old.spec.manifest
    assert went_on.manifest == held.spec.manifest
    checked(held, paused, done)


TEXT: Mapping[str, Any] = {"type": "object", "properties": {"euros": {"type": "string"}}, "required": ["euros"]}

REFUSED: list[tuple[Any, str]] = [
    (lambda _: built([Tool("other", lambda *_: "")], [asks]), "the tool 'pay'"),
    (lambda ran: built([pay(ran, parameters=TEXT)], [asks]), "another schema"),
    (lambda ran: built([pay(ran)], []), "the rule 'approval'"),
    (lambda ran: built([pay(ran)], [before_tool(lambda *_: Ask("Run pay?"))]), "the rule 'approval'"),
    (lambda ran: built([pay(ran)], [asks], output=int), "output type"),
]


@pytest.mark.parametrize(("build", "problem"), REFUSED, ids=[problem for _, problem in REFUSED])
async def test_a_build_that_could_not_mean_the_same_is_refused(build: Any, problem: str) -> None:
    """By name; nothing runs, nothing is filed, and the build that asked still goes on."""
    ran: list[Any] = []
    old = built([pay(ran)], [asks])
    paused = await turn(old)
    with pytest.raises(UsageError, match=problem) as told:
        await answered(build(ran), paused, approved=True)
    assert (told.value.code, ran) == ("asker-gone", [])
    assert (await answered(old, paused, approved=True)).text == "Done."
    assert ran == [8]


@pytest.mark.parametrize(
    "over", [{"approved": False, "by": "Maria"}, {"approved": False, "expired": True}], ids=["no", "late"]
)
@pytest.mark.parametrize(("build", "problem"), REFUSED, ids=[problem for _, problem in REFUSED])
async def test_a_refusal_needs_nobody_who_is_gone(build: Any, problem: str, over: dict[str, Any]) -> None:
    """Nothing runs for it in any build; a session whose asker is gone for good would else wait for ever."""
    ran: list[Any] = []
    old, model = built([pay(ran)], [asks]), ScriptedModel("1")
    paused = await turn(old)
    new = build(ran).with_(model=model)
    done = await answered(new, paused, **over)
    assert done.status == "answered"
    assert done.session is not None
    assert done.session.question is None
    assert ran == []
    assert texts(model.requests[0])[0].startswith("Expired" if "expired" in over else "Declined by Maria")
    checked(new, paused, done)


async def test_a_question_that_is_over_lets_go_of_a_handler_that_is_gone() -> None:
    """It ran and asked in its middle: what it did before is not known, and the model reads so."""
    size = Tool("size", asking(), parameters=EUROS)
    script = ScriptedModel([call("size", euros=1), call("pay", euros=8)], "Done.")
    paused = await turn(Agent(script, tools=[size, pay([])]))
    model = ScriptedModel("Done.")
    new: Agent[Any, Any] = Agent(model, tools=[pay([])])
    done = await answered(new, paused, approved=False, expired=True)
    assert done.text == "Done."
    first, second = texts(model.requests[0])
    assert "outcome is unknown" in first
    assert "Not executed" in second
    checked(new, paused, done)


async def test_a_batch_that_is_refused_needs_no_hook() -> None:
    """All of its calls are denied."""

    async def wonders(turn: Any, heard: Any) -> Any:
        return Ask("Pay both?") if heard.calls else heard

    script = ScriptedModel([call("pay", euros=8), call("pay", euros=9, wire_id="two")], "Done.")
    paused = await turn(Agent(script, tools=[pay([])], features=[Named("wonders", Hooks(on_reply=wonders))]))
    model = ScriptedModel("Done.")
    new: Agent[Any, Any] = Agent(model, tools=[pay([])])
    done = await answered(new, paused, approved=False, by="Maria")
    assert (done.text, texts(model.requests[0])) == ("Done.", ["Declined by Maria."] * 2)
    checked(new, paused, done)


async def test_a_check_in_that_the_new_build_does_not_need_is_not_skipped() -> None:
    """The person answered a check-in: a build without it does not know what the answer is worth."""
    ran: list[Any] = []
    trait = NeedsCheckIn()
    old = built([pay(ran, traits=(trait,))], [CheckIn()])
    paused = await turn(old)
    with pytest.raises(UsageError, match="the rule 'check-in'"):
        await answered(built([pay(ran)], []), paused, approved=True)
    assert ran == []
