"""A director is called again from the top: what was done is not done again, and nothing is filed twice."""

from datetime import UTC, datetime
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Happened, Woke
from onrecord.conversation.messages import Round
from onrecord.conversation.outgoing import Outcome, Wake
from onrecord.errors import UsageError
from onrecord.models.request import Piece, Reading, Shape
from onrecord.testing import ScriptedModel, call
from onrecord.turn.director import Acted, Brief, Query, Spoken, Stage
from onrecord.turn.turn import Turn
from tests.turn.acting import kinds, read, texts, tool, turn
from tests.turn.pausing.asking import Acting, answered, approve, asks, checked, open_question, statuses, waiting

pytestmark = pytest.mark.unit

LATER = datetime(2026, 9, 21, tzinfo=UTC)
WORD = Shape[str](name="word", schema={}, read=lambda held: Reading(text=held.text, value=held.text.upper()))


class Steps:
    """Every verb of the stage, in order, with what each gave back; ``order`` may ask."""

    def __init__(self, order: Any = None) -> None:
        self.order = tool("order", order) if order is not None else tool("order")
        self.gave: list[object] = []

    async def direct(self, turn: Turn, stage: Stage) -> None:
        gave = self.gave = []
        stage.outcome(Outcome(kind="flow", status="started"))
        mood = await stage.judge(Query(key="mood", pieces=(Piece(source="t", text="?"),), shape=WORD))
        gave.append(mood)
        await stage.say("One moment.", key="lead")
        stage.arm(Wake(key="w", at=LATER))
        stage.disarm("old")
        acted = await stage.act(self.order, {"n": 2}, key="order")
        gave.append(acted)
        if acted.asked is not None:
            return
        spoken = await stage.speak(Brief(key="main"))
        gave.append(spoken)
        if spoken.asked is not None:
            return
        stage.outcome(Outcome(kind="flow", status="started"))
        stage.outcome(Outcome(kind="flow", status="ended"))
        await stage.say("Bye.", key="end")


def stepping(steps: Steps, model: ScriptedModel, *asking: str) -> Agent[Any, str]:
    """An agent that is directed so, with a tool that its speaker may call."""
    return Agent(model, tools=[tool("pay")], features=[approve(*asking)], director=steps)


async def test_nothing_is_filed_twice_when_an_action_asked() -> None:
    """The verbs before the question return their record: no second judgement, line, timer or message."""
    model = ScriptedModel("All set.", judge=["fine"])
    steps = Steps(asks())
    agent = stepping(steps, model)
    paused = await turn(agent, Woke("w0"))
    assert open_question(paused).by == "order"
    assert [m.text for m in paused.messages] == ["One moment."]
    assert ([w.key for w in paused.wakes], list(paused.disarmed)) == (["w"], ["old"])
    done = await answered(agent, paused, value="XL")
    assert [m.text for m in done.messages] == ["All set.", "Bye."]
    assert (done.wakes, done.disarmed, model.calls) == ((), (), ["judge", "speak"])
    counted = kinds(paused) + kinds(done)
    assert counted.count("outcome") == 3
    assert (counted.count("wake.armed"), counted.count("wake.disarmed"), counted.count("said")) == (1, 1, 3)
    mood, acted, spoken = steps.gave
    assert mood == "FINE"
    assert isinstance(acted, Acted)
    assert (acted.value, acted.error, acted.call.args) == ("XL", None, {"n": 2})
    assert isinstance(spoken, Spoken)
    assert spoken.text == "All set."
    checked(agent, paused, done)


async def test_an_action_done_before_another_question_keeps_its_value() -> None:
    """`act` returns across a pause what its handler returned, and the handler is not called again."""
    ran: list[object] = []

    def order(args: object, ctx: object) -> object:
        ran.append(args)
        return {"id": 7}

    model = ScriptedModel([call("pay")], "All set.", judge=["fine"])
    steps = Steps(order)
    agent = stepping(steps, model, "pay")
    paused = await turn(agent, Happened("paid", key="e1"))
    assert open_question(paused).text == "Run pay?"
    assert statuses(paused.session) == ["asked"]
    done = await answered(agent, paused, approved=True)
    acted = steps.gave[1]
    assert isinstance(acted, Acted)
    assert (acted.value, ran) == ({"id": 7}, [{"n": 2}])
    assert [m.key.rsplit("/", 1)[1] for m in (*paused.messages, *done.messages)] == ["lead", "main", "end"]
    checked(agent, paused, done)


async def test_verbs_keep_their_keys_over_several_questions() -> None:
    """An action that asks and a speaker that asks: three takes, one turn, no id or key used twice."""
    model = ScriptedModel([call("pay")], "All set.", judge=["fine"])
    agent = stepping(Steps(asks()), model, "pay")
    first = await turn(agent, Woke("w0"))
    second = await answered(agent, first, value="XL")
    third = await answered(agent, second, approved=True)
    assert third.status == "answered"
    entries = checked(agent, first, second, third)
    assert {entry.turn for entry in entries} == {entries[0].turn}
    assert sorted({entry.take for entry in entries}) == [1, 2, 3]
    rounds = [b.round.id for b in (e.body for e in entries) if hasattr(b, "round") and isinstance(b.round, Round)]
    assert len({r.rsplit("/", 1)[1] for r in rounds}) == len(rounds)


async def test_what_an_action_denied_is_told_its_director() -> None:
    """A declined action is no error of the turn: the director reads why and goes on."""
    seen: list[str | None] = []

    async def act(turn: Turn, stage: Stage) -> None:
        acted = await stage.act(tool("pay"), {}, key="pay")
        if acted.asked is None:
            seen.append(acted.error)
            await stage.say("As you like.", key="end")

    agent = Agent(ScriptedModel(), features=[approve("pay")], director=Acting(act))
    paused = await turn(agent)
    done = await answered(agent, paused, approved=False, by="ana", note="no")
    assert (seen, done.text) == (["Declined by ana: no"], "As you like.")
    checked(agent, paused, done)


async def test_a_verb_whose_key_begins_like_the_pausing_one_is_not_its() -> None:
    """Only the rounds of the verb that paused wait; what another verb said is a message already."""

    async def act(turn: Turn, stage: Stage) -> None:
        await stage.say("First.", key="main/rest")
        await stage.speak(Brief(key="main"))

    agent = Agent(ScriptedModel([call("pay")], "Done."), tools=[tool("pay")], features=[approve("pay")],
                  director=Acting(act))  # fmt: skip
    paused = await turn(agent)
    pending = waiting(paused).pending
    assert pending is not None
    assert [r.id.rsplit("/", 2)[1:] for r in pending.rounds] == [["main", "r1"]]
    assert waiting(paused).conversation.messages[-1].id.endswith("/a1")
    checked(agent, paused, await answered(agent, paused, approved=True))


async def test_a_director_that_goes_on_after_a_question_is_told() -> None:
    """Once a person was asked, every verb is refused, and nothing is filed."""

    async def act(turn: Turn, stage: Stage) -> None:
        await stage.speak(Brief(key="main"))
        await stage.say("And then?", key="end")

    agent = Agent(ScriptedModel([call("pay")]), tools=[tool("pay")], features=[approve("pay")], director=Acting(act))
    with pytest.raises(UsageError, match="must return") as told:
        await turn(agent)
    assert told.value.code == "question-open"


async def test_an_event_is_filed_once() -> None:
    """The plain director notes what is no message; called again it does not."""
    model = ScriptedModel([call("pay")], "Done.")
    agent = Agent(model, tools=[tool("pay")], features=[approve("pay")])
    paused = await turn(agent, Happened("paid", key="e1"))
    done = await answered(agent, paused, approved=True)
    assert (kinds(paused) + kinds(done)).count("context.added") == 1
    assert [m["role"] for m in read(model.requests[1])["messages"]] == ["data", "assistant", "tool"]
    checked(agent, paused, done)


async def test_values_of_several_rounds_are_merged_over_a_pause() -> None:
    """A brief that merges what each round said gets the rounds from before the pause as well."""
    values: list[object] = []

    async def act(turn: Turn, stage: Stage) -> None:
        spoken = await stage.speak(Brief(key="main", shape=WORD, merge=lambda a, b: f"{a}+{b}"))
        values.append(spoken.value)

    model = ScriptedModel(["one", call("pay")], "two")
    agent = Agent(model, tools=[tool("pay")], features=[approve("pay")], director=Acting(act))
    paused = await turn(agent)
    await answered(agent, paused, approved=True)
    assert values == [None, "ONE+TWO"]


async def test_data_of_a_speaker_lands_once_when_it_is_done() -> None:
    """Patches from before a pause wait with it, and land together with the later ones, in call order."""

    def setter(name: str) -> Any:
        def run(args: object, ctx: Any) -> str:
            ctx.set({"last": name, name: 1})
            return name

        return run

    tools = [tool("look", setter("look")), tool("pay", setter("pay"))]
    model = ScriptedModel([call("look"), call("pay")], "Done.")
    agent = Agent(model, tools=tools, features=[approve("pay")])
    paused = await turn(agent)
    assert waiting(paused).data == {}
    done = await answered(agent, paused, approved=True)
    assert done.session is not None
    assert done.session.data == {"last": "pay", "look": 1, "pay": 1}
    assert (kinds(paused) + kinds(done)).count("data.patched") == 1
    assert texts(model.requests[1]) == ["look", "pay"]
    checked(agent, paused, done)


async def test_a_message_that_the_brief_carries_is_shown_once_before_and_after() -> None:
    """The turn pieces carry its text, so the unit stays left out when the turn goes on, and in silent calls too."""

    async def act(turn: Turn, stage: Stage) -> None:
        pieces = (Piece(source="t", text="He says: hi", place="turn"),)
        spoken = await stage.speak(Brief(key="main", pieces=pieces, carries_input=True))
        if spoken.asked is None:
            await stage.judge(Query(key="mood", pieces=pieces, shape=WORD, carries_input=True))

    model = ScriptedModel("Hello.", [call("pay")], "Done.", judge=["fine", "fine"])
    agent = Agent(model, tools=[tool("pay")], features=[approve("pay")], director=Acting(act))
    first = await turn(agent, "hi")
    paused = await turn(agent, "hi", session=first.session)
    await answered(agent, paused, approved=True)
    carried = [r.conversation.units[r.carries].id.rsplit("/", 1)[1] for r in model.requests if r.carries is not None]
    assert (model.calls, carried) == (["speak", "judge", "speak", "speak", "judge"], ["u"] * 5)
    assert len({r.carries for r in model.requests}) == 2
