"""The moment ``input``: what comes in is admitted, rewritten or denied (architecture §6; loop spec §9.4)."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask, Happened, Input, Said, approved
from onrecord.errors import MessageDenied
from onrecord.governance.rules import before_tool, on_input
from onrecord.record.kinds import TurnInput, TurnOpened, VerdictFiled
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.moments import Allow, Deny, Hooks
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, kinds, read, told, tool, turn, verdicts

pytestmark = pytest.mark.unit


def ruling(verdict: Any, name: str = "rule", slot: int = 500) -> Named:
    """An input rule that always answers this, or raises it, or asks it."""

    async def on_input(turn: Turn, input: Input) -> Any:
        if isinstance(verdict, Exception):
            raise verdict
        return verdict(input) if callable(verdict) else verdict

    return Named(name, Hooks(on_input=on_input, order={"input": slot}))


async def test_f76_a_denied_message_raises_without_its_content() -> None:
    """The model is not called, nothing of it enters the conversation, and the next turn knows nothing (case F76)."""
    model = ScriptedModel("welcome")
    agent: Agent[Any, Any] = Agent(
        model, features=[ruling(lambda said: Deny("no secrets") if "ssn" in said.content else Allow())]
    )
    with pytest.raises(MessageDenied) as denied:
        await turn(agent, "my ssn is 31337")
    error = denied.value
    assert (error.moment, error.rule, error.reason, error.code) == ("input", "rule", "no secrets", "message-denied")
    assert "31337" not in str(error)
    assert model.requests == []
    result = error.result
    assert result is not None
    assert result.status == "refused"
    assert kinds(result) == ["turn.opened", "verdict", "turn.failed"]
    assert all("31337" not in repr(entry) for entry in result.entries)
    assert result.session is not None
    assert len(result.session.conversation.messages) == 0
    await turn(agent, "hello", session=result.session)
    assert read(model.requests[0])["messages"] == [{"role": "user", "content": "hello"}]


async def test_a_denied_message_is_known_when_it_comes_again() -> None:
    """Its key is learned although its text is not: a replay changes nothing."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(), features=[ruling(Deny("no"))])
    with pytest.raises(MessageDenied) as denied:
        await turn(agent, Said("x", key="m1"))
    assert denied.value.result is not None
    again = await turn(agent, Said("x", key="m1"), session=denied.value.result.session)
    assert (again.status, again.changed) == ("ignored", False)


async def test_f77_a_rewritten_message_is_what_everybody_reads() -> None:
    """The request, the record and the session hold the new text, and the turn before is untouched (case F77)."""
    scrub = ruling(lambda said: Allow(replace(said, content="ssn [x]"), "scrubbed") if "1" in said.content else Allow())
    model = ScriptedModel("a", "b")
    agent: Agent[Any, Any] = Agent(model, features=[scrub])
    first = await turn(agent, "hello")
    second = await turn(agent, "ssn 1", session=first.session)
    assert [m["content"] for m in read(model.requests[1])["messages"]] == ["hello", "a", "ssn [x]"]
    assert [b.input for b in bodies(second, TurnInput)] == [Said("ssn [x]")]
    assert told(second) == ["hello", "a", "ssn [x]", "b"]
    assert verdicts(second) == [("input", "rule", "allow", "scrubbed")]
    assert all("ssn 1" not in repr(entry) for entry in second.entries)


async def test_f80_there_is_no_pause_at_the_message_boundary() -> None:
    """An ``Ask`` from an input rule denies the message, and the reason says why (case F80)."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(), features=[ruling(Ask("really?"))])
    with pytest.raises(MessageDenied, match="there is no pause at the message boundary"):
        await turn(agent)


@pytest.mark.parametrize(
    ("verdict", "problem"),
    [
        (ValueError("secret"), "rule 'rule' failed: ValueError"),
        (None, "rule 'rule' failed: it returned NoneType, not Allow or Deny"),
        (Allow("only text", "why"), "rule 'rule' failed: it allowed a str in place of the input"),
    ],
)
async def test_a_rule_that_raises_or_breaks_its_contract_denies(verdict: Any, problem: str) -> None:
    """What cannot judge does not let through; its error is named and its words are not told."""
    with pytest.raises(MessageDenied) as denied:
        await turn(Agent(ScriptedModel(), features=[ruling(verdict)]))
    assert denied.value.reason == problem
    assert "secret" not in str(denied.value)


async def test_rules_walk_in_slot_order_then_list_order_and_stop_at_the_first_denial() -> None:
    """Each sees what the one before made of the input."""
    seen: list[tuple[str, str]] = []

    def adding(name: str) -> Any:
        def rule(said: Any) -> Allow[Any]:
            seen.append((name, said.content))
            return Allow(replace(said, content=said.content + name), "adds")

        return rule

    features = [
        ruling(adding("d"), "d", 500), ruling(adding("a"), "a", 100), ruling(adding("b"), "b", 100),
        ruling(Deny("enough"), "x", 500), ruling(adding("e"), "e", 500),
    ]  # fmt: skip
    with pytest.raises(MessageDenied):
        await turn(Agent(ScriptedModel(), features=features), "-")
    assert seen == [("a", "-"), ("b", "-a"), ("d", "-ab")]


async def test_a_why_alone_is_filed_and_a_plain_allow_is_not() -> None:
    """Verdicts are on the record where they change, deny, or say why."""
    result = await turn(
        Agent(ScriptedModel("x"), features=[ruling(Allow(), "plain"), ruling(Allow(why="checked"), "told")])
    )
    assert verdicts(result) == [("input", "told", "allow", "checked")]
    (filed,) = bodies(result, VerdictFiled)
    assert (bool(filed.before), filed.after) == (True, "")


async def test_a_verdict_holds_digests_and_no_content() -> None:
    """Equal values have equal digests within a session, and other ones in another session."""
    change = ruling(lambda said: Allow(replace(said, content="canary-after"), "scrubbed"))
    agent: Agent[Any, Any] = Agent(ScriptedModel("a", "b", "c"), features=[change])
    effects = FakeEffects()
    one = await turn(agent, "canary-before", effects=effects)
    two = await turn(agent, "canary-before", session=one.session, effects=effects)
    other = await turn(agent, "canary-before", effects=effects)
    (first,), (second,), (third,) = (bodies(r, VerdictFiled) for r in (one, two, other))
    assert "canary" not in repr(first)
    assert first.before != first.after
    assert (first.before, first.after) == (second.before, second.after)
    assert first.before != third.before


async def test_every_kind_of_input_meets_the_rules() -> None:
    """An event of the host is judged like a message; a denial of it raises too."""
    seen: list[str] = []

    def look(given: object) -> Allow[Any]:
        seen.append(type(given).__name__)
        return Allow()

    await turn(Agent(ScriptedModel("x"), features=[ruling(look)]), Happened("order.shipped", key="o1"))
    assert seen == ["Happened"]
    with pytest.raises(MessageDenied):
        await turn(Agent(ScriptedModel(), features=[ruling(Deny("no"))]), Happened("order.shipped", key="o1"))


async def test_an_answer_meets_the_rules_and_is_rewritten_for_who_asked() -> None:
    """Input rules see the answer to a question; what they make of it is what goes on."""

    def handler(args: object, ctx: Any) -> Any:
        return Ask("Which card?")

    scrub = ruling(lambda given: Allow(replace(given, value="[x]"), "scrubbed") if hasattr(given, "value") else Allow())
    model = ScriptedModel(call("ask"), "done")
    agent: Agent[Any, Any] = Agent(model, tools=[tool("ask", handler)], features=[scrub])
    paused = await turn(agent)
    assert paused.question is not None
    answer = replace(approved(paused.question, by="ana"), value="4111")
    await turn(agent, answer, session=paused.session)
    assert read(model.requests[1])["messages"][-1]["content"] == "[x]"


async def test_a_rule_is_a_feature_and_still_a_function() -> None:
    """The decorator returns a value that registers nothing by itself."""

    @on_input
    async def polite(turn: Turn, input: Input) -> Allow[Input]:
        return Allow()

    @before_tool
    async def never(turn: Turn, call: Any) -> Deny:
        return Deny("never")

    assert (polite.name, never.name) == ("polite", "never")
    assert await polite(None, Said("x")) == Allow()
    assert (await turn(Agent(ScriptedModel("hi")))).text == "hi"


async def test_the_opening_names_the_agent_and_the_input_without_its_text() -> None:
    """What is filed before any rule saw the message holds nothing that a rule might scrub."""
    result = await turn(Agent(ScriptedModel("x"), name="concierge"), Said("canary", key="m1"))
    (opened,) = bodies(result, TurnOpened)
    assert (opened.agent, opened.input_kind, opened.input_key) == ("concierge", "said", "said::m1")
    assert "canary" not in repr(opened)


@pytest.mark.parametrize(
    "odd", [Said(cast(str, 5)), Said("half \ud83d"), Said("hi", notice=cast(str, 5))], ids=["number", "half", "notice"]
)
async def test_an_input_that_cannot_be_recorded_is_not_allowed(odd: Said) -> None:
    """A rule may put another input in its place, but one that can be read again."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(), features=[ruling(Allow(odd, "odd"))])
    with pytest.raises(MessageDenied, match="it allowed a Said that cannot be recorded"):
        await turn(agent)


async def test_a_rule_may_silence_the_voice_of_a_turn() -> None:
    """What is said is marked as the input that was admitted wants it, not as the one that came."""
    mute = ruling(lambda said: Allow(replace(said, speaks=False), "at night"))
    result = await turn(Agent(ScriptedModel("x"), features=[mute]), "hi")
    assert [message.speaks for message in result.messages] == [False]
