"""A summary is paid once: it is kept with the session for as long as what it covers is what it was made of."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.inputs import Answered
from onrecord.conversation.messages import Unit
from onrecord.conversation.transcript import messages_from
from onrecord.errors import ModelError
from onrecord.models.request import Request
from onrecord.prompt.window import sizes as sizes_module
from onrecord.prompt.window.evicted import Compacted, Evicted, How
from onrecord.prompt.window.summarising import HEADING
from onrecord.record.entry import Entry
from onrecord.record.jsonl import EntryCodec
from onrecord.session import pack, refold, unpack
from onrecord.session.codec import dumps_session, slot_value
from onrecord.session.history import edit_result, import_messages, remove_message
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.testing import FakeEffects, ScriptedModel, call, raises
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.result import TurnResult
from onrecord.turn.turn import Turn
from tests.prompt.windows import Record, agent_with, dialogue, looked, shows, spans
from tests.turn.acting import Named, bodies, read, tool, turn
from tests.turn.pausing.asking import approve, open_question

pytestmark = pytest.mark.unit

SUMMED = f"{HEADING}\nThey met."
ANSWER = "x" * 36


def session_of(result: TurnResult[Any]) -> Session:
    """The session that a turn left."""
    assert result.session is not None
    return result.session


def knows(session: Session) -> Compacted:
    """What the window of a session knows."""
    return slot_value(session.slots["compaction"], Compacted)


async def talked(agent: Agent[Any, str], turns: int, session: Session | str = "s") -> list[TurnResult[Any]]:
    """Turns of one session, of twenty tokens each."""
    results: list[TurnResult[Any]] = []
    for _ in range(turns):
        results.append(await turn(agent, ANSWER, session=session))
        session = session_of(results[-1])
    return results


def talker(turns: int, *consult: Any, **given: Any) -> tuple[ScriptedModel, Agent[Any, str]]:
    """An agent for so many turns, which keeps 80 tokens of its past: four of these turns are too much."""
    model = ScriptedModel(*[ANSWER] * turns, consult=consult)
    return model, agent_with(model, **given)


# ---- paid once ----------------------------------------------------------------------------------------------------


async def test_the_next_turn_pays_nothing_while_it_fits() -> None:
    """The summary stands, what was said since follows; only when that outgrows the room, another is made."""
    model, agent = talker(8, "They met.", "They met and talked.")
    results = await talked(agent, 8)
    assert [r.llm_calls for r in results] == [1, 1, 1, 1, 2, 1, 2, 1]
    shown = [spans(r) for r in model.requests if r.purpose == "speak"]
    assert shown[3:] == [
        [(0, 7)],
        [SUMMED, (4, 9)],
        [SUMMED, (4, 11)],
        [f"{HEADING}\nThey met and talked.", (8, 13)],
        [f"{HEADING}\nThey met and talked.", (8, 15)],
    ]


async def test_a_later_summary_is_made_of_the_earlier_one() -> None:
    """And of what has left since: nothing is read twice."""
    model, agent = talker(7, "They met.", "They met and talked.")
    await talked(agent, 7)
    asked = [r for r in model.requests if r.purpose == "consult"][1]
    lines = read(asked)["messages"][0]["content"].split("\n")
    assert lines[0] == "[summary]: They met."
    assert len(lines) == 5


async def test_it_goes_through_stores() -> None:
    """Packed, or committed and loaded, the session pays nothing either."""
    _, agent = talker(7, "They met.")
    store = MemoryStore(bodies=(Evicted,))
    session: Session | str = "s"
    for _ in range(5):
        session = await store.commit((await turn(agent, ANSWER, session=session)).change())
    loaded = await store.load("s")
    assert loaded is not None
    assert knows(loaded).summary is not None
    assert [(await turn(agent, session=held)).llm_calls for held in (loaded, unpack(pack(loaded)))] == [1, 1]


async def test_the_record_folds_to_it() -> None:
    """What a window knows is a fold like any other."""
    _, agent = talker(7, "They met.", "They met and talked.")
    results = await talked(agent, 7)
    session = session_of(results[-1])
    entries = [entry for result in results for entry in result.entries]
    told = refold(session.key, entries, agent.plan.folds, digest_key=session.digest_key)
    assert dumps_session(told) == dumps_session(session)
    codec = agent.plan.codec
    assert list(codec.read(codec.lines(entries))) == entries


async def test_a_session_that_was_just_loaded_measures_what_is_shown() -> None:
    """What the summary covers is not walked again."""
    _, agent = talker(6, "They met.")
    session = unpack(pack(session_of((await talked(agent, 5))[-1])))
    await turn(agent, session=session)
    held = session.conversation.units.beside["sizes", 5000]
    assert isinstance(held, sizes_module.Sizes)
    assert held.start == 4


async def test_a_request_measures_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """One turn's units, whatever the age of the session."""
    counts: list[int] = []
    weigh = sizes_module._weight

    def counting(unit: Unit) -> tuple[int, int]:
        counts.append(1)
        return weigh(unit)

    monkeypatch.setattr(sizes_module, "_weight", counting)
    _, agent = talker(60, *["They met."] * 30)
    seen: list[int] = []
    session: Session | str = "s"
    for _ in range(30):
        session = session_of(await turn(agent, ANSWER, session=session))
        seen.append(len(counts))
    assert {later - earlier for earlier, later in pairwise(seen[1:])} == {2}


async def test_a_long_history_is_measured_in_slices() -> None:
    """Other turns run in between."""
    ran: list[int] = []

    async def others() -> None:
        for n in range(4):
            ran.append(n)
            await asyncio.sleep(0)

    async def looking(turn: Turn, request: Request) -> Request:
        ran.append(-1)
        return request

    later = Named("later", Hooks(on_request=looking, order={"request": SLOTS["request"]["MEMORY"]}))
    history = Conversation.of(messages_from(dialogue(2600, 4)))
    async with asyncio.TaskGroup() as group:
        group.create_task(others())
        await turn(agent_with(ScriptedModel("Hello."), 10_000, features=[later]), history=history)
    assert ran == [0, 1, 2, 3, -1]


# ---- history of the caller ----------------------------------------------------------------------------------------


async def test_history_of_the_caller_pays_once_too() -> None:
    """It is told by its messages: a plain list, made anew for every turn, that begins as the last one did."""
    model, agent = talker(3, "They met.")
    first = await turn(agent, session="s", history=dialogue(8))
    second = await turn(agent, session=session_of(first), history=dialogue(10))
    other = await turn(agent, session=session_of(second), history=dialogue(5))
    assert [r.llm_calls for r in (first, second, other)] == [2, 1, 1]
    assert [spans(r) for r in model.requests if r.purpose == "speak"] == [
        [SUMMED, (4, 9)], [SUMMED, (4, 11)], [SUMMED, (4, 6)],
    ]  # fmt: skip


async def test_another_history_is_summed_up_for_itself() -> None:
    """A summary of one conversation is never shown in another."""
    model, agent = talker(2, "They met.", "They parted.")
    first = await turn(agent, session="s", history=dialogue(8))
    changed = [{**record, "content": record["content"] + "!"} for record in dialogue(8)]
    await turn(agent, session=session_of(first), history=changed)
    assert spans(model.requests[-1]) == [f"{HEADING}\nThey parted.", (4, 9)]


async def test_without_a_session_of_its_own_every_turn_pays() -> None:
    """There is nowhere to keep it."""
    _, agent = talker(2, "They met.", "They met.")
    assert [(await turn(agent, session="s", history=dialogue(8))).llm_calls for _ in range(2)] == [2, 2]


# ---- when it is made of something else ----------------------------------------------------------------------------


async def compacted(*more: Any, **given: Any) -> tuple[ScriptedModel, Agent[Any, str], Session]:
    """A session whose first message and round with a call are summed up."""
    model = ScriptedModel([call("look")], *[ANSWER] * 5, consult=["They met.", *more])
    agent = agent_with(model, tools=[tool("look")], **given)
    session = session_of((await talked(agent, 5))[-1])
    assert knows(session).summary is not None
    return model, agent, session


async def test_a_changed_result_makes_another() -> None:
    """And what was changed is not told any longer, also before the next turn."""
    model, agent, session = await compacted("They met again.")
    model.add(ANSWER)
    message = session.conversation.messages[1]
    asked = session.conversation.units[1]
    call_id = asked.calls[0].id  # type: ignore[union-attr]  # the second unit is the round that looked
    edited = edit_result(session, message.id, call_id, [Text("y" * 90)], by="t", at=FakeEffects().now(),
                         folds=agent.plan.folds).session  # fmt: skip
    assert knows(edited) == Compacted()
    result = await turn(agent, ANSWER, session=edited)
    assert result.llm_calls == 2


async def test_a_removed_message_is_forgotten() -> None:
    """It does not live on in a summary."""
    _, agent, session = await compacted()
    removed = remove_message(session, session.conversation.messages[0].id, by="t", at=FakeEffects().now(),
                             folds=agent.plan.folds).session  # fmt: skip
    assert knows(removed) == Compacted()


async def test_what_is_imported_behind_it_is_no_reason() -> None:
    """The summary stays true of what it covers."""
    _, agent, session = await compacted()
    more = messages_from(dialogue(2), "more")
    after = import_messages(session, more, by="t", at=FakeEffects().now(), folds=agent.plan.folds).session
    assert knows(after) == knows(session)


async def test_a_message_removed_by_an_agent_without_the_feature_makes_another() -> None:
    """Nobody told the window; the digest does not fit any longer."""
    model, agent, session = await compacted("They met again.")
    model.add(ANSWER, ANSWER)
    removed = remove_message(session, session.conversation.messages[0].id, by="t", at=FakeEffects().now()).session
    result = await turn(agent, ANSWER, session=removed)
    assert (result.llm_calls, spans(model.requests[-1])[0]) == (2, f"{HEADING}\nThey met again.")


# ---- turns that do not end well -----------------------------------------------------------------------------------


async def test_a_turn_that_paused_asks_for_no_other() -> None:
    """It goes on under the same summary."""
    model = ScriptedModel([call("look")], "Done.", consult=["They met."])
    agent = agent_with(model, tools=[tool("look")], features=[approve("look")])
    paused = await turn(agent, session="s", history=dialogue(8))
    answer = Answered(open_question(paused).key, approved=True)
    history = [*dialogue(8), {"role": "user", "content": "hi"}]
    done = await turn(agent, answer, session=unpack(pack(session_of(paused))), history=history)
    assert (done.text, model.calls) == ("Done.", ["consult", "speak", "speak"])
    assert [spans(r) for r in model.requests[1:]] == [[SUMMED, (4, 9)], [SUMMED, (4, 10)]]


async def test_a_failed_summary_is_not_tried_again_after_a_pause() -> None:
    """One call a turn."""
    model = ScriptedModel([call("look")], "Done.", consult=[""])
    agent = agent_with(model, tools=[tool("look")], features=[approve("look")])
    paused = await turn(agent, session="s", history=dialogue(8))
    answer = Answered(open_question(paused).key, approved=True)
    done = await turn(agent, answer, session=session_of(paused), history=dialogue(8))
    assert (done.text, model.calls) == ("Done.", ["consult", "speak", "speak"])


async def test_the_next_turn_tries_again_what_failed() -> None:
    """A provider that was busy is not asked for ever in vain."""
    model, agent = talker(6, "", "They met.")
    assert [r.llm_calls for r in await talked(agent, 6)] == [1, 1, 1, 1, 2, 2]
    assert spans(model.requests[-1])[0] == SUMMED


async def test_the_message_of_a_resumed_turn_stays_in_sight() -> None:
    """Other turns ran since, and would have pushed it out of the window."""
    model = ScriptedModel([call("look")], *[ANSWER] * 5, "Done.", consult=["They met.", "They met."])
    agent = agent_with(model, tools=[tool("look")], features=[approve("look")])
    paused = await turn(agent, "May I?", session="s")
    results = await talked(agent, 5, session_of(paused))
    answer = Answered(open_question(paused).key, approved=True)
    done = await turn(agent, answer, session=session_of(results[-1]))
    assert done.text == "Done."
    assert shows(model.requests[-1])[1] == ("user", "May I?")


async def test_a_summary_of_a_turn_that_failed_is_kept() -> None:
    """Its words were shown, its model broke off; the summary was paid, and tells of earlier turns only."""
    model = ScriptedModel(*[ANSWER] * 4, ["Well, ", raises("network")], ANSWER, consult=["They met."])
    agent = agent_with(model)
    before = session_of((await talked(agent, 4))[-1])
    stream = agent.turn_stream(ANSWER, session=before, effects=FakeEffects())
    with pytest.raises(ModelError) as failed:
        _ = [text async for text in stream.text]
    result = failed.value.result
    assert result is not None
    assert knows(session_of(result)).summary is not None
    assert (await turn(agent, session=session_of(result))).llm_calls == 1


# ---- told once ----------------------------------------------------------------------------------------------------


async def test_a_shortening_is_told_once() -> None:
    """What is shown shorter since an earlier turn is not told again; what joins it is, and so is the next measure."""
    agent = agent_with(ScriptedModel(*["ok"] * 5), 1000, max_tool_result_chars=1000)
    history, small = list[Record](), dialogue(4, 4)
    session: Session | str = "s"
    told: list[list[tuple[How, int]]] = []
    wide = ("y" + " " * 9) * 230
    for more in (looked("c1", "z" * 4000), dialogue(2, 4), looked("c2", "z" * 4000), looked("c3", wide), small):
        history = [*history, *more, *small]
        result = await turn(agent, session=session, history=history)
        session = session_of(result)
        told.append([(e.how, len(e.calls)) for e in bodies(result, Evicted)])
    assert told == [[("cut", 1)], [], [("cut", 1)], [("collapsed", 3)], []]


# ---- privacy ------------------------------------------------------------------------------------------------------


async def test_what_is_erased_is_in_no_summary() -> None:
    """Neither in the reply that made it, nor in the requests that asked for it and showed it, nor in what is kept."""
    secret = "canary-7Q"
    _, agent = talker(5, f"They met {secret}.")
    store = MemoryStore(bodies=(Evicted,))
    session: Session = await store.commit((await turn(agent, f"{secret}{ANSWER}", session="s")).change())
    for _ in range(4):
        session = await store.commit((await turn(agent, ANSWER, session=session)).change())
    assert secret in str(knows(session))
    await store.erase(session.key, messages=[session.conversation.messages[0].id], why="asked")
    loaded = await store.load(session.key)
    assert loaded is not None
    entries: list[Entry] = [entry async for entry in store.entries(session.key)]
    written = b"".join(EntryCodec((Evicted,)).lines(entries)) + dumps_session(loaded)
    assert secret.encode() not in written
    assert b"They met" not in written


async def test_what_a_paused_turn_asked_silently_is_erased_with_what_it_read() -> None:
    """A summary is kept with the pause, until the turn it tells of is erased."""
    secret = "canary-7Q"
    model = ScriptedModel(*[ANSWER] * 4, [call("look")], consult=[f"They met {secret}."])
    agent = agent_with(model, tools=[tool("look")], features=[approve("look")])
    store = MemoryStore(bodies=(Evicted,))
    session: Session | str = "s"
    for words in (secret + ANSWER, *[ANSWER] * 4):
        session = await store.commit((await turn(agent, words, session=session)).change())
    assert isinstance(session, Session)
    await store.erase(session.key, messages=[session.conversation.messages[0].id], why="asked")
    loaded = await store.load(session.key)
    assert loaded is not None
    entries: list[Entry] = [entry async for entry in store.entries(session.key)]
    assert secret.encode() not in b"".join(EntryCodec((Evicted,)).lines(entries)) + dumps_session(loaded)
