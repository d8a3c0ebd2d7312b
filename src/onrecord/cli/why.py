"""Why: the causal slice of an entry as sentences, with the rules, calls and texts that had a part in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onrecord.cli.terminal import Screen, cut, plural, quoted, safe
from onrecord.conversation.render import context_text
from onrecord.honesty.languages import english
from onrecord.honesty.sentences import brief_of, replied_by, units_shown
from onrecord.honesty.slices import slice_of
from onrecord.honesty.templates import Teller
from onrecord.record import kinds
from onrecord.record.entry import Entry, kind_of
from onrecord.record.record import Record

__all__ = ("why_lines",)

TELLER = Teller(english.IN_FULL, english.WORDS, app="Chatbot", limit=0)
ANOTHER = Teller(english.ANOTHER_REPLIED, english.WORDS, app="Chatbot", limit=0)

MOST_TOLD = 300
"""How many characters of a sentence are told; ``--full`` tells all."""


def why_lines(record: Record[Any], seq: int, screen: Screen, *, whole: bool = False) -> Iterator[str]:
    """The explanation of an entry, drawn: one sentence a line, each with the number of the entry that says so."""
    target = record.entry(seq)
    slice_ = slice_of(record, seq)
    telling = _Telling(record, slice_)
    width = max(len(str(seq)), 4)
    yield screen.bold(safe(cut(f"Why {kind_of(target.body)} ({seq}): {brief_of(target.body)}", screen.columns)))
    for entry in slice_:
        for place, sentence in enumerate(telling.sentences(entry)):
            head = f"{entry.seq:>{width}}" if place == 0 else " " * width
            indent = "  " if place == 0 else "    "
            text = safe(cut(sentence, 0 if whole else MOST_TOLD))
            shown = screen.wrapped(f"{head}{indent}{text}", " " * (width + len(indent)))
            yield f"{screen.dim(head)}{shown[len(head) :]}"


class _Telling:
    """Sentences that refer to what was told before: which results are new to a request, which text a digest means."""

    def __init__(self, record: Record[Any], slice_: Sequence[Entry]) -> None:
        self.record = record
        self.texts: Mapping[str, str] = {
            e.body.digest: e.body.text for e in record.entries if isinstance(e.body, kinds.PieceFiled)
        }
        self.fresh: list[str] = []
        self.told: set[str] = set()
        self.requests = 0
        self.asked: dict[str, str] = {}

    def sentences(self, entry: Entry) -> list[str]:
        """One sentence, and details below it."""
        body = entry.body
        if isinstance(body, kinds.ModelRequested):
            return self._requested(body)
        if isinstance(body, kinds.ToolReturned):
            self.fresh.append(body.name)
        if isinstance(body, kinds.ModelReplied) and replied_by(body.round) not in self._names(body.round.id):
            return [ANOTHER.told(body)]
        return [TELLER.told(body) or f"{kind_of(body)}: {brief_of(body)}."]

    def _names(self, round_id: str) -> tuple[str, ...]:
        """Who may reply without being named: whoever was asked, and somebody whom the record does not name."""
        return ("", self.asked.get(round_id, ""))

    def _requested(self, body: kinds.ModelRequested) -> list[str]:
        self.requests += 1
        self.asked[body.round] = body.model
        purpose = {"wrap_up": " for a last answer without tools", "judge": " silently, to judge"}.get(body.purpose, "")
        told = [f"{body.model} was asked{' again' if self.requests > 1 else ''}{purpose}"]
        if self.fresh:
            told.append(f", now with what came of {', '.join(dict.fromkeys(self.fresh))}")
            self.fresh.clear()
        lines = [f"{''.join(told)}."]
        receipt = body.receipt
        if receipt is None:
            return lines
        for piece in receipt.pieces:
            text = self.texts.get(piece.digest)
            missing = "a text that was erased" if receipt.erased else "a text that is not in this record"
            shown = missing if text is None else quoted(text)
            lines.append(f"{piece.source}: {'as before' if piece.digest in self.told else shown}")
            self.told.add(piece.digest)
        added = [span.insert for span in receipt.spans if span.insert is not None]
        units = units_shown(receipt) - len(added)
        history = f"history: {plural(units, 'unit')}"
        if receipt.erased:
            lines.append("history: erased, at least in part")
        else:
            lines.append(history if units == receipt.units else f"{history} of {receipt.units}")
        lines += [f"{insert.writer or 'inserted'}: {quoted(context_text(insert))}" for insert in added]
        if receipt.swaps:
            lines.append(f"{plural(len(receipt.swaps), 'tool result')} shown otherwise than it came")
        if receipt.left_out:
            lines.append(f"left out: {', '.join(dict.fromkeys(left.what for left in receipt.left_out))}")
        if names := self._offered(receipt.offers):
            lines.append(f"tools it could call: {', '.join(names)}")
        if receipt.choice != "auto":
            lines.append(f"tool choice: {receipt.choice}")
        return lines

    def _offered(self, digest: str) -> list[str]:
        from onrecord.jsonio import loads

        try:
            return [str(spec["name"]) for spec in loads(self.texts.get(digest) or "[]")]
        except (ValueError, TypeError, KeyError):
            return []
