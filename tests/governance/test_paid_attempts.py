"""What was paid and came to nothing: it is in the sums like any other call."""

from __future__ import annotations

import pytest

from onrecord.agent import Agent
from onrecord.conversation.usage import Usage
from onrecord.governance.budget import Budget, Limit
from onrecord.governance.ledger import LimitHit, Ticked
from onrecord.models.call_rules import CallRule
from onrecord.models.held_reply import fits_shape
from onrecord.models.prices import Price, Prices
from onrecord.models.retry import Reliable
from onrecord.testing import ScriptedModel, raises
from tests.turn.acting import bodies, turn

pytestmark = pytest.mark.unit

USED = Usage(input_tokens=100, output_tokens=50)
PRICES = Prices({"scripted:": Price(input=1000.0, output=2000.0)})


async def test_a_reply_that_was_thrown_away_and_asked_for_again_counts_too() -> None:
    """It was paid, at the price of the model that gave it; an attempt that nobody counted costs nothing."""
    first = ScriptedModel("seven", '{"value": 7}', usage=USED)
    busy = ScriptedModel(raises("overload", status=503))
    rule = CallRule(only_if=lambda s: s.error_kind == "schema-fail", then="retry", kind="misfit")
    model = Reliable(busy, first, rules=[rule], validate=fits_shape, waits_s=())
    result = await turn(Agent(model, output=int, features=[Budget(turn=Limit(usd=0.3), prices=PRICES)]))
    assert [(tick.purpose, tick.model) for tick in bodies(result, Ticked)] == [
        ("attempt", "script/2"), ("speak", "script"),
    ]  # fmt: skip
    sums = [round(tick.cumulative.estimated_usd, 6) for tick in bodies(result, Ticked)]
    assert (sums, result.output) == ([0.2, 0.4], 7)
    (hit,) = bodies(result, LimitHit)
    assert round(hit.actual, 6) == 0.4
    assert result.usage == USED + USED
