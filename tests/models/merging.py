"""A wire that merges entries, hoists instructions and takes cache marks: what future protocols need of projection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Raw

from onrecord.conversation.content import Image, Part, Text
from onrecord.conversation.messages import Authority, Round, ToolCall
from onrecord.conversation.render import instruction
from onrecord.jsonio import dumps
from onrecord.models.lanes import Entries, Run
from onrecord.models.projection import Projection
from onrecord.models.request import Request
from onrecord.models.unit_bytes import result_parts


def _many(objects: Sequence[Any]) -> bytes:
    return dumps(list(objects))[1:-1]


class MergingWire(Projection):
    """User and model entries alternate; results go alone; a body begins and ends on the user's side."""

    protocol = "merging"
    model_kind = "model"
    hoists = True
    entries = Entries(
        opening={
            "user": b'{"role":"user","parts":[',
            "result": b'{"role":"user","parts":[',
            "model": b'{"role":"model","parts":[',
        },
        end=b"]}",
        first="user",
        last=frozenset({"user", "result"}),
    )

    def __init__(self, keep: int = 65_536) -> None:
        self.keep = keep
        self.profile = keep

    def user(self, parts: Sequence[Part], /) -> Sequence[Run]:
        shown = [
            {"text": part.text} if isinstance(part, Text) else {"image": part.url}
            for part in parts
            if isinstance(part, Image) or (isinstance(part, Text) and part.text.strip())
        ]
        return [("user", _many(shown))] if shown else []

    def context(self, authority: Authority, text: str, /) -> Run:
        return "user", dumps({"text": text if authority == "data" else instruction(text, authority)})

    def model_half(self, settled: Round, calls: Sequence[ToolCall], ids: Sequence[str], /) -> bytes:
        words = [{"text": settled.text}] if settled.text.strip() else []
        asked = [
            {"call": {"id": wire, "name": call.name, "args": Raw(call.raw_args.encode())}}
            for wire, call in zip(ids, calls, strict=True)
        ]
        return _many([*words, *asked])

    def results(self, calls: Sequence[ToolCall], ids: Sequence[str], /) -> Sequence[Run]:
        shown = [result_parts(call) for call in calls]
        told = [
            {"result": {"id": wire, "text": "".join(p.text for p in parts if isinstance(p, Text))}}
            for wire, parts in zip(ids, shown, strict=True)
        ]
        images = [part for parts in shown for part in parts if isinstance(part, Image)]
        return [("result", _many(told)), *self.user(images)]

    def mark(self, body: bytes, /) -> bytes:
        return body[:-1] + b',"mark":true}'

    def frame(self, request: Request, system: Sequence[str], /, *, empty: bool) -> tuple[bytes, bytes]:
        head = b'"system":' + dumps("\n\n".join(system)) + b"," if system else b""
        return b"{" + head + b'"entries":[', b"]}"
