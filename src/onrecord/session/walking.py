"""One walk over a whole record, entry by entry; and the same walk with fresh digests.

Each take is folded once, so that a long record is read in one go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.log import Log
from onrecord.conversation.messages import Unit
from onrecord.errors import RecordInvalid
from onrecord.jsonio import digest
from onrecord.record.entry import Entry, kind_of
from onrecord.record.fold import ended_by, takes
from onrecord.record.kinds import ModelRequested, PieceFiled, Receipt, TurnFailed, TurnInterrupted, VerdictFiled
from onrecord.session.chain import chain_of
from onrecord.session.folding import Folds, Working, apply, land
from onrecord.session.session import Session

__all__ = ("Walked", "resalted", "walk")


class Walked(Struct, frozen=True, kw_only=True):
    """An entry, the units of the conversation once it is folded in, and after the last one of a take its session."""

    entry: Entry
    units: Log[Unit]
    session: Session | None = None


def walk(session: Session, entries: Iterable[Entry], folds: Folds) -> Iterator[Walked]:
    """Folds a record onto ``session`` (a fresh one with its key and digest key), entry by entry.

    RecordInvalid names the entry that does not fold.
    """
    for take in takes(entries):
        working = Working(session, folds)
        for place, entry in enumerate(take):
            try:
                apply(working, entry)
                if isinstance(entry.body, ModelRequested):
                    working.settle_open()
                if place == len(take) - 1:
                    session = _after(session, working, take, folds)
            except RecordInvalid as error:
                raise _unfoldable(entry, str(error)) from None
            except (LookupError, StopIteration, TypeError, ValueError, AttributeError) as error:
                raise _unfoldable(entry, type(error).__name__) from error
            last = session if place == len(take) - 1 else None
            yield Walked(entry=entry, units=working.conversation.units, session=last)


def _after(session: Session, working: Working, take: list[Entry], folds: Folds) -> Session:
    """What a take made of the session: read again where its end says that not all folds may read it."""
    if isinstance(take[-1].body, (TurnInterrupted, TurnFailed)):
        return land(session, take, folds)
    if ended_by(take[-1].body) is None:
        working.settle_open()
    return working.session(len(take))


def _unfoldable(entry: Entry, why: str) -> RecordInvalid:
    return RecordInvalid(
        f"entry {entry.seq} ({kind_of(entry.body)}) does not fold: {why}",
        hint="the record was changed, or entries before it are missing",
    )


# ---- fresh digests ---------------------------------------------------------------------------------------------------


def resalted(
    walked: Iterable[Walked], old: str, new: str, shown: Iterable[Walked] | None = None
) -> Iterator[tuple[Entry, Mapping[str, str]]]:
    """Each entry with the digests that the key ``new`` gives, and the digests that were replaced so far.

    What was proved before is proved again, and what was not stays a gap: a digest that does not match its text, or
    whose text is not in the record, becomes a digest of itself. None of the old digests is left. ``shown`` is the same
    record as it leaves, where it looks otherwise: then these are its entries, and its texts are what is proved.
    """
    fresh: dict[str, str] = {"": ""}
    for was, one in ((one, one) for one in walked) if shown is None else zip(walked, shown, strict=True):
        body, held = one.entry.body, was.entry.body
        if isinstance(body, PieceFiled) and isinstance(held, PieceFiled):
            right = digest(held.text.encode(), old) == held.digest
            fresh[held.digest] = digest(body.text.encode() if right else held.digest.encode(), new)
            body = replace(body, digest=fresh[held.digest])
        elif isinstance(body, ModelRequested) and body.receipt is not None:
            body = replace(body, receipt=_resalted_receipt(body.receipt, was.units, one.units, (old, new), fresh))
        elif isinstance(body, VerdictFiled):
            body = replace(body, before=_fresh(body.before, new, fresh), after=_fresh(body.after, new, fresh))
        yield (one.entry if body is one.entry.body else replace(one.entry, body=body)), fresh


def _fresh(mark: str, new: str, fresh: dict[str, str]) -> str:
    """The new digest for one whose text is not at hand: equal ones stay equal."""
    if mark not in fresh:
        fresh[mark] = digest(mark.encode(), new)
    return fresh[mark]


def _resalted_receipt(
    receipt: Receipt, held: Log[Unit], units: Log[Unit], keys: tuple[str, str], fresh: dict[str, str]
) -> Receipt:
    """A receipt over units as they were held, and as they leave."""
    new, was, now = keys[1], chain_of(held, keys[0]), chain_of(units, keys[1])
    spans = tuple(
        span
        if span.insert is not None
        else replace(
            span,
            chain=now.upto(units, span.stop)
            if span.stop <= len(held) and was.upto(held, span.stop) == span.chain
            else _fresh(span.chain, new, fresh),
        )
        for span in receipt.spans
    )
    return replace(
        receipt,
        pieces=tuple(replace(piece, digest=_fresh(piece.digest, new, fresh)) for piece in receipt.pieces),
        spans=spans,
        offers=_fresh(receipt.offers, new, fresh),
        shape=_fresh(receipt.shape, new, fresh),
    )
