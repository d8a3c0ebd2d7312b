"""What the library raises names shapes and places, never what was said, answered or stored."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Happened, Said
from onrecord.errors import ConfigurationError, MessageDenied, OnrecordError, OutputInvalid, StoreError, UsageError
from onrecord.providers.openai_compatible import openai_compatible
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import ScriptedModel, call
from onrecord.turn.moments import Deny, Hooks
from tests.turn.acting import Named, tool, turn

if TYPE_CHECKING:
    from tests.privacy.conftest import Canary

pytestmark = pytest.mark.unit


class Colour(enum.Enum):
    """A choice."""

    RED = "red"


@dataclass
class Wanted:
    """An output type with every way to misfit."""

    word: Literal["yes", "no"]
    count: int
    colour: Colour
    more: dict[str, int]


@pytest.mark.parametrize(
    "answer",
    [
        "@@",
        '["@@"]',
        '{"@@": 1}',
        '{"word":"@@","count":1,"colour":"red","more":{}}',
        '{"word":"yes","count":"@@","colour":"red","more":{}}',
        '{"word":"yes","count":1,"colour":"@@","more":{}}',
        '{"word":"yes","count":1,"colour":"red","more":{"@@":"x"}}',
        '{"word":"yes","count":1,"colour":"red","more":{},"@@":1}',
        '{"word":"yes" @@',
    ],
    ids=range(9),
)
async def test_an_answer_that_does_not_fit_is_not_quoted(canary: Canary, answer: str) -> None:
    """Neither its values nor the properties it invented; the model that is asked again does read those."""
    said = answer.replace("@@", canary.text)
    result = await turn(Agent(ScriptedModel(said, said), output=Wanted), canary.text)
    with pytest.raises(OutputInvalid) as misfit:
        _ = result.output
    canary.absent_from("OutputInvalid", misfit.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda text: Said(text + "\ud83d"),
        lambda text: Said(text, notice=text + "\ud83d"),
        lambda text: Happened("event", key="k", payload={"a": text, "b": object()}),
        lambda text: Answered("q", value=[text, object()]),
        lambda text: [text],
        lambda text: text.encode(),
    ],
    ids=range(6),
)
async def test_an_input_that_is_refused_is_not_quoted(canary: Canary, make: Any) -> None:
    """At the door."""
    with pytest.raises(UsageError) as refused:
        await turn(Agent(ScriptedModel("x")), make(canary.text))
    canary.absent_from("UsageError", refused.value)


@pytest.mark.parametrize(
    "record",
    [
        {"role": "user", "content": "{}\ud83d"},
        {"role": "user", "content": {"{}": 1}},
        {"role": "user", "content": [{"type": "image_url", "image_url": "{}"}, {"type": "text", "text": 5}]},
        {"role": "user", "content": [{"type": "text", "text": "{}"}, {"type": "odd"}]},
        {"role": "user", "content": "{}", "at": "{}"},
        {"role": "assistant", "content": "{}", "tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]},
        {"role": "assistant", "tool_calls": "{}"},
        {"role": "tool", "tool_call_id": "a", "content": "{}"},
    ],
    ids=range(8),
)
async def test_a_history_that_is_refused_is_not_quoted(canary: Canary, record: Mapping[str, Any]) -> None:
    """Records name their shapes and keys."""
    filled = _filled(record, canary.text)
    try:
        await turn(Agent(ScriptedModel("x")), history=[filled])
    except OnrecordError as refused:
        canary.absent_from("UsageError", refused)


def _filled(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return value.replace("{}", text)
    if isinstance(value, Mapping):
        return {_filled(name, text): _filled(item, text) for name, item in value.items()}
    return [_filled(item, text) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("moment", ["on_input", "on_output", "before_tool", "after_tool"])
async def test_a_rule_that_raises_is_told_by_the_name_of_its_exception(canary: Canary, moment: str) -> None:
    """A denial at the boundary says which rule failed and not what with."""

    async def fails(*_: Any) -> None:
        raise ValueError(canary.text)

    given: dict[str, Any] = {moment: fails, "holds_drafts": True}
    hooks = Hooks(**given)
    model = ScriptedModel([call("lookup", word=canary.text)], canary.text, canary.text)
    try:
        result = await turn(Agent(model, tools=[tool()], features=[Named("odd", hooks)]), canary.text)
        canary.absent_from("a result", result)
    except OnrecordError as refused:
        canary.absent_from("a refusal", refused)


async def test_a_denied_message_is_not_quoted(canary: Canary) -> None:
    """The rule and its reason are; the message is not."""

    async def denies(*_: Any) -> Deny:
        return Deny("not here")

    with pytest.raises(MessageDenied) as denied:
        await turn(Agent(ScriptedModel("x"), features=[Named("rule", Hooks(on_input=denies))]), canary.text)
    canary.absent_from("MessageDenied", denied.value)


@pytest.mark.parametrize("bad", [object(), "\ud83d"], ids=["object", "half"])
async def test_a_change_that_cannot_be_stored_is_not_quoted(canary: Canary, bad: object) -> None:
    """Nor is the change itself, where a log shows it."""
    result = await turn(Agent(ScriptedModel(canary.text)), canary.text)
    change = result.change()
    canary.absent_from("a change", change)
    held = replace(change, session=replace(change.session, data={"a": canary.text, "b": bad}))
    with pytest.raises(StoreError) as failed:
        await MemoryStore().commit(held)
    canary.absent_from("StoreError", failed.value)


@pytest.mark.parametrize(
    "form",
    ["http://user:{}@host/v1", "http://{}@host/v1", "https://host/v1?key={}", "http://h/v1#{}"],
    ids=range(4),
)
def test_an_address_with_a_secret_in_it_is_refused_and_not_quoted(canary: Canary, form: str) -> None:
    """Records name the address of a model, so it can hold no key."""
    with pytest.raises(ConfigurationError) as refused:
        openai_compatible(form.replace("{}", canary.text), "m")
    canary.absent_from("ConfigurationError", refused.value)
