"""Sources of tools that are consulted each round."""

from typing import cast

import pytest

from onrecord.errors import ToolInvalid
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import OfferContext, StaticTools, Toolset, gated, prefixed

pytestmark = pytest.mark.unit


def nothing(*_: object) -> None:
    """The handler of every tool here."""


def made(id: str) -> Tool:
    """A tool that does nothing."""
    return Tool(id, nothing)


async def ids(source: Toolset, n: int = 0) -> list[str]:
    """What a source offers in a round, by id."""
    return [tool.id for tool in await source.tools(OfferContext(turn="t", round=n))]


async def test_static_tools_are_a_copy() -> None:
    """A list that changes later changes nothing."""
    tools = [made("read"), made("write")]
    source = StaticTools(tools)
    tools.clear()
    assert await ids(source) == ["read", "write"]


def test_two_tools_with_one_id_are_refused_by_name() -> None:
    """The model could not say which one it calls."""
    with pytest.raises(ToolInvalid, match="two tools have the id 'read'"):
        StaticTools([made("read"), made("read")])


def test_what_is_no_tool_is_refused_by_name() -> None:
    """A function without @tool is the usual slip, and the hint says so."""

    def lookup() -> None: ...

    with pytest.raises(ToolInvalid, match="'lookup' is not a tool") as refused:
        StaticTools([cast("Tool", lookup)])
    assert "@tool" in refused.value.hint
    with pytest.raises(ToolInvalid, match="'int' is not a tool"):
        StaticTools([cast("Tool", 3)])


async def test_a_gate_is_asked_anew_each_round() -> None:
    """A tool may be hidden in one round and offered in the next (loop cases, 161)."""
    source = gated([made("read"), made("del")], lambda id, ctx: id != "del" or ctx.round != 2)
    assert await ids(source, 1) == ["read", "del"]
    assert await ids(source, 2) == ["read"]
    assert await ids(source, 3) == ["read", "del"]


async def test_a_source_that_raises_is_not_silenced() -> None:
    """The loop turns it into a failed feature; an empty offer would be a lie."""

    class Broken:
        async def tools(self, ctx: OfferContext, /) -> list[Tool]:
            raise OSError("server gone")

    with pytest.raises(OSError, match="server gone"):
        await ids(gated(Broken(), lambda *_: True))


async def test_a_prefix_keeps_two_sources_apart() -> None:
    """The same tool under its longer id, and the same object in every round."""
    source = prefixed(StaticTools([made("read")]), "files_")
    assert await ids(source) == ["files_read"]
    first, second = [(await source.tools(OfferContext(turn="t", round=n)))[0] for n in (0, 1)]
    assert first is second


async def test_a_prefixed_tool_follows_the_source() -> None:
    """A source that replaces a tool is believed."""

    class Changing:
        async def tools(self, ctx: OfferContext, /) -> list[Tool]:
            return [Tool("read", nothing, f"round {ctx.round}")]

    source = prefixed(Changing(), "a_")
    for n in (0, 1):
        assert (await source.tools(OfferContext(turn="t", round=n)))[0].description == f"round {n}"


def test_an_empty_prefix_is_refused() -> None:
    """It would rename nothing, and hide that it does."""
    with pytest.raises(ToolInvalid, match="cannot be empty"):
        prefixed([made("read")], "")
