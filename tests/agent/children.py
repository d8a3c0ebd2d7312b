"""Agents below agents for tests: a clerk whose model does as its message says, and effects that are counted by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask
from onrecord.conversation.usage import Usage
from onrecord.models.request import Request
from onrecord.testing import ScriptedModel, call, reply, shown
from onrecord.tools.tool import Tool, ToolContext

__all__ = ("EACH", "Effects", "ask", "clerk", "obeying", "obeys")

EACH = Usage(input_tokens=10, output_tokens=1)
"""What every call of an `obeying` model uses."""


class Effects:
    """What ran outside: every run by its key, in order. A receiver that knows the key does a thing once."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, str]] = []

    def pay(self, args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
        self.runs.append((ctx.key, str(args["what"])))
        return f"paid {args['what']}"

    @property
    def done(self) -> list[str]:
        """What was done, however often it ran."""
        return list(dict(self.runs).values())


def ask(*words: str, of: str = "clerk") -> Any:
    """A reply that calls the clerk once for each text."""
    return [call(of, message=said) for said in words]


def obeys(request: Request) -> Any:
    """Does what the message says, one word after the other: ``order pay:x`` calls both tools in turn, then says so.

    The message is a list of words: ``order`` and ``pay:what`` are calls; anything else is said at the end.
    """
    talk = shown(request)["messages"]
    began = max(at for at, one in enumerate(talk) if one["role"] == "user")
    words = talk[began]["content"].split()
    done = sum(one["role"] == "tool" for one in talk[began:])
    if done < len(words) and words[done].partition(":")[0] in {"order", "pay"}:
        name, _, what = words[done].partition(":")
        return reply(call(name, what=what or "it"), usage=EACH)
    return reply(f"{words[-1]} is done: {talk[-1]['content']}", usage=EACH)


class _Obeying(ScriptedModel):
    """Asked as often as need be."""

    async def stream(self, request: Request, /) -> Any:
        self.add(obeys)
        async for chunk in super().stream(request):
            yield chunk


def obeying() -> ScriptedModel:
    """A model that does what messages say."""
    return _Obeying()


async def order(args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
    """Asks which size."""
    size = await ctx.ask(Ask(f"Which size of {args['what']}?"))
    return f"{args['what']} in {size.value if size.approved is not False else 'none'}"


def clerk(
    effects: Effects | None = None, *, features: Any = (), ask_with: Callable[..., Any] = order
) -> Agent[Any, str]:
    """An agent that pays, and orders after asking."""
    pays = effects or Effects()
    tools = [Tool("pay", pays.pay, "Pay."), Tool("order", ask_with, "Order.")]
    return Agent(obeying(), name="clerk", tools=tools, features=features, rounds=20)
