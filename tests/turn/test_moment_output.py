"""The moment ``output``: answers accepted, rewritten, denied; nothing streams before that (§6, §7; loop spec §9.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.inputs import Ask
from onrecord.conversation.messages import AssistantMessage, Block
from onrecord.conversation.outgoing import TextDelta
from onrecord.errors import AnswerRefused, FeatureFailed, LimitReached
from onrecord.governance.rules import on_input, on_output
from onrecord.models.chunks import NativeItem
from onrecord.record.kinds import TextSaid, VerdictFiled
from onrecord.testing import FakeEffects, ScriptedModel, call, reply
from onrecord.turn.director import Stage
from onrecord.turn.moments import ALLOW, SLOTS, Allow, Answer, Deny, Hooks, Revise
from onrecord.turn.stream import TurnStream
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, kinds, read, rounds_of, tool, turn, verdicts

pytestmark = pytest.mark.unit


def output(verdict: Any, name: str = "rule", slot: str = "RULES", *, holds: bool = True, **more: Any) -> Named:
    """An output rule that always answers this, or asks or raises it."""

    async def hook(turn: Turn, answer: Answer) -> Any:
        return verdict(answer) if callable(verdict) else verdict

    return Named(name, Hooks(on_output=hook, holds_drafts=holds, order={"output": SLOTS["output"][slot]}, **more))


def saying(text: str) -> Callable[[Answer], Allow[Answer]]:
    """Puts another text in the answer's place."""
    return lambda answer: Allow(replace(answer, text=text), f"says {text}")


async def streamed(*answers: Any, features: Any = (), **given: Any) -> tuple[list[str], Any]:
    """The text deltas of a turn, and its result."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(*answers), features=features, **given)
    stream = agent.turn_stream("hi", effects=FakeEffects())
    deltas = [delta async for delta in stream]
    return [d.text for d in deltas if isinstance(d, TextDelta)], await stream.result()


async def reading(stream: TurnStream[Any], into: list[str]) -> None:
    """Reads the words of a turn as they come."""
    async for text in stream.text:
        into.append(text)  # noqa: PERF401 - what came before a failure counts


async def test_f78_nothing_streams_before_acceptance() -> None:
    """Three pieces, one accepting rule: one piece reaches the reader, with the accepted answer (case F78)."""
    seen: list[str] = []

    def accept(answer: Answer) -> Allow[Answer]:
        seen.append(answer.text)
        return ALLOW

    texts, result = await streamed(["one ", "two ", "three"], features=[output(accept)])
    assert (texts, seen, result.text) == (["one two three"], ["one two three"], "one two three")


async def test_f78_a_rule_over_the_input_alone_holds_nothing_back() -> None:
    """Ordinary pieces, as they come (case F78)."""

    @on_input
    async def fine(turn: Turn, said: Any) -> Allow[Any]:
        return ALLOW

    texts, _ = await streamed(["one ", "two"], features=[fine])
    assert texts == ["one ", "two"]


async def test_a_rule_that_only_looks_holds_nothing_back() -> None:
    """It says so itself."""

    @on_output(holds_drafts=False)
    async def look(turn: Turn, answer: Answer) -> Allow[Answer]:
        return Allow(why="looked")

    texts, result = await streamed(["one ", "two"], features=[look])
    assert texts == ["one ", "two"]
    assert verdicts(result) == [("output", "look", "allow", "looked")]


async def test_held_drafts_hold_every_round_of_the_turn() -> None:
    """Text beside calls is a draft too; only the accepted answer is ever shown."""
    texts, _ = await streamed(["Let me see. ", call("lookup")], "done", features=[output(ALLOW)], tools=[tool()])
    assert texts == ["done"]


async def test_f79_a_denied_answer_raises_without_its_content() -> None:
    """Nothing of it is shown, said or kept, after a tool round as without one (case F79)."""
    for answers, tools in ((["bad canary"], []), ([call("lookup"), "bad canary"], [tool()])):
        agent: Agent[Any, Any] = Agent(ScriptedModel(*answers), tools=tools, features=[output(Deny("not so"))])
        seen: list[str] = []
        with pytest.raises(AnswerRefused) as refused:
            await reading(agent.turn_stream("hi", effects=FakeEffects()), seen)
        error = refused.value
        assert seen == []
        assert (error.rule, error.reason, error.code) == ("rule", "not so", "answer-refused")
        assert "canary" not in str(error)
        result = error.result
        assert result is not None
        assert (result.status, result.messages) == ("refused", ())
        assert kinds(result)[-3:] == ["verdict", "round.settled", "turn.failed"]
        assert "said" not in kinds(result)
        assert "canary" not in repr(bodies(result, VerdictFiled))
        assert result.session is not None
        assert "canary" not in repr(list(result.session.conversation.units))


async def test_no_later_request_shows_a_denied_answer() -> None:
    """Nobody was shown its words (decision 0018); the tool round before it stays, with its result."""
    model = ScriptedModel([call("lookup")], "bad canary", "fine")
    verdict = output(lambda answer: Deny("not so") if "canary" in answer.text else ALLOW)
    agent: Agent[Any, Any] = Agent(model, tools=[tool()], features=[verdict])
    with pytest.raises(AnswerRefused) as refused:
        await turn(agent)
    assert refused.value.result is not None
    await turn(agent, "again", session=refused.value.result.session)
    shown = model.wire(model.requests[-1]).body
    assert b"canary" not in shown
    assert b"lookup" in shown


async def test_a_denial_may_bring_an_error_of_its_own() -> None:
    """A kind of `AnswerRefused`; the turn was refused all the same."""

    class Unsupported(AnswerRefused):
        default_code = "unsupported-values"

    with pytest.raises(Unsupported) as refused:
        await turn(Agent(ScriptedModel("x"), features=[output(Deny("no source", error=Unsupported, data={"n": 1}))]))
    assert refused.value.result is not None
    assert refused.value.result.status == "refused"
    assert [v.data for v in bodies(refused.value.result, VerdictFiled)] == [{"n": 1}]


async def test_a_rewritten_answer_is_what_everybody_reads() -> None:
    """The person, the next request, the record's ``said``; the raw reply stays in ``model.replied``."""
    native = NativeItem(raw=Raw(b'{"native":"raw words"}'))
    model = ScriptedModel(reply(native, "raw words"), "second")
    rewrite = output(lambda a: saying("governed words")(a) if a.text == "raw words" else ALLOW)
    agent: Agent[Any, Any] = Agent(model, features=[rewrite])
    first = await turn(agent)
    assert first.text == "governed words"
    assert [b.text for b in bodies(first, TextSaid)] == ["governed words"]
    await turn(agent, "more", session=first.session)
    assert read(model.requests[1])["messages"][1] == {"role": "assistant", "content": "governed words"}
    assert [held.continuation for held in rounds_of(first)] == [None]  # a vendor's own items say the raw words
    (filed,) = bodies(first, VerdictFiled)
    assert (filed.verdict, filed.why) == ("allow", "says governed words")
    assert filed.before != filed.after
    assert "words" not in repr((filed.before, filed.after))


async def test_the_delivered_the_streamed_and_the_stored_answer_are_the_same_text() -> None:
    """Rewritten or not."""
    texts, result = await streamed("raw", features=[output(saying("new"))])
    assert texts == [result.text] == [m.text for m in result.messages] == ["new"]
    message = result.session.conversation.messages[-1]
    assert (message.text, message.rounds[0].text) == ("new", "new")


async def test_rules_walk_in_slot_order_and_know_what_was_drafted_and_who_rewrote() -> None:
    """``text`` is the answer as it stands, ``drafted`` the same before any rule."""
    seen: list[tuple[str, str, tuple[str, ...]]] = []

    def looking(text: str) -> Callable[[Answer], Allow[Answer]]:
        def look(answer: Answer) -> Allow[Answer]:
            seen.append((answer.text, answer.drafted, answer.rewritten_by))
            return Allow(replace(answer, text=text, drafted="forged", key="forged"), "rewrites")

        return look

    features = [output(looking("3"), "limits", "LIMITS"), output(looking("1"), "a"), output(looking("2"), "b")]
    result = await turn(Agent(ScriptedModel("0"), features=features))
    assert seen == [("0", "0", ()), ("1", "0", ("a",)), ("2", "0", ("a", "b"))]
    assert result.text == "3"
    assert [b.key for b in bodies(result, TextSaid)] == [f"{result.entries[0].turn}/answer"]


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (lambda _: 1 / 0, "ZeroDivisionError"),
        (None, "it returned NoneType, not Allow, Deny or Revise"),
        (Ask("sure?"), "it asked a person, but there is no pause at the message boundary"),
        (Allow("text", "why"), "it allowed a str in place of the answer"),
    ],
)
async def test_a_rule_that_raises_or_breaks_its_contract_denies(verdict: Any, told: str) -> None:
    """What could not be judged is not said."""
    with pytest.raises(AnswerRefused) as refused:
        await turn(Agent(ScriptedModel("x"), features=[output(verdict)]))
    assert refused.value.reason == f"rule 'rule' failed: {told}"


async def test_a_rules_own_turn_error_is_the_turns() -> None:
    """A budget says that its limit was reached."""

    def spent(answer: Answer) -> Any:
        raise LimitReached("tokens")

    with pytest.raises(LimitReached) as failed:
        await turn(Agent(ScriptedModel("x"), features=[output(spent)]))
    assert failed.value.result is not None
    assert failed.value.result.status == "failed"


@pytest.mark.parametrize(
    ("verdict", "does"),
    [(Deny("no"), "denies"), (Revise("again"), "revises"), (saying("new"), "rewrites"), (lambda _: 1 / 0, "denies")],
)
async def test_a_rule_that_did_not_declare_holds_drafts_may_only_look(verdict: Any, does: str) -> None:
    """Its text may have been shown: taking it back would be a lie, so the feature failed."""
    told = f"feature 'rule' failed at output: it {does} an answer, but its hooks do not declare holds_drafts"
    with pytest.raises(FeatureFailed) as failed:
        await turn(Agent(ScriptedModel("x"), features=[output(verdict, holds=False)]))
    assert str(failed.value) == told


async def test_what_a_failed_turn_had_shown_is_kept_as_interrupted() -> None:
    """The reader saw it: the conversation says so."""
    agent: Agent[Any, Any] = Agent(ScriptedModel("shown already"), features=[output(Deny("no"), holds=False)])
    stream = agent.turn_stream("hi", effects=FakeEffects())
    with pytest.raises(FeatureFailed) as failed:
        await stream.result()
    assert failed.value.result is not None
    session = failed.value.result.session
    assert session is not None
    message = session.conversation.messages[-1]
    assert isinstance(message, AssistantMessage)
    assert (message.text, message.interrupted) == ("shown already", "failed")


# ---- blocks ----------------------------------------------------------------------------------------------------------


def block(source: str, rank: int) -> Named:
    """A rule that appends a block."""

    def verdict(answer: Answer) -> Allow[Answer]:
        return Allow(replace(answer, blocks=(*answer.blocks, Block(source=source, rank=rank, text=source))), "appends")

    return output(verdict, source, "LIMITS", holds=False)


async def test_blocks_stand_below_the_answer_by_rank_and_are_stored_apart() -> None:
    """After one rule line; the text above it is the model's, and is what streams."""
    texts, result = await streamed("Answer. \n", features=[block("limits", 800), block("standing", 700)])
    assert texts == ["Answer. \n"]
    assert [m.text for m in result.messages] == ["Answer.\n\n---\n\nstanding\n\nlimits"]
    assert result.text == "Answer.\n\n---\n\nstanding\n\nlimits"
    (said,) = bodies(result, TextSaid)
    assert said.text == "Answer. \n"
    message = result.session.conversation.messages[-1]
    assert message.shown == (Text("Answer. \n"),)
    assert [b.source for b in message.blocks] == ["limits", "standing"]


async def test_a_block_is_a_change_and_on_the_record() -> None:
    """Every verdict with a why is filed, also where the text stays."""
    result = await turn(Agent(ScriptedModel("x"), features=[block("limits", 800)]))
    (filed,) = bodies(result, VerdictFiled)
    assert (filed.by, filed.why) == ("limits", "appends")
    assert filed.before == filed.after


async def test_a_block_is_not_shown_to_the_model() -> None:
    """It belongs to what the person read."""
    model = ScriptedModel("a", "b")
    agent: Agent[Any, Any] = Agent(model, features=[block("limits", 800)])
    first = await turn(agent)
    await turn(agent, session=first.session)
    assert read(model.requests[1])["messages"][1]["content"] == "a"


# ---- verbatim lines --------------------------------------------------------------------------------------------------


class Saying:
    """A director that says a line no model wrote, then speaks."""

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        await stage.say("Welcome!", key="greeting")
        await stage.speak(turn.spec.brief)


async def test_a_verbatim_line_meets_the_rules() -> None:
    """It may be allowed or denied."""
    seen: list[tuple[str, bool]] = []

    def look(answer: Answer) -> Allow[Answer]:
        seen.append((answer.text, answer.verbatim))
        return ALLOW

    result = await turn(Agent(ScriptedModel("hi"), director=Saying(), features=[output(look)]))
    assert seen == [("Welcome!", True), ("hi", False)]
    assert [(m.text, m.kind) for m in result.messages] == [("Welcome!", "verbatim"), ("hi", "ai")]
    with pytest.raises(AnswerRefused):
        await turn(Agent(ScriptedModel(), director=Saying(), features=[output(Deny("no greeting"))]))


async def test_a_verbatim_line_is_neither_revised_nor_rewritten() -> None:
    """Nobody could write it again: a wish for it is noted and passed over, a rewrite is a breach."""
    revise = output(lambda a: Revise("friendlier") if a.verbatim else ALLOW)
    result = await turn(Agent(ScriptedModel("hi"), director=Saying(), features=[revise]))
    assert verdicts(result) == [("output", "rule", "allow", "friendlier (no revision left)")]
    with pytest.raises(FeatureFailed, match="it rewrote a verbatim line"):
        await turn(Agent(ScriptedModel(), director=Saying(), features=[output(saying("Hello."))]))


async def test_lines_said_are_streamed_once_they_are_accepted() -> None:
    """Like any words for a person; a blank line keeps two messages apart."""
    texts, _ = await streamed("hi", features=[output(ALLOW)], director=Saying())
    assert texts == ["Welcome!", "\n\n", "hi"]
