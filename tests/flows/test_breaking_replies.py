"""Models that reply with whatever they like: no reply fails a turn, shows an envelope, or calls what is not offered."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from onrecord.errors import UsageError
from onrecord.flows import (
    Branch,
    Collect,
    Do,
    Field,
    Flow,
    OnMention,
    OnMessage,
    Registries,
    Say,
    Talk,
    flow_spec_schema,
)
from onrecord.jsonio import dumps
from onrecord.session import pack, unpack
from onrecord.testing import call
from onrecord.tools.tool import Tool
from onrecord.turn.options import Silenced
from tests.flows.playing import Play, Result, lines, said_by, says

pytestmark = pytest.mark.unit

EXITS = [Branch("wants out", then="end"), Branch("x", then="s")]
SALES = Flow(
    "sales", on=[OnMessage("buys")],
    steps=[Collect("name", "budget", "ok", "size", id="c", branches=EXITS), Say("Bye, {{data.name}}.", id="s")],
)  # fmt: skip
HELP = Flow("help", on=[OnMessage("helps")], steps=[Collect("name", id="c", question="Who are you?")])
RIVAL = Flow(
    "rival", on=[OnMention("names a rival", extract={"quote": Field()}, repeat="always")],
    steps=[Do("notify", id="n", args={"text": "{{input.quote}}"})],
)  # fmt: skip

JUDGED = [
    "",
    "{}",
    "[]",
    "null",
    "5",
    '"x"',
    "no JSON at all",
    '{"flows":null}',
    '{"flows":[]}',
    '{"flows":{"sales":NaN}}',
    '{"flows":{"sales":1e308}}',
    '{"flows":{"sales":1e999}}',
    '{"flows":{"sales":"90%"}}',
    '{"flows":{"sales":true}}',
    '{"flows":{"sales":-5,"help":1000,"nobody":99}}',
    '{"flows":{"sales":90,"sales":0}}',
    '{"flows":{"sales":{"a":1}}}',
    '{"flows":{"f1":90}}',
    '{"fields":{"name":{"a":1},"zzz":1,"ok":"sim"}}',
    '{"fields":{"name":["x"],"budget":1e999}}',
    '{"fields":{"name":"\\ud800"}}',
    '{"fields":{"name":"\\u0000"}}',
    '{"fields":{"name":' + "[" * 150 + "]" * 150 + "}}",
    '{"mentions":{"rival":"yes"},"extract":{"rival":{"quote":{"a":[1]}}}}',
    '{"mentions":{"rival":true},"extract":5}',
    '{"mentions":{"rival":[]},"extract":{"rival":{"quote":"q"},"sales":{"x":1}}}',
    '{"asks":[]}',
    '{"asks":"no"}',
    '{"branches":{"q1":"true","q2":5,"sales#m0/c/0":true}}',
    "[" * 100_000,
    '{"flows":' * 50_000,
    '{"a":' * 150 + "1" + "}" * 150,
    '```json\n{"flows":{"sales":90}}\n```',
    '{"flows":{"sales":90}} {"flows":{"help":99}}',
    '{"message":"hi","toolCalls":[]}',
]

SPOKEN = [
    "",
    "{}",
    '{"message":null}',
    '{"message":" \\n"}',
    '{"message":5}',
    '{"message":["a"]}',
    '{"message":{"message":"in"}}',
    '{"name":"Ana"}',
    '{"name":"Ana","message":"late"}',
    '{"message":"a","message":"b"}',
    '{"message":"a","name":"x","name":"y"}',
    '{"message":"a","budget":1e999,"ok":1,"size":"1-10 "}',
    '{"message":"a","budget":NaN}',
    '{"message":"a","name":{"x":1}}',
    '{"message":"a","zz":1}',
    '{"message":"a"',
    '{"message":"a',
    '{"message":"a"}}}}',
    '{"message":"a"}{"message":"b"}',
    'well {"message":"a"}',
    '```json\n{"message":"a"}\n```',
    '{"message":"\\ud800"}',
    '{"message":"\\u0000"}',
    '{"message":"' + "x" * 100_000 + '"}',
    '{"message":"a","name":"' + "y" * 100_000 + '"}',
    '\ufeff{"message":"a"}',
    '{"message":"a","toolCalls":"x"}',
    '{"message":"a","toolCalls":[5,null,{"toolName":5}]}',
    '{"message":"a",}',
    '{"a":' * 50_000,
    '{"x":"' + '\\"' * 50_000 + '","message":"a"}',
    '{"Message":"a"}',
    '{"response":{"message":"a"}}',
]


def play() -> Play:
    """Two flows to route to, one beside them, and a script that may be longer than what is asked for."""
    return Play(SALES, HELP, RIVAL)


async def taken(made: Play, judge: list[str], speak: list[Any], **how: Any) -> Result:
    """One more message, with more replies than it needs; everything that it leaves can be stored."""
    made.model.queue(judge, [*speak, *[says("And so on.")] * 3])
    result = await made.agent.turn(how.pop("input", "hi"), session=made.session or "s1", effects=made.clock, **how)
    assert result.session is not None
    dumps(result.entries)
    made.session = unpack(pack(result.session))
    return result


@pytest.mark.parametrize("judged", JUDGED, ids=lambda text: text[:24] or "blank")
async def test_any_judgement_leaves_a_turn_that_answers(judged: str) -> None:
    """With and without somebody who asks: one answer goes out, one run asks at most, and fields hold what fits."""
    for first in ([], ['{"flows":{"sales":90}}']):
        made = play()
        for judge in first:
            await taken(made, [judge], [])
        result = await taken(made, [judged], [])
        assert [text for text, kind, _ in said_by(result) if kind == "ai"] == ["And so on."]
        assert sum(run.status == "asking" for run in made.state.runs) <= 1
        assert all(isinstance(value, str) for value in made.data.values())


@pytest.mark.parametrize("spoken", SPOKEN, ids=lambda text: text[:24] or "blank")
async def test_any_reply_is_an_answer_or_a_failure(spoken: str) -> None:
    """Nobody reads a brace, a quote or a name of an envelope; what has no words is tried again later."""
    made = play()
    result = await taken(made, ['{"flows":{"sales":90}}'], [spoken])
    told = "".join(text for text, _, _ in said_by(result))
    assert not set(told) & set('{}"') or told == spoken
    assert "message" not in told
    ended = [status for _, kind, status, code in lines(result) if kind == "collect" and code not in DROPPED]
    assert ended == (["ok"] if told else ["deferred"])
    assert all(isinstance(value, str) for value in made.data.values())


DROPPED = ("bad-value", "not-in-enum", "unknown-field")


@pytest.mark.parametrize("written", [False, True], ids=["called", "in the envelope"])
@pytest.mark.parametrize(
    ("tools", "ran"), [(["a"], ["a"]), ([], []), (["x"], ["x"]), (["x", "z"], ["x"]), (None, ["a", "b", "x", "y"])]
)
async def test_only_what_a_step_offers_is_called(tools: list[str] | None, ran: list[str], *, written: bool) -> None:
    """However a model asks, whoever offers it; an action of the flows is no tool of the model."""
    called: list[str] = []

    def tool(name: str) -> Tool:
        return Tool(name, lambda *_: called.append(name))

    class Shop:
        """A toolset."""

        async def tools(self, *_: object) -> list[Tool]:
            return [tool("x"), tool("y")]

    held: Any = [tool("a"), tool("b"), Shop()]
    made = Play(Flow("f", on=[OnMessage()], steps=[Talk("Hi.", id="t", tools=tools)]), tools=held)
    wanted = ["a", "b", "x", "y", "notify", "nobody"]
    calls = [{"toolName": name, "arguments": {}} for name in wanted]
    envelope = dumps({"message": "One moment.", "toolCalls": calls}).decode()
    reply = envelope if written else [*says("One moment.").chunks, *(call(name) for name in wanted)]
    result = await taken(made, [], [reply])
    assert (called, made.notified) == (ran, [])
    assert [text for text, _, _ in said_by(result)] == ["And so on." if ran else "One moment."]


async def test_thousands_of_calls_are_one_round() -> None:
    """Each is told its result, and the model is asked once more."""
    called: list[int] = []
    made = Play(
        Flow("f", on=[OnMessage()], steps=[Talk("Hi.", id="t")]), tools=[Tool("a", lambda *_: called.append(1))]
    )
    calls = [{"toolName": "a", "arguments": {}}] * 2000
    result = await taken(made, [], [dumps({"message": "x", "toolCalls": calls}).decode()])
    assert (len(called), result.llm_calls) == (2000, 2)


@pytest.mark.parametrize(
    "part", [True, False, None, 7, {"anyOf": 7}, {"$ref": "#/nowhere"}, {"$ref": "#/$defs/a"}, {"items": True}]
)
def test_the_schema_of_flows_is_one_whatever_actions_take(part: Any) -> None:
    """A schema may be a boolean, and a host's may be wrong."""
    for defined in ({"a": True}, {"a": {"$ref": "#/$defs/a"}}):
        parameters = {"type": "object", "properties": {"x": part}, "$defs": defined}
        schema = flow_spec_schema(Registries(actions={"act": Tool("act", lambda *_: None, parameters=parameters)}))
        assert dumps(schema)
        if part in (True, False, None) or part == {"items": True}:
            jsonschema_rs.validator_for(schema)


@pytest.mark.parametrize("reason", [None, 7, object(), "\ud83d"])
def test_a_reason_for_silence_is_a_text(reason: Any) -> None:
    """It is filed with every step that was passed, so one that cannot be stored is refused where it is made."""
    with pytest.raises(UsageError, match="the reason of Silenced is a text"):
        Silenced(reason)
    with pytest.raises(UsageError, match="are true or false"):
        Silenced("x", skip="yes")  # type: ignore[arg-type]  # wrong on purpose
    assert Silenced("").reason == ""
