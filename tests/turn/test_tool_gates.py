"""What stands between a call and its handler, and what the model reads, to the byte (seeds 000 and 001)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask, approved
from onrecord.governance.rules import before_tool
from onrecord.models.chunks import CallChunk
from onrecord.record.kinds import ToolReturned, ToolStarted
from onrecord.testing import ScriptedModel, call
from onrecord.tools.declare import tool as declared
from onrecord.tools.tool import Permission, ToolContext, Validity
from onrecord.turn.moments import SLOTS, Allow, Deny, Hooks
from tests.turn.acting import Named, asked_once, bodies, calls_of, results, texts, tool, turn

pytestmark = pytest.mark.unit

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def said(text: str) -> CallChunk:
    """A call of ``lookup`` whose arguments are this text."""
    return CallChunk(wire_id="call_1", name="lookup", raw_args=text)


async def test_the_gates_stand_in_order_and_the_first_that_refuses_ends_the_walk() -> None:
    """Not available, schema, validate_input, check_permissions, handler: each is asked only behind the one before."""
    walked: list[str] = []
    valid, allowed = [True], [True]

    def validate(args: Mapping[str, Any], ctx: object) -> Validity:
        walked.append("validate")
        return Validity(valid=valid[0])

    async def permit(args: Mapping[str, Any], ctx: object) -> Permission:
        walked.append("permit")
        return Permission(allowed=allowed[0])

    def handler(args: Mapping[str, Any], ctx: object) -> str:
        walked.append("handler")
        return "ran"

    held = tool("lookup", handler, parameters=CITY, check_arguments=True, validate_input=validate,
                check_permissions=permit)  # fmt: skip
    for args, validity, permission, expected in (
        ({}, True, True, []),
        ({"city": "Lund"}, False, True, ["validate"]),
        ({"city": "Lund"}, True, False, ["validate", "permit"]),
        ({"city": "Lund"}, True, True, ["validate", "permit", "handler"]),
    ):
        walked.clear()
        valid[0], allowed[0] = validity, permission
        await asked_once(held, calls=[call("lookup", **args)])
        assert walked == expected


async def test_a_tool_that_is_not_in_the_list_is_not_available() -> None:
    """The model reads the seed's sentence, and no handler runs."""
    result, heard = await asked_once(tool("lookup"), calls=[call("gone")])
    assert heard == ['{"error":"Tool \\"gone\\" is not available."}']
    assert results(result) == [("gone", "absent")]
    assert bodies(result, ToolStarted) == []


@pytest.mark.parametrize(
    ("validity", "expected"),
    [
        (Validity(valid=False, error="Informe a cidade."), '{"error":"Validation failed: Informe a cidade."}'),
        (Validity(valid=False), '{"error":"Validation failed: invalid input"}'),
        (
            Validity(valid=False, error="too long", corrected_input={"city": "São Paulo", "n": 1}),
            '{"error":"Validation failed: too long","correctedInput":{"city":"São Paulo","n":1}}',
        ),
        (
            Validity(valid=False, corrected_input={}),
            '{"error":"Validation failed: invalid input","correctedInput":{}}',
        ),
    ],
)
async def test_an_invalid_input_is_told_with_its_correction(validity: Validity, expected: str) -> None:
    """A correction is only shown: the handler runs with neither the input nor the correction."""
    ran: list[object] = []
    held = tool("lookup", lambda args, _: ran.append(args), validate_input=lambda *_: validity)
    result, heard = await asked_once(held, calls=[call("lookup", city="x")])
    assert heard == [expected]
    assert ran == []
    assert results(result) == [("lookup", "invalid")]


@pytest.mark.parametrize(
    ("permission", "expected"),
    [
        (Permission(allowed=False, reason="only admins"), '{"error":"Permission denied: only admins"}'),
        (Permission(allowed=False), '{"error":"Permission denied: not allowed"}'),
    ],
)
async def test_m8_a_denied_permission_is_told_with_its_reason(permission: Permission, expected: str) -> None:
    """Without a reason it says ``not allowed``."""
    result, heard = await asked_once(tool(check_permissions=lambda *_: permission), calls=[call("lookup")])
    assert heard == [expected]
    assert results(result) == [("lookup", "denied")]


async def test_m9_a_handler_that_raises_is_told_by_its_message() -> None:
    """Nothing a tool does reaches the host: the turn still ends with a message."""

    def broken(args: object, ctx: object) -> None:
        raise RuntimeError("sheet offline")

    result, heard = await asked_once(tool("lookup", broken), calls=[call("lookup")])
    assert heard == ['{"error":"sheet offline"}']
    assert result.text == "done"
    assert results(result) == [("lookup", "failed")]


async def test_an_error_without_words_is_told_by_its_name() -> None:
    """The model never reads an empty error."""

    async def broken(args: object, ctx: object) -> None:
        raise KeyError

    _, heard = await asked_once(tool("lookup", broken), calls=[call("lookup")])
    assert heard == ['{"error":"KeyError"}']


async def test_an_error_is_compact_json_with_quotes_escaped_and_other_alphabets_kept() -> None:
    """One line that any model can parse."""

    def broken(args: object, ctx: object) -> None:
        raise ValueError('não "é"\nassim')

    _, heard = await asked_once(tool("lookup", broken), calls=[call("lookup")])
    assert heard == ['{"error":"não \\"é\\"\\nassim"}']


@pytest.mark.parametrize("gate", ["validate_input", "check_permissions"])
async def test_a_gate_that_raises_is_told_like_a_handler_that_raises(gate: str) -> None:
    """The call is not run: a gate that cannot judge does not let through."""
    ran: list[object] = []

    def raising(args: object, ctx: object) -> None:
        raise OSError("directory down")

    held = tool("lookup", lambda args, _: ran.append(args), **{gate: raising})
    result, heard = await asked_once(held, calls=[call("lookup")])
    assert heard == ['{"error":"directory down"}']
    assert ran == []
    assert results(result) == [("lookup", "failed")]


async def test_a_handler_that_exits_the_program_does_not_pass_as_a_tool_error() -> None:
    """Only exceptions of the program's work are told to the model; being told to stop is no result."""

    async def leaving(args: object, ctx: object) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await asked_once(tool("lookup", leaving), calls=[call("lookup")])


@pytest.mark.parametrize("raw", ["{broken", "[1]", "7", '"city"', "null"])
async def test_arguments_that_are_no_json_object_are_told_and_not_run(raw: str) -> None:
    """The handler never sees a guess in their place; the record keeps what the model wrote."""
    ran: list[object] = []
    result, heard = await asked_once(tool("lookup", lambda args, _: ran.append(args)), calls=[said(raw)])
    assert heard == ['{"error":"Validation failed: the arguments are not a JSON object"}']
    assert ran == []
    assert [c.raw_args for c in calls_of(result)] == [raw]


@pytest.mark.parametrize("raw", ["", "{}", " { } "])
async def test_no_arguments_are_an_empty_object(raw: str) -> None:
    """Vendors leave them out in several ways."""
    seen: list[object] = []
    await asked_once(tool("lookup", lambda args, _: seen.append(args)), calls=[said(raw)])
    assert seen == [{}]


async def test_a_hand_written_schema_is_not_checked() -> None:
    """``parameters`` is passed to the model as it is (seed 001); the handler gets what the model sent."""
    seen: list[object] = []
    held = tool("lookup", lambda args, _: seen.append(args), parameters=CITY)
    result, _ = await asked_once(held, calls=[call("lookup", town=3)])
    assert seen == [{"town": 3}]
    assert results(result) == [("lookup", "returned")]


async def test_check_arguments_checks_a_hand_written_schema() -> None:
    """Every problem is told in the seed's form, without the value."""
    seen: list[object] = []
    held = tool("lookup", lambda args, _: seen.append(args), parameters=CITY, check_arguments=True)
    _, heard = await asked_once(held, calls=[call("lookup", city=31337)])
    assert heard == ['{"error":"Validation failed: city: expected string, got integer"}']
    assert seen == []


async def test_a_declared_tool_checks_its_arguments() -> None:
    """``@tool`` tells which arguments are wrong, and the function does not run."""
    ran: list[str] = []

    @declared
    def price(city: str, nights: int = 1) -> int:
        """Price of a stay."""
        ran.append(city)
        return 420 * nights

    _, heard = await asked_once(price, calls=[call("price", city="Lund", nights="two")])
    assert heard == ['{"error":"Validation failed: nights: expected integer, got string"}']
    _, heard = await asked_once(price, calls=[call("price", city="Lund", nights=2)])
    assert heard == ["840"]
    assert ran == ["Lund"]


async def test_arguments_are_checked_behind_the_rules() -> None:
    """A rule may mend a call before its arguments are checked, and the check sees what the rule made."""

    @before_tool
    async def mend(turn: object, call: Any) -> Allow[Mapping[str, Any]]:
        return Allow({"city": "Lund"}, "filled in")

    held = tool("lookup", lambda args, _: args["city"], parameters=CITY, check_arguments=True)
    model = ScriptedModel([call("lookup")], "done")
    await turn(Agent(model, tools=[held], features=[mend]))
    assert texts(model.requests[1]) == ["Lund"]


async def test_a_rule_stands_before_the_schema_and_the_policy() -> None:
    """A denied call is not validated."""
    asked: list[str] = []

    def validate(args: object, ctx: object) -> Validity:
        asked.append("validate")
        return Validity(valid=True)

    @before_tool
    async def never(turn: object, call: object) -> Deny:
        return Deny("not today")

    model = ScriptedModel([call("lookup")], "done")
    await turn(Agent(model, tools=[tool(validate_input=validate)], features=[never]))
    assert asked == []
    assert texts(model.requests[1]) == ["not today"]


async def test_gates_get_the_context_of_the_call() -> None:
    """They decide with the host's context, as the handler does."""
    seen: list[object] = []

    def validate(args: object, ctx: ToolContext[str]) -> Validity:
        seen.append(ctx.context)
        return Validity(valid=True)

    def permit(args: object, ctx: ToolContext[str]) -> Permission:
        seen.append(ctx.context)
        return Permission(allowed=True)

    held = tool(validate_input=validate, check_permissions=permit)
    await turn(Agent(ScriptedModel([call("lookup")], "done"), tools=[held]), context="crm")
    assert seen == ["crm", "crm"]


async def test_every_error_that_a_model_reads_is_one_json_object() -> None:
    """Whatever is refused, the text parses and holds the one key ``error``."""
    refusing = tool("no", check_permissions=lambda *_: Permission(allowed=False))
    result, heard = await asked_once(refusing, calls=[call("no"), call("gone", x=1)])
    assert [list(json.loads(text)) for text in heard] == [["error"], ["error"]]
    assert [r.started_at for r in bodies(result, ToolReturned)] == [None, None]


async def test_a_rule_behind_the_gates_that_asks_does_not_ask_them_again() -> None:
    """Its call passed them before; an approval lets it run with the arguments that they saw."""
    walked: list[str] = []

    def validate(args: object, ctx: object) -> Validity:
        walked.append("validate")
        return Validity(valid=True)

    async def check_in(turn: object, call: object) -> Ask:
        walked.append("asked")
        return Ask("Really?")

    hooks = Hooks(before_tool=check_in, order={"before_tool": SLOTS["before_tool"]["CHECK_IN"]})
    held = tool("pay", lambda *_: walked.append("paid"), validate_input=validate)
    model = ScriptedModel([call("pay")], "done")
    agent: Agent[Any, Any] = Agent(model, tools=[held], features=[Named("check-in", hooks)])
    paused = await turn(agent)
    assert paused.question is not None
    await turn(agent, approved(paused.question, by="ana"), session=paused.session)
    assert walked == ["validate", "asked", "paid"]


async def test_what_is_no_ordinary_exception_is_not_told_as_a_tool_error() -> None:
    """Whoever raised it speaks to somebody above the turn."""

    class Stopping(BaseException):
        """Not an error."""

    async def stopping(args: object, ctx: object) -> None:
        raise Stopping

    with pytest.raises(Stopping):
        await asked_once(tool("lookup", stopping), calls=[call("lookup")])
