"""Messages: units as content blocks, and how blocks of two sides become one list of messages. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from onrecord.conversation.content import Part, Text
from onrecord.conversation.messages import Authority, Continuation, Round, ToolCall, Unit
from onrecord.conversation.render import instruction
from onrecord.jsonio import Json, dumps
from onrecord.models.lanes import Entries, Run
from onrecord.models.model import ModelCard
from onrecord.models.unit_bytes import UnitBytes, result_parts
from onrecord.models.written_forms import arguments
from onrecord.providers.anthropic.cards import NAMES, PROTOCOL
from onrecord.providers.anthropic.content_blocks import block_of, is_blank, refused, replayable, text_block

__all__ = (
    "BY_MODEL",
    "END",
    "MODEL",
    "NOTHING_SHOWN",
    "SAID_NOTHING",
    "THOUGHT",
    "USER",
    "AnthropicUnits",
    "text_bytes",
)

USER, MODEL, THOUGHT = "user", "model", "thought"
SAID_NOTHING = "(no text)"
BY_MODEL = b'{"role":"assistant","content":['
END = b"]}"
_BY_USER = b'{"role":"user","content":['
_CONTINUE = b'{"type":"text","text":"(continue)"}'
NOTHING_SHOWN = _BY_USER + _CONTINUE + END
"""The messages of a request that shows none: the vendor needs one."""
_FAILED = frozenset({"failed", "denied", "invalid", "absent", "not_run", "cancelled"})


class _Sides(Entries, frozen=True, kw_only=True):
    """Entries of two sides that alternate.

    Thinking begins an entry of the model's, since the vendor refuses it behind other blocks of a message: where the
    model spoke before it with nobody in between, a word of the user's side stands between the two.
    """

    def glue(self, last: str, kind: str) -> bytes:
        if last == THOUGHT:
            last = MODEL
        elif last == MODEL and kind == THOUGHT:
            return super().glue(MODEL, USER) + _CONTINUE + super().glue(USER, MODEL)
        return super().glue(last, MODEL if kind == THOUGHT else kind)


class AnthropicUnits(UnitBytes):
    """Units as Messages has them for one model: user and model alternate, and the user's side begins and ends.

    Results begin the entry behind the calls they answer.
    """

    protocol = PROTOCOL
    model_kind = MODEL
    entries = _Sides(
        opening={USER: _BY_USER, MODEL: BY_MODEL, THOUGHT: BY_MODEL},
        end=END,
        first=USER,
        last=frozenset({USER}),
    )
    card: ModelCard

    def user(self, parts: Sequence[Part], /) -> Sequence[Run]:
        if len(parts) == 1 and type(part := parts[0]) is Text:
            return () if is_blank(part.text) else ((USER, text_bytes(part.text)),)
        blocks = self._blocks(parts)
        return ((USER, dumps(blocks)[1:-1]),) if blocks else ()

    def context(self, authority: Authority, text: str, /) -> Run:
        if authority != "data":
            return USER, text_bytes(instruction(text, authority))
        return USER, text_bytes(SAID_NOTHING if is_blank(text) else text)

    def model_half(self, settled: Round, calls: Sequence[ToolCall], ids: Sequence[str], /) -> bytes:
        text = settled.text
        half = [] if is_blank(text) else [text_bytes(text)]
        half += (
            b'{"type":"tool_use","id":%b,"name":%b,"input":%b}'
            % (dumps(wire), dumps(NAMES.fitting(call.name)), arguments(call).encode())
            for wire, call in zip(ids, calls, strict=True)
        )
        return b",".join(half)

    def results(self, calls: Sequence[ToolCall], ids: Sequence[str], /) -> Sequence[Run]:
        return ((USER, b",".join(self._result(call, wire) for call, wire in zip(calls, ids, strict=True))),)

    def _result(self, call: ToolCall, wire: str) -> bytes:
        held: dict[str, Json] = {"type": "tool_result", "tool_use_id": wire}
        blocks = self._blocks(result_parts(call))
        worded = all(block["type"] == "text" for block in blocks)
        if blocks:
            held["content"] = "".join(block["text"] for block in blocks) if worded else blocks
        if worded and call.status in _FAILED:  # an error with media is refused
            held |= {"is_error": True} if blocks else {"content": SAID_NOTHING, "is_error": True}
        return dumps(held)

    def _blocks(self, parts: Sequence[Part]) -> list[dict[str, Json]]:
        return [block for part in parts if not self.refuses(part) and (block := block_of(part)) is not None]

    def refuses(self, part: Part, /) -> str:
        return refused(part, self.card)

    def native(self, settled: Round, scope: str, /) -> Continuation | None:
        held = super().native(settled, scope)
        if held is None:
            return None
        _, items = replayable(held.items)
        if not items:
            return None
        return held if items is held.items else replace(held, items=tuple(items))

    def runs(self, unit: Unit, scope: str, /) -> Sequence[Run]:
        out = super().runs(unit, scope)
        if not isinstance(unit, Round) or (held := self.native(unit, scope)) is None:
            return out
        thoughts, _ = replayable(held.items)
        if not thoughts:
            return out
        at = next(i for i, (kind, _) in enumerate(out) if kind == MODEL)
        half = out[at][1]
        size = sum(len(bytes(item)) + 1 for item in held.items[:thoughts])
        return [*out[:at], (THOUGHT, half[: size - 1]), (MODEL, half[size:]), *out[at + 1 :]]


def text_bytes(text: str) -> bytes:
    """A text as a block."""
    return dumps(text_block(text))
