"""What a request asks of a model reaches it on every wire: a shape, and a tool by its name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.conversation.content import Image
from onrecord.models.request import Reading, Shape
from tests.models.requests import offer, request, user
from tests.providers.wires import Wire, each_wire

pytestmark = [pytest.mark.unit, each_wire]

CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"degrees": {"type": "integer"}},
    "required": ["degrees"],
    "additionalProperties": False,
}
SHAPE: Shape[Any] = Shape(name="weather", schema=CLOSED, read=lambda held: Reading(text=held.text, value=None))


def under(wire: Wire, **can: Any) -> Any:
    """A model of the wire whose card says this."""
    made: Any = wire.make("http://127.0.0.1:9/v1", wire.vendors[0])
    return made.under(replace(made.card, **can))


@pytest.mark.parametrize("form", ["native", "json", "prompt"])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("choice", ["", "auto", "required"])
def test_a_shape_reaches_the_model_whatever_its_card_says(wire: Wire, form: str, both: bool, choice: str) -> None:
    """In a field of its own or in words, with tools and without, and never both ways."""
    tools: dict[str, Any] = {"offers": (offer(),), "choice": choice} if choice else {}
    body = under(wire, structured=form, structured_with_tools=both).wire(request(user("hi"), shape=SHAPE, **tools)).body
    worded = rb"\"degrees\"" in body
    assert body.count(b"degrees") == 2  # once in the properties, once among those that are required
    assert (b"JSON Schema" in body) == worded
    assert worded or form == "native"
    assert worded or both or not choice


def test_a_choice_by_name_is_the_name_of_a_tool_in_the_vendor_s_place_for_it(wire: Wire) -> None:
    """Case C11, for each wire."""
    asked = request(user("hi"), offers=(offer("price"), offer("find_a_room")), choice="find_a_room")
    body = json.loads(under(wire).wire(asked).body)
    assert (body.get("tool_choice") or body["toolConfig"]) == {
        "chat": {"type": "function", "function": {"name": "find_a_room"}},
        "responses": {"type": "function", "name": "find_a_room"},
        "messages": {"type": "tool", "name": "find_a_room"},
        "google": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["find_a_room"]}},
    }[wire.name]


@pytest.mark.parametrize("path", ["cup.png", "/srv/cup.png", "./a:b.png", "C:\\cup.png"])
def test_the_path_of_a_file_is_no_address(wire: Wire, path: str) -> None:
    """No server can fetch it, and none is asked to; how the bytes are given stands in the guide."""
    model = under(wire, images=True)
    (issue,) = model.wire(request(user(Image(url=path)))).issues
    assert issue.what.startswith("an image by ")
    assert not model.wire(request(user(Image(url="https://files.example/cup.png")))).issues
