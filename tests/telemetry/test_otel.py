"""Spans say what ran below what, how long, at what cost and how it ended; and no word of what was said."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry import trace
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.trace import SpanKind, StatusCode

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Ask, Happened, Said
from onrecord.conversation.outgoing import Outcome
from onrecord.conversation.usage import Usage
from onrecord.errors import ConfigurationError, MessageDenied, MissingDependency, ModelError
from onrecord.governance.rules import before_tool
from onrecord.models.chunks import Attempted
from onrecord.models.request import Request, Settings
from onrecord.record.kinds import Noted
from onrecord.telemetry import Otel, Pseudonyms
from onrecord.telemetry.following import all_followed
from onrecord.testing import ScriptedModel, call, raises, reply
from onrecord.turn.director import Brief
from onrecord.turn.moments import Deny, Hooks
from tests.telemetry.tracing import Ticking, Traced, at_ms, attributes
from tests.turn.acting import Named, tool, turn
from tests.turn.interrupting.live import WAIT, Halting, Live, interrupted
from tests.turn.pausing.asking import answered, asks

pytestmark = pytest.mark.unit

USED = Usage(input_tokens=10, output_tokens=4, cached_input_tokens=6)


@pytest.fixture
def traced() -> Traced:
    """A provider of the test's own."""
    return Traced()


async def test_a_turn_is_a_span_with_its_model_and_tool_calls_below(traced: Traced) -> None:
    """By the names of the conventions, from the entries' own times."""
    model = ScriptedModel(reply(call("price", city="Porto"), usage=USED), reply("420", usage=USED))
    agent = Agent(model, name="hotel", tools=[tool("price")], features=[traced.feature])
    await turn(agent, session="ana", effects=Ticking())
    top, price = traced.named("invoke_agent hotel"), traced.named("execute_tool price")
    assert traced.tree() == [
        ("chat script", "invoke_agent hotel"), ("chat script", "invoke_agent hotel"),
        ("execute_tool price", "invoke_agent hotel"), ("invoke_agent hotel", ""),
    ]  # fmt: skip
    assert attributes(top) == {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "hotel", "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "script", "gen_ai.conversation.id": "ana", "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 8, "gen_ai.usage.cache_read.input_tokens": 12,
        "onrecord.turn.id": "ana:said::name2~0", "onrecord.take": 1, "onrecord.input.kind": "said",
        "onrecord.turn.status": "answered",
    }  # fmt: skip
    assert attributes(price) == {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "price", "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "ana:said::name2~0/answer/r0/c0", "onrecord.tool.status": "returned",
    }  # fmt: skip
    chat = next(span for span in traced.spans if span.name == "chat script")
    assert attributes(chat) == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "scripted", "gen_ai.request.model": "script",
        "gen_ai.response.model": "script", "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 4, "gen_ai.usage.cache_read.input_tokens": 6,
        "onrecord.model.purpose": "speak",
    }  # fmt: skip
    assert (top.kind, chat.kind, price.kind) == (SpanKind.INTERNAL, SpanKind.CLIENT, SpanKind.INTERNAL)
    began, ended = at_ms(top)
    assert began < at_ms(chat)[0] < at_ms(chat)[1] < at_ms(price)[0] < at_ms(price)[1] < ended
    assert all(span.status.status_code is StatusCode.UNSET for span in traced.spans)


async def test_every_name_of_the_conventions_is_one_they_have(traced: Traced) -> None:
    """Compared with the package that OpenTelemetry generates from them."""
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    model = ScriptedModel(reply(call("price"), usage=Usage(input_tokens=1, reasoning_tokens=2)), "x")
    await turn(Agent(model, tools=[tool("price")], features=[traced.feature]))
    used = {name for span in traced.spans for name in attributes(span) if name.startswith("gen_ai.")}
    assert used
    assert used <= known


async def test_tools_side_by_side_are_spans_side_by_side(traced: Traced) -> None:
    """Each ends when its own handler did, whatever the order."""
    effects = Ticking()
    first = asyncio.Event()

    async def slow(*_: Any) -> str:
        await first.wait()
        return "slow"

    async def quick(*_: Any) -> str:
        first.set()
        return "quick"

    tools = [tool("slow", slow, concurrency_safe=True), tool("quick", quick, concurrency_safe=True)]
    model = ScriptedModel([call("slow"), call("quick")], "x")
    await turn(Agent(model, tools=tools, features=[traced.feature]), effects=effects)
    slow_at, quick_at = at_ms(traced.named("execute_tool slow")), at_ms(traced.named("execute_tool quick"))
    assert slow_at[0] < quick_at[0] < quick_at[1] < slow_at[1]


async def test_a_sub_agent_hangs_below_the_call_that_asked_it(traced: Traced) -> None:
    """Though other calls run beside it; what it spent is counted in both turns."""
    kid = Agent(ScriptedModel(reply("yes", usage=USED)), name="kid", features=[traced.feature])
    asking = kid.as_tool(id="ask_kid")
    model = ScriptedModel([call("look"), call("ask_kid", message="x")], "done")
    await turn(Agent(model, name="top", tools=[tool("look"), asking], features=[traced.feature]))
    assert ("invoke_agent kid", "execute_tool ask_kid") in traced.tree()
    assert attributes(traced.named("invoke_agent top"))["gen_ai.usage.input_tokens"] == 10


async def test_sub_agents_side_by_side_hang_below_their_own_calls(traced: Traced) -> None:
    """By the call that each was asked in, not by which began last."""
    kids = [Agent(ScriptedModel("yes"), name=name, features=[traced.feature]) for name in ("one", "two")]
    tools = [replace(kid.as_tool(id=f"ask_{kid.name}"), concurrency_safe=True) for kid in kids]
    model = ScriptedModel([call("ask_one", message="x"), call("ask_two", message="x")], "done")
    await turn(Agent(model, name="top", tools=tools, features=[traced.feature]))
    assert ("invoke_agent one", "execute_tool ask_one") in traced.tree()
    assert ("invoke_agent two", "execute_tool ask_two") in traced.tree()


async def test_a_paused_turn_ends_its_span_and_the_answer_begins_another(traced: Traced) -> None:
    """A question may stay open for days; the turn's id says that both belong together."""
    model = ScriptedModel([call("order")], "Ordered.")
    agent = Agent(model, name="shop", tools=[tool("order", asks())], features=[traced.feature])
    paused = await turn(agent)
    first = traced.named("invoke_agent shop")
    assert attributes(first)["onrecord.turn.status"] == "paused"
    assert first.status.status_code is StatusCode.UNSET
    await answered(agent, paused, value="XL")
    _, second = (span for span in traced.spans if span.name == "invoke_agent shop")
    assert attributes(second)["onrecord.turn.id"] == attributes(first)["onrecord.turn.id"]
    told = [attributes(second)[f"onrecord.{name}"] for name in ("take", "input.kind", "turn.status")]
    assert told == [2, "answered", "answered"]
    ran = [attributes(span) for span in traced.spans if span.name == "execute_tool order"]
    assert ["onrecord.tool.status" in one for one in ran] == [False, True]  # the handler began twice


async def test_attempts_that_failed_are_events_of_their_model_call(traced: Traced) -> None:
    """With the kind of failure, the status and the wait."""
    model = ScriptedModel([Attempted(attempt=1, error="rate", status=429, wait_s=3.0, model="scripted:script"), "x"])
    await turn(Agent(model, features=[traced.feature]))
    (event,) = traced.named("chat script").events
    assert event.name == "onrecord.model.attempted"
    assert attributes(event) == {
        "error.type": "rate", "http.response.status_code": 429, "onrecord.attempt": 1, "onrecord.wait_s": 3.0
    }  # fmt: skip


async def test_a_provider_failure_ends_both_spans_as_errors(traced: Traced) -> None:
    """Though nothing of the turn is stored, and no entry tells of its end."""
    with pytest.raises(ModelError):
        await turn(Agent(ScriptedModel(raises("rate", status=400)), name="a", features=[traced.feature]))
    assert [(span.name, attributes(span)["error.type"], span.status.status_code) for span in traced.spans] == [
        ("chat script", "model-rate", StatusCode.ERROR), ("invoke_agent a", "model-rate", StatusCode.ERROR),
    ]  # fmt: skip
    assert attributes(traced.spans[1])["onrecord.turn.status"] == "left"


async def test_a_denied_message_and_a_failed_tool_are_errors_with_codes(traced: Traced) -> None:
    """The rule is named; its reason is not told."""

    async def never(*_: Any) -> Deny:
        return Deny("because of you")

    def broken(*_: Any) -> None:
        raise ValueError("secret")

    with pytest.raises(MessageDenied):
        await turn(Agent(ScriptedModel(), features=[traced.feature, Named("never", Hooks(on_input=never))]))
    (denied,) = traced.spans
    assert attributes(denied)["error.type"] == "message-denied"
    assert attributes(denied.events[0]) == {
        "onrecord.moment": "input", "onrecord.rule": "never", "onrecord.verdict": "deny"
    }  # fmt: skip
    traced.exporter.clear()
    await turn(Agent(ScriptedModel(call("broken"), "x"), tools=[tool("broken", broken)], features=[traced.feature]))
    failed = traced.named("execute_tool broken")
    assert (failed.status.status_code, attributes(failed)["error.type"]) == (StatusCode.ERROR, "failed")


async def test_calls_that_never_ran_are_events(traced: Traced) -> None:
    """A denied one by its tool's name; of an absent tool the model made the name up."""

    @before_tool
    async def careful(*_: Any) -> Deny:
        return Deny("no")

    model = ScriptedModel([call("pay"), call("my number is 555")], "x")
    await turn(Agent(model, name="a", tools=[tool("pay")], features=[traced.feature, careful]))
    events = [attributes(e) for e in traced.named("invoke_agent a").events if e.name == "onrecord.tool.not_run"]
    assert events == [{"onrecord.tool.status": "denied", "gen_ai.tool.name": "pay"}, {"onrecord.tool.status": "absent"}]


async def test_an_interrupted_turn_ends_all_its_spans(traced: Traced) -> None:
    """It did not fail: a person stopped it."""
    model = Halting(("Good ", WAIT))
    await interrupted(Live(Agent(model, name="a", features=[traced.feature])), model.waiting)
    assert [span.name for span in traced.spans] == ["chat script", "invoke_agent a"]
    top = traced.named("invoke_agent a")
    assert attributes(top)["onrecord.turn.status"] == "interrupted"
    assert top.status.status_code is StatusCode.UNSET


async def test_a_cancelled_take_ends_its_spans_and_leaves_nothing(traced: Traced) -> None:
    """Whoever cancels it, the spans say so, and nothing is followed any more."""
    model = Halting((WAIT,))
    task = asyncio.create_task(turn(Agent(model, features=[traced.feature])))
    await model.waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert {attributes(span)["error.type"] for span in traced.spans} == {"CancelledError"}
    assert len(traced.spans) == 2
    assert list(all_followed()) == []


async def test_an_ignored_input_ends_its_span(traced: Traced) -> None:
    """It left no entry behind, and it is no error."""

    class Ignores:
        async def direct(self, turn: Any, stage: Any) -> None:
            turn.ignore(Outcome(kind="input", status="ignored", code="none"))

    await turn(Agent(ScriptedModel(), director=Ignores(), features=[traced.feature]), Happened("arrived", key="1"))
    (span,) = traced.spans
    assert (attributes(span)["onrecord.turn.status"], span.status.status_code) == ("ignored", StatusCode.UNSET)


async def test_what_a_director_did_and_what_was_noted_are_events(traced: Traced) -> None:
    """By kind, status and code, and by who noted it; their words and keys stay in the record."""

    class Reports:
        async def direct(self, turn: Any, stage: Any) -> None:
            stage.outcome(Outcome(kind="step", status="skipped", code="not-due", key="secret", message="secret"))
            turn.note(Noted(by="clerk", text="secret"))
            await stage.speak(Brief(key="answer"))

    await turn(Agent(ScriptedModel("x"), name="a", director=Reports(), features=[traced.feature]))
    events = [(event.name, attributes(event)) for event in traced.named("invoke_agent a").events]
    assert events == [
        ("onrecord.outcome", {
            "onrecord.outcome.kind": "step", "onrecord.outcome.status": "skipped", "onrecord.outcome.code": "not-due",
        }),
        ("onrecord.note", {"onrecord.by": "clerk"}),
    ]  # fmt: skip


async def test_the_limits_of_sampling_are_told_and_nothing_else_of_the_settings(traced: Traced) -> None:
    """Numbers that the conventions name; words that stop a reply are words."""
    settings = Settings(temperature=0.5, max_tokens=9, seed=1, stop=("secret",), extra={"user": "secret"})

    async def limited(turn: Any, request: Request) -> Request:
        return replace(request, settings=settings)

    await turn(Agent(ScriptedModel("x"), features=[traced.feature, Named("limited", Hooks(on_request=limited))]))
    told = attributes(traced.named("chat script"))
    assert {name: told.get(f"gen_ai.request.{name}") for name in ("temperature", "max_tokens", "seed", "top_p")} == {
        "temperature": 0.5, "max_tokens": 9, "seed": 1, "top_p": None
    }  # fmt: skip
    assert "secret" not in str(told)


async def test_tenants_that_name_sessions_and_messages_alike_do_not_mix(traced: Traced) -> None:
    """Their turns have one id; each span has its own calls."""
    inside = asyncio.Barrier(2)

    async def wait(*_: Any) -> str:
        await inside.wait()
        return "x"

    async def one(tenant: str) -> None:
        agent = Agent(ScriptedModel(call("wait"), "x"), name=tenant, tools=[tool("wait", wait)], features=[feature])
        await turn(agent, Said("hi", key="1"), session=SessionKey("ana", tenant=tenant))

    feature = traced.feature
    await asyncio.gather(one("a"), one("b"))
    assert traced.tree() == sorted(
        (name, above)
        for tenant in "ab"
        for name, above in [
            ("chat script", f"invoke_agent {tenant}"), ("chat script", f"invoke_agent {tenant}"),
            ("execute_tool wait", f"invoke_agent {tenant}"), (f"invoke_agent {tenant}", ""),
        ]
    )  # fmt: skip


async def test_many_turns_at_once_and_after_each_other_keep_apart(traced: Traced) -> None:
    """Every one has its own trace, and what ended is not followed any more."""
    agent = Agent("offline", name="a", features=[traced.feature])
    await asyncio.gather(*(turn(agent, f"hi {n}", session=f"s{n}") for n in range(20)))
    for n in range(3):
        await turn(agent, f"hi {n}", session=f"t{n}")
    tops = [span for span in traced.spans if span.name == "invoke_agent a"]
    assert len({span.context.trace_id for span in tops if span.context}) == len(tops) == 23
    assert list(all_followed()) == []


async def test_what_a_tool_traces_itself_hangs_below_its_call(traced: Traced) -> None:
    """And the turn below whatever the application traces around it; afterwards all is as before."""
    tracer = trace.get_tracer("app", tracer_provider=traced.provider)

    async def look(*_: Any) -> str:
        with tracer.start_as_current_span("query"):
            return "x"

    agent = Agent(ScriptedModel(call("look"), "x"), name="a", tools=[tool("look", look)], features=[traced.feature])
    with tracer.start_as_current_span("GET /") as outside:
        await turn(agent)
        assert trace.get_current_span() is outside
    assert ("query", "execute_tool look") in traced.tree()
    assert ("invoke_agent a", "GET /") in traced.tree()


async def test_nothing_that_was_said_done_or_named_by_the_application_is_in_a_span() -> None:
    """Messages, arguments, results, reasons, ids, keys, instructions and words of errors."""
    traced, bird = Traced(ids=None), "canary-7f3a91"

    @before_tool
    async def careful(_: Any, held: Any) -> Any:
        return Deny(bird) if held.name == "denied" else Ask(bird) if held.name == "asked" else Deny(bird)

    def broken(*_: Any) -> None:
        raise ValueError(bird)

    names = ("denied", "broken", "asked")
    model = ScriptedModel(
        [bird, call("denied", text=bird), call(bird, text=bird)], [call("broken", text=bird), call("asked", text=bird)],
        raises("rate"),
    )  # fmt: skip
    agent = Agent(
        model, name="a", instructions=bird, tools=[tool(name, broken) for name in names],
        features=[traced.feature, careful],
    )  # fmt: skip
    paused = await turn(agent, Said(bird, key=bird), session=SessionKey(bird, tenant=bird))
    assert paused.status == "paused"
    with pytest.raises(ModelError):
        await answered(agent, paused, approved=True, by=bird, note=bird)
    assert len(traced.spans) > 4
    assert bird not in "".join(span.to_json() for span in traced.spans)


def test_pseudonyms_are_the_same_under_one_key_and_no_other() -> None:
    """Without a key each process has its own."""
    one, same, other = Pseudonyms(b"k" * 16), Pseudonyms(b"k" * 16), Pseudonyms()
    assert one("ana") == same("ana") != other("ana")
    assert len(one("ana")) == 16
    assert "k" * 4 not in repr(one)
    with pytest.raises(ConfigurationError, match="3 bytes"):
        Pseudonyms(b"abc")


def test_without_the_package_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the feature is made, not when the first turn runs."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingDependency) as caught:
        Otel()
    assert caught.value.hint == 'pip install "onrecord[otel]"'
