"""Messages: a request as the bytes of its body. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from onrecord.conversation.messages import Round, Unit
from onrecord.jsonio import Json, dumps, read_object
from onrecord.models.lanes import UnitEncoder
from onrecord.models.model import ModelCard
from onrecord.models.projection import Projection
from onrecord.models.request import HeadMarks, Piece, Request, Span, Wire
from onrecord.models.request_tails import RequestTails
from onrecord.models.written_forms import schema_text
from onrecord.providers.anthropic.cards import Rules
from onrecord.providers.anthropic.content_blocks import is_blank, replayable
from onrecord.providers.anthropic.units import BY_MODEL, END, NOTHING_SHOWN, USER, AnthropicUnits, text_bytes
from onrecord.providers.anthropic.wishes import Wishes, wants_thinking

__all__ = ("MARKS", "AnthropicProjection")

MARKS = 4
"""How many cache marks the vendor takes in one request."""
_MARK = b',"cache_control":{"type":"ephemeral"}}'
_LASTING_MARK = b',"cache_control":{"type":"ephemeral","ttl":"1h"}}'
_NO_MARKS = HeadMarks()


class AnthropicProjection(AnthropicUnits, Projection):
    """Messages for one model: leading instructions are blocks of ``system``, one for each piece.

    ``lasting`` cache marks keep what is before them for an hour, others for minutes.
    """

    hoists = True

    def __init__(self, card: ModelCard, rules: Rules = Rules(), *, lasting: bool = False) -> None:  # noqa: B008 - immutable
        self.card, self.rules = card, rules
        self.wishes = Wishes(card, rules)
        self.profile = (card.images, card.files)
        self._model = b'{"model":' + dumps(card.model)
        self._cut = _LASTING_MARK if lasting else _MARK
        self._lasting: AnthropicProjection | None = None
        self._heads: tuple[object, bytes] = ((), b"")
        self._tails = RequestTails()

    # ---- marks

    def mark(self, body: bytes, /) -> bytes:
        return body[:-1] + self._cut

    def wire(self, request: Request, /) -> Wire:
        """See `Projection.wire`; of more marks than the vendor takes, the last ones in the body stay."""
        return super(AnthropicProjection, self._for(request)).wire(self._marked(request))

    def sent(self, request: Request, /) -> None:
        super(AnthropicProjection, self._for(request)).sent(request)

    def _for(self, request: Request) -> AnthropicProjection:
        """This projection, or the one that writes lasting marks; both share lanes, which hold no marks."""
        head = request.view.head
        if head is None or head.ttl == "short":
            return self
        if self._lasting is None:
            self._lasting = AnthropicProjection(self.card, self.rules, lasting=True)
        return self._lasting

    def _marked(self, request: Request) -> Request:
        """The request with the marks of units that are set, at most as many as the vendor takes."""
        view, units = request.view, request.conversation.units
        if not view.marks:
            return request
        encoder = self.encoder(view)
        places = (at for at in sorted(set(view.marks)) if at < len(units))
        kept = tuple(at for at in places if _ends_with_user(units[at], encoder, request.scope))[-MARKS:]
        return request if kept == view.marks else replace(request, view=replace(view, marks=kept))

    def _head_marks(self, request: Request) -> tuple[int, bool]:
        """After so many system pieces, and after the tools, as far as the marks of units leave room."""
        head = request.view.head or _NO_MARKS
        room = MARKS - len(request.view.marks)
        pieces = sorted((one for one in request.pieces if one.place == "system"), key=_rank)[: head.system]
        said = sum(not is_blank(piece.text) for piece in pieces) if room > 0 else 0
        return said, head.tools and room > (1 if said else 0)

    # ---- what surrounds the units

    def frame(self, request: Request, system: Sequence[str], /, *, empty: bool) -> tuple[bytes, bytes]:
        marked, tools = self._head_marks(request) if request.view.head is not None else (0, False)
        thinks = self.card.thinking != "budget" or not wants_thinking(request.settings) or _may_think(self, request)
        tail = self._tails.of(request, self._fields, tools, thinks)
        if request.shape is not None and not self.wishes.shapes(request):
            system = [*system, schema_text(request.shape)]
        head = self._head(tuple(system), marked)
        return (head + NOTHING_SHOWN, tail) if empty else (head, tail)

    def refusals(self, request: Request, /) -> Iterable[str]:
        return self.wishes.refusals(request)

    def thinking_refusals(self, request: Request, /) -> Iterable[str]:
        return self.wishes.thinking_refusals(request)

    def resumed(self, request: Request, wire: Wire, items: Sequence[bytes]) -> Wire:
        """The body of a request whose reply paused, with what the model said so far as its last entry."""
        _, tail = self._for(request).frame(self._marked(request), (), empty=False)
        if not (body := wire.body).endswith(tail):  # of a card that is no longer this one
            body = self.wire(request).body
        said = b"," + BY_MODEL + b",".join(items) + END
        return Wire(body=body.removesuffix(tail) + said + tail, stable_until=wire.stable_until)

    def _head(self, system: tuple[str, ...], marked: int) -> bytes:
        key = (system, marked)
        if self._heads[0] == key:
            return self._heads[1]
        blocks = [text_bytes(text) for text in system if not is_blank(text)]
        if 0 < marked <= len(blocks):
            blocks[marked - 1] = self.mark(blocks[marked - 1])
        instructions = b',"system":[' + b",".join(blocks) + b"]" if blocks else b""
        head = self._model + instructions + b',"messages":['
        self._heads = (key, head)
        return head

    def _fields(self, request: Request, mark_tools: bool, thinks: bool) -> dict[str, Json]:  # noqa: FBT001 - of a key
        fields = self.wishes.fields(request, thinks=thinks)
        if mark_tools and (tools := fields.get("tools")):
            fields["tools"] = [*tools[:-1], {**tools[-1], **_cache_control(self._cut)}]
        return fields


def _cache_control(cut: bytes) -> dict[str, Json]:
    held: dict[str, Json] = read_object("{" + cut[1:].decode()) or {}
    return held


def _rank(piece: Piece) -> int:
    return piece.rank


def _ends_with_user(unit: Unit, encoder: UnitEncoder, scope: str) -> bool:
    if not isinstance(unit, Round):
        return True
    if not unit.revised and any(call.status != "asked" for call in unit.calls):
        return True  # with results
    runs = encoder.runs(unit, scope)
    return bool(runs) and runs[-1][0] == USER


def _may_think(wires: AnthropicProjection, request: Request) -> bool:
    """Whether a budget for thinking can be given now.

    A model with a budget refuses it in the middle of its tool calls unless it thought before the first of them: where
    that round is another vendor's, or was made without thinking, this request goes without.
    """
    first: Unit | None = None
    for span in reversed(request.view.spans):
        if not isinstance(span, Span):
            break
        stop = min(span.stop, len(request.conversation.units))
        while stop > span.start and isinstance(unit := request.conversation.units[stop - 1], Round) and unit.calls:
            first, stop = unit, stop - 1
        if stop > span.start:
            break
    if not isinstance(first, Round):
        return True
    held = wires.native(first, request.scope)
    return held is not None and replayable(held.items)[0] > 0
