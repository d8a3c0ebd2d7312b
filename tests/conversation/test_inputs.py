"""Inputs: what cannot be recorded is refused at once, and each has the keys that turns, flows and replays go by."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from onrecord.conversation.content import Audio, File, Image, Text
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import (
    Answered,
    Ask,
    AskField,
    Happened,
    Input,
    Question,
    Said,
    Started,
    Woke,
    approved,
    check_input,
    check_interruption,
    declined,
    input_key,
    row_key,
    trigger_key,
    turn_id,
)
from onrecord.errors import UsageError

pytestmark = pytest.mark.unit

WRONG: Any = 7
NOW = datetime(2026, 1, 5, 9, 0, 0, 7_999, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (Image(url=WRONG), "Expected `str | null`, got `int` - at `$[1].url`"),
        (Image(data=WRONG), "Expected `bytes | null`, got `int` - at `$[1].data`"),
        (Image(data=b"x", media=WRONG), "Expected `str`, got `int` - at `$[1].media`"),
        (Image(url="u", detail="canary-1"), "Invalid value - at `$[1].detail`"),  # type: ignore[arg-type]  # wrong on purpose
        (Audio(url="u", transcript=WRONG), "Expected `str`, got `int` - at `$[1].transcript`"),
        (File(file_id="f", name=WRONG), "Expected `str`, got `int` - at `$[1].name`"),
    ],
)
def test_media_that_could_not_be_read_again_is_refused(part: Any, told: str) -> None:
    """Stored, it would close its whole session: the error comes before, and without the value."""
    with pytest.raises(UsageError) as refused:
        check_input(Said((Text("see"), part)))
    assert str(refused.value) == f"Said cannot be recorded: {told}"
    assert refused.value.code == "input-invalid"


@pytest.mark.parametrize("part", [Image(data=b"x" * 9), Image(url="u", detail="low"), Audio(data=b""), File(data=b"x")])
def test_good_media_is_taken(part: Any) -> None:
    """With bytes or by its address."""
    check_input(Said((Text("see"), part)))


@pytest.mark.parametrize("given", [Said("hi", at=NOW.replace(tzinfo=None)), Woke("w", at=NOW.replace(tzinfo=None))])
def test_a_time_without_an_offset_is_refused(given: Input) -> None:
    """Nobody knows which instant it is; with one it is taken."""
    with pytest.raises(UsageError, match="no UTC offset"):
        check_input(given)
    check_input(Said("hi", at=NOW))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: AskField(name="a", schema=WRONG), "schema= as a JSON Schema object"),
        (lambda: AskField(name="a", ask=WRONG), "ask= as text"),
        (lambda: Ask("q", on_message=WRONG), "on_message=7 is unknown"),
        (lambda: Ask("q", fields=(WRONG,)), "takes AskFields"),
        (lambda: Ask(WRONG), "takes its question"),
    ],
)
def test_a_question_that_could_not_be_read_again_is_refused(make: Callable[[], object], told: str) -> None:
    """While it is made."""
    with pytest.raises(UsageError, match=told):
        make()


class Words(str):
    """A text with a type of its own."""

    __slots__ = ()


@pytest.mark.parametrize("text", ["hi", "é 部屋 🙂", Words("hi"), Words("é")])
def test_any_text_is_taken(text: str) -> None:
    """In every script, and of a type of the host's own."""
    check_input(Said(text))


@pytest.mark.parametrize("text", ["half \ud83d", "\ud83d\ude42", Words("\ude42")])
def test_text_that_is_no_unicode_is_refused(text: str) -> None:
    """Halves of pairs, and two of them as well: no file could hold them."""
    with pytest.raises(UsageError, match="not valid Unicode"):
        check_input(Said(text))


def test_only_an_interruption_interrupts() -> None:
    """A word is refused by name, with what to pass in its place."""
    with pytest.raises(UsageError, match="an interruption is no str") as refused:
        check_interruption("stop")  # type: ignore[arg-type]  # wrong on purpose
    assert "Interruption" in refused.value.hint


def test_replays_are_recognised_by_keys_that_come_from_outside() -> None:
    """A message of a channel and an event; wakes, starts and answers come again under one key and mean it."""
    inputs: list[Input] = [Said("hi", key="1"), Happened("paid", key="2"), Said("hi"), Started("x", key="3"), Woke("w")]
    assert [input_key(given) for given in [*inputs, Answered("q")]] == ["said::1", "happened:paid:2", "", "", "", ""]


def test_parts_of_a_key_cannot_pass_for_its_seams() -> None:
    """Colons, tildes, slashes and percent signs are encoded, plain characters and a few signs are not."""
    assert row_key(Happened("a:b", key="c/d~%"), "") == "happened:a%3Ab:c%2Fd~%25"
    assert row_key(Said("hi", key="é b+@,;!$'()=&?."), "") == "said::%C3%A9 b+@,;!$'()=&?."
    assert row_key(Said("hi"), "n:1") == "said::n%3A1"
    assert turn_id(SessionKey("a:b"), "said::1", 3) == "a%3Ab:said::1~3"


def test_flows_go_by_the_key_or_the_instant_of_an_input() -> None:
    """Its own key, else its own time, else the turn's; in UTC, cut to milliseconds."""
    at = NOW - timedelta(hours=1)
    assert trigger_key(Said("hi", key="k", at=at), NOW) == "k"
    assert trigger_key(Said("hi", at=at), NOW) == "2026-01-05T06:00:00.007Z"
    assert trigger_key(Said("hi"), NOW) == "2026-01-05T07:00:00.007Z"
    assert trigger_key(Said("hi"), datetime(2026, 1, 5, tzinfo=UTC)) == "2026-01-05T00:00:00.000Z"


def test_an_answer_says_whose_and_which_it_is() -> None:
    """Approving and declining differ in nothing else."""
    question = Question(key="t/q0", text="Pay?", by="rule")
    assert approved(question, by="ana", note="ok") == Answered("t/q0", approved=True, by="ana", note="ok")
    assert declined(question, by="ana") == Answered("t/q0", approved=False, by="ana")
