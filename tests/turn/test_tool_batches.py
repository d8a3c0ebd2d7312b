"""Calls of one round: what runs together, in which order results and data land (seed 001)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.governance.rules import after_tool, before_tool
from onrecord.record.kinds import ToolReturned, ToolStarted
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool, ToolResult
from onrecord.turn.moments import Allow, Deny
from tests.turn.acting import asked_once, bodies, kinds, results, tool, turn

pytestmark = pytest.mark.unit


class Meeting:
    """Handlers that meet: with ``together`` each waits until all of them have started."""

    def __init__(self, *names: str) -> None:
        self.log: list[str] = []
        self.waiting = set(names)
        self.met = asyncio.Event()

    def handler(self, name: str, *, data: Mapping[str, Any] | None = None) -> Callable[..., Any]:
        """A handler that logs its start and end, and waits for the others of the meeting."""

        async def run(args: object, ctx: object) -> ToolResult:
            self.log.append(f"{name}:start")
            if name in self.waiting:
                self.waiting.discard(name)
                if self.waiting:
                    await self.met.wait()
                else:
                    self.met.set()
                    await asyncio.sleep(0)  # those that wait go on first
            self.log.append(f"{name}:end")
            return ToolResult(name, data=data)

        return run

    def tool(self, name: str, **fields: Any) -> Tool:
        """The tool of that handler."""
        return tool(name, self.handler(name, data=fields.pop("data", None)), **fields)


async def test_m11_consecutive_safe_calls_run_together_and_any_other_alone() -> None:
    """Proved by two handlers that wait for each other; the unsafe one starts when both are through."""
    meet = Meeting("a", "b")
    a, b, c = meet.tool("a", read_only=True), meet.tool("b", concurrency_safe=True), meet.tool("c")
    _, heard = await asked_once(a, b, c, calls=[call("a"), call("b"), call("c")])
    assert meet.log == ["a:start", "b:start", "a:end", "b:end", "c:start", "c:end"]
    assert heard == ["a", "b", "c"]


async def test_calls_that_are_not_neighbours_do_not_run_together() -> None:
    """An unsafe call between two safe ones keeps its place: a, then c, then b."""
    meet = Meeting()
    a, b, c = meet.tool("a", read_only=True), meet.tool("b", read_only=True), meet.tool("c")
    await asked_once(a, b, c, calls=[call("a"), call("c"), call("b")])
    assert meet.log == ["a:start", "a:end", "c:start", "c:end", "b:start", "b:end"]


async def test_m11_a_destructive_call_never_runs_beside_another() -> None:
    """Whatever its other flags say."""
    meet = Meeting("b", "c")
    a = meet.tool("a", read_only=True, concurrency_safe=True, destructive=True)
    b, c = meet.tool("b", read_only=True), meet.tool("c", read_only=True)
    await asked_once(a, b, c, calls=[call("a"), call("b"), call("c"), call("a")])
    assert meet.log == ["a:start", "a:end", "b:start", "c:start", "b:end", "c:end", "a:start", "a:end"]


async def test_concurrency_safe_wins_over_read_only() -> None:
    """``read_only`` is what is asked when nothing was said about concurrency."""
    meet = Meeting()
    held = [meet.tool(name, read_only=True, concurrency_safe=False) for name in "ab"]
    await asked_once(*held, calls=[call("a"), call("b")])
    assert meet.log == ["a:start", "a:end", "b:start", "b:end"]


async def test_flags_may_be_functions_of_the_arguments() -> None:
    """The same tool reads in one call and writes in another."""
    meet = Meeting("x", "y")

    async def handler(args: Mapping[str, Any], ctx: object) -> Any:
        return await meet.handler(args["name"])(args, ctx)

    held = tool(
        "file", handler, read_only=lambda args: args["mode"] == "r", destructive=lambda args: args["mode"] == "d"
    )
    read_x, read_y = call("file", name="x", mode="r"), call("file", name="y", mode="r")
    await asked_once(held, calls=[call("file", name="w", mode="w"), read_x, read_y, call("file", name="d", mode="d")])
    assert meet.log == ["w:start", "w:end", "x:start", "y:start", "x:end", "y:end", "d:start", "d:end"]


@pytest.mark.parametrize("flag", ["read_only", "concurrency_safe", "destructive"])
async def test_a_flag_that_raises_makes_a_call_run_alone(flag: str) -> None:
    """What cannot judge these arguments does not make them safe, and does not fail the call."""
    meet = Meeting()

    def raising(args: Mapping[str, Any]) -> bool:
        raise KeyError("mode")

    held = [meet.tool(name, **{flag: raising}) for name in "ab"]
    _, heard = await asked_once(*held, calls=[call("a"), call("b")])
    assert heard == ["a", "b"]
    assert meet.log == ["a:start", "a:end", "b:start", "b:end"]


async def test_an_unknown_tool_between_safe_calls_parts_them() -> None:
    """It is not known to be safe; both neighbours still run, in their places."""
    meet = Meeting()
    a, b = meet.tool("a", read_only=True), meet.tool("b", read_only=True)
    result, _ = await asked_once(a, b, calls=[call("a"), call("gone"), call("b")])
    assert meet.log == ["a:start", "a:end", "b:start", "b:end"]
    assert results(result) == [("a", "returned"), ("gone", "absent"), ("b", "returned")]


async def test_a_call_that_a_rule_made_unsafe_runs_alone() -> None:
    """What runs together is judged by the arguments that run, not by those that the model wrote."""
    meet = Meeting()

    @before_tool
    async def write(turn: object, call: Any) -> Allow[Mapping[str, Any]]:
        return Allow({**call.args, "mode": "w"}, "must write")

    async def handler(args: Mapping[str, Any], ctx: object) -> Any:
        return await meet.handler(args["name"])(args, ctx)

    held = tool("file", handler, read_only=lambda args: args["mode"] == "r")
    model = ScriptedModel([call("file", name="x", mode="r"), call("file", name="y", mode="r")], "done")
    await turn(Agent(model, tools=[held], features=[write]))
    assert meet.log == ["x:start", "x:end", "y:start", "y:end"]


async def test_m11_data_lands_in_call_order_whoever_finished_first() -> None:
    """The last call wins a field that several write."""
    second_done = asyncio.Event()

    async def first(args: object, ctx: object) -> ToolResult:
        await second_done.wait()
        return ToolResult("a", data={"last": "a", "a": 1})

    async def second(args: object, ctx: object) -> ToolResult:
        second_done.set()
        return ToolResult("b", data={"last": "b", "b": 1})

    model = ScriptedModel([call("a"), call("b")], "done")
    result = await turn(Agent(model, tools=[tool("a", first, read_only=True), tool("b", second, read_only=True)]))
    assert result.session is not None
    assert result.session.data == {"last": "b", "a": 1, "b": 1}


async def test_results_are_filed_in_call_order_whoever_finished_first() -> None:
    """So is what the model reads, and so do the rules behind the tools see them."""
    second_done, seen = asyncio.Event(), list[str]()

    async def first(args: object, ctx: object) -> str:
        await second_done.wait()
        return "a"

    async def second(args: object, ctx: object) -> str:
        second_done.set()
        return "b"

    @after_tool
    async def look(turn: object, returned: Any) -> Allow[Any]:
        seen.append(returned.call.name)
        return Allow()

    held = [tool("a", first, read_only=True), tool("b", second, read_only=True)]
    result, heard = await asked_once(*held, calls=[call("a"), call("b")], features=[look])
    assert heard == seen == ["a", "b"]
    assert [r.name for r in bodies(result, ToolReturned)] == ["a", "b"]
    assert kinds(result).count("tool.started") == 2


async def test_d46_calls_of_a_batch_alternate_in_order() -> None:
    """Unsafe calls start and end strictly one after another, on the record too."""
    result, _ = await asked_once(*(tool(n) for n in "abc"), calls=[call("a"), call("b"), call("c")])
    told = [e.body for e in result.entries if isinstance(e.body, (ToolStarted, ToolReturned))]
    assert [(type(b).__name__, b.name) for b in told] == [
        (kind, name) for name in "abc" for kind in ("ToolStarted", "ToolReturned")
    ]


async def test_one_failing_call_of_a_group_leaves_the_others_alone() -> None:
    """Its neighbours finish, and each tells its own end."""
    meet = Meeting("a", "b")

    async def broken(args: object, ctx: object) -> None:
        raise RuntimeError("no")

    held = [meet.tool("a", read_only=True), tool("x", broken, read_only=True), meet.tool("b", read_only=True)]
    result, heard = await asked_once(*held, calls=[call("a"), call("x"), call("b")])
    assert heard == ["a", '{"error":"no"}', "b"]
    assert results(result) == [("a", "returned"), ("x", "failed"), ("b", "returned")]


async def test_equal_calls_of_one_round_have_keys_of_their_own() -> None:
    """The key names what is done; the second equal call is another deed."""
    keys: list[str] = []
    held = tool("pay", lambda _, ctx: keys.append(ctx.key))
    result, _ = await asked_once(held, calls=[call("pay", n=1), call("pay", n=1), call("pay", n=2)])
    assert keys[1] == f"{keys[0]}/1"
    assert len(set(keys)) == 3
    assert [b.key for b in bodies(result, ToolStarted)] == keys
    assert all(key.startswith(f"{result.entries[0].turn}/answer/pay:") for key in keys)


async def test_around_a_call_that_a_rule_made_unsafe_the_others_stay_together() -> None:
    """Neighbours that are still safe run beside each other, in the order of the calls."""
    meet = Meeting("x", "y")

    @before_tool
    async def write(turn: object, call: Any) -> Allow[Mapping[str, Any]]:
        return Allow({**call.args, "mode": "w"}, "must write") if call.args["name"] == "w" else Allow()

    async def handler(args: Mapping[str, Any], ctx: object) -> Any:
        return await meet.handler(args["name"])(args, ctx)

    held = tool("file", handler, read_only=lambda args: args["mode"] == "r")
    model = ScriptedModel([call("file", name=n, mode="r") for n in "xyw"], "done")
    await turn(Agent(model, tools=[held], features=[write]))
    assert meet.log == ["x:start", "y:start", "x:end", "y:end", "w:start", "w:end"]


async def test_a_denial_that_stops_the_turn_stops_the_rest_of_its_group() -> None:
    """Calls that would have run together: those before it run, those behind it do not."""
    meet = Meeting()

    @before_tool
    async def halt(turn: object, call: Any) -> Any:
        return Deny("enough", halt=True) if call.name == "b" else Allow()

    held = [meet.tool(name, read_only=True) for name in "abc"]
    model = ScriptedModel([call("a"), call("b"), call("c")])
    result = await turn(Agent(model, tools=held, features=[halt]))
    assert meet.log == ["a:start", "a:end"]
    assert [(r.name, r.status) for r in bodies(result, ToolReturned)] == [
        ("b", "denied"), ("a", "returned"), ("c", "not_run")
    ]  # fmt: skip


@pytest.mark.parametrize("together", [1, 2])
async def test_a_cancelled_turn_takes_its_handlers_with_it(together: int) -> None:
    """Alone or side by side: none goes on by itself, and nothing is told to anybody."""
    running, ended = asyncio.Event(), list[str]()

    async def handler(args: object, ctx: object) -> None:
        try:
            running.set()
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    held = tool("slow", handler, read_only=True)
    task = asyncio.ensure_future(turn(Agent(ScriptedModel([call("slow")] * together), tools=[held])))
    await running.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["ended"] * together
