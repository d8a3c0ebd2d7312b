"""Audit: proving every receipt of a record in one walk. `rebuild` answers for one request and folds up to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onrecord.record.kinds import ModelRequested, PieceFiled
from onrecord.session.chain import chain_of
from onrecord.session.walking import Walked
from onrecord.turn.receipt import Gap, gap_of_text, gaps_of

__all__ = ("audit",)


def audit(walked: Iterable[Walked], key: str) -> Iterator[tuple[int, Gap]]:
    """Every gap of every receipt, with the number of its entry; nothing when all can be proved with this digest key."""
    texts: set[str] = set()
    for one in walked:
        body, seq = one.entry.body, one.entry.seq
        if isinstance(body, PieceFiled):
            gap = gap_of_text(body, seq, key)
            if gap is None:
                texts.add(body.digest)
            else:
                yield seq, gap
        elif isinstance(body, ModelRequested) and body.receipt is not None:
            for gap in gaps_of(body.receipt, one.units, chain_of(one.units, key), texts):
                yield seq, gap
