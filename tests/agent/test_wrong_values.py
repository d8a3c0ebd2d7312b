"""Values of a wrong type are refused where they come in, before they could make a stored session unreadable."""

from collections.abc import Callable
from typing import Any

import pytest

from onrecord import (
    Agent,
    Allow,
    Answered,
    Ask,
    AskField,
    ConfigurationError,
    Deny,
    Happened,
    OnrecordError,
    Said,
    SessionKey,
    Started,
    UsageError,
    approved,
    before_tool,
    tool,
)  # fmt: skip
from onrecord.conversation.inputs import Input
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import ScriptedModel, call

pytestmark = pytest.mark.unit

WRONG: Any = 7
ROOM: Any = "room"
ROOMS: Any = ["room"]
NOTHING: Any = None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Said("hi", key=WRONG), "Said cannot be recorded: Expected `str | null`, got `int` - at `$.key`"),
        (Said(WRONG), "Said holds neither a text nor parts"),
        (Said("\ud800"), "Said cannot be recorded: it holds text that is not valid Unicode"),
        (Happened(WRONG, key="k"), "Happened cannot be recorded: Expected `str`, got `int` - at `$.name`"),
        (Happened("paid", key="k", payload=object()), "Happened cannot be recorded: Encoding objects of type object"),
        (Started("x", key=WRONG), "Started cannot be recorded: Expected `str`, got `int` - at `$.key`"),
        (Answered("q", approved=True, by=WRONG), "Answered cannot be recorded: Expected `str`, got `int` - at `$.by`"),
        (Answered("q", value=object(), by="Ana"), "Answered cannot be recorded: Encoding objects of type object"),
    ],
)
def test_an_input_that_could_not_be_read_again_is_refused(given: Input, told: str) -> None:
    """Nothing is filed: the error comes before the turn begins."""
    with pytest.raises(UsageError) as caught:
        Agent(ScriptedModel("ok")).turn_sync(given)
    assert told in str(caught.value)
    assert caught.value.code == "input-invalid"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Ask(WRONG), "Ask takes its question"),
        (lambda: Ask("Sure?", audience=WRONG), "Ask takes its question"),
        (lambda: Ask("Sure?", fields=ROOMS), "fields= of Ask takes AskFields"),
        (lambda: Ask("Sure?", fields=ROOM), "fields= of Ask takes AskFields"),
        (lambda: Ask("Sure?", on_message=ROOM), "on_message='room' is unknown"),
        (lambda: AskField(name=WRONG), "AskField takes a name"),
        (lambda: Deny(WRONG), "the reason of Deny is a text, not int"),
        (lambda: Allow(why=WRONG), "the why of Allow is a text, not int"),
        (lambda: approved(NOTHING, by="Ana"), "there is no open question to answer"),
        (lambda: approved(ROOM, by="Ana"), "an answer is to a Question, not to a str"),
    ],
)
def test_what_a_rule_or_a_handler_returns_is_checked_while_it_is_made(make: Callable[[], Any], told: str) -> None:
    """So the traceback points at the line that is wrong."""
    with pytest.raises(UsageError, match=told):
        make()


def test_a_question_that_is_wrong_denies_the_call_and_the_session_stays_whole() -> None:
    """A rule whose Ask cannot be made is a rule that raised: it denies, and says why."""
    fields: Any = ["room"]

    @before_tool
    async def asks(turn: Any, made: Any) -> Ask:
        return Ask("Which room?", fields=fields)

    @tool
    def book() -> str:
        """Book a room."""
        return "booked"

    result = Agent(ScriptedModel(call("book"), "No."), tools=[book], features=[asks]).turn_sync("Book.")
    (made,) = result.session.conversation.units[1].calls  # type: ignore[union-attr]  # wrong on purpose
    assert (made.status, result.text) == ("denied", "No.")


@pytest.mark.parametrize("key", [SessionKey(WRONG), SessionKey("ana", tenant=WRONG), SessionKey("ana", tenant=None)])  # type: ignore[arg-type]  # wrong on purpose
def test_a_session_is_named_by_texts(key: SessionKey) -> None:
    """Also where it is loaded."""
    with pytest.raises(UsageError, match="a session is named by a text, not by "):
        Agent(ScriptedModel("ok")).turn_sync("Hello", session=key)


async def test_a_store_says_what_it_takes() -> None:
    """A key is a text, and what is committed is the change of a result."""
    store = MemoryStore()
    with pytest.raises(UsageError, match="named by a text, not by int"):
        await store.load(WRONG)
    result = await Agent(ScriptedModel("ok")).turn("Hello", session="ana")
    for wrong in (result, result.session):
        with pytest.raises(UsageError, match="a store commits a Change, not a") as caught:
            await store.commit(wrong)  # type: ignore[arg-type]  # wrong on purpose
        assert "commit(result.change())" in caught.value.hint


async def test_a_session_that_was_not_awaited_is_told_so() -> None:
    """The commonest slip with a store."""
    loading: Any = MemoryStore().load("ana")
    with pytest.raises(UsageError, match="not a coroutine") as caught:
        await Agent(ScriptedModel("ok")).turn("Hello", session=loading)
    assert "await it first" in caught.value.hint
    loading.close()


@pytest.mark.parametrize("name", [WRONG, ""])
def test_an_agent_has_a_name_that_is_text(name: str) -> None:
    """It stands in every record."""
    with pytest.raises(ConfigurationError, match="an agent needs a name"):
        Agent("offline", name=name)


async def test_committing_twice_says_that_the_turn_may_be_stored_already() -> None:
    """Taking the input again would handle it twice."""
    store = MemoryStore()
    result = await Agent(ScriptedModel("ok")).turn("Hello", session="ana")
    await store.commit(result.change())
    with pytest.raises(OnrecordError) as caught:
        await store.commit(result.change())
    assert "go on with the session that commit returned" in caught.value.hint
