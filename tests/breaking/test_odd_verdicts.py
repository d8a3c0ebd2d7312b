"""Features that give something of another kind than a moment takes: denied or FeatureFailed, and never kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.inputs import Ask
from onrecord.conversation.messages import ToolCall
from onrecord.errors import FeatureFailed, ModelError, TurnError, UsageError
from onrecord.models.request import Piece, Request, Settings, Span, View, Wire
from onrecord.record.kinds import ToolStarted
from onrecord.testing import ScriptedModel
from onrecord.turn.moments import Allow, Deny, Hooks, Revise, Stop
from tests.breaking.keeping import kept
from tests.turn.acting import Named, Result, call, results, tool, turn

pytestmark = pytest.mark.unit

ANY: Any = None
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


def giving(value: Any) -> Any:
    """A hook of any moment that gives this."""

    async def hook(*_: Any) -> Any:
        return value(*_) if callable(value) else value

    return hook


def no_question(*_: Any) -> Ask:
    """A question that could not be read again."""
    return Ask("?", fields=cast(Any, ("a",)))


async def run(hooks: Hooks) -> Result:
    """A turn with a call under these hooks; whatever it leaves is stored and loaded."""
    agent = Agent(ScriptedModel([call("lookup", city="Lund")], "done", "again"), tools=[tool()],
                  features=[Named("odd", hooks)])  # fmt: skip
    try:
        result = await turn(agent)
    except TurnError as error:
        await kept(cast(Result, error.result))
        raise
    await kept(result)
    return result


@pytest.mark.parametrize("kind", [Deny, Stop, Revise])
@pytest.mark.parametrize("reason", [None, 5, b"no", ""])
def test_a_reason_is_a_text(kind: Callable[[Any], object], reason: Any) -> None:
    """It is filed, and shown to a model or a person."""
    with pytest.raises(UsageError):
        kind(reason)


def test_what_a_verdict_says_can_be_stored() -> None:
    """Half a pair of surrogates is replaced; data is JSON; classes and pieces are what they are taken for."""
    assert Deny("a \ud83d").reason == "a �"
    assert Allow(why="a \ud83d").why == "a �"
    wrongs: tuple[Callable[[], object], ...] = (
        lambda: Deny("no", data={"o": object()}),
        lambda: Deny("no", data={"o": CIRCLE}),
        lambda: Deny("no", data=cast(Any, [1])),
        lambda: Deny("no", error=cast(Any, ValueError)),
        lambda: Revise("no", show=cast(Any, ("a",))),
        lambda: Allow(why=cast(Any, 5)),
    )
    for wrong in wrongs:
        with pytest.raises(UsageError):
            wrong()


@pytest.mark.parametrize("moment", ["on_input", "before_tool", "after_tool"])
@pytest.mark.parametrize("value", [None, 5, "x", Allow(5, "w"), Allow(None, "w"), no_question], ids=range(6))
async def test_a_rule_that_gives_something_else_denies(moment: str, value: Any) -> None:
    """Where a failure can be a denial it is one."""
    if moment == "on_input":
        with pytest.raises(TurnError):
            await run(Hooks(on_input=giving(value)))
        return
    assert results(await run(Hooks(**{moment: giving(value)}))) == [("lookup", "denied")]


@pytest.mark.parametrize("args", [{"o": object()}, {"o": CIRCLE}, {"o": "\ud83d"}], ids=["object", "circle", "half"])
async def test_arguments_that_json_cannot_keep_do_not_run(args: Any) -> None:
    """Returned by a rule; what it puts into its own copy changes nothing."""

    async def returns(_: Any, asked: ToolCall) -> Allow[Any]:
        return Allow(args, "changed")

    async def writes(_: Any, asked: ToolCall) -> Allow[Any]:
        cast(dict[str, Any], asked.args).update(args)
        return Allow()

    assert results(await run(Hooks(before_tool=returns))) == [("lookup", "denied")]
    written = await run(Hooks(before_tool=writes))
    assert results(written) == [("lookup", "returned")]
    assert [dict(e.body.args) for e in written.entries if isinstance(e.body, ToolStarted)] == [{"city": "Lund"}]


CHANGES: dict[str, Any] = {
    "no view": {"view": None},
    "units that are not there": {"view": View(spans=(Span(0, 10**9),))},
    "negative units": {"view": View(spans=(Span(-5, 1),))},
    "no span": {"view": View(spans=cast(Any, (5,)))},
    "no offers": {"offers": None},
    "no offer": {"offers": (5,)},
    "no settings": {"settings": Settings(extra={"o": object()})},
    "another conversation": {"conversation": Conversation()},
    "another purpose": {"purpose": "judge"},
    "another scope": {"scope": None},
    "another start": {"own": -1},
    "a carried unit": {"carries": 99},
    "bytes": {"wire": Wire(body=b"{}")},
    "no shape": {"shape": 5},
    "no pieces": {"pieces": None},
    "no piece": {"pieces": (5,)},
    "a piece without text": {"pieces": (Piece(source="odd", text=ANY, rank=1),)},
    "half a pair": {"pieces": (Piece(source="odd", text="\ud83d", rank=1),)},
    "no rank": {"pieces": (Piece(source="odd", text="a", rank=cast(int, "z")),)},
    "no place": {"pieces": (Piece(source="odd", text="a", rank=1, place=cast(Any, "moon")),)},
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
async def test_a_request_hook_that_leaves_no_request_has_failed(changes: dict[str, Any]) -> None:
    """It says whose it is, before anything is sent."""

    def changed(_: Any, request: Request) -> Request:
        return replace(request, **changes)

    with pytest.raises(FeatureFailed, match="feature 'odd' failed at request"):
        await run(Hooks(on_request=giving(changed)))


ROUNDS: dict[str, Any] = {
    "no content": {"content": None},
    "no part": {"content": ("a",)},
    "no text": {"content": (Text(ANY),)},
    "half a pair": {"content": (Text("\ud83d"),)},
    "no calls": {"calls": None},
    "no call": {"calls": (5,)},
    "a call twice": {"calls": (ToolCall(id="x/c0", wire_id="a", name="n", raw_args="{}", args={}),) * 2},
    "a foreign call": {"calls": (ToolCall(id="elsewhere/c0", wire_id="a", name="n", raw_args="{}", args={}),)},
    "no use": {"use": 5},
    "no correction": {"revised": ("x",)},
}


@pytest.mark.parametrize("changes", ROUNDS.values(), ids=ROUNDS)
async def test_a_reply_hook_that_leaves_no_round_has_failed(changes: dict[str, Any]) -> None:
    """What could not be read again is not kept."""
    with pytest.raises(FeatureFailed, match="feature 'odd' failed at reply"):
        await run(Hooks(on_reply=giving(lambda _, settled: replace(settled, **changes))))


async def test_a_reply_hook_that_asks_what_is_no_question_has_failed() -> None:
    """A question that cannot be kept would lock its session."""
    with pytest.raises(FeatureFailed):
        await run(Hooks(on_reply=giving(no_question)))


@pytest.mark.parametrize(
    "changes",
    [{"text": None}, {"text": 5}, {"text": "\ud83d"}, {"blocks": ("a",)}, {"blocks": None}, {"unmet": None}],
    ids=repr,
)
async def test_an_output_hook_that_leaves_no_answer_has_failed(changes: dict[str, Any]) -> None:
    """What could not be read again is not said."""
    hooks = Hooks(on_output=giving(lambda _, answer: Allow(replace(answer, **changes), "changed")), holds_drafts=True)
    with pytest.raises(FeatureFailed, match="feature 'odd' failed at output"):
        await run(hooks)


@pytest.mark.parametrize("offered", [None, 5, [None], "ab"], ids=repr)
async def test_a_toolset_that_offers_no_tools_has_failed(offered: Any) -> None:
    """The toolset is named."""

    class Odd:
        async def tools(self, ctx: Any) -> Any:
            return offered

    with pytest.raises(FeatureFailed, match="feature 'Odd' failed at request"):
        await turn(Agent(ScriptedModel("done"), tools=[Odd()]))


@pytest.mark.parametrize("gives", [None, 5, ValueError("no")], ids=repr)
async def test_a_model_that_cannot_write_a_request_is_a_model_error(gives: Any) -> None:
    """Whatever its `wire` does."""

    class Odd(ScriptedModel):
        def wire(self, request: Request, /) -> Any:
            if isinstance(gives, Exception):
                raise gives
            return gives

    with pytest.raises(ModelError, match="could not write the request"):
        await turn(Agent(Odd("done")))
