"""The moments ``before_tool`` and ``after_tool`` (architecture §6; loop spec §9.2, §9.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Text, plain_text
from onrecord.conversation.inputs import Ask, declined
from onrecord.conversation.messages import Note, ToolCall
from onrecord.errors import UsageError
from onrecord.governance.rules import after_tool, before_tool
from onrecord.record.kinds import ToolReturned, ToolStarted, VerdictFiled
from onrecord.session import pack, unpack
from onrecord.testing import ScriptedModel, call, reply
from onrecord.turn.moments import ALLOW, SLOTS, Allow, Deny, Hooks, Returned, Revise, Stop
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, calls_of, read, results, texts, tool, turn, verdicts

pytestmark = pytest.mark.unit


def before(verdict: Any, name: str = "rule", slot: str = "RULES") -> Named:
    """A rule before tools that always answers this, or asks or raises it."""

    async def hook(turn: Turn, call: Any) -> Any:
        return verdict(call) if callable(verdict) else verdict

    return Named(name, Hooks(before_tool=hook, order={"before_tool": SLOTS["before_tool"][slot]}))


def after(verdict: Any, name: str = "rule", slot: str = "RULES") -> Named:
    """A rule after tools that always answers this, or asks or raises it."""

    async def hook(turn: Turn, returned: Any) -> Any:
        return verdict(returned) if callable(verdict) else verdict

    return Named(name, Hooks(after_tool=hook, order={"after_tool": SLOTS["after_tool"][slot]}))


def noting(seen: list[Any], of: Callable[[Any], Any]) -> Callable[[Any], Allow[Any]]:
    """Keeps something of what it judges, and lets it pass."""

    def look(judged: Any) -> Allow[Any]:
        seen.append(of(judged))
        return ALLOW

    return look


def says(text: str) -> Callable[[Returned], Allow[Returned]]:
    """Lets the model read this instead."""
    return lambda returned: Allow(replace(returned, content=(Text(text),)), f"says {text}")


async def ruled(*features: Any, asked: Any = None, **fields: Any) -> tuple[Any, list[str]]:
    """One call under these rules: the result, and what the model read."""
    model = ScriptedModel([asked or call("lookup", city="Lund")], "done")
    result = await turn(Agent(model, tools=[tool(**fields)], features=features))
    return result, texts(model.requests[1])


# ---- verdicts as values ----------------------------------------------------------------------------------------------


def test_another_value_needs_a_why() -> None:
    """Nothing is changed without a reason on the record; a reason alone is fine."""
    with pytest.raises(UsageError, match="Allow with another value needs a why"):
        Allow({})
    assert Allow(why="looked").why == "looked"
    assert Allow() == ALLOW


@pytest.mark.parametrize("kind", [Deny, Revise, Stop])
def test_a_verdict_against_needs_a_reason(kind: Any) -> None:
    """The model or a person reads it."""
    with pytest.raises(UsageError, match=f"{kind.__name__} needs a reason"):
        kind("")


# ---- before ----------------------------------------------------------------------------------------------------------


async def test_a_denied_call_does_not_run_and_the_model_reads_the_reason_as_it_is() -> None:
    """The loop goes on; other calls of the round are not concerned."""
    ran: list[str] = []
    deny = before(lambda c: Deny("Not for Lund.") if c.args["city"] == "Lund" else ALLOW)
    model = ScriptedModel([call("lookup", city="Lund"), call("lookup", city="Ystad")], "done")
    held = tool("lookup", lambda args, _: ran.append(args["city"]))
    result = await turn(Agent(model, tools=[held], features=[deny]))
    assert texts(model.requests[1]) == ["Not for Lund.", '{"ok":true}']
    assert ran == ["Ystad"]
    assert results(result) == [("lookup", "denied"), ("lookup", "returned")]
    assert len(bodies(result, ToolStarted)) == 1


async def test_new_arguments_run_and_what_the_model_wrote_stays() -> None:
    """Each rule sees what the one before made; the record holds digests of both."""
    seen: list[Any] = []
    one = before(lambda c: Allow({**c.args, "a": 1}, "adds a"), "one")
    two = before(lambda c: Allow({**c.args, "b": 2}, "adds b"), "two")
    result, _ = await ruled(one, two, handler=lambda args, _: seen.append(args))
    assert seen == [{"city": "Lund", "a": 1, "b": 2}]
    assert [(c.args, c.raw_args) for c in calls_of(result)] == [(seen[0], '{"city":"Lund"}')]
    assert [b.args for b in bodies(result, ToolStarted)] == seen
    assert verdicts(result) == [("before_tool", "one", "allow", "adds a"), ("before_tool", "two", "allow", "adds b")]
    filed = bodies(result, VerdictFiled)
    assert filed[0].after == filed[1].before != filed[1].after
    assert {f.call for f in filed} == {calls_of(result)[0].id}
    assert "Lund" not in repr(filed)


async def test_the_first_that_does_not_allow_wins_and_the_rest_do_not_run() -> None:
    """Slot order, then list order."""
    seen: list[str] = []

    def looking(name: str) -> Callable[[Any], Allow[Any]]:
        def look(call: Any) -> Allow[Any]:
            seen.append(name)
            return ALLOW

        return look

    result, heard = await ruled(
        before(looking("late"), "late", "CHECK_IN"), before(looking("rule"), "rule"), before(Deny("no"), "deny"),
        before(looking("after"), "after"), before(looking("first"), "first", "PERMISSION"),
    )  # fmt: skip
    assert (seen, heard) == (["first", "rule"], ["no"])
    assert verdicts(result) == [("before_tool", "deny", "deny", "no")]


async def test_rules_behind_the_gates_see_only_calls_that_passed_them() -> None:
    """Check-ins, references and credentials come last."""
    from onrecord.tools.tool import Validity

    seen: list[str] = []
    look = before(noting(seen, lambda c: c.name), "check", "CHECK_IN")
    refused = tool("lookup", validate_input=lambda *_: Validity(valid=False))
    model = ScriptedModel([call("lookup"), call("other")], "done")
    await turn(Agent(model, tools=[refused, tool("other")], features=[look]))
    assert seen == ["other"]


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (lambda _: 1 / 0, "rule 'rule' failed: ZeroDivisionError: division by zero"),
        (None, "rule 'rule' failed: it returned NoneType, not Allow, Deny or Ask"),
        (Allow(["x"], "why"), "rule 'rule' failed: it allowed a list in place of the arguments"),
        (Revise("again"), "rule 'rule' failed: it returned Revise, not Allow, Deny or Ask"),
    ],
)
async def test_a_rule_that_raises_or_breaks_its_contract_denies(verdict: Any, told: str) -> None:
    """The model reads what failed; the call does not run."""
    ran: list[int] = []
    result, heard = await ruled(before(verdict), handler=lambda *_: ran.append(1))
    assert heard == [told]
    assert ran == []
    assert verdicts(result) == [("before_tool", "rule", "deny", told)]


async def test_a_denial_may_stop_the_turn() -> None:
    """Nothing runs after it, no request follows, and the turn ends without an answer."""
    ran: list[str] = []
    halt = before(lambda c: Deny("loop", halt=True) if c.name == "b" else ALLOW)
    held = [tool(n, lambda *_, n=n: ran.append(n)) for n in "abc"]
    model = ScriptedModel(reply("trying", call("a"), call("b"), call("c")))
    result = await turn(Agent(model, tools=held, features=[halt]))
    assert ran == ["a"]
    assert results(result) == [("a", "returned"), ("b", "denied"), ("c", "not_run")]
    assert (result.status, result.messages, model.calls) == ("silent", (), ["speak"])
    (told,) = (c.result for c in calls_of(result) if c.name == "c")
    assert told == (Text('{"error":"Not executed: the turn was stopped before this call."}'),)


async def test_a_denial_may_carry_data_for_the_record() -> None:
    """For whoever reads it later; the model reads the reason alone."""
    result, heard = await ruled(before(Deny("no", data={"limit": 3})))
    assert heard == ["no"]
    assert [v.data for v in bodies(result, VerdictFiled)] == [{"limit": 3}]


async def test_a_plain_allow_leaves_no_trace() -> None:
    """Ten rules that look on file nothing."""
    result, heard = await ruled(*(before(ALLOW, f"r{n}") for n in range(5)), *(after(ALLOW, f"a{n}") for n in range(5)))
    assert heard == ["lookup"]
    assert verdicts(result) == []


# ---- after -----------------------------------------------------------------------------------------------------------


async def test_after_tool_runs_backwards_so_that_the_first_has_the_last_word() -> None:
    """Ties go by reverse list position; slots still count upwards."""
    result, heard = await ruled(
        after(says("first"), "first"), after(says("second"), "second"), after(says("gates"), "gates", "GATES"),
        after(says("placed"), "placed", "PLACEMENT"),
    )  # fmt: skip
    assert heard == ["placed"]
    assert [by for _, by, _, _ in verdicts(result)] == ["gates", "second", "first", "placed"]


async def test_what_the_model_reads_changes_and_not_that_the_tool_ran() -> None:
    """Status and value are told to every rule as they were; the record holds digests of both contents."""
    seen: list[tuple[object, str]] = []

    def look(returned: Returned) -> Allow[Returned]:
        seen.append((returned.value, returned.status))
        return Allow(replace(returned, content=(Text("[x]"),), call=replace(returned.call, name="forged")), "scrubbed")

    result, heard = await ruled(after(look), handler=lambda *_: {"ssn": 1})
    assert (seen, heard) == ([({"ssn": 1}, "returned")], ["[x]"])
    (returned,) = bodies(result, ToolReturned)
    assert (returned.name, returned.status) == ("lookup", "returned")
    (filed,) = bodies(result, VerdictFiled)
    assert (filed.moment, filed.why) == ("after_tool", "scrubbed")
    assert filed.before != filed.after


async def test_a_denied_result_is_read_as_the_reason() -> None:
    """The tool ran, and the model does not learn what it said."""
    result, heard = await ruled(after(Deny("withheld")), handler=lambda *_: "secret")
    assert heard == ["withheld"]
    assert results(result) == [("lookup", "denied")]


async def test_a_denied_result_may_stop_the_turn() -> None:
    """No further request follows."""
    model = ScriptedModel([call("a"), call("b")])
    held = [tool("a"), tool("b")]
    result = await turn(Agent(model, tools=held, features=[after(Deny("enough", halt=True))]))
    assert results(result) == [("a", "denied"), ("b", "not_run")]
    assert result.status == "silent"


async def test_f73_after_rules_do_not_run_for_calls_that_did_not() -> None:
    """Denied, invalid and unknown calls have no result to judge (case F73)."""
    from onrecord.tools.tool import Validity

    seen: list[str] = []
    look = after(noting(seen, lambda r: r.call.name))
    deny = before(lambda c: Deny("no") if c.name == "denied" else ALLOW)
    held = [tool("denied"), tool("invalid", validate_input=lambda *_: Validity(valid=False)), tool("fine")]
    model = ScriptedModel([call("denied"), call("invalid"), call("gone"), call("fine")], "done")
    await turn(Agent(model, tools=held, features=[look, deny]))
    assert seen == ["fine"]


async def test_after_rules_see_a_handler_that_raised() -> None:
    """It ran: its error is judged like a result."""
    seen: list[str] = []

    def broken(args: Mapping[str, Any], ctx: object) -> None:
        raise OSError("at 10.0.0.7")

    def look(returned: Returned) -> Allow[Returned]:
        seen.append(returned.status)
        return Allow(replace(returned, content=(Text('{"error":"unreachable"}'),)), "no addresses")

    result, heard = await ruled(after(look), handler=broken)
    assert (seen, heard) == (["failed"], ['{"error":"unreachable"}'])
    assert results(result) == [("lookup", "failed")]


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (lambda _: 1 / 0, "rule 'rule' failed: ZeroDivisionError: division by zero"),
        (None, "rule 'rule' failed: it returned NoneType, not Allow or Deny"),
        (Ask("ok?"), "rule 'rule' failed: it returned Ask, not Allow or Deny"),
        (Allow("text", "why"), "rule 'rule' failed: it allowed something else than a Returned with parts"),
        (
            lambda r: Allow(replace(r, content="text"), "why"),
            "rule 'rule' failed: it allowed something else than a Returned with parts",
        ),
    ],
)
async def test_an_after_rule_that_raises_or_breaks_its_contract_denies(verdict: Any, told: str) -> None:
    """What could not be judged is not read."""
    result, heard = await ruled(after(verdict), handler=lambda *_: "secret")
    assert heard == [told]
    assert verdicts(result) == [("after_tool", "rule", "deny", told)]


async def test_the_cut_to_size_stands_between_the_rules_and_the_notes() -> None:
    """Rules see the whole result; what they make of it is held to the limit; notes come behind it."""
    seen: list[str] = []

    def look(name: str) -> Callable[[Returned], Any]:
        def hook(returned: Returned) -> Allow[Returned]:
            seen.append(f"{name} {plain_text(returned.content)[:12]}")
            if name == "rule":
                return ALLOW
            return Allow(replace(returned, notes=(*returned.notes, Note(by="mine", text=" [note]"))), "a note")

        return hook

    features = [after(look("note"), "note", "NOTES"), after(look("rule"), "rule")]
    result, heard = await ruled(*features, handler=lambda *_: "x" * 20, max_result_size_chars=4)
    assert seen == ["rule xxxxxxxxxxxx", "note xxxx\n[trunca"]
    assert heard == ["xxxx\n[truncated: 20 chars total, showing the first 4] [note]"]
    (returned,) = bodies(result, ToolReturned)
    assert returned.notes == (Note(by="mine", text=" [note]"),)


async def test_rules_are_written_as_functions() -> None:
    """One decorator per moment; each returns a feature."""

    @before_tool
    async def shout(turn: Turn, call: Any) -> Allow[Mapping[str, Any]]:
        return Allow({"city": call.args["city"].upper()}, "capitals")

    @after_tool
    async def hush(turn: Turn, returned: Returned) -> Allow[Returned]:
        return Allow(replace(returned, content=(Text(str(returned.value).lower()),)), "small letters")

    result, heard = await ruled(shout, hush, handler=lambda args, _: f"{args['city']}!")
    assert heard == ["lund!"]
    assert [c.args for c in calls_of(result)] == [{"city": "LUND"}]
    assert [(by, why) for _, by, _, why in verdicts(result)] == [("shout", "capitals"), ("hush", "small letters")]


async def test_191_a_rule_of_one_moment_leaves_the_requests_of_the_others_alone() -> None:
    """Mounting rules that only look changes no byte that is sent (case 191, as far as it is not about doors)."""
    plain, ruled_model = ScriptedModel([call("lookup")], "done"), ScriptedModel([call("lookup")], "done")
    await turn(Agent(plain, tools=[tool()]))
    await turn(Agent(ruled_model, tools=[tool()], features=[before(ALLOW), after(ALLOW, "other")]))
    assert [read(r) for r in plain.requests] == [read(r) for r in ruled_model.requests]


async def test_verdicts_about_a_call_stand_with_the_call() -> None:
    """Where the record draws them: in the call's branch, a person's refusal before the result it brings about."""
    model = ScriptedModel(call("lookup"), "one", call("lookup"), "two")
    denied = await turn(Agent(model, tools=[tool()], features=[after(Deny("hidden"))]))
    (verdict,) = [entry for entry in denied.entries if isinstance(entry.body, VerdictFiled)]
    assert verdict.where == "main/r0/c0"

    asking: Agent[Any, Any] = Agent(model, tools=[tool()], features=[before(Ask("Sure?"))])
    paused = await turn(asking)
    assert paused.question is not None
    ended = await turn(asking, declined(paused.question, by="Ana"), session=paused.session)
    refused, returned = ended.entries[1:3]
    assert (type(refused.body), type(returned.body)) == (VerdictFiled, ToolReturned)
    assert (refused.where, returned.where) == ("main/r0/c0", "main/r0/c0")


ODD_RESULTS: dict[str, Callable[[Returned], Returned]] = {
    "a status that there is not": lambda r: replace(r, status="great"),
    "a call that would wait again": lambda r: replace(r, status="asked"),
    "notes that are none": lambda r: replace(r, notes=cast(Any, ("a",))),
    "half a character in a note": lambda r: replace(r, notes=(Note("rule", "\ud83d"),)),
    "a text that is none": lambda r: replace(r, content=(Text(cast(str, 5)),)),
}


@pytest.mark.parametrize("change", ODD_RESULTS.values(), ids=ODD_RESULTS)
async def test_what_an_after_rule_leaves_can_be_read_again(change: Callable[[Returned], Returned]) -> None:
    """Anything else is a denial; stored, it would lock its session for ever."""
    result, _ = await ruled(after(lambda returned: Allow(change(returned), "odd")))
    assert results(result) == [("lookup", "denied")]
    assert result.session is not None
    assert unpack(pack(result.session)) == result.session


async def test_an_after_rule_cannot_say_that_another_call_ran() -> None:
    """What is read may change; the verdicts of later rules are about the call that ran."""
    other = ToolCall(id="x/answer/r7/c7", wire_id="w", name="other", raw_args="{}", args={})
    seen: list[str] = []
    first = after(lambda returned: Allow(replace(returned, call=other), "swapped"), "first")
    result, _ = await ruled(after(noting(seen, lambda r: r.call.name), "last"), first)
    assert seen == ["lookup"]
    assert results(result) == [("lookup", "returned")]
