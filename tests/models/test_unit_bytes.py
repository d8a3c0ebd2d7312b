"""What a model reads of a call, on every wire."""

from __future__ import annotations

import pytest

from onrecord.conversation.content import Text
from onrecord.conversation.messages import Note
from onrecord.models.unit_bytes import result_parts
from tests.models.requests import call

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("failed", '{"error":"The tool failed."}'),
        ("denied", '{"error":"The call was not allowed."}'),
        ("invalid", '{"error":"The arguments were not valid."}'),
        ("absent", '{"error":"There is no result."}'),
        ("not_run", '{"error":"The call was not run."}'),
        ("cancelled", '{"error":"The call was cancelled; whether it took effect is not known."}'),
        ("returned", ""),
    ],
)
def test_a_call_without_a_result_says_how_it_ended(status: str, told: str) -> None:
    """In words that a model can act on; a cancelled call may have done its work."""
    assert result_parts(call("r", 0, result=None, status=status)) == (Text(told),)


def test_notes_follow_the_result_on_lines_of_their_own() -> None:
    """In the order written, also where the call itself left nothing."""
    notes = (Note("a", "one"), Note("b", "two"))
    behind = (Text("\none"), Text("\ntwo"))
    assert result_parts(call("r", 0, notes=notes)) == (Text("sunny"), *behind)
    assert result_parts(call("r", 0, result=(), notes=notes)) == behind
    denied = call("r", 0, result=None, status="denied", notes=notes)
    assert result_parts(denied) == (Text('{"error":"The call was not allowed."}'), *behind)
