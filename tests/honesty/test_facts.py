"""Facts: what a template can name of an entry, and which of several sentences fits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from onrecord.conversation.content import Text
from onrecord.conversation.inputs import Happened, Started
from onrecord.conversation.messages import Round, ToolCall
from onrecord.honesty import Commentary
from onrecord.honesty.fact_readers import shown
from onrecord.honesty.languages import english
from onrecord.honesty.templates import Teller
from onrecord.record import kinds
from onrecord.record.entry import Body
from onrecord.skills.skill_entries import SkillMoved, TurnRouted
from tests.honesty.test_commentary import entry

pytestmark = pytest.mark.unit

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, ""), ("as it is", "as it is"), (True, "true"), (False, "false"), (7, "7"), (0.1 + 0.2, "0.3"),
        (AT.replace(microsecond=5), "2026-03-01 09:00:00+0000"), ({"a": [1]}, '{"a":[1]}'), (object(), "object"),
    ],
)  # fmt: skip
def test_a_value_is_told_as_a_person_reads_it(value: object, told: str) -> None:
    """Numbers short, times to the second, anything else as JSON; what is none by its type."""
    assert shown(value) == told


def sentence(body: Body, **templates: str) -> str:
    """What is said of an entry."""
    return Commentary(templates={key.replace("__", "."): told for key, told in templates.items()}).sentence(entry(body))


def test_what_came_with_an_event_or_a_start_stands_behind_a_colon() -> None:
    """Where nothing came there is none."""
    told = "{{name}}{{detail}}"
    events: list[Any] = [Happened("rain", key="k", payload={"mm": 3}), Happened("rain", key="k")]
    begun: list[Any] = [Started("plan", key="k", input={"n": 1}), Started("plan", key="k")]
    assert [sentence(kinds.TurnInput(input=one, now=AT), turn__input__happened=told) for one in events] == [
        'rain: {"mm":3}', "rain"
    ]  # fmt: skip
    assert [sentence(kinds.TurnInput(input=one, now=AT), turn__input__started=told) for one in begun] == [
        'plan: {"n":1}', "plan"
    ]  # fmt: skip


def test_a_rule_that_put_the_same_in_its_place_changed_nothing() -> None:
    """The digests say whether it did."""
    told = {
        after: sentence(kinds.VerdictFiled(moment="input", by="r", verdict="allow", before="a", after=after))
        for after in ("", "a", "b")
    }
    allowed = "The rule r allowed the message."
    assert told == {"": allowed, "a": allowed, "b": "The rule r allowed the message and put another in its place."}


def test_a_reply_is_told_as_it_was_shown() -> None:
    """Where it was filtered on its way, that is what was shown; its calls are told as calls."""
    calls = [ToolCall(id=f"c{n}", wire_id=f"w{n}", name="look", args={"n": n}, raw_args="{…}") for n in range(2)]
    raw = Round(id="t/r0", content=(Text("raw"),))
    assert sentence(kinds.ModelReplied(round=raw), model__replied="{{text}}") == "raw"
    assert sentence(kinds.ModelReplied(round=raw, shown="mild"), model__replied="{{text}}") == "mild"
    in_full = Teller(english.IN_FULL, english.WORDS, app="A", limit=0)
    assert [in_full.told(kinds.ModelReplied(round=Round(id="t/r0", calls=tuple(calls[:n])))) for n in range(3)] == [
        "It replied nothing.", "It replied with a call: look(n=0).", "It replied with calls: look(n=0), look(n=1).",
    ]  # fmt: skip


def test_a_skill_that_nobody_chose_is_not_told_as_chosen() -> None:
    """A turn that found none says nothing, and one that stays where it is goes nowhere."""
    assert sentence(TurnRouted(by="continuity", to="bills")) == "The turn goes on with the skill bills."
    assert sentence(TurnRouted(by="continuity")) == sentence(TurnRouted(by="intent")) == ""
    assert sentence(TurnRouted(by="menu")) == "The model may choose a skill."
    assert sentence(SkillMoved(source="bills", to="bills", by="route")) == ""
    assert sentence(SkillMoved(source="bills", to="visits", by="route")) == "It goes on with the skill visits."
