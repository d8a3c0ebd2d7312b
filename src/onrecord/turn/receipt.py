"""Receipts: what was sent, as digests; and rebuilding a request from the record, with every digest checked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from onrecord.conversation.content import Part
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.log import Log
from onrecord.conversation.messages import ContextMessage, Unit
from onrecord.errors import UsageError
from onrecord.jsonio import digest
from onrecord.models.model import Model, scope_of, session_in
from onrecord.models.names import as_model
from onrecord.models.request import (
    NO_SETTINGS,
    HeadMarks,
    Offer,
    Piece,
    Purpose,
    Request,
    Settings,
    Shape,
    Span,
    Swap,
    ToolSpec,
    View,
    Wire,
)
from onrecord.record.entry import Entry
from onrecord.record.kinds import Erased, ModelRequested, PieceFiled
from onrecord.record.receipts import HeadMark, LeftMark, PieceMark, Receipt, SpanMark, SwapMark
from onrecord.record.record import Record
from onrecord.session.chain import Chain, chain_of
from onrecord.session.session import KEPT_FILED, Session
from onrecord.tools.tool import Tool
from onrecord.turn.turn import Turn

__all__ = ("Gap", "Rebuilt", "file_receipt", "rebuild")

_encode = msgspec.json.Encoder().encode


def _members(filed: tuple[str, ...]) -> Collection[str]:
    return filed if len(filed) <= KEPT_FILED else frozenset(filed)


def file_request(turn: Turn, request: Request, round_id: str) -> Entry:
    """Files that this request is sent, with its receipt, and counts the call."""
    receipt = None if request.wire is None else file_receipt(turn, request, request.wire)
    requested = ModelRequested(round=round_id, purpose=request.purpose, model=request.model.card.name, receipt=receipt)
    entry = turn.note(requested, where=request.where)
    turn.llm_calls += 1
    return entry


def file_receipt(turn: Turn, request: Request, wire: Wire) -> Receipt:
    """The receipt of a request; texts that were never filed in this session are filed first."""
    key = turn.session.digest_key
    units = request.conversation.units
    chain = chain_of(units, key)
    view, settings, filed = request.view, request.settings, _members(turn.working.filed)
    pieces, marks = chain.marked
    if pieces is not request.pieces or any(m.digest not in filed for m in marks):
        # The same tuple comes back from turn to turn, so that its marks are made once.
        marks = tuple(
            PieceMark(source=p.source, rank=p.rank, place=p.place, digest=_filed(turn, chain, p.text, p.source))
            for p in request.pieces
        )
        chain.marked = (request.pieces, marks)
    spans = [
        SpanMark(start=s.start, stop=s.stop, chain=chain.upto(units, s.stop))
        if isinstance(s, Span)
        else SpanMark(insert=s)
        for s in view.spans
    ]
    return Receipt(
        pieces=marks, spans=tuple(spans),
        swaps=tuple(SwapMark(unit=s.unit, call=s.call, shows=s.shows) for s in view.swaps) if view.swaps else (),
        marks=view.marks, head=None if view.head is None else _head_mark(view.head), stand_ins=view.stand_ins,
        degrade=view.degrade, left_out=_left_out(wire) if wire.issues else (),
        units=len(units), own=request.own, choice=request.choice, scope=request.scope,
        carries="" if request.carries is None else str(request.carries),
        offers=_filed(turn, chain, offers_text(request.offers), "offers") if request.offers else "",
        shape=_filed(turn, chain, shape_text(request.shape), "shape") if request.shape else "",
        settings=_NONE if settings is NO_SETTINGS else msgspec.to_builtins(settings),
        stable_until=wire.stable_until,
    )  # fmt: skip


def _left_out(wire: Wire) -> tuple[LeftMark, ...]:
    return tuple(LeftMark(unit=issue.unit, what=issue.what) for issue in wire.issues)


def _head_mark(head: HeadMarks) -> HeadMark:
    return HeadMark(system=head.system, tools=head.tools, ttl=head.ttl)


def _head(mark: HeadMark) -> HeadMarks:
    return HeadMarks(system=mark.system, tools=mark.tools, ttl=mark.ttl)


_NONE: Mapping[str, Any] = {}
_OFFERS: dict[int, tuple[tuple[Offer, ...], str]] = {}


def offers_text(offers: tuple[Offer, ...]) -> str:
    """Tool definitions as one text; the same tuple is encoded once."""
    held = _OFFERS.get(id(offers))
    if held is None or held[0] is not offers:
        if len(_OFFERS) > 256:
            _OFFERS.clear()
        held = _OFFERS[id(offers)] = (offers, _encode([o.spec for o in offers]).decode())
    return held[1]


_SHAPES: dict[int, tuple[Shape[Any], str]] = {}


def shape_text(shape: Shape[Any]) -> str:
    """A shape's name and schema as one text; the same shape is encoded once."""
    held = _SHAPES.get(id(shape))
    if held is None or held[0] is not shape:
        if len(_SHAPES) > 256:
            _SHAPES.clear()
        held = _SHAPES[id(shape)] = (shape, _encode([shape.name, shape.schema]).decode())
    return held[1]


def _filed(turn: Turn, chain: Chain, text: str, source: str) -> str:
    mark = chain.text(text)
    if mark not in turn.working.filed:
        turn.note(PieceFiled(digest=mark, text=text, source=source))
    return mark


# ---- rebuilding ------------------------------------------------------------------------------------------------------


class Gap(Struct, frozen=True, kw_only=True):
    """Something of a request that the record cannot prove: ``what`` it is, and ``why`` not.

    ``erased``: it could be proved until it was erased.
    """

    what: str
    why: str
    erased: bool = False


class Rebuilt(Struct, frozen=True, kw_only=True):
    """A request as the record tells it. Without ``gaps`` every part of it equals what was sent.

    ``pieces`` are texts by mark, ``shown`` the units and inserts in order, ``offers`` the tool definitions as JSON.
    """

    seq: int
    purpose: str
    where: str
    conversation: Conversation
    receipt: Receipt
    pieces: tuple[tuple[PieceMark, str], ...]
    shown: tuple[Unit | ContextMessage, ...]
    swaps: Mapping[tuple[int, int], tuple[Part, ...]]
    offers: str
    shape: str
    gaps: tuple[Gap, ...]

    def request(self, model: Model | str) -> Request:
        """The request itself; ``model.wire`` makes the very bytes of it that the same model sent.

        That is the one it was composed for, or the one that answered in its place: for another model it is the request
        as that one gets it, without what the first keeps natively. What an attempt was told besides is in its
        ``model.attempted``. Its tools are described but cannot be run. UsageError when there are gaps.
        """
        if self.gaps:
            told = "; ".join(f"{gap.what}: {gap.why}" for gap in self.gaps)
            raise UsageError(f"the request at {self.seq} has gaps", hint=told)
        receipt, model = self.receipt, as_model(model)
        session = session_in(receipt.scope)
        specs = msgspec.json.decode(self.offers or "[]", type=list[ToolSpec])
        shape = msgspec.json.decode(self.shape, type=tuple[str, dict[str, Any]]) if self.shape else None
        return Request(
            purpose=cast(Purpose, self.purpose), where=self.where, conversation=self.conversation, own=receipt.own,
            pieces=tuple(Piece(source=m.source, text=t, rank=m.rank, place=cast(Any, m.place)) for m, t in self.pieces),
            view=View(
                spans=tuple(Span(s.start, s.stop) if s.insert is None else s.insert for s in receipt.spans),
                swaps=tuple(Swap(unit=s.unit, call=s.call, shows=s.shows) for s in receipt.swaps), marks=receipt.marks,
                head=None if receipt.head is None else _head(receipt.head), stand_ins=receipt.stand_ins,
                degrade=receipt.degrade,
            ),
            model=model, choice=receipt.choice,
            scope=receipt.scope if session is None else scope_of(model.card, session),
            offers=tuple(
                Offer(tool=Tool(s.name, _not_here, s.description, parameters=s.schema), spec=s) for s in specs
            ),
            settings=msgspec.convert(receipt.settings, Settings) if receipt.settings else NO_SETTINGS,
            shape=None if shape is None else Shape(name=shape[0], schema=shape[1], read=_not_here),
            carries=int(receipt.carries) if receipt.carries else None,
        )  # fmt: skip


def _not_here(*_: object) -> Any:
    raise UsageError("a rebuilt request can be read and projected, not run")


def rebuild(record: Record[Session], seq: int) -> Rebuilt:
    """The request filed at ``seq``, rebuilt from the entries before it, every digest verified and every gap named.

    UsageError when that entry is no ``model.requested`` with a receipt.
    """
    entry = record.entry(seq)
    body = entry.body
    if isinstance(body, Erased):
        raise UsageError(f"entry {seq} ({body.was}) was erased", hint=f"why: {body.why}")
    if not isinstance(body, ModelRequested) or body.receipt is None:
        raise UsageError(f"entry {seq} is no request with a receipt", hint="look for entries of kind model.requested")
    receipt, gaps = body.receipt, list[Gap]()
    session = record.state_at(seq)
    texts = _texts(record.entries, session.digest_key, seq, gaps)
    units = session.conversation.units
    gaps += gaps_of(receipt, units, Chain(session.digest_key, []), texts)
    return Rebuilt(
        seq=seq,
        purpose=body.purpose,
        where=entry.where,
        conversation=session.conversation,
        receipt=receipt,
        pieces=tuple((mark, texts.get(mark.digest, "")) for mark in receipt.pieces),
        shown=_shown(receipt, units),
        swaps={(s.unit, s.call): s.shows for s in receipt.swaps},
        offers=texts.get(receipt.offers, ""),
        shape=texts.get(receipt.shape, ""),
        gaps=tuple(gaps),
    )


def _texts(entries: Sequence[Entry], key: str, upto: int, gaps: list[Gap]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry.body, PieceFiled) and entry.seq <= upto:
            gap = gap_of_text(entry.body, entry.seq, key)
            if gap is None:
                texts[entry.body.digest] = entry.body.text
            else:
                gaps.append(gap)
    return texts


def gap_of_text(filed: PieceFiled, seq: int, key: str) -> Gap | None:
    """The gap that a filed text leaves when its digest is not its own."""
    if digest(filed.text.encode(), key) == filed.digest:
        return None
    return Gap(what=f"text filed at {seq}", why="its digest does not match its text")


def gaps_of(receipt: Receipt, units: Log[Unit], chain: Chain, texts: Collection[str]) -> Iterator[Gap]:
    """What of a receipt these units, and the digests of the texts filed before it, do not prove."""
    if receipt.erased:
        yield Gap(what="history", why="some of it was erased", erased=True)
        for what, mark in _marks(receipt):
            if mark not in texts:
                yield Gap(what=what, why="its text was erased", erased=True)
        return
    if len(units) != receipt.units:
        yield Gap(what="conversation", why=f"{receipt.units} units were known, the record folds to {len(units)}")
    for what, mark in _marks(receipt):
        if mark not in texts:
            yield Gap(what=what, why="no matching text was filed before it")
    for span in receipt.spans:
        if span.insert is not None:
            continue
        if span.stop > len(units):
            yield Gap(what=f"units {span.start} to {span.stop}", why="the record does not reach that far")
        elif chain.upto(units, span.stop) != span.chain:
            yield Gap(what=f"units up to {span.stop}", why="their chained digest does not match")


def _marks(receipt: Receipt) -> Iterator[tuple[str, str]]:
    for piece in receipt.pieces:
        yield f"piece {piece.source!r}", piece.digest
    if receipt.offers:
        yield "offers", receipt.offers
    if receipt.shape:
        yield "shape", receipt.shape


def _shown(receipt: Receipt, units: Log[Unit]) -> tuple[Unit | ContextMessage, ...]:
    shown: list[Unit | ContextMessage] = []
    for span in receipt.spans:
        if span.insert is not None:
            shown.append(span.insert)
        elif span.stop <= len(units):
            shown.extend(units[span.start : span.stop])
    return tuple(shown)
