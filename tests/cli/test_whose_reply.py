"""What a record tells of models that stand in for each other, and of what they cost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import Raw
from msgspec.json import encode

from onrecord import Agent
from onrecord.cli.terminal import Screen
from onrecord.cli.why import why_lines
from onrecord.conversation.usage import Usage
from onrecord.governance.budget import Budget, Limit
from onrecord.honesty.sentences import brief_of
from onrecord.honesty.slices import last_answer
from onrecord.models.fallback import Fallback
from onrecord.models.model import ModelCard
from onrecord.models.prices import Price, Prices
from onrecord.record.entry import Entry, UnknownBody, kind_of
from onrecord.record.record import Record
from onrecord.testing import ScriptedModel, call, raises
from tests.turn.acting import tool

pytestmark = pytest.mark.integration

OTHER = ModelCard(provider="other", model="m", protocol="scripted")


def why(entries: Sequence[Entry]) -> str:
    """The explanation of the last answer."""
    record: Record[None] = Record(entries, lambda _: None)
    return "\n".join(why_lines(record, last_answer(record) or 0, Screen()))


def test_who_replied_is_named_where_another_was_asked() -> None:
    """Also in the second turn, in which the first model is left alone and nothing failed."""
    model = Fallback(ScriptedModel(raises("overload")), ScriptedModel("Yes.", "Yes, too.", card=OTHER))
    first = Agent(model).turn_sync("Is there breakfast?")
    assert "Attempt 1 at scripted:script failed: overload" in why(first.entries)
    second = Agent(model).turn_sync("And dinner?", session=first.session)
    for entries, said in ((first.entries, "Yes."), (second.entries, "Yes, too.")):
        assert "scripted:script was asked." in why(entries)
        assert f"other:m replied in its place “{said}”." in why(entries)
    plain = Agent(ScriptedModel("Yes.")).turn_sync("Is there breakfast?")
    assert "It replied “Yes.”." in why(plain.entries)


def test_a_limit_that_ended_a_turn_is_told() -> None:
    """Or nobody knows why the agent fell silent. In a file, whose reader knows no budgets, in the same words."""
    prices = Prices({"scripted:": Price(input=1.0, output=1.0)})
    model = ScriptedModel(*[call("look")] * 3, usage=Usage(input_tokens=1_000_000, output_tokens=0))
    budget = Budget(turn=Limit(usd=1.5), prices=prices)
    result = Agent(model, tools=[tool("look")], features=[budget]).turn_sync("Keep looking.")
    assert "max_cost of the turn: 2.0 is more than 1.5; no further call is made" in why(result.entries)
    told = {kind_of(entry.body): brief_of(entry.body) for entry in result.entries}
    assert told["cost.tick"] == "scripted:script: 1000000 tokens in, 0 out, 1 dollars"
    for entry in result.entries:
        if kind_of(entry.body).startswith("cost."):
            read = UnknownBody(was=kind_of(entry.body), raw=Raw(encode(entry.body)))
            assert brief_of(read) == brief_of(entry.body)
    odd = UnknownBody(was="cost.tick", raw=Raw(b'{"kind":"cost.tick"}'))
    assert brief_of(odd) == '{"kind":"cost.tick"}'
