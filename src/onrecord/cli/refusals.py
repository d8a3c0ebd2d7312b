"""What a model's wire refuses before anything is sent: one small request for each thing, projected and thrown away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from onrecord.conversation.content import Audio, File, Image, Part, Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import UserMessage
from onrecord.models.model import Model
from onrecord.models.request import Offer, Request, Settings, Span, ToolSpec, View
from onrecord.tools.tool import Tool

__all__ = ("MEDIA", "WISHES", "refusals")

_BYTES = b"\x89PNG"
MEDIA: Mapping[str, Part] = {
    "image as bytes": Image(data=_BYTES),
    "image by URL": Image(url="https://files.example/a.png"),
    "image by file id": Image(file_id="file-1"),
    "audio as bytes": Audio(data=_BYTES),
    "audio by URL": Audio(url="https://files.example/a.wav"),
    "file as bytes": File(data=b"%PDF", media="application/pdf"),
    "file by URL": File(url="https://files.example/a.pdf", media="application/pdf"),
    "file by file id": File(file_id="file-1", media="application/pdf"),
}
"""A message with each kind of media, from each source that it can have."""

_LOOK_UP = Tool("look_up", lambda _args, _ctx: None, "Looks something up.")
_TOOL = Offer(
    tool=_LOOK_UP, spec=ToolSpec(name=_LOOK_UP.id, description=_LOOK_UP.description, schema=_LOOK_UP.parameters)
)
_THINKS = Settings(thinking=2048)
WISHES: Mapping[str, Mapping[str, Any]] = {
    "a call that is demanded": {"offers": (_TOOL,), "choice": "required"},
    "a demanded call with thinking": {"offers": (_TOOL,), "choice": "required", "settings": _THINKS},
    "temperature": {"settings": Settings(temperature=0.5)},
    "temperature with thinking": {"settings": replace(_THINKS, temperature=0.5)},
    "temperature with top_p": {"settings": Settings(temperature=0.5, top_p=0.9)},
    "stop": {"settings": Settings(stop=("END",))},
    "seed": {"settings": Settings(seed=1)},
    "thinking by effort": {"settings": Settings(thinking="low")},
    "thinking by tokens": {"settings": Settings(thinking=2048)},
    "thinking off": {"settings": Settings(thinking="none")},
    "search": {"settings": Settings(search=True)},
    "search beside tools": {"settings": Settings(search=True), "offers": (_TOOL,)},
}
"""What a request may ask for beside its conversation, as fields of it."""


def refusals(model: Model) -> dict[str, tuple[str, ...]]:
    """By name of `MEDIA` and `WISHES` why this model cannot be asked so; what it can be asked is not there. Pure."""
    asked = [(name, _request(model, part)) for name, part in MEDIA.items()]
    asked += [(name, _request(model, Text("Hello"), **fields)) for name, fields in WISHES.items()]
    found = {name: tuple(issue.what for issue in model.wire(request).issues) for name, request in asked}
    return {name: told for name, told in found.items() if told}


def _request(model: Model, part: Part, **fields: Any) -> Request:
    said = Conversation.of([UserMessage(id="u0", content=(part,))])
    view = View(spans=(Span(0, 1),))
    return Request(
        purpose="speak", where="main/r0", pieces=(), conversation=said, own=1, view=view, model=model, **fields
    )
