"""A request rebuilt from the record is the request that was sent, to the byte."""

from dataclasses import dataclass

import pytest

from onrecord import Agent, Instruction, tool
from onrecord.errors import UsageError
from onrecord.providers.openai_compatible import openai_compatible
from onrecord.record.kinds import ModelRequested
from onrecord.record.record import Record
from onrecord.session import Session, record_of
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.receipt import rebuild

pytestmark = pytest.mark.unit


@dataclass
class Count:
    """A typed answer."""

    n: int


@tool
async def look(x: int) -> str:
    """Look."""
    return f"seen {x}"


async def talk(model: ScriptedModel) -> tuple[list[int], Record[Session]]:
    """Two turns with a tool, an instruction, a typed answer and a revision; the record and its requests."""
    agent = Agent(model, tools=[look], instructions="Be kind.", features=[Instruction("Be short.")], output=Count)
    first = await agent.turn("hi", effects=FakeEffects())
    second = await agent.turn("again", session=first.session, effects=FakeEffects())
    assert second.session is not None
    record = record_of(second.session, [*first.entries, *second.entries])
    return [e.seq for e in record if isinstance(e.body, ModelRequested)], record


async def test_every_request_is_rebuilt_to_the_byte() -> None:
    """On the script's wire and on Chat Completions, drafts and corrections included."""
    model = ScriptedModel([call("look", x=1)], '{"n":1}', "no JSON", '{"n":3}')
    seqs, record = await talk(model)
    chat = openai_compatible("http://127.0.0.1:1/v1", "m")
    assert len(seqs) == len(model.requests) == 4
    for seq, sent in zip(seqs, model.requests, strict=True):
        again = rebuild(record, seq).request(model)
        assert model.wire(again).body == model.wire(sent).body
        assert chat.wire(again).body == chat.wire(sent).body


async def test_its_tools_cannot_be_run() -> None:
    """What was rebuilt is for reading."""
    model = ScriptedModel("x", '{"n":1}')
    seqs, record = await talk(ScriptedModel([call("look", x=1)], '{"n":1}', '{"n":2}'))
    request = rebuild(record, seqs[0]).request(model)
    with pytest.raises(UsageError, match="not run"):
        request.offers[0].tool.handler({}, None)
