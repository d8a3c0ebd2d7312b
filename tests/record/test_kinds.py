"""What the bodies of entries make of what they are given."""

from typing import Any

import pytest

from onrecord.conversation.content import Structured
from onrecord.conversation.inputs import Answered, Happened, Input, Started, Woke
from onrecord.record.kinds import ContextAdded

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("value", [0, False, "", [], {}, {"n": 1}])
def test_what_came_with_an_input_is_shown_whatever_it_is(value: Any) -> None:
    """Nought, no and nothing in a list are values; only what was not given is none."""
    inputs: dict[str, Input] = {
        "happened:e": Happened("e", key="k", payload=value),
        "started:e": Started("e", key="k", input=value),
        "woke:k": Woke("k", payload=value),
    }
    for text, given in inputs.items():
        assert ContextAdded.of(given).content == (Structured(kind="domain-event", text=text, payload=value),)
    (answer,) = ContextAdded.of(Answered("q", value=1)).content
    assert (getattr(answer, "text", ""), getattr(answer, "payload", 1)) == ("answered:q", None)
