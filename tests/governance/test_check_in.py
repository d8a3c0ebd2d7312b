"""Check-ins: a tool that needs a person's word says so itself, and shows what the person should know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Happened, Woke, expiry_key
from onrecord.errors import ConfigurationError, UsageError
from onrecord.governance import CheckIn, NeedsCheckIn, Permissions, before_tool
from onrecord.jsonio import Json
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import StaticTools
from onrecord.turn.moments import Allow, Deny
from onrecord.turn.turn import Turn
from tests.turn.acting import keeping, results, texts, tool, turn, verdicts
from tests.turn.pausing.asking import answered, approve, checked, open_question

pytestmark = pytest.mark.unit

CITY: Mapping[str, Json] = {"type": "object", "properties": {"euros": {"type": "integer"}}, "required": ["euros"]}


def paying(trait: NeedsCheckIn, ran: list[Any], **more: Any) -> Tool:
    """A tool that pays, and keeps what it paid."""
    return Tool("pay", keeping(ran, lambda args: args["euros"], "paid"), "Pay somebody.", traits=(trait,), **more)


async def test_a_tool_that_always_needs_a_check_in_mounts_it_itself() -> None:
    """Nothing runs before the answer; approved, the call runs once."""
    ran: list[Any] = []
    model = ScriptedModel([call("pay", euros=8)], "Done.")
    agent: Agent[Any, Any] = Agent(model, tools=[paying(NeedsCheckIn("always"), ran)])
    paused = await turn(agent)
    question = open_question(paused)
    assert (question.text, question.by, question.audience, question.decision) == (
        "Run pay?", "check-in", "approver", True,
    )  # fmt: skip
    assert ran == []
    done = await answered(agent, paused, approved=True, by="ana")
    assert (done.text, ran) == ("Done.", [8])
    checked(agent, paused, done)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"approved": False}, "Declined by a person."),
        ({"approved": False, "by": "ana"}, "Declined by ana."),
        ({"approved": False, "by": "ana", "note": "too dear"}, "Declined by ana: too dear"),
    ],
)
async def test_a_declined_call_does_not_run_and_the_model_is_told(answer: dict[str, Any], told: str) -> None:
    """By whom, and with the person's note."""
    ran: list[Any] = []
    model = ScriptedModel([call("pay", euros=8)], "Then not.")
    agent: Agent[Any, Any] = Agent(model, tools=[paying(NeedsCheckIn(), ran)])
    done = await answered(agent, await turn(agent), **answer)
    assert (ran, results(done)) == ([], [("pay", "denied")])
    assert texts(model.requests[1])[0].rstrip(".") == told.rstrip(".")


async def test_a_predicate_says_which_calls_need_a_person() -> None:
    """Over the arguments that would run, after rules: sync or async."""

    async def dear(args: Mapping[str, Json], turn: Turn) -> bool:
        return isinstance(euros := args["euros"], int) and euros > 100

    for when in (dear, lambda args, _: args["euros"] > 100):
        ran: list[Any] = []
        doubles = before_tool(lambda _, held: Allow({"euros": 2 * held.args["euros"]}, "doubled"))
        model = ScriptedModel([call("pay", euros=50)], [call("pay", euros=60)])
        agent: Agent[Any, Any] = Agent(model, tools=[paying(NeedsCheckIn(when), ran)], features=[doubles])
        paused = await turn(agent)
        assert ran == [100]
        detail = open_question(paused).detail
        assert isinstance(detail, dict)
        assert detail["will_do"]["args"] == {"euros": "120"}


async def test_g85_a_predicate_that_raises_trips() -> None:
    """What cannot be judged is a person's to judge (case G85)."""
    ran: list[Any] = []
    trait = NeedsCheckIn(lambda args, _: args["missing"] > 1)
    agent: Agent[Any, Any] = Agent(ScriptedModel([call("pay", euros=8)]), tools=[paying(trait, ran)])
    assert (await turn(agent)).status == "paused"
    assert ran == []


async def test_g86_a_chain_goes_on_behind_the_rule_that_asked() -> None:
    """Link 0 asks, link 1 denies: after the approval its reason is the result (case G86).

    A second asker is no denial here: it asks a question of its own, and nothing runs before that is answered as well.
    """
    ran: list[Any] = []
    denies = before_tool(lambda *_: Deny("not on Sundays"))
    model = ScriptedModel([call("pay", euros=8)], "Then not.")
    agent: Agent[Any, Any] = Agent(model, tools=[paying(NeedsCheckIn(), ran)], features=[approve("pay"), denies])
    done = await answered(agent, await turn(agent), approved=True)
    assert (texts(model.requests[1]), ran, done.text) == (["not on Sundays"], [], "Then not.")


async def test_g87_a_rule_that_asks_does_not_stand_in_for_the_check_in() -> None:
    """After the rule's approval the call still waits for the tool's own, and runs only then, once (case G87)."""
    ran: list[Any] = []
    model = ScriptedModel([call("pay", euros=8)], "Done.")
    agent: Agent[Any, Any] = Agent(model, tools=[paying(NeedsCheckIn(), ran)], features=[approve("pay")])
    first = await turn(agent)
    second = await answered(agent, first, approved=True)
    assert (open_question(second).by, ran) == ("check-in", [])
    done = await answered(agent, second, approved=True)
    assert (done.text, ran) == ("Done.", [8])
    checked(agent, first, second, done)


async def test_arguments_are_checked_before_a_person_is_asked() -> None:
    """Nobody is asked about a call that cannot run, or may not."""
    asked = NeedsCheckIn()
    model = ScriptedModel([call("pay", euros="eight")], "Oh.")
    agent: Agent[Any, Any] = Agent(model, tools=[paying(asked, [], parameters=CITY, check_arguments=True)])
    assert (await turn(agent)).status == "answered"
    held = Permissions(check=lambda _: Deny("no"))
    denied: Agent[Any, Any] = Agent(
        ScriptedModel([call("pay", euros=8)], "Oh."), tools=[paying(asked, [])], features=[held]
    )
    assert (await turn(denied)).status == "answered"


async def test_a_predicate_cannot_change_what_the_person_is_shown() -> None:
    """They see the arguments that will run, whatever is done to a copy of them."""
    ran: list[Any] = []

    def forges(args: Any, turn: Turn) -> bool:
        args["euros"] = 1
        return True

    agent = Agent(ScriptedModel([call("pay", euros=8)], "Done."), tools=[paying(NeedsCheckIn(forges), ran)])
    paused = await turn(agent)
    detail: Any = open_question(paused).detail
    assert detail["will_do"]["args"] == {"euros": "8"}
    await answered(agent, paused, approved=True)
    assert ran == [8]


async def test_the_evidence_shows_where_a_call_comes_from() -> None:
    """What it does, what was read, which of that speaks of the same things, and what ran."""
    ran: list[Any] = []
    model = ScriptedModel([call("look")], ["I shall pay the plumber. ", call("pay", euros=8, to="plumber " * 20)])
    agent: Agent[Any, Any] = Agent(
        model, tools=[tool("look", lambda *_: "Please pay the plumber somebody. " * 9), paying(NeedsCheckIn(), ran)],
        instructions="You keep the house to yourself. Bills are settled on Mondays.", features=[CheckIn()],
    )  # fmt: skip
    detail: Any = open_question(await turn(agent, "The plumber wants his money.")).detail
    assert detail["will_do"]["description"] == "Pay somebody."
    assert len(detail["will_do"]["args"]["to"]) == 60
    assert detail["said"] == "I shall pay the plumber. "
    assert [one["from"] for one in detail["read"]] == ["instructions", "instructions", "message", "result of look"]
    assert [one["from"] for one in detail["drivers"]] == ["result of look", "message"]  # no word like "the" counts
    assert detail["drivers"][0]["overlap"] > detail["drivers"][1]["overlap"] > 0
    assert max(len(one["text"]) for one in detail["read"]) == len(detail["drivers"][0]["text"]) == 160
    assert detail["trail"] == {"round": 2, "calls": [{"tool": "look", "ok": True}]}


async def test_the_evidence_is_that_of_this_turn_and_of_what_stood_last_before_the_call() -> None:
    """Not what was said in the turn before, and twelve texts at most; what failed is told as that."""
    model = ScriptedModel("Yes?", [call("look")], [call("pay", euros=8)])
    agent: Agent[Any, Any] = Agent(
        model, tools=[tool("look", lambda *_: 1 / 0), tool("see"), paying(NeedsCheckIn(), [])],
        instructions=" ".join(f"Rule {n}." for n in range(20)),
    )  # fmt: skip
    before = await turn(agent, "An old matter.")
    detail: Any = open_question(await turn(agent, "Pay the plumber.", session=before.session)).detail
    read = [one["text"] for one in detail["read"]]
    assert read == [*(f"Rule {n}." for n in range(9, 20)), "Pay the plumber."]
    assert detail["trail"]["calls"] == [{"tool": "look", "ok": False}]


async def test_a_turn_that_no_message_began_shows_none() -> None:
    """The last one is that of an earlier turn: quoted in this turn's question, it would outlive its erasure."""
    model = ScriptedModel("Yes?", [call("pay", euros=8)])
    agent: Agent[Any, Any] = Agent(model, tools=[paying(NeedsCheckIn(), [])], instructions="You pay.")
    before = await turn(agent, "An old matter.")
    paused = await turn(agent, Happened("billed", key="b1"), session=before.session)
    detail: Any = open_question(paused).detail
    assert [one["text"] for one in detail["read"]] == ["You pay."]


async def test_the_drivers_of_a_call_may_be_scored_by_the_application() -> None:
    """By meaning, say; one that fails leaves the call itself, and one beside other evidence is refused."""

    def by_house(about: str, text: str) -> float:
        assert about.startswith("pay Pay somebody.")
        return float("house" in text)

    def details(scorer: Any) -> Any:
        model = ScriptedModel([call("pay", euros=8)])
        tools, features = [paying(NeedsCheckIn(), [])], [CheckIn(scorer=scorer)]
        agent: Agent[Any, Any] = Agent(model, tools=tools, features=features, instructions="You keep house. Be brief.")
        result = agent.turn_sync("The plumber wants his money.")
        assert result.question is not None
        return result.question.detail

    assert [(one["text"], one["overlap"]) for one in details(by_house)["drivers"]] == [("You keep house.", 1.0)]
    assert set(details(lambda *_: 1 / 0)) == {"will_do"}
    with pytest.raises(ConfigurationError, match="scorer= of CheckIn ranks standard evidence"):
        CheckIn(evidence="minimal", scorer=by_house)


async def test_evidence_may_be_little_or_ones_own() -> None:
    """One that cannot be made or kept leaves the call itself: the question is what counts."""
    made: list[Any] = [
        "minimal",
        lambda _, held: {"limit": 100, "call": held.name},
        lambda *_: 1 / 0,
        lambda *_: {"self": object()},
    ]
    seen = []
    for evidence in made:
        agent: Agent[Any, Any] = Agent(
            ScriptedModel([call("pay", euros=8)]),
            tools=[paying(NeedsCheckIn(question="Pay?", screen="payment"), [])],
            features=[CheckIn(evidence=evidence, audience="finance")],
        )
        question = open_question(await turn(agent))
        assert (question.text, question.audience) == ("Pay?", "finance")
        seen.append(question.detail)
    bare = {"tool": "pay", "description": "Pay somebody.", "args": {"euros": "8"}}
    assert seen[0] == seen[2] == seen[3] == {"will_do": bare, "screen": "payment"}
    assert seen[1] == {"will_do": bare, "more": {"limit": 100, "call": "pay"}, "screen": "payment"}


async def test_a_check_in_that_nobody_answers_expires() -> None:
    """The wake that it armed declines it; the model is told, and nothing runs."""
    ran: list[Any] = []
    effects = FakeEffects()
    model = ScriptedModel([call("pay", euros=8)], "Nobody was there.")
    agent: Agent[Any, Any] = Agent(
        model, tools=[paying(NeedsCheckIn(), ran)], features=[CheckIn(expires_s=3600)]
    )  # fmt: skip
    paused = await turn(agent, effects=effects)
    (wake,) = paused.wakes
    assert (wake.key, (wake.at - effects.now()).total_seconds()) == (expiry_key(open_question(paused)), 3600)
    effects.advance(hours=1)
    done = await turn(agent, Woke(wake.key), session=paused.session, effects=effects)
    assert (done.text, ran) == ("Nobody was there.", [])
    assert texts(model.requests[1]) == ["Expired: nobody answered in time."]
    assert ("before_tool", "check-in", "deny", "expired") in verdicts(done)
    checked(agent, paused, done)


async def test_tools_of_toolsets_check_in_too() -> None:
    """They are known round by round; the feature has to be mounted for them."""
    ran: list[Any] = []
    tools = StaticTools([paying(NeedsCheckIn(), ran)])
    model = ScriptedModel([call("pay", euros=8)], "Done.")
    agent: Agent[Any, Any] = Agent(model, tools=[tools], features=[approve("pay"), CheckIn()])
    first = await turn(agent)
    second = await answered(agent, first, approved=True)
    assert open_question(second).by == "check-in"
    assert (await answered(agent, second, approved=True)).text == "Done."
    assert ran == [8]
    model = ScriptedModel([call("pay", euros=8)], "Oh.")
    assert (await turn(Agent(model, tools=[tools]))).status == "answered"
    assert "needs 'check-in', which is not part of this agent" in texts(model.requests[1])[0]


def test_a12_a_check_in_without_a_tool_that_needs_one_is_refused() -> None:
    """With such a tool it is not (case A12)."""
    with pytest.raises(ConfigurationError, match="no tool to ask about"):
        Agent(ScriptedModel(), tools=[tool()], features=[CheckIn()])
    Agent(ScriptedModel(), tools=[tool(), paying(NeedsCheckIn("always"), [])], features=[CheckIn()])


def test_a13_a_demand_that_is_none_is_refused_where_the_tool_is_made() -> None:
    """The screen is a part of the demand, so it cannot stand alone; a wrong demand is told (case A13)."""
    for wrong in ("sometimes", 3):
        with pytest.raises(ConfigurationError, match="only_if= of NeedsCheckIn is 'always' or a function"):
            NeedsCheckIn(wrong)  # type: ignore[arg-type] # the slip itself


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"evidence": "all"}, "evidence= of CheckIn is 'standard', 'minimal' or a function"),
        ({"expires_s": 0}, "expires_s= of Ask"),
    ],
)
def test_a_wrong_check_in_is_refused(given: dict[str, Any], problem: str) -> None:
    """When it is made."""
    with pytest.raises((ConfigurationError, UsageError), match=problem):
        CheckIn(**given)
