"""What a Do step hands its action: texts filled in, and values of other types as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.errors import FlowInvalid
from onrecord.flows import Do, Field, Flow, Ok
from onrecord.jsonio import Json
from onrecord.tools.tool import Tool
from tests.flows.playing import Play

pytestmark = pytest.mark.unit

TYPES: Mapping[str, Json] = {
    "text": {"type": "string"}, "nights": {"type": "integer"}, "price": {"type": ["number", "null"]},
    "ok": {"type": "boolean"}, "list": {"type": "array", "items": {"type": "string"}}, "any": {},
    "either": {"type": ["string", "integer"]},
}  # fmt: skip
FIELDS = {"nights": Field(type="integer"), "ok": Field(type="boolean")}


def kept(seen: list[Mapping[str, Json]]) -> Tool:
    """An action that keeps what it was given."""

    def handler(args: Mapping[str, Json], ctx: Any) -> Ok:
        seen.append(args)
        return Ok()

    return Tool("keep", handler, parameters={"type": "object", "properties": TYPES})


async def given(args: Mapping[str, Json], **how: Any) -> Mapping[str, Json]:
    """What the action gets in a run with these arguments."""
    seen: list[Mapping[str, Json]] = []
    play = Play(
        Flow("f", steps=[Do("keep", id="d", args=args)]), fields=FIELDS, actions=[kept(seen)],
        data={"nights": 3, "ok": False},
    )  # fmt: skip
    await play.started("f", **how)
    (args,) = seen
    return args


async def test_a_placeholder_alone_keeps_its_type_where_no_text_is_wanted() -> None:
    """A number for a number; in a text, and for a parameter that takes texts, it is a text."""
    args = {
        "text": "{{data.nights}}", "nights": "{{data.nights}}", "price": "{{input.price}}", "ok": "{{ data.ok }}",
        "list": "{{input.tags}}", "any": "{{data.nights}}", "either": "{{data.nights}}",
    }  # fmt: skip
    assert await given(args, input={"price": 1.5, "tags": ["a"]}) == {
        "text": "3", "nights": 3, "price": 1.5, "ok": False, "list": ["a"], "any": "3", "either": "3",
    }  # fmt: skip


async def test_one_that_leads_nowhere_reaches_the_action_as_it_is_written() -> None:
    """As in every text: a typo stays visible."""
    assert await given({"nights": "{{data.night}}"}) == {"nights": "{{data.night}}"}
    assert await given({"nights": "{{context.a.b}}"}, context={"a": None}) == {"nights": "{{context.a.b}}"}


async def test_what_json_cannot_hold_comes_as_its_text() -> None:
    """An object of the host is none that an action gets by way of a template."""
    assert isinstance((await given({"nights": "{{context.thing}}"}, context={"thing": object}))["nights"], str)


@pytest.mark.parametrize("value", ["3", "{{data.nights}} nights", "x{{data.nights}}"])
def test_any_other_text_is_no_number(value: str) -> None:
    """It is refused when the agent is built."""
    with pytest.raises(FlowInvalid, match="nights must be an integer, got string"):
        Play(Flow("f", steps=[Do("keep", id="d", args={"nights": value})]), fields=FIELDS, actions=[kept([])])
