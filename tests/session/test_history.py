"""History changes on the record: who changed what, and what the next request shows."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Image, Text
from onrecord.conversation.inputs import Answered, Interruption
from onrecord.conversation.messages import AssistantMessage, UserMessage
from onrecord.errors import RecordInvalid, UsageError
from onrecord.record.entry import Entry, kind_of
from onrecord.record.kinds import HistoryChanged
from onrecord.session import Folds, refold
from onrecord.session.history import edit_result, import_messages, interrupt_closed, remove_message, reset
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.testing import FakeEffects, ScriptedModel, call
from tests.session.folds import Listing, mounted
from tests.turn.acting import Result, read, tool, turn
from tests.turn.pausing.asking import approve, open_question

pytestmark = pytest.mark.unit

AT = FakeEffects().at
OLD = UserMessage(id="old1", content=(Text("from before"),))


async def talked(*answers: Any, **given: Any) -> tuple[Agent[Any, str], Result, Session]:
    """An agent and a session of one turn with a tool call."""
    agent = Agent(ScriptedModel([call("look")], "Eighty.", *answers), tools=[tool("look")], **given)
    result = await turn(agent, "price?", session="s")
    assert result.session is not None
    return agent, result, result.session


def agreed(change: Change, *before: Result, folds: Folds | None = None) -> list[Entry]:
    """The record with this change folds to the session that it made."""
    session = change.session
    entries = [*(e for r in before for e in r.entries), *change.entries]
    told = refold(session.key, entries, folds or Folds(), digest_key=session.digest_key)
    assert told == session
    return entries


async def shown(agent: Agent[Any, str], session: Session) -> list[str]:
    """What the next request shows."""
    await turn(agent, "and now?", session=session)
    model = agent.plan.model
    assert isinstance(model, ScriptedModel)
    return [m["content"] for m in read(model.requests[-1])["messages"]]


def answer_of(session: Session) -> AssistantMessage:
    """The last answer."""
    return next(m for m in reversed(session.conversation.messages) if isinstance(m, AssistantMessage))


async def test_an_edited_result_is_what_the_model_reads_next() -> None:
    """Who edited stands in the record; the message keeps its place."""
    agent, result, session = await talked("Ninety.")
    message = answer_of(session)
    change = edit_result(session, message.id, message.rounds[0].calls[0].id, (Text("90"),), by="ana", at=AT)
    assert await shown(agent, change.session) == ["price?", "", "90", "Eighty.", "and now?"]
    assert [(kind_of(e.body), e.cause) for e in change.entries] == [("history.changed", None), ("turn.closed", 0)]
    assert (change.kept, [m.id for m in change.messages]) == (1, [message.id])
    agreed(change, result)


async def test_a_removed_message_is_gone_and_on_record() -> None:
    """The next request does not show it; the entries that made it are still there."""
    agent, result, session = await talked("What?")
    change = remove_message(session, answer_of(session).id, by="ana", at=AT)
    assert await shown(agent, change.session) == ["price?", "and now?"]
    entries = agreed(change, result)
    assert "Eighty." in str(entries)


async def test_imported_messages_stand_behind_the_present_ones() -> None:
    """With ids of their own."""
    agent, result, session = await talked("Hm.")
    change = import_messages(session, [OLD], by="ana", at=AT)
    assert await shown(agent, change.session) == ["price?", "", "look", "Eighty.", "from before", "and now?"]
    agreed(change, result)
    with pytest.raises(UsageError, match="'old1'") as told:
        import_messages(change.session, [OLD], by="ana", at=AT)
    assert told.value.hint
    with pytest.raises(UsageError, match="'old1'"):
        import_messages(session, [OLD, OLD], by="ana", at=AT)


async def test_a_reset_forgets_and_says_so() -> None:
    """Conversation, data, open question and what features knew are gone, the record and the generation are not."""
    listing = Listing("tool.returned")
    agent, result, session = await talked("Hello.", features=[mounted(listing)])
    change = reset(session, by="ana", at=AT)
    assert (change.session.generation, len(change.session.conversation.messages)) == (1, 0)
    assert dict(change.session.slots) == {}
    agreed(change, result)
    assert await shown(agent, change.session) == ["and now?"]
    with_folds = reset(session, by="ana", at=AT, folds=agent.plan.folds)
    agreed(with_folds, result, folds=agent.plan.folds)


async def test_a_reset_lets_an_open_question_go() -> None:
    """Its answer comes too late."""
    agent = Agent(ScriptedModel([call("pay")]), tools=[tool("pay")], features=[approve("pay")])
    paused = await turn(agent)
    assert paused.session is not None
    change = reset(paused.session, by="ana", at=AT)
    late = await turn(agent, Answered(open_question(paused).key, approved=True), session=change.session)
    assert late.status == "ignored"


async def test_a_turn_begun_before_a_reset_stores_nothing_after_it() -> None:
    """The store refuses the older generation."""
    agent, result, session = await talked("Late.")
    store = MemoryStore()
    session = await store.commit(result.change())
    late = await turn(agent, "still there?", session=session)
    await store.commit(reset(session, by="ana", at=AT))
    with pytest.raises(Exception, match="version") as told:
        await store.commit(late.change())
    assert getattr(told.value, "code", "") == "session-conflict"


async def test_an_answer_is_heard_only_in_part() -> None:
    """Learned late, by its id once; the model is shown what was heard."""
    agent, result, session = await talked("Ah.")
    by = Interruption(id="i1", turn=answer_of(session).turn, cause="spoken over", heard=3)
    change = interrupt_closed(session, by, at=AT)
    assert change is not None
    assert (answer_of(change.session).interrupted, change.session.interruptions) == ("spoken over", ("i1",))
    assert await shown(agent, change.session) == ["price?", "", "look", "Eig [interrupted here]", "and now?"]
    assert [(kind_of(e.body), e.turn) for e in change.entries] == [("turn.interrupted", "s:interruption:i1")]
    agreed(change, result)
    assert interrupt_closed(change.session, by, at=AT) is None


async def test_a_turn_without_an_answer_was_not_heard() -> None:
    """That its message is in the conversation is not enough."""
    _, _, session = await talked()
    message = answer_of(session)
    silent = remove_message(session, message.id, by="ana", at=AT).session
    assert [m.turn for m in silent.conversation.messages] == [message.turn]
    with pytest.raises(UsageError, match="no answer"):
        interrupt_closed(silent, Interruption(id="i", turn=message.turn, heard=0), at=AT)


async def test_changes_of_what_is_not_there_are_refused_by_name() -> None:
    """Nothing is filed."""
    _, _, session = await talked()
    message = answer_of(session).id
    refused: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: edit_result(session, "m9", "c", (), by="ana", at=AT), "'m9'"),
        (lambda: edit_result(session, message, "c9", (), by="ana", at=AT), "'c9'"),
        (lambda: remove_message(session, "m9", by="ana", at=AT), "'m9'"),
        (lambda: interrupt_closed(session, Interruption(id="i", turn="t9"), at=AT), "'t9'"),
    )
    for work, missing in refused:
        with pytest.raises(UsageError, match=missing):
            work()


@pytest.mark.parametrize("by", ["", None, 7])
async def test_a_change_says_who_made_it(by: Any) -> None:
    """It is refused otherwise."""
    _, _, session = await talked()
    with pytest.raises(UsageError, match="who made it"):
        reset(session, by=by, at=AT)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"heard": -1}, "heard= is less than 0"),
        ({"heard": "x"}, "got `str` - at `$.heard`"),
        ({"cause": 7}, "got `int` - at `$.cause`"),
        ({"receipt": object()}, "type object"),
        ({"cause": "half \ud83d"}, "not valid Unicode"),
    ],
)
async def test_a_late_interruption_that_could_not_be_read_again_is_refused(fields: Any, told: str) -> None:
    """Stored, it would close its whole session."""
    _, _, session = await talked()
    with pytest.raises(UsageError) as refused:
        interrupt_closed(session, Interruption(id="i", turn=answer_of(session).turn, **fields), at=AT)
    assert told in str(refused.value)
    assert refused.value.hint


async def test_what_could_not_be_read_again_is_refused_and_not_quoted() -> None:
    """An edit by a plain string, messages and parts of wrong types, plain records, and what is no Unicode."""
    _, _, session = await talked()
    message = answer_of(session)
    call = message.rounds[0].calls[0].id
    image: Any = Image(url="u", detail="canary-5")  # type: ignore[arg-type]  # wrong on purpose
    plain: Any = {"role": "user", "content": "canary-5"}
    given: Any = "canary-5"

    def edits(parts: Any) -> Callable[[], object]:
        return lambda: edit_result(session, message.id, call, parts, by="ana", at=AT)

    def imports(content: Any) -> Callable[[], object]:
        return lambda: import_messages(session, [UserMessage(id="u", content=content)], by="ana", at=AT)

    refused: tuple[tuple[Callable[[], object], str], ...] = (
        (edits(given), r"got `str` - at `\$\[0\]`"),
        (edits((image,)), r"Invalid value - at `\$\[0\]\.detail`"),
        (imports(given), "Expected `array`"),
        (imports((Text("canary-5\ud83d"),)), "recorded\nhint: "),
        (imports((Text("canary-5"), object())), "type object"),
        (lambda: import_messages(session, [plain], by="ana", at=AT), "messages, not dict"),
    )
    for work, wrong in refused:
        with pytest.raises(UsageError, match=wrong) as told:
            work()
        assert told.value.hint
        assert "canary-5" not in f"{told.value} {told.value.hint}"


async def test_a_damaged_change_of_history_does_not_fold() -> None:
    """It is no valid record, and the error does not quote it."""
    _, result, session = await talked()
    change = import_messages(session, [OLD], by="ana", at=AT)
    first, *rest = change.entries
    assert isinstance(first.body, HistoryChanged)
    damaged = replace(first, body=replace(first.body, value=Raw(b'[{"type":"canary-5"}]')))
    with pytest.raises(RecordInvalid, match="change of history") as told:
        refold(session.key, [*result.entries, damaged, *rest])
    assert "canary-5" not in str(told.value)


async def test_changes_are_stored_like_turns() -> None:
    """Edit, removal and import in a row: what is loaded is what was made."""
    agent, result, _ = await talked("Ok.")
    store = MemoryStore()
    session = await store.commit(result.change())
    message = answer_of(session)
    session = await store.commit(
        edit_result(session, message.id, message.rounds[0].calls[0].id, (Text("90"),), by="ana", at=AT)
    )
    session = await store.commit(import_messages(session, [OLD], by="ana", at=AT))
    session = await store.commit(remove_message(session, message.id, by="ana", at=AT))
    session = await store.commit((await turn(agent, "and now?", session=session)).change())
    assert await store.load("s") == session
    assert [getattr(m, "text", "") for m in session.conversation.messages] == [
        "price?",
        "from before",
        "and now?",
        "Ok.",
    ]
