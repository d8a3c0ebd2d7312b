"""The moment ``reply``: once per round, between the model and its calls (architecture §6)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.inputs import Answered, Ask
from onrecord.conversation.messages import Round
from onrecord.errors import FeatureFailed, LimitReached, UsageError
from onrecord.models.chunks import NativeItem
from onrecord.record.kinds import ModelReplied, RoundSettled
from onrecord.testing import ScriptedModel, call, reply
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, calls_of, kinds, results, rounds_of, texts, tool, turn, verdicts

pytestmark = pytest.mark.unit


def on_reply(change: Any, name: str = "mine", slot: str = "RULES") -> Named:
    """A reply hook as a feature."""

    async def hook(turn: Turn, made: Round) -> Any:
        return change(turn, made)

    return Named(name, Hooks(on_reply=hook, order={"reply": SLOTS["reply"][slot]}))


def with_args(made: Round, **args: Any) -> Round:
    """The round with other arguments in its first call."""
    return replace(made, calls=(replace(made.calls[0], args=args), *made.calls[1:]))


async def test_a_hook_is_called_once_per_round_in_slot_order() -> None:
    """Rounds that call and rounds that answer alike."""
    seen: list[tuple[str, int]] = []

    def look(name: str, slot: str) -> Named:
        def change(turn: Turn, made: Round) -> Round:
            seen.append((name, len(made.calls)))
            return made

        return on_reply(change, name, slot)

    model = ScriptedModel(call("lookup"), "done")
    features = [look("inputs", "INPUTS"), look("a", "RULES"), look("b", "RULES"), look("peel", "PEEL")]
    result = await turn(Agent(model, tools=[tool()], features=features))
    names = ["peel", "a", "b", "inputs"]
    assert seen == [(n, 1) for n in names] + [(n, 0) for n in names]
    assert bodies(result, RoundSettled) == []


async def test_a_changed_round_is_settled_as_it_runs() -> None:
    """The raw reply stays on the record; what the model wrote stays in the call."""
    seen: list[Any] = []
    held = tool("lookup", lambda args, _: seen.append(args))
    feature = on_reply(lambda _, r: with_args(r, city="Lund") if r.calls else r)
    result = await turn(Agent(ScriptedModel(call("lookup", city="?"), "done"), tools=[held], features=[feature]))
    assert seen == [{"city": "Lund"}]
    (made,) = calls_of(result)
    assert (made.args, made.raw_args) == ({"city": "Lund"}, '{"city":"?"}')
    assert bodies(result, ModelReplied)[0].round.calls[0].args == {"city": "?"}
    assert kinds(result).index("round.settled") == kinds(result).index("model.replied") + 1


async def test_a_changed_round_is_not_replayed_natively_unless_only_arguments_were_peeled() -> None:
    """A vendor's own items would say what the round does not say any more."""
    native = NativeItem(raw=Raw(b'{"native":1}'))
    peel = on_reply(lambda _, r: with_args(r) if r.calls else r)
    reword = on_reply(lambda _, r: replace(r, content=(Text("other"),)))
    model = ScriptedModel(reply(native, call("lookup", why="x")), "done")
    result = await turn(Agent(model, tools=[tool()], features=[peel]))
    assert [r.continuation is None for r in rounds_of(result)] == [False, True]
    result = await turn(Agent(ScriptedModel(reply(native, "raw")), features=[reword]))
    assert [r.continuation for r in rounds_of(result)] == [None]


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (lambda *_: 1 / 0, "ZeroDivisionError"),
        (lambda *_: None, "it returned NoneType, not this round or an Ask"),
        (lambda _, r: replace(r, id="other"), "it returned another round, not this round or an Ask"),
    ],
)
async def test_a_hook_that_raises_or_breaks_its_contract_fails_the_turn_by_name(made: Any, problem: str) -> None:
    """No call of the round runs."""
    ran: list[int] = []
    held = tool("lookup", lambda *_: ran.append(1))
    with pytest.raises(FeatureFailed) as failed:
        await turn(Agent(ScriptedModel(call("lookup")), tools=[held], features=[on_reply(made)]))
    assert str(failed.value) == f"feature 'mine' failed at reply: {problem}"
    assert ran == []


async def test_a_hooks_own_turn_error_is_the_turns() -> None:
    """A budget says that its limit was reached."""

    def spent(turn: Turn, made: Round) -> Round:
        raise LimitReached("tokens")

    with pytest.raises(LimitReached):
        await turn(Agent(ScriptedModel("x"), features=[on_reply(spent)]))


# ---- a question about the whole batch --------------------------------------------------------------------------------


def asking(seen: list[Any], *, times: int = 1) -> Named:
    """Asks about each batch until it was answered ``times`` times; fills the answer in."""

    def change(turn: Turn, made: Round) -> Round | Ask:
        if not made.calls:
            return made
        seen.append(turn.resumed)
        if turn.resumed is None or len(seen) <= times:
            return Ask(f"Which city? ({len(seen)})")
        return with_args(made, city=turn.resumed.value)

    return on_reply(change, "asking")


async def test_a_batch_question_pauses_before_anything_is_dispatched() -> None:
    """Answered, the hook is called again with the answer, then the whole batch runs."""
    seen, ran = list[Any](), list[Any]()
    held = [tool("a", lambda args, _: ran.append(args)), tool("b", lambda args, _: ran.append(args))]
    model = ScriptedModel([call("a", city="?"), call("b", n=1)], "done")
    agent: Agent[Any, Any] = Agent(model, tools=held, features=[asking(seen)])
    paused = await turn(agent)
    assert (paused.status, ran, kinds(paused)[-1]) == ("paused", [], "turn.paused")
    assert paused.question is not None
    assert (paused.question.by, paused.question.call, paused.question.text) == ("asking", None, "Which city? (1)")
    assert verdicts(paused) == [("reply", "asking", "ask", "")]
    done = await turn(agent, Answered(paused.question.key, value="Lund"), session=paused.session)
    assert seen == [None, Answered(paused.question.key, value="Lund")]
    assert ran == [{"city": "Lund"}, {"n": 1}]
    assert (done.text, results(done)) == ("done", [("a", "returned"), ("b", "returned")])


async def test_an_answer_is_handed_to_its_asker_once() -> None:
    """A later round's question does not take an old answer."""
    seen: list[Any] = []

    def change(turn: Turn, made: Round) -> Round | Ask:
        if not made.calls:
            return made
        seen.append(turn.resumed and turn.resumed.value)
        return made if turn.resumed else Ask("again?")

    model = ScriptedModel(call("lookup"), call("lookup"), "done")
    agent: Agent[Any, Any] = Agent(model, tools=[tool()], features=[on_reply(change)])
    first = await turn(agent)
    assert first.question is not None
    second = await turn(agent, Answered(first.question.key, value=1), session=first.session)
    assert second.question is not None
    assert second.question.key != first.question.key
    done = await turn(agent, Answered(second.question.key, value=2), session=second.session)
    assert seen == [None, 1, None, 2]
    assert done.text == "done"


async def test_a_hook_may_ask_again_about_the_same_batch() -> None:
    """As often as it must; hooks before it are not called again."""
    seen, before = list[Any](), list[int]()

    def count(turn: Turn, made: Round) -> Round:
        before.append(len(made.calls))
        return made

    model = ScriptedModel(call("lookup"), "done")
    agent: Agent[Any, Any] = Agent(model, tools=[tool()], features=[on_reply(count, "first"), asking(seen, times=2)])
    one = await turn(agent)
    assert one.question is not None
    two = await turn(agent, Answered(one.question.key, value="x"), session=one.session)
    assert two.question is not None
    done = await turn(agent, Answered(two.question.key, value="y"), session=two.session)
    assert [s and s.value for s in seen] == [None, "x", "y"]
    assert before == [1, 0]
    assert done.text == "done"


async def test_a_resume_without_its_asker_is_refused() -> None:
    """The agent that goes on must still have the hook that waits."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(call("lookup")), tools=[tool()], features=[asking([])])
    paused = await turn(agent)
    assert paused.question is not None
    with pytest.raises(UsageError, match="the reply hook 'asking' that it waits for") as gone:
        await turn(agent.with_(features=[]), Answered(paused.question.key, value=1), session=paused.session)
    assert gone.value.code == "asker-gone"


async def test_a_hook_cannot_ask_while_another_question_is_open() -> None:
    """One question per session: a message meanwhile goes on without a second one."""
    model = ScriptedModel(call("lookup"), call("lookup"))
    agent: Agent[Any, Any] = Agent(model, tools=[tool()], features=[asking([])])
    paused = await turn(agent)
    with pytest.raises(FeatureFailed, match="it asks a person while another question is open"):
        await turn(agent, "meanwhile", session=paused.session)


async def test_texts_of_the_model_are_untouched_by_a_hook_that_changes_nothing() -> None:
    """An equal round is no change, even when it is another object."""
    same = on_reply(lambda _, r: replace(r))
    model = ScriptedModel(call("lookup"), "done")
    result = await turn(Agent(model, tools=[tool()], features=[same]))
    assert bodies(result, RoundSettled) == []
    assert texts(model.requests[1]) == ["lookup"]
