"""What a resumed take starts from, what is refused, and what becomes of it when it does not end well."""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

import pytest
from msgspec import Struct

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, AskField, Said
from onrecord.errors import AnswerRefused, MessageDenied, ModelError, UsageError
from onrecord.governance.rules import on_input, on_output
from onrecord.jsonio import Json
from onrecord.record.entry import Entry
from onrecord.record.kinds import TurnResumed
from onrecord.testing import FakeEffects, ScriptedModel, call, raises
from onrecord.tools.tool import ToolContext
from onrecord.turn.moments import Allow, Answer, Deny, Hooks, Revise
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, Result, bodies, kinds, texts, tool, turn
from tests.turn.pausing.asking import answered, approve, asks, checked, open_question, statuses, waiting

pytestmark = pytest.mark.unit

AGE = AskField("age", schema={"type": "integer"})


def paying(model: ScriptedModel, *features: Any, **given: Any) -> Agent[Any, str]:
    """An agent that asks before it pays; its tool returns the key of the effect."""

    def pay(args: Mapping[str, Json], ctx: ToolContext[Any]) -> str:
        return ctx.key

    return Agent(model, tools=[tool("pay", pay)], features=[approve("pay"), *features], **given)


async def test_counters_go_on_after_a_pause() -> None:
    """Places, rounds, questions and new ids of a turn never repeat, however often it pauses."""
    ids: list[str] = []

    async def naming(turn: Turn) -> None:
        ids.append(turn.new_id("x"))

    async def at_reply(turn: Turn, held: Any) -> Any:
        await naming(turn)
        return held

    model = ScriptedModel([call("pay", n=1)], [call("pay", n=2)], [call("pay", n=3)], "Done.")
    agent = paying(model, Named("naming", Hooks(on_reply=at_reply)))
    results = [await turn(agent)]
    while results[-1].status == "paused":
        results.append(await answered(agent, results[-1], approved=True))
    entries = checked(agent, *results)
    assert len(results) == 4
    assert [r.question.key.rsplit("/", 1)[1] for r in results if r.question] == ["q0", "q1", "q2"]
    assert [i.rsplit("/", 1)[1] for i in ids] == ["x0", "x1", "x2", "x3"]
    assert [e.take for e in entries] == sorted(e.take for e in entries)
    assert [e.n for e in entries] == list(range(len(entries)))


async def test_an_effect_keeps_its_key_over_a_pause() -> None:
    """The key names the turn and what is done: an equal call before a pause is counted, so keys stay apart."""
    model = ScriptedModel([call("pay", n=1)], [call("pay", n=1), call("pay", n=2)], "Done.")
    agent = paying(model)
    first = await turn(agent)
    second = await answered(agent, first, approved=True)
    done = await answered(agent, second, approved=True)
    keys = texts(model.requests[2])[:2]
    assert keys[1] == f"{keys[0]}/1"
    checked(agent, first, second, done)


class Mood(Struct, frozen=True):
    """An option of a feature."""

    name: str


async def test_context_and_options_are_those_of_the_answer() -> None:
    """They are given with every input; the paused turn's own are not kept."""
    seen: list[object] = []

    async def looks(turn: Turn, request: Any) -> Any:
        seen.append((turn.context, turn.option(Mood)))
        return request

    model = ScriptedModel([call("pay")], "Done.")
    agent = paying(model, Named("looks", Hooks(on_request=looks, options=(Mood,))))
    paused = await turn(agent, context="first", options=[Mood("calm")])
    await answered(agent, paused, approved=True, context="second", options=[Mood("glad")])
    assert seen == [("first", Mood("calm")), ("second", Mood("glad"))]


async def test_the_turn_keeps_its_input_its_first_now_and_its_answer() -> None:
    """`turn.input` is the original; `turn.answer` is there for the whole take; the clock is read again."""
    seen: list[object] = []

    async def looks(turn: Turn, request: Any) -> Any:
        answer = turn.answer and turn.answer.approved
        seen.append((turn.input, answer, turn.first_now.hour, turn.now.hour))
        return request

    model = ScriptedModel([call("pay")], "Done.")
    agent = paying(model, Named("looks", Hooks(on_request=looks)))
    paused = await turn(agent, "pay it")
    later = FakeEffects()
    later.advance(hours=3)
    await answered(agent, paused, approved=True, effects=later)
    assert seen == [(Said("pay it"), None, 12, 12), (Said("pay it"), True, 12, 15)]


async def test_a_turn_that_does_not_speak_aloud_stays_so() -> None:
    """`Said.speaks` is the original message's, before and after the question."""
    agent = paying(ScriptedModel([call("pay")], "Done."))
    paused = await turn(agent, Said("pay it", speaks=False))
    done = await answered(agent, paused, approved=True)
    assert [m.speaks for m in done.messages] == [False]


async def test_an_input_rule_may_rewrite_an_answer_before_it_is_filed() -> None:
    """Neither the record nor the handler sees what the rule took out."""

    @on_input
    async def hides(turn: Turn, given: Any) -> Any:
        hidden = isinstance(given, Answered)
        return Allow(Answered(given.key, value="[card]"), "a card number") if hidden else Allow()

    model = ScriptedModel([call("order")], "Done.")
    agent = Agent(model, tools=[tool("order", asks("Which card?"))], features=[hides])
    paused = await turn(agent)
    done = await answered(agent, paused, value="4111-canary")
    assert texts(model.requests[1]) == ["[card]"]
    assert "4111-canary" not in repr((done.entries, done.session))
    checked(agent, paused, done)


@pytest.mark.parametrize(
    ("made", "fields", "code"), [("sure", (), "decision-required"), ({"age": "[x]"}, (AGE,), "answer-invalid")]
)
async def test_what_an_input_rule_makes_of_an_answer_must_still_fit_the_question(
    made: Any, fields: tuple[AskField, ...], code: str
) -> None:
    """Neither a decision out of words nor another type: nothing is filed, and the question stays open."""

    @on_input
    async def forges(turn: Turn, given: Any) -> Any:
        return Allow(Answered(given.key, value=made), "forged") if isinstance(given, Answered) else Allow()

    if fields:
        pays = tool("pay", asks("How old?", fields=fields))
        agent: Agent[Any, Any] = Agent(ScriptedModel([call("pay")], "x"), tools=[pays], features=[forges])
    else:
        agent = paying(ScriptedModel([call("pay")], "x"), forges)
    paused = await turn(agent)
    with pytest.raises(UsageError) as told:
        await answered(agent, paused, **({"value": {"age": 4}} if fields else {"approved": True}))
    assert told.value.code == code
    done = await answered(agent.with_(features=[] if fields else [approve("pay")]), paused, approved=False)
    assert done.text == "x"


async def failed(work: Any, error: type[Exception]) -> Result:
    """The result that an error carries."""
    with pytest.raises(error) as told:
        await work
    result: Result | None = getattr(told.value, "result", None)
    assert result is not None
    return result


async def test_a_denied_answer_closes_the_question() -> None:
    """Only that it came is filed; the paused call never runs, and the same answer is stale from then on."""

    @on_input
    async def strict(turn: Turn, given: Any) -> Any:
        return Deny("not you") if isinstance(given, Answered) else Allow()

    agent = paying(ScriptedModel([call("pay")]), strict)
    paused = await turn(agent)
    refused = await failed(answered(agent, paused, approved=True, note="canary-9"), MessageDenied)
    assert (refused.status, kinds(refused)) == (
        "refused", ["verdict", "turn.resumed", "tool.returned", "turn.failed"],
    )  # fmt: skip
    assert bodies(refused, TurnResumed)[0].answer == Answered(open_question(paused).key)
    assert "canary-9" not in repr(refused.entries)
    assert refused.session is not None
    assert refused.session.question is None
    checked(agent, paused, refused)


class Counting:
    """A fold that counts results, and does not read unfinished takes."""

    name, version, state, unfinished = "counting", 1, int, False
    scope: Literal["session", "turn"] = "session"
    kinds = frozenset({"tool.returned"})

    def start(self) -> int:
        return 0

    def apply(self, state: int, entry: Entry, /) -> int:
        return state + 1


async def test_a_resumed_take_that_fails_closes_the_question_and_keeps_what_the_pause_committed() -> None:
    """The record tells what ran; folds of features stand where the pause left them."""

    @on_output
    async def refuses(turn: Turn, answer: Answer) -> Deny:
        return Deny("no")

    model = ScriptedModel([call("look"), call("pay")], "Done.")
    counting = Named("counts", Hooks(folds=(Counting(),)))
    agent = paying(model, refuses, counting).with_(tools=[tool("look"), tool("pay")])
    paused = await turn(agent)
    assert waiting(paused).slots["counting"].value == 1
    refused = await failed(answered(agent, paused, approved=True), AnswerRefused)
    assert refused.session is not None
    assert refused.session.question is None
    assert refused.session.slots["counting"].value == 1
    assert statuses(refused.session) == ["returned", "returned"]
    checked(agent, paused, refused)


async def test_a_model_that_fails_leaves_the_question_open() -> None:
    """Nothing was shown, so nothing is stored: the same answer can be given once more, and the effect has one key."""
    keys: list[str] = []

    def pay(args: object, ctx: ToolContext[Any]) -> str:
        keys.append(ctx.key)
        return "paid"

    model = ScriptedModel([call("pay")], raises("overload"), "Done.")
    agent = paying(model).with_(tools=[tool("pay", pay)])
    paused = await turn(agent)
    with pytest.raises(ModelError) as told:
        await answered(agent, paused, approved=True)
    assert told.value.result is None
    done = await answered(agent, paused, approved=True)
    assert (done.text, len(keys), len(set(keys))) == ("Done.", 2, 1)
    checked(agent, paused, done)


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"features": ()}, "the rule 'approval'"),
        ({"tools": ()}, "the tool 'pay'"),
    ],
)
async def test_an_agent_without_the_asker_is_refused_by_name(changes: dict[str, Any], missing: str) -> None:
    """Nothing is filed and the question stays open; an agent that still has it goes on."""
    model = ScriptedModel([call("pay")], "Done.")
    agent = paying(model)
    paused = await turn(agent)
    with pytest.raises(UsageError, match=missing) as told:
        await answered(agent.with_(**changes), paused, approved=True)
    assert (told.value.code, bool(told.value.hint)) == ("asker-gone", True)
    assert (await answered(agent, paused, approved=True)).status == "answered"


async def test_a_changed_agent_is_recorded_when_it_goes_on() -> None:
    """Other tools, another name: the answer's entry holds the manifest of the agent that took it."""
    agent = paying(ScriptedModel([call("pay")], "Done."))
    paused = await turn(agent)
    done = await answered(agent.with_(name="other"), paused, approved=True)
    assert bodies(done, TurnResumed)[0].manifest["agent"] == "other"


async def test_a_resumed_turn_runs_over_what_it_began_with() -> None:
    """Another history is refused before anything is filed: the recorded rounds would answer something else."""
    agent = paying(ScriptedModel([call("pay")], "Done."))
    paused = await turn(agent)
    with pytest.raises(UsageError, match="own conversation") as told:
        await answered(agent, paused, approved=True, history=[{"role": "user", "content": "x"}])
    assert told.value.code == "history-changed"


async def test_a_turn_over_a_history_of_the_caller_may_pause() -> None:
    """The session's own conversation is untouched by both takes, live and when the record is folded."""
    agent = paying(ScriptedModel("Hi.", [call("pay")], "Done."))
    first = await turn(agent, "hello")
    history = [{"role": "user", "content": "earlier"}]
    paused = await turn(agent, "pay it", session=first.session, history=history)
    done = await answered(agent, paused, approved=True, history=history)
    assert (done.text, done.session and len(done.session.conversation.messages)) == ("Done.", 2)
    checked(agent, first, paused, done)


async def test_revisions_are_counted_over_a_pause() -> None:
    """A rule's budget is the turn's: what it used before the question is used."""

    @on_output
    async def picky(turn: Turn, answer: Answer) -> Revise | Allow[Answer]:
        return Revise("shorter") if "long" in answer.text else Allow()

    model = ScriptedModel("long", [call("pay")], "long again")
    agent = paying(model, picky)
    paused = await turn(agent)
    done = await answered(agent, paused, approved=True)
    assert (done.text, model.left) == ("long again", 0)
    checked(agent, paused, done)


class Tally:
    """A fold whose state ends with the turn."""

    name, version, state, unfinished = "tally", 1, list[str], False
    scope: Literal["session", "turn"] = "turn"
    kinds = frozenset({"tool.started"})

    def start(self) -> list[str]:
        return []

    def apply(self, state: list[str], entry: Entry, /) -> list[str]:
        return [*state, getattr(entry.body, "name", "")]


async def test_the_state_of_a_turn_lives_over_its_pause() -> None:
    """A fold of scope turn ends with the turn: not at a question, and not in a turn that runs meanwhile."""
    tally = Tally()
    seen: list[list[str]] = []

    async def looks(turn: Turn) -> None:
        seen.append(turn.state(tally))

    model = ScriptedModel([call("look"), call("pay")], [call("look")], "Hi.", "Done.", "New.")
    agent = Agent(
        model, tools=[tool("look"), tool("pay")],
        features=[approve("pay"), Named("tally", Hooks(folds=(tally,), on_settle=looks))],
    )  # fmt: skip
    paused = await turn(agent)
    held = await turn(agent, "hi", session=waiting(paused))
    assert held.session is not None
    done = await turn(agent, Answered(open_question(paused).key, approved=True), session=held.session)
    new = await turn(agent, "next", session=done.session)
    assert seen == [["look"], ["look", "pay"], []]
    assert new.session is not None
    assert new.session.slots == {}
    checked(agent, paused, held, done, new)


async def test_many_turns_pause_side_by_side() -> None:
    """Questions of different sessions have nothing to do with each other."""
    agent = paying(ScriptedModel(*[lambda _: [call("pay")]] * 20, *["Done."] * 20))
    paused = await asyncio.gather(*(turn(agent, "pay it", session=f"s{n}") for n in range(20)))
    assert len({open_question(p).key for p in paused}) == 20
    done = await asyncio.gather(*(answered(agent, p, approved=True) for p in paused))
    assert {d.status for d in done} == {"answered"}
