"""Permissions: roles and policies as data, and a check; before any rule, and again when a person has answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask
from onrecord.conversation.messages import ToolCall
from onrecord.errors import ConfigurationError, FeatureConflict
from onrecord.governance import Asked, Permissions, Policy, before_tool, halt_of
from onrecord.governance.sequence import ran
from onrecord.record.kinds import ToolStarted, VerdictFiled
from onrecord.skills import Skill, Skills
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import ToolContext
from onrecord.tools.toolset import StaticTools
from onrecord.turn.director import Stage
from onrecord.turn.moments import ALLOW, Allow, Deny
from onrecord.turn.turn import Turn
from tests.turn.acting import Result, bodies, keeping, read, results, rounds_of, texts, tool, turn, verdicts
from tests.turn.pausing.asking import Acting, answered, open_question

pytestmark = pytest.mark.unit

ROLES = {"reader": ["lookup"], "admin": ["lookup", "delete"]}
WRONG: Any = "delete"
HIDE: Any = "hide"
ADMIN: Any = "admin"
MISS = "[permission denied: the role 'reader' may not use 'delete']"


def agent(model: ScriptedModel, *features: Any, ran: list[str] | None = None, **given: Any) -> Agent[Any, Any]:
    """An agent that can look things up and delete them; what ran is kept."""
    kept = ran if ran is not None else []

    def noted(id: str) -> Any:
        return tool(id, keeping(kept, id))

    return Agent(model, tools=[noted("lookup"), noted("delete")], features=features, **given)


def offered(model: ScriptedModel, request: int = 0) -> list[str]:
    """The tools that a request offers."""
    return list(read(model.requests[request]).get("tools", []))


def data(result: Result) -> list[Mapping[str, Any]]:
    """What the verdicts of a turn hold besides their words."""
    return [body.data for body in bodies(result, VerdictFiled)]


async def test_e64_a_check_that_raises_denies_and_the_answer_still_comes() -> None:
    """The model is told that it stays so; what was raised is on the record, and nowhere else (case E64)."""

    def check(asked: Asked) -> Allow[Any]:
        raise RuntimeError("directory is down")

    ran: list[str] = []
    model = ScriptedModel([call("delete")], "Could not.")
    result = await turn(agent(model, Permissions(check=check), ran=ran))
    assert (result.text, ran) == ("Could not.", [])
    (heard,) = texts(model.requests[1])
    assert heard == "[permission denied: the permission check failed, and will not change during this turn]"
    assert data(result) == [{"rule": "check", "rationale": "RuntimeError: directory is down"}]


async def test_e65_a_halt_ends_the_turn_before_the_call() -> None:
    """No error but a stop: the call did not run, its words are in the history, the record has what ran (case E65).

    A call that was denied earlier is not in the sequence, the one that was about to run is its last.
    """
    ran: list[str] = []

    def check(asked: Asked) -> Allow[Any] | Deny:
        if asked.tool == "delete":
            assert [one.name for one in asked.sequence] == ["lookup", "delete"]
            return Deny("no", halt=True)
        return Deny("later") if asked.args.get("deny") else ALLOW

    script = [call("lookup")], [call("lookup", deny=True)], [call("delete"), call("lookup")], "never said"
    model = ScriptedModel(*script)
    result = await turn(agent(model, Permissions(check=check), ran=ran))
    assert (len(model.requests), ran, result.status) == (3, ["lookup"], "silent")
    halt = halt_of(result.entries)
    assert halt is not None
    assert (halt.by, halt.told, halt.sequence) == ("permissions", "no", ("lookup", "delete"))
    assert [r for r in results(result) if r[0] == "delete"] == [("delete", "denied")]
    assert results(result)[-1] == ("lookup", "not_run")
    assert halt_of((await turn(agent(ScriptedModel("hi"), Permissions(check=check)))).entries) is None


async def test_157_a_sequence_holds_what_ran() -> None:
    """Neither denied calls, nor unknown ones, nor those settled without running (case N157)."""
    policies = [
        Policy(name="over", tools=("delete",), args={"all": True}, then="halt"), Policy(name="no", tools=("delete",)),
    ]  # fmt: skip
    script = [call("lookup")], [call("delete")], [call("nothing")], [call("delete", all=True), call("lookup")]
    result = await turn(agent(ScriptedModel(*script), Permissions(policies=policies)))
    assert results(result)[1:] == [
        ("delete", "denied"), ("nothing", "absent"), ("delete", "denied"), ("lookup", "not_run"),
    ]  # fmt: skip
    assert [one.name for one in ran(rounds_of(result))] == ["lookup"]


async def test_a_result_that_a_rule_denied_had_run_all_the_same() -> None:
    """A check is told so: it looks at what was done, not at what was read."""
    seen: list[list[str]] = []

    def check(asked: Asked) -> Allow[Any]:
        seen.append([one.name for one in asked.sequence])
        return ALLOW

    from onrecord.governance import after_tool

    hide = after_tool(lambda *_: Deny("withheld"))
    await turn(agent(ScriptedModel([call("lookup")], [call("lookup")], "x"), Permissions(check=check), hide))
    assert seen == [["lookup"], ["lookup", "lookup"]]


async def test_a_role_decides_what_is_offered_and_what_runs() -> None:
    """What it may not use is not in the request, and is not run when the model names it all the same."""
    ran: list[str] = []
    model = ScriptedModel([call("delete"), call("lookup")], "Done.")
    result = await turn(agent(model, Permissions(ROLES, "reader"), ran=ran))
    assert offered(model) == offered(model, 1) == ["lookup"]
    assert (ran, texts(model.requests[1])) == (["lookup"], [MISS, "lookup"])
    assert data(result) == [{"rule": "reader.allowlist.miss"}]
    assert verdicts(result) == [("before_tool", "permissions", "deny", MISS)]


async def test_another_role_uses_the_same_permissions() -> None:
    """And what is allowed leaves nothing on the record."""
    ran: list[str] = []
    model = ScriptedModel([call("delete")], "Done.")
    result = await turn(agent(model, Permissions(ROLES, "reader").with_role("admin"), ran=ran))
    assert (ran, offered(model), verdicts(result)) == (["delete"], ["lookup", "delete"], [])


async def test_tools_may_be_offered_and_refused() -> None:
    """With ``hides=False`` the model sees them, and is told why not."""
    model = ScriptedModel([call("delete")], "Done.")
    await turn(agent(model, Permissions(ROLES, "reader", hides=False)))
    assert (offered(model), texts(model.requests[1])) == (["lookup", "delete"], [MISS])


@pytest.mark.parametrize("role", [lambda turn: turn.context["role"], lambda _: "nobody", lambda _: 1 / 0])
async def test_who_acts_may_depend_on_the_turn(role: Any) -> None:
    """A function that names no role, or raises, offers nothing and lets nothing run."""
    ran: list[str] = []
    model = ScriptedModel([call("delete")], "Done.")
    await turn(agent(model, Permissions(ROLES, role), ran=ran), context={"role": "admin"})
    known = ran == ["delete"]
    assert offered(model) == (["lookup", "delete"] if known else [])
    assert known or texts(model.requests[1])[0].startswith("[permission denied: ")


@pytest.mark.parametrize(("given", "told"), [("clerk", "'clerk'"), (None, "a NoneType")])
async def test_only_the_record_says_which_role_is_not_known(given: Any, told: str) -> None:
    """Whoever looks for the slip finds the name and the roles there are."""
    model = ScriptedModel([call("delete")], "Done.")
    result = await turn(agent(model, Permissions(ROLES, lambda _: given)))
    assert data(result) == [{"rule": "role", "rationale": f"role= gave {told}; the roles are reader, admin"}]
    assert texts(model.requests[1]) == ["[permission denied: nobody is known to act in this turn]"]


POLICIES = (
    Policy(name="own-team", tools=("delete",), args={"team": ("a", "b")}, then="allow", reason="their own"),
    Policy(name="no-prod", tools=("delete",), args={"env": "prod"}, reason="production is frozen"),
    Policy(name="never", tools=("delete*",), args={"all": True}, then="halt", tell="that is not done here"),
    Policy(name="ask", tools=("delete",), roles=("reader",), then="ask", tell="May this be deleted?"),
)


@pytest.mark.parametrize(
    ("args", "told", "by"),
    [
        ({"team": "b", "env": "prod"}, "delete", "own-team"),
        ({"env": "prod"}, "[permission denied: production is frozen]", "no-prod"),
        ({"env": "test"}, "delete", ""),
        ({"all": 1}, "delete", ""),
    ],
)
async def test_the_first_policy_about_a_call_decides(args: dict[str, Any], told: str, by: str) -> None:
    """By the arguments it has, of the type they have: 1 is not true."""
    model = ScriptedModel([call("delete", **args)], "Done.")
    roles = {"admin": ["*"], "reader": ["lookup"]}
    result = await turn(agent(model, Permissions(roles, "admin", policies=POLICIES)))
    assert texts(model.requests[1]) == [told]
    assert [one.get("rule", "own-team") for one in data(result)] == ([by] if by else [])


@pytest.mark.parametrize(("given", "runs"), [(9, 0), (9.0, 0), (True, 1), (1, 0), ("9", 1)])
async def test_a_value_is_the_number_it_is_however_it_is_written(given: Any, runs: int) -> None:
    """``9.0`` does not slip past a policy about ``9``; ``true`` is not the number one."""
    ran: list[str] = []
    policy = Policy(name="some", tools=("delete",), args={"n": (9, 1)})
    model = ScriptedModel([call("delete", n=given)], "x")
    await turn(agent(model, Permissions(policies=[policy]), ran=ran))
    assert len(ran) == runs


async def test_a_policy_may_halt_or_ask() -> None:
    """A halt says what it says, and the question goes to an approver."""
    halted = await turn(agent(ScriptedModel([call("delete", all=True)]), Permissions({}, "guest", policies=POLICIES)))
    halt = halt_of(halted.entries)
    assert halt is not None
    assert halt.told == "that is not done here"
    ran: list[str] = []
    roles = {"reader": ["*"]}
    asking = agent(ScriptedModel([call("delete")], "Done."), Permissions(roles, "reader", policies=POLICIES), ran=ran)
    paused = await turn(asking)
    question = open_question(paused)
    assert (question.text, question.audience, question.by) == ("May this be deleted?", "approver", "permissions")
    assert (await answered(asking, paused, approved=True)).text == "Done."
    assert ran == ["delete"]


async def test_a_check_cannot_wave_through_what_a_policy_asks_about_or_denies() -> None:
    """Nor change arguments: it may only say no, ask, or say why not."""
    policy = Policy(name="ask", tools=("delete",), then="ask")
    permissions = Permissions(policies=(policy,), check=lambda _: Allow(why="fine by me"))
    assert (await turn(agent(ScriptedModel([call("delete")]), permissions))).status == "paused"
    refused, ran = Policy(name="no", tools=("delete",), tell="no"), list[str]()
    model = ScriptedModel([call("delete")], "Done.")
    await turn(agent(model, Permissions(policies=(refused,), check=lambda _: Allow(why="fine by me")), ran=ran))
    assert (ran, texts(model.requests[1])) == ([], ["no"])
    forging = Permissions(check=lambda _: Allow({"env": "prod"}, "moved"))
    model = ScriptedModel([call("lookup")], "Done.")
    await turn(agent(model, forging))
    assert texts(model.requests[1]) == ["[permission denied: the permission check failed]"]


async def test_it_decides_before_any_rule() -> None:
    """A call that it denies never reaches one, wherever it stands in the list."""
    seen: list[str] = []

    @before_tool
    def looks(turn: Turn, call: ToolCall) -> Allow[Any]:
        seen.append(call.name)
        return Allow()

    await turn(agent(ScriptedModel([call("delete"), call("lookup")], "x"), looks, Permissions(ROLES, "reader")))
    assert seen == ["lookup"]


@pytest.mark.parametrize("at", ["rule", "handler"])
async def test_what_is_revoked_while_a_person_thinks_is_not_run(at: str) -> None:
    """An approval does not bring a permission back: it is looked at again, for a handler that asked too."""
    ran: list[object] = []

    async def deletes(args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
        if at == "handler":
            ran.append((await ctx.ask(Ask("Really?"))).value)
        else:
            ran.append("deleted")
        return "deleted"

    @before_tool
    def asking(turn: Turn, call: ToolCall) -> Allow[Any] | Ask:
        return Ask("Delete?") if at == "rule" else Allow()

    roles = dict(ROLES)
    held = Permissions(roles, lambda turn: str(turn.context))
    model = ScriptedModel([call("delete")], "Then not.")
    one: Agent[Any, Any] = Agent(model, tools=[tool("lookup"), tool("delete", deletes)], features=[held, asking])
    paused = await turn(one, context="admin")
    done = await answered(one, paused, approved=True, value="yes", context="reader")
    assert (ran, texts(model.requests[1]), results(done)) == ([], [MISS], [("delete", "denied")])
    assert done.text == "Then not."


async def test_a_question_of_its_own_is_not_asked_again_behind_another() -> None:
    """Looked at again after a later question, it only says no or nothing."""
    policy = Policy(name="ask", tools=("delete",), then="ask")
    asking = before_tool(lambda *_: Ask("Sure?"))
    ran: list[str] = []
    one = agent(ScriptedModel([call("delete")], "Done."), Permissions(policies=(policy,)), asking, ran=ran)
    first = await turn(one)
    second = await answered(one, first, approved=True)
    assert open_question(second).text == "Sure?"
    done = await answered(one, second, approved=True)
    assert (done.text, ran) == ("Done.", ["delete"])


async def test_what_was_checked_is_what_runs() -> None:
    """What a model writes after a question is another call: it is decided about by itself."""
    ran: list[object] = []
    deletes = tool("delete", keeping(ran, lambda args: args["id"], "deleted"))
    asking = Permissions(check=lambda asked: Ask("Delete?") if asked.args["id"] != 3 else Deny("not that"))
    model = ScriptedModel([call("delete", id=1)], [call("delete", id=3)], [call("delete", id=2)])
    one: Agent[Any, Any] = Agent(model, tools=[deletes], features=[asking])
    paused = await turn(one)
    again = await answered(one, paused, approved=True)
    assert (ran, open_question(again).key == open_question(paused).key) == ([1], False)
    assert [body.args for body in bodies(again, ToolStarted)] == [{"id": 1}]


async def test_tools_of_toolsets_are_hidden_and_refused_too() -> None:
    """Whatever a source offers in a round."""
    model = ScriptedModel([call("delete")], "Done.")
    one: Agent[Any, Any] = Agent(
        model, tools=[StaticTools([tool("lookup"), tool("delete")])], features=[Permissions(ROLES, "reader")]
    )
    await turn(one)
    assert (offered(model), texts(model.requests[1])) == (["lookup"], [MISS])


@pytest.mark.parametrize("role", ["staff", "guest"])
async def test_what_a_director_does_is_decided_about_too(role: str) -> None:
    """An action of a flow, say: no model chose it, and who acts counts all the same."""
    ran: list[str] = []
    told: list[str | None] = []

    async def acts(turn: Turn, stage: Stage) -> None:
        told.append((await stage.act(tool("charge", keeping(ran, "charge")), {}, key="charge")).error)
        await stage.speak(turn.spec.brief)

    held = Permissions({"staff": ["charge", "lookup"], "guest": ["lookup"]}, role, actions=["charge"])
    one: Agent[Any, Any] = Agent(ScriptedModel("Done."), tools=[tool()], features=[held], director=Acting(acts))
    assert (await turn(one)).text == "Done."
    denied = "[permission denied: the role 'guest' may not use 'charge']"
    assert ran == (["charge"] if role == "staff" else [])
    assert told == [None if role == "staff" else denied]


def test_what_a_role_may_use_can_be_asked() -> None:
    """For a menu, or the skills of an agent: patterns count, and a policy that always denies does."""
    held = Permissions({"reader": ["file_*"]}, "reader", policies=(Policy(name="p", tools=("file_rm",)),))
    tools = ("file_ls", "file_rm", "delete")
    assert [held.allowed(one, "reader") for one in tools] == [True, False, False]
    assert not held.allowed("file_ls", "nobody")
    some = Permissions(policies=(POLICIES[0], Policy(name="p", tools=("delete",))))
    assert some.allowed("delete", "")


@pytest.mark.parametrize("pattern", ["delete", "del*", "d?lete", "[d]elete", "*"])
async def test_a_name_that_passes_as_one_of_a_tool_is_one(pattern: str) -> None:
    """What is taken for a pattern when the agent is built is one when a call comes: no line is a lock that is open."""
    ran: list[str] = []
    model = ScriptedModel(call("delete"), "Done.")
    denied = Permissions(policies=(Policy(name="p", tools=(pattern,)),))
    result = await turn(agent(model, denied, ran=ran))
    assert (results(result), ran, "delete" in offered(model)) == ([("delete", "denied")], [], False)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (Permissions, "these Permissions allow everything"),
        (lambda: Permissions({"a": ["lookup"]}), "Permissions have roles, and nobody says which one acts"),
        (lambda: Permissions({"a": ["lookup"]}, "b"), "Permissions have no role 'b'"),
        (lambda: Permissions({"a": "lookup"}, "a"), "are a list"),
        (lambda: Permissions({"a": ["look"]}, "a"), "role 'a' names 'look', which is no tool"),
        (lambda: Permissions(policies=(Policy(name="p", tools=("del",)),)), "policy 'p' names 'del'"),
        (lambda: Permissions({"a": ["*"]}, "a", policies=(Policy(name="p", tools=("*",), roles=("b",)),)), "no role"),
        (lambda: Permissions(policies=(WRONG,)), "a list of Policy"),
        (lambda: Policy(name="", tools=("a",)), "a name and a tuple of tools"),
        (lambda: Policy(name="p", tools=WRONG), "a name and a tuple of tools"),
        (lambda: Policy(name="p", tools=("*",), roles=ADMIN), "roles of policy 'p' are a tuple"),
        (
            lambda: Permissions(policies=(Policy(name="p", tools=("*",), roles=("b",)),)),
            "'p' is about roles, and nobody",
        ),
        (lambda: Policy(name="p", tools=("delete",), then=HIDE), "then= of policy 'p' cannot be 'hide'"),
        (lambda: Policy(name="p", tools=("delete",), roles=WRONG), "roles of policy 'p' are a tuple"),
    ],
)
def test_what_would_decide_nothing_is_refused(given: Any, problem: str) -> None:
    """When it is made, or when the agent is."""
    with pytest.raises(ConfigurationError, match=problem):
        agent(ScriptedModel(), given())


def test_there_is_one_answer_to_who_may_do_what() -> None:
    """Two of them would hide one behind the other."""
    with pytest.raises(FeatureConflict, match="given twice"):
        agent(ScriptedModel(), Permissions(ROLES, "reader"), Permissions(ROLES, "admin"))


def test_a_tool_of_a_feature_that_nobody_may_use_is_told_when_the_agent_is_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """When the agent is made: the feature would be there and do nothing. An own tool is the application's business."""
    skills = Skills(Skill("a", "About a.", "Do a."))

    def made(**roles: list[str]) -> list[str]:
        caplog.clear()
        Agent(ScriptedModel(), tools=[tool("pay")], features=[skills, Permissions(roles, role="clerk")])
        return [record.getMessage() for record in caplog.records if record.name == "onrecord.governance"]

    told = "permissions: nobody may use the tool 'read_skill', which a feature brings"
    assert made(clerk=["pay"]) == [told]
    assert made(clerk=["read_skill"]) == []
    assert made(clerk=["pay"], boss=["*"]) == []
