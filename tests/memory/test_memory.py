"""What a memory shows and keeps, with the cases of ``spec/loop-cases.md`` M that are about it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask, Happened, approved
from onrecord.errors import AnswerRefused, StoreError
from onrecord.governance.rules import before_tool, on_output
from onrecord.memory import Episodes, Facts, Memory, PlainShelf, Recent
from onrecord.memory.memory import HEADER
from onrecord.memory.ports import Space
from onrecord.models.request import Request, Span
from onrecord.record.kinds import Noted
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.tools.tool import Tool
from onrecord.turn.instruction import Instruction
from onrecord.turn.moments import SLOTS, Deny, Hooks
from onrecord.turn.turn import Turn
from tests.memory.remembering import AT, ana, kept_by, messages, recalled_in, remembering, session, shown_data, told
from tests.turn.acting import Named

pytestmark = pytest.mark.unit

HERS = Space(owner=ana)


# ---- M: the cases ----------------------------------------------------------------------------------------------------


async def test_m140_messages_of_two_turns_have_keys_of_their_own() -> None:
    """Case 140: nothing is overwritten. Our keys are made of turn ids instead of turn numbers."""
    shelf = PlainShelf()
    agent, _, _ = remembering(Recent(9), answers=["one", "two"], shelf=shelf)
    first = await told(agent, "a", session())
    await told(agent, "b", first.session)
    held = await shelf.newest(HERS, "message", limit=99)
    assert [(one.role, one.text) for one in held] == [
        ("user", "a"), ("assistant", "one"), ("user", "b"), ("assistant", "two"),
    ]  # fmt: skip
    assert len({one.key for one in held}) == 4


async def test_m140_a_turn_that_is_taken_again_is_remembered_once() -> None:
    """Keys stay the same over takes of one turn, so a commit that failed leaves nothing twice."""
    shelf = PlainShelf()
    agent, _, _ = remembering(Recent(9), Episodes(), answers=["one", "one"], shelf=shelf)
    for _ in range(2):
        await told(agent, "a", session())
    assert await messages(shelf) == ["a", "one"]
    assert len(await shelf.newest(HERS, "episode", limit=9)) == 1


async def test_m141_what_was_said_is_recalled_in_another_session() -> None:
    """Case 141: its request contains it, and the record says so."""
    agent, model, _ = remembering(Recent(9), answers=["Noted.", "Soup."])
    await told(agent, "I only eat soup", session("one"))
    result = await told(agent, "What do I eat?", session("two"), day=3)
    (data,) = shown_data(model.requests[1])
    assert data == (
        f"{HEADER}\n"
        '<memory kind="message" from="user" at="2026-05-04">\nI only eat soup\n</memory>\n'
        '<memory kind="message" from="assistant" at="2026-05-04">\nNoted.\n</memory>'
    )
    (recalled,) = recalled_in(result)
    assert [(one.kind, one.place) for one in recalled.served] == [("message", 1), ("message", 2)]
    assert (recalled.feature, recalled.considered) == ("memory", 2)
    assert recalled.chars == len(data) - len(HEADER) - 2


@pytest.mark.parametrize(
    "other",
    [session("x", "bo"), session("x", tenant="u"), session("x", owner_tenant="u"), session("x", "")],
    ids=["person", "tenant", "tenant of the person", "nobody"],
)
async def test_m141_nobody_else_recalls_it(other: Any) -> None:
    """Case 141: another tenant, another person, or a session of nobody."""
    agent, model, _ = remembering(Recent(9), Facts(), Episodes(), answers=["ok", "ok"])
    await told(agent, "My name is Ana", session("one"))
    result = await told(agent, "My name is?", other)
    assert shown_data(model.requests[1]) == []
    assert recalled_in(result) == []


async def test_n180_a_memory_goes_on_counting() -> None:
    """Case 180: what a new session leaves stands behind what was kept before. The number is the shelf's here."""
    shelf = PlainShelf()
    agent, _, _ = remembering(Recent(9), answers=["1", "2"], shelf=shelf)
    await told(agent, "a", session("one"))
    before = (await shelf.newest(HERS, "message", limit=1))[0].n
    await told(agent, "b", session("two"))
    assert [one.n > before for one in await shelf.newest(HERS, "message", limit=2)] == [True, True]


# ---- reading ---------------------------------------------------------------------------------------------------------


async def test_what_the_conversation_shows_is_not_recalled_too() -> None:
    """Within a session there is nothing to add, and requests are those of an agent without a memory."""
    agent, model, _ = remembering(Recent(9), Episodes(), answers=["one", "two"])
    first = await told(agent, "apples", session())
    await told(agent, "apples?", first.session)
    plain = ScriptedModel("one", "two")
    first = await told(Agent(plain), "apples", session())
    await told(Agent(plain), "apples?", first.session)
    assert [model.wire(r).body for r in model.requests] == [plain.wire(r).body for r in plain.requests]


async def test_what_a_window_hides_is_recalled() -> None:
    """Messages of the same session come back once a request no longer shows them."""

    async def last_two(turn: Turn, request: Request) -> Request:
        from msgspec.structs import replace

        units = len(request.conversation.units)
        return replace(request, view=replace(request.view, spans=(Span(max(units - 3, 0), units),)))

    model = ScriptedModel("one", "two", "three")
    window = Named("window", Hooks(on_request=last_two, order={"request": SLOTS["request"]["WINDOW"]}))
    agent = Agent(model, features=[Memory(PlainShelf(), (Recent(9),)), window])
    held: Any = session()
    for day, text in enumerate(("first", "second", "third")):
        held = (await told(agent, text, held, day=day)).session
    (data,) = shown_data(model.requests[2])
    assert "first" in data
    assert "one" in data
    assert "second" not in data


async def shows_nothing(turn: Turn, request: Request) -> Request:
    """A window that leaves nothing of the conversation."""
    from msgspec.structs import replace

    units = len(request.conversation.units)
    return replace(request, view=replace(request.view, spans=(Span(units, units),)))


BLIND = Named("window", Hooks(on_request=shows_nothing, order={"request": SLOTS["request"]["WINDOW"]}))


async def test_a_request_that_shows_nothing_is_told_all_that_was_said_before() -> None:
    """The message of the turn itself is not among it: it was not kept yet."""
    model = ScriptedModel("one", "two")
    agent = Agent(model, features=[Memory(PlainShelf(), (Recent(9),)), BLIND])
    first = await told(agent, "first", session())
    await told(agent, "second", first.session, day=1)
    (data,) = shown_data(model.requests[1])
    assert ("first" in data, "one" in data, "second" in data) == (True, True, False)


@pytest.mark.parametrize("window", [(), (BLIND,)], ids=["whole", "windowed"])
async def test_a_history_of_the_callers_own_is_the_session(window: tuple[Named, ...]) -> None:
    """Nothing of the session is recalled beside it, however much of it is shown; what other sessions left is."""
    model = ScriptedModel("a", "b", "c")
    agent = Agent(model, features=[Memory(PlainShelf(), (Recent(9),)), *window])
    await told(agent, "elsewhere", session("other"))
    first = await told(agent, "first", session())
    history = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "b"}]
    await agent.turn("second", session=first.session, history=history, effects=FakeEffects(AT + timedelta(days=1)))
    (data,) = shown_data(model.requests[2])
    assert "elsewhere" in data
    assert "first" not in data


async def test_recalled_words_stand_behind_the_conversation() -> None:
    """So that all before them keeps its bytes from request to request; instructions stand apart from them."""
    shelf = PlainShelf()
    lookup = Tool("look", lambda *_: "seen")
    model = ScriptedModel("ok", [call("look")], "done")
    agent = Agent(model, tools=[lookup], features=[Memory(shelf, (Recent(9),)), Instruction("Be kind.")])
    await told(agent, "remember me", session("one"))
    await told(agent, "look", session("two"))
    first, second = model.requests[1:]
    assert first.view.spans[0] == Span(0, 1)
    assert second.view.spans[0] == Span(0, 2)
    assert first.view.spans[1:] == second.view.spans[1:]
    assert shown_data(second) == shown_data(first)
    assert first.pieces == second.pieces


async def test_it_is_read_once_a_turn() -> None:
    """What all requests of a turn show is what the first one found; a second request asks no shelf."""

    class Counting(PlainShelf):
        asked = 0

        async def newest(self, *given: Any, **about: Any) -> Any:
            self.asked += 1
            return await super().newest(*given, **about)

    shelf = Counting()
    model = ScriptedModel("ok", [call("look")], [call("look")], "done")
    agent = Agent(model, tools=[Tool("look", lambda *_: "x")], features=[Memory(shelf, (Recent(9),))])
    await told(agent, "hello", session("one"))
    shelf.asked = 0
    result = await told(agent, "look", session("two"))
    assert shelf.asked == 1
    assert len(recalled_in(result)) == 1


async def test_a_resumed_turn_reads_what_it_read_before() -> None:
    """Also where the shelf has changed while a person was asked; and it is noted once."""
    shelf = PlainShelf()

    @before_tool
    async def asks(turn: Turn, call: Any) -> Any:
        return Ask("Sure?")

    model = ScriptedModel("ok", [call("look")], "done")
    agent = Agent(model, tools=[Tool("look", lambda *_: "x")], features=[Memory(shelf, (Recent(9),)), asks])
    await told(agent, "blue", session("one"))
    paused = await told(agent, "look", session("two"))
    assert paused.question is not None
    other, _, _ = remembering(Recent(9), answers=["ok"], shelf=shelf)
    await told(other, "red", session("three"))
    done = await agent.turn(approved(paused.question, by="x"), session=paused.session, effects=FakeEffects(AT))
    assert shown_data(model.requests[1]) == shown_data(model.requests[2])
    assert (len(recalled_in(paused)), len(recalled_in(done))) == (1, 0)
    assert await messages(shelf) == ["blue", "ok", "red", "ok", "look", "done"]


async def test_the_budget_is_kept_and_told() -> None:
    """What does not fit is left out, whole, and named; smaller things behind it may still fit."""
    agent, model, _ = remembering(Recent(9), answers=["b" * 500, "ok"], max_chars=200)
    await told(agent, "short", session("one"))
    result = await told(agent, "again", session("two"))
    (data,) = shown_data(model.requests[1])
    assert "short" in data
    assert "bbb" not in data
    (recalled,) = recalled_in(result)
    assert [(one.why, "assistant" in one.id) for one in recalled.rejected] == [("over-budget", True)]
    assert recalled.chars <= 200
    exactly, model, _ = remembering(Recent(9), answers=["b" * 500, "ok"], max_chars=recalled.chars)
    await told(exactly, "short", session("one"))
    await told(exactly, "again", session("two"))
    assert "short" in shown_data(model.requests[1])[0]


async def test_a_shelf_that_cannot_be_read_costs_what_it_holds() -> None:
    """The turn goes on, and the record says what was missed."""

    class Broken(PlainShelf):
        async def newest(self, *given: Any, **about: Any) -> Any:
            raise StoreError("gone", code="store-io")

    agent, _, _ = remembering(Recent(9), answers=["ok"], shelf=Broken())
    result = await told(agent, "hi", session())
    assert result.text == "ok"
    assert [(one.missed, one.served) for one in recalled_in(result)] == [("recent: store-io", ())]


async def test_each_thing_is_shown_once() -> None:
    """An exchange whose messages are there anyway is not shown again as an episode."""
    agent, model, _ = remembering(Episodes(), Recent(2), answers=["one", "two", "three"])
    await told(agent, "green apples", session("one"))
    await told(agent, "red apples", session("two"))
    await told(agent, "apples", session("three"))
    (data,) = shown_data(model.requests[2])
    assert (data.count("green apples"), data.count("red apples")) == (1, 1)
    assert 'kind="episode"' in data


async def test_an_event_recalls_without_a_question() -> None:
    """What is no message asks for no episodes; what needs no question is shown."""
    agent, model, _ = remembering(Recent(9), Episodes(), answers=["ok", "done"])
    await told(agent, "hello there", session("one"))
    await told(agent, Happened("paid", key="k"), session("two"))
    data = shown_data(model.requests[1])
    assert "hello there" in data[-1]
    assert "episode" not in data[-1]


# ---- writing ---------------------------------------------------------------------------------------------------------


async def test_the_record_says_what_was_kept_and_none_of_the_words() -> None:
    """Keys by kind."""
    agent, _, _ = remembering(Recent(9), Facts(), Episodes(), answers=["ok"])
    (kept,) = kept_by(await told(agent, "My name is Zebedee", session()))
    assert {kind: len(keys) for kind, keys in kept.keys.items()} == {"message": 2, "fact": 1, "episode": 1}
    assert "zebedee" not in repr(kept).lower()


async def test_governed_words_are_kept() -> None:
    """What went out, not what was drafted; and nothing of an answer that was refused."""

    @on_output
    async def calm(turn: Turn, answer: Any) -> Any:
        from msgspec.structs import replace

        from onrecord.turn.moments import Allow

        return Deny("no") if "secret" in answer.text else Allow(replace(answer, text="calm"), "calmed")

    shelf = PlainShelf()
    model = ScriptedModel("loud", "a secret")
    agent = Agent(model, features=[Memory(shelf, (Recent(9), Facts(), Episodes())), calm])
    first = await told(agent, "hi", session())
    with pytest.raises(AnswerRefused):
        await told(agent, "My name is Eve, tell me", first.session)
    assert await messages(shelf) == ["hi", "calm"]
    assert await shelf.newest(HERS, "fact", limit=9) == []


async def test_read_only_writes_nothing() -> None:
    """And mounts nothing that could."""
    shelf = PlainShelf()
    writer, _, _ = remembering(Recent(9), answers=["ok"], shelf=shelf)
    reader, model, _ = remembering(Recent(9), answers=["ok"], shelf=shelf, read_only=True)
    await told(writer, "kept", session("one"))
    result = await told(reader, "not kept", session("two"))
    assert "kept" in shown_data(model.requests[0])[0]
    assert kept_by(result) == []
    assert await messages(shelf) == ["kept", "ok"]


async def test_redaction_comes_before_keeping() -> None:
    """In messages, facts and episodes; what is blank afterwards is not kept."""
    shelf = PlainShelf()
    agent, _, _ = remembering(
        Recent(9), Facts(), Episodes(), answers=["secret"], shelf=shelf,
        redact=lambda text: "" if text == "secret" else text.replace("4111", "[card]"),
    )  # fmt: skip
    await told(agent, "Call me 4111 please", session())
    held = [one.text for kind in ("message", "fact", "episode") for one in await shelf.newest(HERS, kind, limit=9)]
    assert held == ["Call me [card] please", "name: [card] please", "user: Call me [card] please"]


async def test_a_long_message_is_kept_by_its_beginning() -> None:
    """So that it can be shown again."""
    shelf = PlainShelf()
    agent, _, _ = remembering(Recent(9), answers=["ok"], shelf=shelf)
    await told(agent, "x" * 9000, session())
    assert await messages(shelf) == ["x" * 3999 + "…", "ok"]


async def test_what_a_redaction_makes_can_always_be_kept() -> None:
    """Also half a pair of surrogates, which no file takes."""
    shelf = PlainShelf()
    agent, _, _ = remembering(Recent(9), answers=["ok"], shelf=shelf, redact=lambda text: f"{text}\ud800")
    await told(agent, "hi", session())
    assert await messages(shelf) == ["hi\ufffd", "ok\ufffd"]


async def test_a_shelf_that_cannot_be_written_is_noted() -> None:
    """The answer was given, and stays."""

    class Full(PlainShelf):
        async def put(self, *given: Any, **about: Any) -> None:
            raise StoreError("full", code="store-full")

    agent, _, _ = remembering(Recent(9), answers=["ok"], shelf=Full())
    result = await told(agent, "hi", session())
    assert result.text == "ok"
    assert [e.body.text for e in result.entries if isinstance(e.body, Noted)] == ["settle failed: StoreError"]
