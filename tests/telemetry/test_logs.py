"""Log lines: a constant message and fields, for every turn, without a word of what was said."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Ask, Happened, Said
from onrecord.conversation.outgoing import Outcome
from onrecord.conversation.usage import Usage
from onrecord.errors import MessageDenied, ModelError
from onrecord.governance.rules import before_tool
from onrecord.models.chunks import Attempted
from onrecord.record.kinds import Noted
from onrecord.telemetry import JsonLines, Logs
from onrecord.testing import ScriptedModel, call, raises, reply
from onrecord.turn.moments import Deny, Hooks
from tests.telemetry.tracing import Ticking
from tests.turn.acting import Named, tool, turn
from tests.turn.interrupting.live import WAIT, Halting, Live, interrupted
from tests.turn.pausing.asking import answered

pytestmark = pytest.mark.unit

STANDARD = set(logging.makeLogRecord({}).__dict__) | {"message", "taskName"}


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """Every line so far, as level, message and fields."""
    caplog.set_level(logging.DEBUG, logger="onrecord.turn")

    def read(least: int = logging.DEBUG) -> list[tuple[str, str, dict[str, Any]]]:
        return [
            (r.levelname, r.getMessage(), {k: v for k, v in r.__dict__.items() if k not in STANDARD})
            for r in caplog.records
            if r.levelno >= least
        ]

    return read


async def test_a_turn_logs_its_calls_and_how_it_ended(lines: Any) -> None:
    """With times from the entries, tokens, and names of tools and models."""
    used = Usage(input_tokens=10, output_tokens=4)
    model = ScriptedModel(reply(call("price"), usage=used), reply("420", usage=used))
    agent = Agent(model, name="hotel", tools=[tool("price")], features=[Logs(ids=str)])
    await turn(agent, session="ana", effects=Ticking())
    found = [(level, event, {k: v for k, v in f.items() if k not in ("agent", "turn", "take", "session")})
             for level, event, f in lines(logging.INFO)]  # fmt: skip
    tokens = {"input_tokens": 10, "output_tokens": 4, "cached_input_tokens": 0}
    spoke = {"model": "scripted:script", "purpose": "speak", **tokens}
    assert found == [
        ("INFO", "model replied", {**spoke, "finish": "calls", "ms": found[0][2]["ms"]}),
        ("INFO", "tool returned", {"tool": "price", "status": "returned", "ms": 2.0}),
        ("INFO", "model replied", {**spoke, "finish": "stop", "ms": found[2][2]["ms"]}),
        ("INFO", "turn closed", {
            "status": "answered", "ms": found[3][2]["ms"], "tools": 1, "input_tokens": 20, "output_tokens": 8,
            "cached_input_tokens": 0,
        }),
    ]  # fmt: skip
    assert 0 < found[0][2]["ms"] < found[3][2]["ms"]
    shared = {name: lines()[0][2][name] for name in ("agent", "session", "turn", "take")}
    assert shared == {"agent": "hotel", "session": "ana", "turn": "ana:said::name2~0", "take": 1}


async def test_failures_are_warnings_with_codes(lines: Any) -> None:
    """Attempts, tools, denied messages, and takes that nothing is stored of."""

    def broken(*_: Any) -> None:
        raise ValueError("secret")

    async def never(*_: Any) -> Deny:
        return Deny("because of you")

    attempt = Attempted(attempt=1, error="rate", status=429, wait_s=3.0, model="scripted:script")
    await turn(Agent(ScriptedModel([attempt, call("bad")], "x"), tools=[tool("bad", broken)], features=[Logs()]))
    with pytest.raises(MessageDenied):
        await turn(Agent(ScriptedModel(), features=[Logs(), Named("never", Hooks(on_input=never))]))
    with pytest.raises(ModelError):
        await turn(Agent(ScriptedModel(raises("rate", status=400)), features=[Logs()]))
    told = [(event, f.get("error"), f.get("code"), f.get("http_status")) for _, event, f in lines(logging.WARNING)]
    assert told == [
        ("model attempt failed", "rate", None, 429),
        ("tool returned", None, None, None),
        ("turn failed", "MessageDenied", "message-denied", None),
        ("turn left", "ModelError", "model-rate", None),
    ]


async def test_a_paused_turn_and_the_one_that_goes_on_share_a_pseudonym(lines: Any) -> None:
    """One feature gives one pseudonym to one turn, whichever take logs it."""
    agent = Agent(ScriptedModel([call("ask")], "x"), tools=[tool("ask", lambda *_: Ask("Which?"))], features=[Logs()])
    paused = await turn(agent)
    await answered(agent, paused, value="XL")
    ends = {event: fields for _, event, fields in lines() if event in {"turn paused", "turn resumed"}}
    assert ends["turn paused"]["turn"] == ends["turn resumed"]["turn"]
    assert [ends[event]["take"] for event in ("turn paused", "turn resumed")] == [1, 2]


async def test_an_interrupted_turn_and_an_ignored_input_are_no_warnings(lines: Any) -> None:
    """One is an end like others, the other left nothing."""

    class Reports:
        async def direct(self, turn: Any, stage: Any) -> None:
            line = Outcome(kind="input", status="ignored", code="not-mine", key="secret")
            stage.outcome(line)
            turn.note(Noted(by="clerk", text="secret"))
            turn.ignore(line)

    model = Halting(("Good ", WAIT))
    await interrupted(Live(Agent(model, features=[Logs()])), model.waiting)
    await turn(Agent(ScriptedModel(), director=Reports(), features=[Logs()]), Happened("came", key="1"))
    told = {event: (level, fields) for level, event, fields in lines()}
    assert told["turn interrupted"][0] == "INFO"
    assert {event: told[event][0] for event in ("outcome", "note", "input ignored")} == dict.fromkeys(
        ("outcome", "note", "input ignored"), "DEBUG"
    )
    assert told["outcome"][1]["code"] == "not-mine"
    assert told["note"][1]["by"] == "clerk"
    assert "secret" not in str(told)


async def test_a_level_that_nobody_listens_to_costs_no_line(caplog: pytest.LogCaptureFixture) -> None:
    """The library sets no level and no handler."""
    loggers = [logging.getLogger(name) for name in ("onrecord.turn", "onrecord", "")]
    before = [list(logger.handlers) for logger in loggers]
    caplog.set_level(logging.WARNING, logger="onrecord.turn")
    await turn(Agent(ScriptedModel("x"), features=[Logs()]))
    assert caplog.records == []
    assert [logger.handlers for logger in loggers] == before


async def test_no_word_of_the_application_is_in_a_line(lines: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Messages, arguments, results, reasons, ids, keys, instructions and words of errors."""
    bird = "canary-7f3a91"

    @before_tool
    async def careful(_: Any, held: Any) -> Any:
        return Ask(bird) if held.name == "asked" else Deny(bird)

    def broken(*_: Any) -> None:
        raise ValueError(bird)

    model = ScriptedModel(
        [bird, call("denied", text=bird), call(bird, text=bird)], [call("broken", text=bird), call("asked", text=bird)],
        raises("rate"),
    )  # fmt: skip
    tools = [tool(name, broken) for name in ("denied", "broken", "asked")]
    agent = Agent(model, instructions=bird, tools=tools, features=[Logs(), careful])
    paused = await turn(agent, Said(bird, key=bird), session=SessionKey(bird, tenant=bird))
    with pytest.raises(ModelError):
        await answered(agent, paused, approved=True, by=bird, note=bird)
    assert len(lines()) > 6
    formatter = JsonLines()
    assert bird not in "".join(formatter.format(record) for record in caplog.records)


def test_a_json_line_has_every_field_and_reads_as_one_object() -> None:
    """Lines of other loggers too, with their exceptions; what JSON does not know is written as text."""
    record = logging.makeLogRecord({"name": "app", "levelname": "INFO", "msg": "two\nlines", "turn": "t", "of": {1}})
    record.created = 0.0
    line = JsonLines().format(record)
    assert "\n" not in line
    assert json.loads(line) == {
        "at": "1970-01-01T00:00:00.000+00:00", "level": "INFO", "logger": "app", "event": "two\nlines", "turn": "t",
        "of": "{1}",
    }  # fmt: skip
    try:
        int("x")
    except ValueError:
        record.exc_info = sys.exc_info()
    assert json.loads(JsonLines().format(record))["exception"].splitlines()[-1].startswith("ValueError: invalid")
