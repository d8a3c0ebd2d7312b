"""Why: the causal slice of an entry as sentences, with the rules, calls and texts that had a part in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from onrecord.cli.terminal import Screen, cut, quoted, safe
from onrecord.conversation.render import context_text
from onrecord.honesty.languages import Language, words_of
from onrecord.honesty.sentences import brief_of, replied_by, units_shown
from onrecord.honesty.slices import slice_of
from onrecord.honesty.templates import Teller
from onrecord.record import kinds
from onrecord.record.entry import Entry, kind_of
from onrecord.record.record import Record

__all__ = ("why_lines",)

MOST_TOLD = 300
"""How many characters of a sentence are told; ``--full`` tells all."""


def why_lines(
    record: Record[Any], seq: int, screen: Screen, *, whole: bool = False, language: Language = "en"
) -> Iterator[str]:
    """The explanation of an entry, drawn: one sentence a line, each with the number of the entry that says so."""
    target = record.entry(seq)
    slice_ = slice_of(record, seq)
    telling = _Telling(record, words_of(language))
    width = max(len(str(seq)), 4)
    about = brief_of(target.body) if language == "en" else telling.teller.told(target.body)
    title = f"{telling.why['title']} {kind_of(target.body)} ({seq}){f': {about}' if about else ''}"
    yield screen.bold(safe(cut(title, screen.columns)))
    for entry in slice_:
        for place, sentence in enumerate(telling.sentences(entry)):
            head = f"{entry.seq:>{width}}" if place == 0 else " " * width
            indent = "  " if place == 0 else "    "
            text = safe(cut(sentence, 0 if whole else MOST_TOLD))
            shown = screen.wrapped(f"{head}{indent}{text}", " " * (width + len(indent)))
            yield f"{screen.dim(head)}{shown[len(head) :]}"


def _told(key: str, language: ModuleType) -> bool:
    """Whether a template is about something that is told in full."""
    return any(key == told or key.startswith(f"{told}.") for told in language.IN_FULL)


class _Telling:
    """Sentences that refer to what was told before: which results are new to a request, which text a digest means."""

    def __init__(self, record: Record[Any], language: ModuleType) -> None:
        self.why: Mapping[str, str] = language.WHY
        # Other kinds are told in English by what they hold, and elsewhere by the sentence that they have there.
        english = language is words_of("en")
        rest = {k: v for k, v in language.TEMPLATES.items() if not (english or _told(k, language))}
        self.teller = Teller({**rest, **language.IN_FULL}, language.WORDS, app="Chatbot", limit=0)
        self.another = Teller(language.ANOTHER_REPLIED, language.WORDS, app="Chatbot", limit=0)
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
            return [self.another.told(body)]
        return [self.teller.told(body) or f"{kind_of(body)}: {brief_of(body)}."]

    def _names(self, round_id: str) -> tuple[str, ...]:
        """Who may reply without being named: whoever was asked, and somebody whom the record does not name."""
        return ("", self.asked.get(round_id, ""))

    def _requested(self, body: kinds.ModelRequested) -> list[str]:
        self.requests += 1
        self.asked[body.round] = body.model
        why = self.why
        told = why["asked.again" if self.requests > 1 else "asked"].format(model=body.model)
        told += why.get(body.purpose, "")
        if self.fresh:
            told += why["with"].format(tools=", ".join(dict.fromkeys(self.fresh)))
            self.fresh.clear()
        return [f"{told}.", *([] if body.receipt is None else self._shown(body.receipt))]

    def _shown(self, receipt: kinds.Receipt) -> Iterator[str]:
        """What a request showed: texts, history, tools."""
        why = self.why
        for piece in receipt.pieces:
            text = self.texts.get(piece.digest)
            missing = why["erased" if receipt.erased else "missing"]
            shown = missing if text is None else quoted(text)
            yield f"{piece.source}: {why['as before'] if piece.digest in self.told else shown}"
            self.told.add(piece.digest)
        units = units_shown(receipt)
        if receipt.erased:
            yield why["history.erased"]
        else:
            yield self._counted("history" if units == receipt.units else "history.of", units, units=receipt.units)
        for inserted in (s.insert for s in receipt.spans if s.insert is not None):
            words = context_text(inserted)
            yield f"{inserted.writer or why['inserted']}: {why['as before'] if words in self.told else quoted(words)}"
            self.told.add(words)
        if receipt.swaps:
            yield self._counted("swaps", len(receipt.swaps))
        if receipt.left_out:
            yield why["left out"].format(what=", ".join(dict.fromkeys(left.what for left in receipt.left_out)))
        if names := self._offered(receipt.offers):
            yield why["offers"].format(names=", ".join(names))
        if receipt.choice != "auto":
            yield why["choice"].format(choice=receipt.choice)

    def _counted(self, key: str, count: int, **more: int) -> str:
        return self.why[key if count == 1 else f"{key}.many"].format(count=count, **more)

    def _offered(self, digest: str) -> list[str]:
        from onrecord.jsonio import loads

        try:
            return [str(spec["name"]) for spec in loads(self.texts.get(digest) or "[]")]
        except (ValueError, TypeError, KeyError):
            return []
