"""Cases of ``spec/flows-cases.md`` as far as they speak of tools: D9, M5, M6, M12, M13 and T3.

There are no flows yet (issue 4): a small director gives the floor as their steps would. M5, M6, M12 and M13 stand in
``test_tool_rounds.py``, M8 and M9 in ``test_tool_gates.py``, M10 in ``test_tool_results.py``, M11 in
``test_tool_batches.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.transcript import history_of
from onrecord.record.kinds import OutcomeFiled
from onrecord.testing import FakeEffects, ScriptedModel, call, reply
from onrecord.tools.tool import Tool, ToolContext, ToolResult, Validity
from onrecord.turn.director import Brief, Spoken, Stage
from onrecord.turn.turn import Turn
from tests.turn.acting import bodies, read, texts, tool, turn

pytestmark = pytest.mark.unit

T0 = datetime(2026, 9, 20, 10, tzinfo=UTC)
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Step:
    """A talk step: one brief with a key and tools of its own."""

    def __init__(self, key: str, tools: tuple[str, ...] | None, **brief: Any) -> None:
        self.brief, self.spoken = Brief(key=key, tools=tools, **brief), list[Spoken]()

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        self.spoken.append(await stage.speak(self.brief))


async def test_d9_tool_data_lands_as_given() -> None:
    """Free text in a number's field, no coercion, no line about it (case D9)."""
    held = tool("quote", lambda *_: ToolResult("ok", data={"budget": "free text"}))
    step = Step("answer", ("quote",))
    result = await turn(Agent(ScriptedModel(call("quote"), "done"), tools=[held], director=step))
    assert result.session is not None
    assert result.session.data == {"budget": "free text"}
    assert step.spoken[0].data == {"budget": "free text"}
    assert bodies(result, OutcomeFiled) == []


async def test_d9_a_director_may_file_the_data_itself() -> None:
    """It gets the patch with what was spoken; nothing is filed behind its back."""
    held = tool("quote", lambda *_: ToolResult("ok", data={"budget": 1}))
    step = Step("answer", None, hold_data=True)
    result = await turn(Agent(ScriptedModel(call("quote"), "done"), tools=[held], director=step))
    assert step.spoken[0].data == {"budget": 1}
    assert result.session is not None
    assert result.session.data == {}


# ---- T3: the tools of a small hotel ----------------------------------------------------------------------------------


def base36(number: int) -> str:
    """A number in digits and capitals."""
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = DIGITS[digit] + digits
    return digits


def preco(args: Mapping[str, Any], ctx: object) -> ToolResult:
    """The smallest tool that works."""
    return ToolResult({"precoNoite": 420})


def valid_city(args: Mapping[str, Any], ctx: object) -> Validity:
    """An empty city is refused."""
    return Validity(valid=bool(args.get("cidade")), error="Informe a cidade.")


def hotel(booked: list[Any]) -> list[Tool]:
    """The two tools of the seed's example."""

    def reservar(args: Mapping[str, Any], ctx: ToolContext[Any]) -> ToolResult:
        code = f"RES-{base36(int(ctx.now.timestamp() * 1000))}"
        booked.append(args)
        return ToolResult({"codigo": code}, data={"reserva": code})

    city = {"type": "object", "properties": {"cidade": {"type": "string"}}, "required": ["cidade"]}
    return [
        Tool("preco", preco, "Preço da diária em uma cidade.", parameters=city),
        Tool("reservar", reservar, "Confirma a reserva.", parameters=city, destructive=True, validate_input=valid_city),
    ]


async def test_t3_the_offer_names_the_price() -> None:
    """The step offers its own tool alone; content null beside the call; one message under the step's key (case T3)."""
    question = "A diária sai por 420. Posso reservar?"
    model = ScriptedModel(call("preco", cidade="Curitiba"), question)
    key = "hospedagem#2026-09-20T10:00:00.000Z:oferta:1"
    agent: Agent[Any, Any] = Agent(model, tools=hotel([]), director=Step(key, ("preco",), message_key=key))
    result = await turn(agent, "Quero um quarto em Curitiba", session="demo", effects=FakeEffects(T0))
    assert [read(r)["tools"] for r in model.requests] == [["preco"], ["preco"]]
    assert texts(model.requests[1]) == ['{"precoNoite":420}']
    assert [(m.text, m.key) for m in result.messages] == [(question, key)]
    assert result.llm_calls == 2
    assert result.session is not None
    asked, told = history_of(result.session.conversation.messages)[1:3]
    assert (asked["content"], [c["id"] for c in asked["tool_calls"]]) == (None, ["call-0-0"])
    assert told["content"] == '{"precoNoite":420}'


async def test_t3_streamed_the_deltas_join_to_both_texts() -> None:
    """The message is the last round's alone (case T3)."""
    model = ScriptedModel(reply("Deixa eu ver. ", call("preco", cidade="Curitiba")), "Sai por 420.")
    agent: Agent[Any, Any] = Agent(model, tools=hotel([]), director=Step("oferta", ("preco",)))
    stream = agent.turn_stream("Quero um quarto", effects=FakeEffects(T0))
    assert "".join([text async for text in stream.text]) == "Deixa eu ver. Sai por 420."
    assert [m.text for m in (await stream.result()).messages] == ["Sai por 420."]


async def test_t3_the_booking_is_validated_then_made() -> None:
    """An empty city is told and not run; the code is the agent's clock in base 36; the field is written (case T3)."""
    booked: list[Any] = []
    model = ScriptedModel(call("reservar", cidade=""), call("reservar", cidade="Curitiba"), "Reservado!")
    agent: Agent[Any, Any] = Agent(model, tools=hotel(booked), director=Step("confirma", ("reservar",)))
    result = await turn(agent, "Pode reservar", effects=FakeEffects(T0))
    assert [read(r)["tools"] for r in model.requests] == [["reservar"]] * 3
    assert texts(model.requests[2]) == [
        '{"error":"Validation failed: Informe a cidade."}', '{"codigo":"RES-MU9NAKG0"}'
    ]  # fmt: skip
    assert booked == [{"cidade": "Curitiba"}]
    assert result.session is not None
    assert result.session.data == {"reserva": "RES-MU9NAKG0"}
    assert result.llm_calls == 3
