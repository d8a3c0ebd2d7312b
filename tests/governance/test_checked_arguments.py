"""What permissions let pass is what runs, whatever rules make of the arguments, and however often the call waits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask, approved, declined
from onrecord.conversation.messages import ToolCall
from onrecord.errors import MessageDenied, UsageError
from onrecord.governance import Asked, NeedsCheckIn, Permissions, Policy, before_tool, on_input
from onrecord.jsonio import Json
from onrecord.record.kinds import ToolReturned
from onrecord.session import pack, unpack
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.tools.tool import Tool, ToolContext, Validity
from onrecord.turn.moments import ALLOW, SLOTS, Allow, Deny, Hooks
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, keeping, results, texts, tool, turn, verdicts
from tests.turn.pausing.asking import answered, checked, open_question

pytestmark = pytest.mark.unit


def raises_to(n: int) -> Any:
    """A rule that puts another amount in place."""
    return before_tool(lambda _, held: Allow({**held.args, "n": n}, f"made {n}"))


def paying(pay: Tool, *features: Any) -> Agent[Any, Any]:
    """An agent whose model pays 1."""
    return Agent(ScriptedModel([call("pay", n=1)], "Done."), tools=[pay], features=list(features))


async def test_what_a_rule_makes_of_checked_arguments_is_checked_again() -> None:
    """A rule behind the check cannot bring in what the check would have refused; before any gate or person sees it."""
    ran: list[Any] = []
    gates: list[str] = []

    def gate(*_: Any) -> Validity:
        gates.append("gate")
        return Validity(valid=True)

    pay = Tool(
        "pay", keeping(ran, lambda args: args["n"], "paid"), "Pay.", traits=(NeedsCheckIn("always"),),
        validate_input=gate,
    )  # fmt: skip
    dear = Policy(name="dear", tools=("pay",), args={"n": 9}, reason="too dear")
    model = ScriptedModel([call("pay", n=1)], "Then not.")
    done = await turn(Agent(model, tools=[pay], features=[raises_to(9), Permissions(policies=[dear])]))
    assert (done.status, ran, gates) == ("answered", [], [])
    assert texts(model.requests[1]) == ["[permission denied: too dear]"]
    assert [name for _, name, *_ in verdicts(done)] == ["<lambda>", "permissions"]


async def test_what_is_let_pass_needs_no_second_look() -> None:
    """Only where a rule left other arguments is a check asked twice."""
    looked: list[Json] = []

    def check(asked: Asked) -> Allow[Any]:
        looked.append(asked.args["n"])
        return ALLOW

    for features, seen in (([], [1]), ([raises_to(2)], [1, 2])):
        looked.clear()
        await turn(paying(tool("pay"), Permissions(check=check), *features))
        assert looked == seen


async def test_a_person_is_asked_about_what_will_run() -> None:
    """An approval is of the arguments that were shown: others need one of their own, and then the gates come."""
    ran: list[Any] = []
    pay = tool("pay", keeping(ran, lambda args: args["n"], "paid"))
    policy = Policy(name="sure", tools=("pay",), then="ask", tell="Pay?")
    features = (Permissions(policies=[policy]), raises_to(2))
    agent = paying(pay, *features)
    first = await turn(agent)
    second = await answered(agent, first, approved=True)
    for words in ({"value": "yes"}, {"approved": None, "note": "yes"}):
        with pytest.raises(UsageError, match="takes a decision"):
            await answered(agent, second, **words)
    assert (open_question(first).key != open_question(second).key, ran) == (True, [])
    done = await answered(agent, second, approved=True)
    assert (ran, done.text) == ([2], "Done.")
    checked(agent, first, second, done)
    refused = await answered(agent.with_(model=ScriptedModel("Then not.")), second, approved=False)
    assert (ran, results(refused)) == ([2], [("pay", "denied")])


async def test_a_hook_cannot_change_arguments_behind_the_gates() -> None:
    """Neither the schema nor the person would have seen them."""
    ran: list[Any] = []
    for slot in ("ARGUMENTS", "CHECK_IN", "CREDENTIALS"):
        changes = Named("late", Hooks(before_tool=_changing, order={"before_tool": SLOTS["before_tool"][slot]}))
        model = ScriptedModel([call("pay", n=1)], "Then not.")
        await turn(Agent(model, tools=[tool("pay", keeping(ran, "paid"))], features=[changes]))
        assert texts(model.requests[1]) == ["rule 'late' failed: it changed arguments that were checked already"]
    assert ran == []


async def _changing(turn: Turn, held: ToolCall) -> Allow[Mapping[str, Json]]:
    return Allow({**held.args, "n": True}, "as a boolean")


async def test_an_answer_is_handed_to_its_asker_alone() -> None:
    """Who hands out credentials goes on itself; who stands behind it was not asked, and takes it not for its own."""
    ran, seen = list[Any](), list[tuple[str, bool]]()

    def lends(name: str) -> Named:
        async def hook(turn: Turn, _: ToolCall) -> Allow[Any] | Ask:
            seen.append((name, turn.resumed is not None))
            return Ask("May I?") if name == "first" and turn.resumed is None else ALLOW

        return Named(name, Hooks(before_tool=hook, order={"before_tool": SLOTS["before_tool"]["CREDENTIALS"]}))

    agent = paying(tool("pay", keeping(ran, "paid")), lends("first"), lends("second"))
    paused = await turn(agent)
    done = await answered(agent, paused, approved=True)
    assert (done.text, len(ran)) == ("Done.", 1)
    assert seen == [("first", False), ("first", True), ("second", False)]


async def test_what_is_done_to_arguments_in_place_changes_nothing() -> None:
    """A change is a verdict, on the record, or it is none: of rules and of a tool's own gates."""
    ran: list[Any] = []

    def forges(_: Turn, held: ToolCall) -> Allow[Any]:
        held.args["to"]["name"] = "Eve"
        return ALLOW

    def gate(args: Any, ctx: ToolContext[Any]) -> Validity:
        args["to"]["name"] = "Eve"
        return Validity(valid=True)

    pay = tool("pay", keeping(ran, lambda args: args["to"]["name"], "paid"), validate_input=gate)
    await turn(
        Agent(ScriptedModel([call("pay", to={"name": "Ana"})], "x"), tools=[pay], features=[before_tool(forges)])
    )
    assert ran == ["Ana"]


async def test_a_check_that_lets_pass_only_as_others_denies() -> None:
    """Asked twice, it must come to one thing: where it counts up, nobody could say what was checked."""
    ran: list[Any] = []

    async def counts(turn: Turn, held: ToolCall) -> Allow[Mapping[str, Json]]:
        n = held.args["n"]
        assert isinstance(n, int)
        return Allow({**held.args, "n": n + 1}, "counted")

    async def stamps(turn: Turn, held: ToolCall) -> Allow[Mapping[str, Json]]:
        return Allow({**held.args, "tenant": "hotel"}, "stamped")

    for hook, runs in ((counts, []), (stamps, [5])):
        first = Named("first", Hooks(before_tool=hook, order={"before_tool": SLOTS["before_tool"]["PERMISSION"]}))
        pay = tool("pay", keeping(ran, lambda args: args["n"], "paid"))
        await turn(Agent(ScriptedModel([call("pay", n=1)], "x"), tools=[pay], features=[first, raises_to(5)]))
        assert ran == runs


async def test_a_second_look_asks_each_check_once() -> None:
    """Of several checks one may ask: behind its answer come those that were not asked yet, and then the gates."""
    looked: list[tuple[str, Json]] = []

    def check(name: str) -> Named:
        async def look(turn: Turn, held: ToolCall) -> Allow[Any] | Ask:
            looked.append((name, held.args["n"]))
            return Ask(f"{name}?") if held.args["n"] == 2 else ALLOW

        return Named(name, Hooks(before_tool=look, order={"before_tool": SLOTS["before_tool"]["PERMISSION"]}))

    ran: list[Any] = []
    pay = tool("pay", keeping(ran, lambda args: args["n"], "paid"))
    agent = paying(pay, check("one"), check("two"), raises_to(2))
    at = await turn(agent)
    asked = []
    while at.status == "paused":
        asked.append(open_question(at).by)
        at = await answered(agent, at, approved=True)
    assert (asked, ran) == (["one", "two"], [2])
    assert looked == [("one", 1), ("two", 1), ("one", 2), ("one", 2), ("two", 2), ("one", 2), ("two", 2)]


async def test_a_call_whose_answer_is_denied_behind_a_second_look_did_not_run() -> None:
    """Nothing is uncertain about it: it waited before its handler."""
    policy = Policy(name="two", tools=("pay",), args={"n": 2}, then="ask")
    strict = on_input(lambda _, given: Deny("not you") if isinstance(given, Answered) else ALLOW)
    agent = paying(tool("pay"), Permissions(policies=[policy]), raises_to(2), strict)
    paused = await turn(agent)
    with pytest.raises(MessageDenied) as refused:
        await answered(agent, paused, approved=True)
    assert refused.value.result is not None
    assert [body.status for body in bodies(refused.value.result, ToolReturned)] == ["not_run"]


async def test_arguments_are_told_apart_to_the_letter() -> None:
    """A handler that asks in its middle runs again with what a rule made of them, and not with what is equal to it."""
    seen: list[Any] = []

    async def pays(args: Mapping[str, Json], ctx: ToolContext[Any]) -> str:
        seen.append(args["n"])
        await ctx.ask(Ask("Really?"))
        return "paid"

    agent = paying(tool("pay", pays), before_tool(lambda *_: Allow({"n": True}, "as a boolean")))
    await answered(agent, await turn(agent), value="yes")
    assert [type(n) for n in seen] == [bool, bool]


async def test_a_check_that_rewrites_by_itself_is_not_asked_again() -> None:
    """What it left is what it let pass."""
    looked: list[Json] = []

    async def stamps(turn: Turn, held: ToolCall) -> Allow[Mapping[str, Json]]:
        looked.append(held.args["n"])
        return Allow({**held.args, "tenant": "hotel"}, "stamped")

    first = Named("first", Hooks(before_tool=stamps, order={"before_tool": SLOTS["before_tool"]["PERMISSION"]}))
    await turn(paying(tool("pay"), first))
    assert looked == [1]


async def test_a_second_look_that_was_answered_is_over() -> None:
    """Whoever asks behind it does not bring it back: a check-in, and the tool itself."""
    ran: list[Any] = []

    async def pays(args: Mapping[str, Json], ctx: ToolContext[Any]) -> str:
        await ctx.ask(Ask("Really?"))
        ran.append(args["n"])
        return "paid"

    policy = Policy(name="sure", tools=("pay",), then="ask")
    pay = tool("pay", pays, traits=(NeedsCheckIn(),))
    agent = paying(pay, Permissions(policies=[policy]), raises_to(2))
    at, asked = await turn(agent), list[str]()
    while at.status == "paused":
        question = open_question(at)
        asked.append(question.by)
        at = await answered(agent, at, **({"approved": True} if question.decision else {"value": "yes"}))
    assert (asked, ran) == (["permissions", "permissions", "check-in", "pay"], [2])


@pytest.mark.parametrize("then", ["deny", "raise"])
async def test_what_it_asked_about_itself_may_be_revoked_too(then: str) -> None:
    """An approval answers the question; whether it may still be done is looked at when it comes."""
    ran: list[Any] = []

    def check(asked: Asked) -> Ask | Deny:
        if asked.turn.context == "now":
            return Ask("Pay?")
        if then == "raise":
            raise LookupError
        return Deny("not any more")

    pay = tool("pay", keeping(ran, "paid"))
    agent: Agent[Any, Any] = Agent(ScriptedModel([call("pay")], "x"), tools=[pay], features=[Permissions(check=check)])
    paused = await turn(agent, context="now")
    done = await answered(agent, paused, approved=True, context="later")
    assert (ran, results(done)) == ([], [("pay", "denied")])


# ---- whatever rules do ----------------------------------------------------------------------------------------------

N = st.integers(0, 3)
tables = st.fixed_dictionaries(dict.fromkeys(range(4), st.sampled_from(["allow", "allow", "deny", "ask", "raise"])))
acts = st.one_of(st.just("pass"), st.just("ask"), st.just("deny"), st.just("forge"), N)
rules = st.lists(st.fixed_dictionaries(dict.fromkeys(range(4), acts)), max_size=3)


class Desk:
    """Permissions by a table that changes while people think, rules that rewrite and ask, and what ran."""

    def __init__(self, seen: list[dict[int, str]]) -> None:
        self.tables = seen
        self.time = 0
        self.let_pass: set[int] = set()
        self.asked: int | None = None
        self.ran: list[tuple[int, int]] = []

    @property
    def table(self) -> dict[int, str]:
        """What may be done now."""
        return self.tables[min(self.time, len(self.tables) - 1)]

    def check(self, asked: Asked) -> Allow[Any] | Deny | Ask:
        """By the amount."""
        n: Any = asked.args["n"]
        told = self.table[n]
        if told == "raise":
            raise LookupError
        if told == "ask":
            self.asked = n
            return Ask("May it?")
        if told == "allow":
            self.let_pass.add(n)
            return ALLOW
        return Deny("no")

    def rule(self, acts: dict[int, Any]) -> Any:
        """A rule that does one thing per amount."""

        def act(turn: Turn, held: ToolCall) -> Allow[Any] | Deny | Ask:
            n: Any = held.args["n"]
            does = acts[n]
            if does == "forge":
                cast("dict[str, Json]", held.args)["n"] = (n + 1) % 4
                return ALLOW
            if isinstance(does, int):
                return Allow({"n": does}, "another")
            verdicts: dict[Any, Allow[Any] | Deny | Ask] = {"pass": ALLOW, "ask": Ask("Sure?"), "deny": Deny("no")}
            return verdicts[does]

        return before_tool(act)

    def tool(self, *, asks: bool) -> Tool:
        """What pays, and may ask in its middle."""

        async def pay(args: Mapping[str, Json], ctx: ToolContext[Any]) -> str:
            n: Any = args["n"]
            if asks:
                await ctx.ask(Ask("Really?"))
            self.ran.append((n, self.time))
            return "paid"

        return Tool("pay", pay, "Pay.")


async def played(script: list[int], desk: Desk, held: list[dict[int, Any]], yes: list[bool], *, asks: bool) -> None:
    """A turn with these calls, and people who decide so."""
    agent: Agent[Any, Any] = Agent(
        ScriptedModel(*([call("pay", n=n)] for n in script), *["Said."] * 10), tools=[desk.tool(asks=asks)],
        features=[Permissions(check=desk.check), *map(desk.rule, held)],
    )  # fmt: skip
    result = await agent.turn("go", session="s", effects=FakeEffects())
    for decision in yes:
        question = result.question
        if question is None or result.session is None:
            return
        desk.time += 1
        if question.by == "permissions" and decision and desk.asked is not None:
            desk.let_pass.add(desk.asked)
        given = approved(question, by="x") if decision else declined(question, by="x")
        if not question.decision and decision:
            given = type(given)(question.key, value="yes")
        result = await agent.turn(given, session=unpack(pack(result.session)), effects=FakeEffects())


@settings(max_examples=150, deadline=None)
@given(
    st.lists(N, min_size=1, max_size=3), st.lists(tables, min_size=1, max_size=3), rules,
    st.lists(st.booleans(), min_size=12, max_size=12), st.booleans(),
)  # fmt: skip
@example([1], [{0: "allow", 1: "allow", 2: "deny", 3: "allow"}], [{0: 0, 1: 2, 2: "pass", 3: 3}], [True] * 12, False)
@example([1], [{0: "allow", 1: "ask", 2: "ask", 3: "allow"}], [{0: 0, 1: 2, 2: 2, 3: "ask"}], [True] * 12, True)
def test_what_runs_was_let_pass_as_it_is(
    script: list[int], seen: list[dict[int, str]], held: list[dict[int, Any]], yes: list[bool], asks: bool
) -> None:
    """With these arguments: by the check or by a person it asked about them; and not refused when it began."""
    desk = Desk(seen)
    asyncio.run(played(script, desk, held, yes, asks=asks))
    for n, time in desk.ran:
        assert n in desk.let_pass
        assert seen[min(time, len(seen) - 1)][n] in ("allow", "ask")
