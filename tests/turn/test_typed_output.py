"""Typed output: a value of a type beside the model's words (README decision 5; loop spec §17)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pytest
from msgspec import Meta, Struct
from msgspec.structs import replace
from pydantic import BaseModel

from onrecord.agent import Agent
from onrecord.errors import ConfigurationError, OutputInvalid
from onrecord.governance.rules import on_output
from onrecord.record.kinds import VerdictFiled
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.answer import Typed
from onrecord.turn.moments import ALLOW, SLOTS, Allow, Answer, Hooks
from onrecord.turn.plan import Bundle
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, read, tool, turn, verdicts

pytestmark = pytest.mark.unit

REFUND = '{"amount":5,"reason":"late"}'


@dataclass
class Refund:
    amount: int
    reason: str


class RefundModel(BaseModel):
    amount: int
    reason: str


class RefundDict(TypedDict):
    amount: int
    reason: str


class RefundStruct(Struct):
    amount: int
    reason: str


UNABLE = Refund(0, "unable to process")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Refund, REFUND, Refund(5, "late")),
        (RefundModel, REFUND, RefundModel(amount=5, reason="late")),
        (RefundDict, REFUND, {"amount": 5, "reason": "late"}),
        (RefundStruct, REFUND, RefundStruct(5, "late")),
        (list[Refund], f'{{"value":[{REFUND}]}}', [Refund(5, "late")]),
        (list[Refund], f"[{REFUND}]", [Refund(5, "late")]),
        (int, '{"value":7}', 7),
        (int, "7", 7),
        (Literal["yes", "no"], '{"value":"no"}', "no"),
        (Annotated[int, Meta(ge=1)], "3", 3),
        (Refund | None, '{"value":null}', None),
        (Refund, f"```json\n{REFUND}\n```", Refund(5, "late")),
    ],
)
async def test_the_output_is_a_value_of_the_declared_type(kind: Any, text: str, value: object) -> None:
    """Whatever makes the type; ``text`` stays what the model wrote."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(text), output=kind)
    result = await turn(agent)
    assert result.output == value
    assert type(result.output) is type(value)
    assert result.text == text
    assert result.output_source == "model"
    assert result.llm_calls == 1


async def test_a_plain_agents_output_is_its_text() -> None:
    """No schema is served and nothing is checked."""
    model = ScriptedModel("hello")
    result = await turn(Agent(model))
    assert (result.output, result.output_source, model.requests[0].shape) == ("hello", "model", None)


async def test_the_schema_is_served_with_every_request() -> None:
    """As an object; rounds with tools and the wrap-up have it too."""
    model = ScriptedModel(call("lookup"), REFUND)
    await turn(Agent(model, tools=[tool()], output=Refund, rounds=1))
    for request in model.requests:
        assert request.shape is not None
        assert request.shape.schema["type"] == "object"
        assert set(request.shape.schema["properties"]) == {"amount", "reason"}


# ---- asking again ----------------------------------------------------------------------------------------------------


async def test_132_a_misfit_is_asked_for_again_once() -> None:
    """With a correction that begins ``[schema check``, states the attempt and quotes what does not fit (case L132)."""
    model = ScriptedModel("x", "7")
    result = await turn(Agent(model, output=int))
    assert (result.output, result.text, result.llm_calls) == (7, "7", 2)
    draft, correction = read(model.requests[1])["messages"][1:]
    assert draft == {"role": "assistant", "content": "x"}
    assert correction["role"] == "system"
    assert correction["content"].startswith("[schema check] Attempt 1 of 2 does not fit.")
    assert "not JSON" in correction["content"]
    assert "JSON only" in correction["content"]
    assert [v for _, by, v, _ in verdicts(result) if by == "typed"] == ["revise", "allow"]


async def test_the_correction_names_every_problem_with_its_path() -> None:
    """And never the value."""
    model = ScriptedModel('{"amount":"canary","reason":3}', REFUND)
    await turn(Agent(model, output=Refund))
    told = read(model.requests[1])["messages"][2]["content"]
    assert "amount: expected integer, got string" in told
    assert "reason: expected string, got integer" in told
    assert "canary" not in told


async def test_nothing_streams_before_a_value_was_read() -> None:
    """A misfit is never shown."""
    stream = Agent(ScriptedModel("x", ["", "7"]), output=int).turn_stream("hi", effects=FakeEffects())
    assert [text async for text in stream.text] == ["7"]


@pytest.mark.parametrize("retries", [0, 2])
async def test_the_number_of_retries_is_the_agents_choice(retries: int) -> None:
    """Each is a paid call; then the answer stands as it is, and reading the output raises."""
    model = ScriptedModel(*["nope"] * (retries + 1))
    agent: Agent[Any, Any] = Agent(model, output=int, features=[Typed(retries=retries)])
    result = await turn(agent)
    assert model.calls == ["speak"] * (retries + 1)
    assert (result.text, result.status) == ("nope", "answered")
    with pytest.raises(OutputInvalid) as invalid:
        _ = result.output
    assert invalid.value.code == "output-invalid"
    assert "not JSON" in invalid.value.problem
    assert invalid.value.hint == "give Typed(fallback=...) or Typed(canned=...) to have a value always"
    with pytest.raises(OutputInvalid):
        _ = result.output_source


async def test_an_invalid_output_does_not_hold_the_answer() -> None:
    """The error may be logged."""
    result = await turn(Agent(ScriptedModel("canary", "canary"), output=int))
    with pytest.raises(OutputInvalid) as invalid:
        _ = result.output
    assert "canary" not in str(invalid.value)
    assert "canary" not in repr(bodies(result, VerdictFiled))


async def test_a_turn_that_ended_without_an_answer_has_no_output() -> None:
    """It says so when the output is read."""
    from onrecord.turn.options import Silenced

    result = await turn(Agent(ScriptedModel(), output=int), options=[Silenced()])
    with pytest.raises(OutputInvalid, match="the turn ended without an answer"):
        _ = result.output


# ---- fallbacks -------------------------------------------------------------------------------------------------------


def refunding(**typed: Any) -> Agent[Any, Any]:
    """An agent for refunds that answers ``nope``."""
    return Agent(ScriptedModel("nope"), output=Refund, features=[Typed(retries=0, **typed)])


async def test_189_a_fallback_supplies_the_value() -> None:
    """It gets the problem and the text; ``text`` stays the model's (case 189)."""
    got: list[Any] = []

    def fallback(problem: str, text: str) -> Refund:
        got.append((problem, text))
        return Refund(1, "from the fallback")

    result = await turn(refunding(fallback=fallback))
    assert (result.output, result.output_source, result.text) == (Refund(1, "from the fallback"), "fallback", "nope")
    assert got[0][1] == "nope"
    assert got[0][0].startswith("not JSON")
    assert ("output", "typed", "allow", "the fallback supplied the value") in verdicts(result)


async def test_a_fallback_may_be_async_and_return_plain_data() -> None:
    """What fits the type is a value of the type."""

    async def fallback(problem: str, text: str) -> dict[str, Any]:
        return {"amount": 2, "reason": "plain"}

    assert (await turn(refunding(fallback=fallback))).output == Refund(2, "plain")


def broken(problem: str, text: str) -> Refund:
    """A fallback that raises."""
    raise RuntimeError("canary")


@pytest.mark.parametrize("fallback", [broken, lambda *_: {"amount": "x"}, lambda *_: object()])
async def test_189_the_canned_value_stands_in_when_the_fallback_fails(fallback: Any) -> None:
    """By raising or by a value that does not fit: the output can be read always (case 189)."""
    result = await turn(refunding(fallback=fallback, canned=UNABLE))
    assert (result.output, result.output_source, result.text) == (UNABLE, "canned", "nope")
    assert ("output", "typed", "allow", "the canned value stands in") in verdicts(result)


async def test_without_a_canned_value_both_problems_are_told() -> None:
    """The model's misfit and the fallback's failure, without its words."""
    result = await turn(refunding(fallback=broken))
    with pytest.raises(OutputInvalid, match=r"not JSON.*; the fallback failed: RuntimeError") as invalid:
        _ = result.output
    assert "canary" not in str(invalid.value)


async def test_189_a_fallback_runs_after_the_retries_and_only_for_a_misfit() -> None:
    """A value that fits needs no one."""
    agent: Agent[Any, Any] = Agent(
        ScriptedModel("nope", REFUND), output=Refund, features=[Typed(fallback=broken, canned=UNABLE)]
    )
    result = await turn(agent)
    assert (result.output, result.output_source) == (Refund(5, "late"), "model")


# ---- rules beside it -------------------------------------------------------------------------------------------------


def rewriting(text: str, slot: str = "RULES") -> Named:
    """An output rule that puts this text in place of the answer."""

    async def hook(turn: Turn, answer: Answer) -> Any:
        return ALLOW if answer.verbatim else Allow(replace(answer, text=text), "rewrites")

    return Named("scrub", Hooks(on_output=hook, holds_drafts=True, order={"output": SLOTS["output"][slot]}))


async def test_134_what_a_rule_broke_is_not_asked_for_again() -> None:
    """The model did nothing wrong; the problem names the rule (case L134)."""
    model = ScriptedModel("7")
    agent: Agent[Any, Any] = Agent(model, output=int, features=[rewriting("[x]")])
    result = await turn(agent)
    assert len(model.requests) == 1
    assert result.text == "[x]"
    with pytest.raises(OutputInvalid, match="the model's answer fitted before 'scrub' rewrote it"):
        _ = result.output
    canned: Agent[Any, Any] = Agent(ScriptedModel("7"), output=int, features=[rewriting("[x]"), Typed(canned=0)])
    assert (await turn(canned)).output == 0


async def test_a_rewritten_answer_that_fits_is_the_output() -> None:
    """The value is read from the governed text."""
    agent: Agent[Any, Any] = Agent(ScriptedModel("7"), output=int, features=[rewriting("8")])
    result = await turn(agent)
    assert (result.output, result.text) == (8, "8")


async def test_a_line_said_verbatim_is_no_output() -> None:
    """The type is for the model's answer."""

    class Saying:
        async def direct(self, turn: Turn, stage: Any, /) -> None:
            await stage.say("One moment.", key="wait")
            await stage.speak(turn.spec.brief)

    agent: Agent[Any, Any] = Agent(ScriptedModel("7"), output=int, director=Saying())
    result = await turn(agent)
    assert (result.output, result.text) == (7, "One moment.\n\n7")


# ---- at build --------------------------------------------------------------------------------------------------------


def test_a19_a_fallback_without_a_type_is_refused_at_build() -> None:
    """So is `Typed` given twice (case A19)."""
    with pytest.raises(ConfigurationError, match="Typed needs an output type") as refused:
        Agent(ScriptedModel(), features=[Typed(canned=1)])
    assert refused.value.hint == "give the agent output=YourType"
    with pytest.raises(ConfigurationError, match="Typed is given twice"):
        Agent(ScriptedModel(), output=int, features=[Typed(), Typed()])


@pytest.mark.parametrize(("kind", "canned"), [(int, "x"), (Refund, {"amount": 1}), (Refund, object())])
def test_a19_a_canned_value_that_does_not_fit_is_refused_at_build(kind: Any, canned: object) -> None:
    """It is the last resort: it must hold (case A19)."""
    with pytest.raises(ConfigurationError, match="the canned output does not fit the output type"):
        Agent(ScriptedModel(), output=kind, features=[Typed(canned=canned)])


def test_a_type_that_json_cannot_hold_is_refused_at_build() -> None:
    """By its name."""

    class Opaque:
        """Nothing that a model could write."""

    with pytest.raises(ConfigurationError, match="Opaque"):
        Agent(ScriptedModel(), output=Opaque)


def test_a_typed_that_nobody_mounted_reads_nothing() -> None:
    """It belongs to an agent with an output type."""
    with pytest.raises(ConfigurationError, match="Typed is not mounted"):
        Typed()._read("7")


async def test_a_bundle_may_say_more_about_the_output() -> None:
    """Its `Typed` is mounted like one in the list, in a bundle inside it too; there is still only one."""
    inner = Bundle(name="inner", version="1", features=(Typed(retries=0, canned=0),))
    bundle = Bundle(name="strict", version="1", features=(inner,))
    result = await turn(Agent(ScriptedModel("nope"), output=int, features=[bundle]))
    assert (result.output, result.output_source) == (0, "canned")
    with pytest.raises(ConfigurationError, match="Typed is given twice"):
        Agent(ScriptedModel(), output=int, features=[bundle, Typed()])


async def test_a_changed_output_type_is_checked_by_the_new_one() -> None:
    """``with_`` compiles anew; the given `Typed` serves again."""
    agent: Agent[Any, Any] = Agent(ScriptedModel("7", REFUND), output=int, features=[Typed(retries=0)])
    assert (await turn(agent)).output == 7
    assert (await turn(agent.with_(output=Refund))).output == Refund(5, "late")


async def test_a_misfit_that_a_rule_rewrote_is_asked_for_again() -> None:
    """It did not fit before the rule either: the model is told."""

    async def hook(turn: Turn, answer: Answer) -> Any:
        return Allow(replace(answer, text=f"{answer.text} "), "adds a blank")

    scrub = Named("scrub", Hooks(on_output=hook, holds_drafts=True))
    model = ScriptedModel("nope", "7")
    result = await turn(Agent(model, output=int, features=[scrub]))
    assert (result.output, model.calls) == (7, ["speak", "speak"])


async def test_a_rule_that_is_called_typed_too_does_not_use_up_its_retries() -> None:
    """Nor keeps it from its last resort: each hook has a count of its own."""

    @on_output
    async def typed(turn: Turn, answer: Answer) -> Allow[Answer]:
        return Allow()

    model = ScriptedModel("nope", "no")
    result = await turn(Agent(model, output=int, features=[typed, Typed(canned=0)]))
    assert (result.output, result.output_source, len(model.calls)) == (0, "canned", 2)
