"""Cases T of the specification: the seeds' own examples, with the values that they print.

T1 and T2 play the agent of the seeds' page on triggers, T3 that on tools, T4 that on streaming.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.conversation.inputs import Said
from onrecord.conversation.transcript import history_of
from onrecord.flows import Collect, Do, Field, Flow, Ok, OnEvent, OnMention, OnMessage, OnSilence, Say, Talk
from onrecord.jsonio import Json
from onrecord.testing import call, raises, reply, shown
from onrecord.tools.tool import Tool, ToolContext, ToolResult, Validity
from tests.flows.playing import Play, after, ends, keys, line, lines, said_by, says, sections, skips, starts, wakes

pytestmark = pytest.mark.unit

# ---- five flows ------------------------------------------------------------------------------------------------------

NOME: Mapping[str, Field] = {"nome": Field(type="string", ask="Pergunte o nome.")}


def is_ours(ctx: Any) -> bool:
    """Whether the lead belongs to the assistant."""
    return bool(ctx.context["lead"]["dono"] == "ia")


def at_stage(ctx: Any, stage: Any) -> bool:
    """Whether the lead is at this stage."""
    return bool(ctx.context["lead"]["etapa"] == stage)


FIVE = (
    Flow(
        "triagem", name="Triagem", steps=[Collect("nome", id="quem")],
        on=[OnMessage("quer saber como funciona", "pede um orçamento", repeat="always")],
    ),
    Flow(
        "concorrente", name="Falou de concorrente",
        on=[OnMention("cita ou compara com um concorrente", extract={"trecho": {"type": "string"}})],
        steps=[Do("avisar", id="avisa", args={"texto": 'Falou de concorrente: "{{input.trecho}}"'})],
    ),
    Flow(
        "retomar", name="Retomar quem sumiu", on=[OnSilence("24h", business_hours=True, only_if=is_ours)],
        steps=[Talk("Retome a conversa de forma leve e pergunte se ainda faz sentido.", id="p1")],
    ),
    Flow(
        "proposta", name="Acompanhar proposta",
        on=[OnEvent("entrou_na_etapa", after="1h", only_if={"naEtapa": "proposta"})],
        steps=[Talk("Pergunte se a proposta chegou bem.", id="fala")],
    ),
    Flow(
        "boas-vindas", name="Boas-vindas",
        steps=[Say("Oi! Vi que você se cadastrou. Posso ajudar em algo?", id="oi")],
    ),
)  # fmt: skip


class Ana(Play):
    """The agent of five flows; ``avisos`` are the calls of its action."""

    def __init__(self) -> None:
        self.avisos: list[tuple[str, str, Mapping[str, Json]]] = []
        super().__init__(
            *FIVE, fields=NOME, actions=[self._avisar()], events=["entrou_na_etapa"],
            conditions={"naEtapa": at_stage},
        )  # fmt: skip

    def _avisar(self) -> Tool:
        def run(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Ok:
            self.avisos.append((ctx.key, ctx.dedupe_key, args))
            return Ok()

        texto: Mapping[str, Json] = {"type": "object", "properties": {"texto": {"type": "string"}}}
        return Tool("avisar", run, "Avisa a equipe.", parameters={**texto, "required": ["texto"]})


def lead(dono: str = "ia", etapa: str = "proposta") -> dict[str, Any]:
    """What the host knows of the customer."""
    return {"lead": {"dono": dono, "etapa": etapa}}


async def test_t1_start() -> None:
    """The welcome goes out without a model, and the silence is armed since the assistant spoke."""
    play = Ana()
    result = await play.started("boas-vindas", key="signup:456", context=lead())
    assert starts(result) == ["boas-vindas#signup:456"]
    assert [(m.kind, m.key) for m in result.messages] == [("verbatim", "boas-vindas#signup:456:oi:1")]
    assert [(w.key, w.at, w.replaces) for w in result.schedule] == [
        ("silence:retomar:s1:1789898400000", after(hours=24), None)
    ]
    assert ends(result) == [("boas-vindas#signup:456", "end")]
    assert result.llm_calls == 0


async def test_t1_start_of_a_person() -> None:
    """With a person in charge no silence is armed."""
    result = await Ana().started("boas-vindas", key="signup:456", context=lead("humano"))
    assert (wakes(result), len(result.messages)) == ([], 1)


async def test_t2_message_and_event_after_it() -> None:
    """One message starts what it mentions beside what it asks for, and an event waits its hour."""
    play = Ana()
    await play.started("boas-vindas", key="signup:456", context=lead())
    play.clock.advance(minutes=10)
    found = {"mentions": {"concorrente": True}, "extract": {"concorrente": {"trecho": "a Zeta cobra menos"}}}
    result = await play.said(
        "a Zeta cobra menos", key="m2", context=lead(), judge=found, speak=[says("Qual seu nome?")]
    )
    assert [*sections(play.requests[0])] == ["mentions", "extract", "fields"]
    assert starts(result) == ["concorrente#m2", "triagem#m2"]
    texto = 'Falou de concorrente: "a Zeta cobra menos"'
    assert play.avisos == [("concorrente#m2:avisa:1", "concorrente:s1:", {"texto": texto})]
    assert play.data == {}
    assert keys(result) == ["triagem#m2:quem:1"]
    assert [(w.key, w.replaces) for w in result.schedule] == [
        ("silence:retomar:s1:1789899000000", "silence:retomar:s1:1789898400000")
    ]
    assert result.llm_calls == 2
    entered = await play.happened("entrou_na_etapa", key="e1", payload={"etapa": "proposta"}, context=lead())
    assert starts(entered) == ["proposta#e1"]
    assert wakes(entered) == [("proposta#e1:start:1789902600000", after(minutes=70))]
    assert line(entered, "awaiting-trigger").until == after(minutes=70)


async def test_t2_another_stage() -> None:
    """An event whose condition does not hold leaves no line."""
    result = await Ana().happened("entrou_na_etapa", key="e1", context=lead(etapa="novo"))
    assert (starts(result), skips(result)) == ([], [])


# ---- a small hotel ---------------------------------------------------------------------------------------------------

STAY = {
    "cidade": Field(type="string", ask="Pergunte em qual cidade a pessoa quer ficar."),
    "reserva": Field(type="string", about="Código da reserva"),
}
HOSPEDAGEM = Flow(
    "hospedagem", name="Hospedagem", on=[OnMessage("quer reservar um quarto")],
    steps=[
        Collect("cidade", id="onde"),
        Talk("Apresente o preço da diária. Pergunte se pode reservar.", id="oferta", tools=["preco"]),
        Collect("reserva", id="confirma", prompt="Se a pessoa confirmou, reserve e informe o código.",
                tools=["reservar"]),
    ],
)  # fmt: skip
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
OFFER = "A diária sai por 420. Posso reservar?"
RUN = "hospedagem#2026-09-20T10:00:00.000Z"


def base36(number: int) -> str:
    """A number in digits and capitals."""
    return (base36(number // 36) if number >= 36 else "") + DIGITS[number % 36]


def hotel(booked: list[Any]) -> Play:
    """The agent of the seeds' page on tools."""

    def reservar(args: Mapping[str, Json], ctx: ToolContext[Any]) -> ToolResult:
        code = f"RES-{base36(int(ctx.now.timestamp() * 1000))}"
        booked.append(args)
        return ToolResult({"codigo": code}, data={"reserva": code})

    def valid(args: Mapping[str, Json], ctx: object) -> Validity:
        return Validity(valid=bool(args.get("cidade")), error="Informe a cidade.")

    city: Mapping[str, Json] = {"type": "object", "properties": {"cidade": {"type": "string"}}, "required": ["cidade"]}
    tools = [
        Tool("preco", lambda *_: ToolResult({"precoNoite": 420}), "Preço da diária.", parameters=city),
        Tool("reservar", reservar, "Confirma a reserva.", parameters=city, destructive=True, validate_input=valid),
    ]
    return Play(HOSPEDAGEM, fields=STAY, tools=tools, id="demo", name="Concierge")


def results(request: Any) -> list[str]:
    """What the model reads of its calls, the latest turn's last."""
    seen: Any = shown(request)["messages"]
    return [m["content"] for m in seen if m["role"] == "tool"]


async def test_t3_tools() -> None:
    """The offer names the price, then the room is booked: only the step's own tool is offered, and gates hold."""
    booked: list[Any] = []
    play = hotel(booked)
    rounds = [call("preco", cidade="Curitiba"), says(OFFER)]
    found: dict[str, Any] = {"fields": {"cidade": "Curitiba"}}
    result = await play.said("Quero um quarto em Curitiba", key=None, judge=found, speak=rounds)
    assert [*sections(play.requests[0])] == ["fields"]
    assert [shown(r)["tools"] for r in play.requests[1:]] == [["preco"], ["preco"]]
    assert results(play.requests[2]) == ['{"precoNoite":420}']
    history: list[Any] = history_of(play.kept.conversation.messages)
    assert (history[1]["content"], [c["id"] for c in history[1]["tool_calls"]]) == (None, ["call-0-0"])
    assert history[2]["content"] == '{"precoNoite":420}'
    assert said_by(result) == [(OFFER, "ai", f"{RUN}:oferta:1")]
    assert (result.messages[0].text, result.llm_calls) == (OFFER, 3)
    assert (play.run("hospedagem").step_id, play.statuses) == ("confirma", {"hospedagem": "asking"})

    empty, whole = call("reservar", cidade=""), call("reservar", cidade="Curitiba")
    nothing: dict[str, Any] = {"fields": {"reserva": None}}
    result = await play.said("Pode reservar", key="m2", judge=nothing, speak=[empty, whole, says("Reservado!")])
    assert [shown(r)["tools"] for r in play.requests[1:]] == [["reservar"]] * 3
    assert results(play.requests[3])[1:] == [
        '{"error":"Validation failed: Informe a cidade."}', '{"codigo":"RES-MU9NAKG0"}'
    ]  # fmt: skip
    assert (booked, play.data["reserva"]) == ([{"cidade": "Curitiba"}], "RES-MU9NAKG0")
    assert lines(result) == [("confirma", "collect", "ok", None)]
    assert ends(result) == [(RUN, "end")]
    assert (keys(result), result.llm_calls) == ([f"{RUN}:confirma:1"], 4)


async def test_t3_streamed() -> None:
    """Words beside the call are streamed too; the message is the last round's alone."""
    play = hotel([])
    first = reply(*says("Deixa eu ver. ").chunks, call("preco", cidade="Curitiba"))
    play.script({"fields": {"cidade": "Curitiba"}}, [first, says(OFFER)])
    stream = play.agent.turn_stream(Said("Quero um quarto em Curitiba"), session="demo", effects=play.clock)
    assert "".join([text async for text in stream.text]) == f"Deixa eu ver. {OFFER}"
    assert said_by(await stream.result()) == [(OFFER, "ai", f"{RUN}:oferta:1")]


# ---- a welcome, streamed ---------------------------------------------------------------------------------------------

WELCOME = Flow("boas-vindas", name="Boas-vindas", on=[OnMessage()], steps=[Collect("nome", id="nome")])
KEY = "boas-vindas#2026-09-20T10:00:00.000Z:nome:1"
PIECES = ('{"message":"Oi, R', 'ui! Em que posso ajudar?","no', 'me":"Rui"}')


async def test_t4_streaming() -> None:
    """The envelope is unwrapped as it grows: only words reach the reader, and the name lands."""
    play = Play(WELCOME, fields=NOME, id="demo")
    play.script(None, [reply(*PIECES)])
    stream = play.agent.turn_stream(Said("oi, sou o Rui"), session="demo", effects=play.clock)
    deltas = [text async for text in stream.text]
    assert deltas == ["Oi, R", "ui! Em que posso ajudar?"]
    result = await stream.result()
    assert result.session is not None
    assert (result.llm_calls, result.session.data) == (1, {"nome": "Rui"})
    assert (keys(result), ends(result)) == ([KEY], [("boas-vindas#2026-09-20T10:00:00.000Z", "end")])


async def test_t4_the_connection_drops() -> None:
    """Nothing of the half reply goes out; a minute later the step speaks from the start, under the same key."""
    play = Play(WELCOME, fields=NOME, id="demo")
    play.script(None, [reply(PIECES[0], raises("network"))])
    stream = play.agent.turn_stream(Said("oi, sou o Rui"), session="demo", effects=play.clock)
    assert [text async for text in stream.text] == ["Oi, R"]
    result = await stream.result()
    assert (result.messages, lines(result)) == ((), [("nome", "collect", "deferred", "provider-unavailable")])
    assert wakes(result) == [(f"{KEY}:retry:1789898460000", after(minutes=1))]
    play.session = result.session
    play.clock.advance(minutes=1)
    again = await play.woke(f"{KEY}:retry:1789898460000", speak=[says("Qual seu nome?")])
    assert said_by(again) == [("Qual seu nome?", "ai", KEY)]


# ---- one flow alone --------------------------------------------------------------------------------------------------

SALES = Flow("sales", on=[OnMessage("wants to buy", repeat="always")], steps=[Collect("ok", id="q")])
HELP = Flow("help", on=[OnMessage("has a problem", repeat="always")], steps=[Collect("ok", id="q")])
OPEN = Flow("open", on=[OnMessage()], steps=[Talk("Answer.", id="p")])
HUMAN = Flow("human", on=[OnMention("asks for a person")], steps=[Do("notify", id="n")])
NAMES = Flow("sales", on=SALES.on, steps=[Collect("name", id="q")])


@pytest.mark.parametrize("flows", [(SALES,), (SALES, OPEN), (OPEN, SALES)])
async def test_t5_lone_flow_default(flows: tuple[Flow, ...]) -> None:
    """One message flow takes every message unscored, also beside a catch-all, which does not start then."""
    result = await Play(*flows).said(speak=[says("Right?")])
    assert (starts(result), keys(result), result.llm_calls) == (["sales#m1"], ["sales#m1:q:1"], 1)


@pytest.mark.parametrize("mentioned", [False, True])
async def test_t5_beside_a_mention(mentioned: bool) -> None:
    """A mention is still judged, and the flow starts whatever comes of it."""
    play = Play(SALES, HUMAN)
    result = await play.said(judge={"mentions": {"human": mentioned}}, speak=[says("Right?")])
    assert [*sections(play.requests[0])] == ["mentions"]
    assert starts(result) == ["human#m1"] * mentioned + ["sales#m1"]


async def test_t5_with_a_field_to_find() -> None:
    """A field that any message may hold is looked for, and nothing else."""
    play = Play(NAMES)
    result = await play.said(judge={"fields": {}}, speak=[says("Name?")])
    assert [*sections(play.requests[0])] == ["fields"]
    assert starts(result) == ["sales#m1"]


async def test_t5_two_flows_are_scored() -> None:
    """With a second message flow both are scored."""
    play = Play(SALES, HELP)
    result = await play.said(judge={"flows": {"sales": 0, "help": 80}}, speak=[says("Right?")])
    assert sections(play.requests[0]) == {"flows": ["sales", "help"]}
    assert starts(result) == ["help#m1"]
