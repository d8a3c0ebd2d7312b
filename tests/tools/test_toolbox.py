"""Toolbox: tools collected as they are written."""

from collections.abc import Sequence
from typing import Literal

import pytest

from onrecord.errors import ToolInvalid
from onrecord.tools.declare import Toolbox, tool
from onrecord.tools.tool import Tool

pytestmark = pytest.mark.unit


@tool
def price(city: str) -> int:
    """Price of a stay."""
    return len(city)


def test_a_toolbox_is_the_sequence_of_its_tools() -> None:
    """It can be passed wherever a list of tools can."""
    box = Toolbox([price])

    @box.tool
    def first() -> None: ...

    @box.tool(id="second", read_only=True)
    def other() -> None: ...

    extra = box.tool(Tool("third", lambda *_: None))
    assert isinstance(box, Sequence)
    assert list(box) == [price, first, other, extra]
    assert (box[1], box[-1], len(box), extra in box) == (first, extra, 4, True)
    assert list(box[1:3]) == [first, other]
    assert other.is_read_only({})
    assert repr(box) == "Toolbox('price', 'first', 'second', 'third')"


def test_a_toolbox_refuses_an_id_twice() -> None:
    """At once, and nothing is added."""
    box = Toolbox([price])
    with pytest.raises(ToolInvalid, match="two tools have the id 'price'"):
        box.tool(price)
    assert list(box) == [price]


def test_a_toolbox_resolves_names_where_it_is_used() -> None:
    """Like @tool itself."""
    box = Toolbox()
    level_ = Literal["low"]

    @box.tool
    def one(level: "level_") -> None:
        assert level_

    @box.tool(id="two")
    def two(level: "level_") -> None:
        assert level_

    assert [made.parameters["properties"]["level"]["enum"] for made in box] == [["low"], ["low"]]
