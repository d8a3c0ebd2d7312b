"""Corpus: the passages of many documents, found by their words, by what they mean, or by both."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from onrecord.declared import declared
from onrecord.errors import ConfigurationError, DocumentInvalid, ModelError, OnrecordError, UsageError
from onrecord.jsonio import digest
from onrecord.memory.documents import Document, Passage, passages_of
from onrecord.memory.embedding import embedded, embedded_soon
from onrecord.memory.keyword_index import KeywordIndex
from onrecord.memory.optional_libraries import numpy_for_vectors
from onrecord.memory.ports import Embedder, VectorIndex, fingerprint
from onrecord.memory.ranking import DEPTH, fused
from onrecord.memory.splitters import Splitter, by_heading
from onrecord.memory.vector_index import MakeIndex, NumpyIndex, matrix_of

__all__ = ("Corpus", "Hit", "Indexed", "Mode")

Mode: TypeAlias = Literal["hybrid", "keyword", "vector"]

BATCH, AT_ONCE = 64, 4
"""Texts that an embedder is given together, and how many such calls run side by side."""

_FORMAT = 1


class Hit(Struct, frozen=True, kw_only=True):
    """A passage that a search found. ``score`` is what it was ranked by; ``cosine`` how near it is, where vectors were
    compared.
    """

    passage: Passage
    score: float
    cosine: float | None = None


class Indexed(Struct, frozen=True, kw_only=True):
    """What making a corpus came to: how many texts were embedded, and how many vectors were taken over."""

    documents: int
    passages: int
    embedded: int
    reused: int


class _Stored(Struct, frozen=True, array_like=True):
    format: int
    passages: tuple[Passage, ...]
    documents: int
    embedder: str
    dims: int
    vectors: bytes


@declared
class Corpus:
    """Passages, ready to be searched; made with `of` or `from_bytes`, and never changed. Safe to use from many turns.

    Without an embedder it is searched by words alone, and needs nothing but Python. With one it needs the extra
    ``retrieval`` (numpy), and a search also asks the embedder for the vector of the question.
    """

    def __init__(
        self, passages: Sequence[Passage], *, embedder: Embedder | None = None, matrix: Any = None,
        index: MakeIndex = NumpyIndex, documents: int = 0, indexed: Indexed | None = None,
    ) -> None:  # fmt: skip
        if any(isinstance(one, Document) for one in passages):
            raise ConfigurationError(
                "a Corpus holds passages, and these are documents", hint="await Corpus.of(documents)"
            )
        self.passages = tuple(passages)
        self.embedder = embedder
        self.documents = documents
        self.indexed = indexed or Indexed(documents=documents, passages=len(self.passages), embedded=0, reused=0)
        self._matrix = matrix
        self._words = KeywordIndex(f"{p.title} {p.heading} {p.text}" for p in self.passages)
        self._vectors: VectorIndex | None = None if matrix is None else index(matrix)

    @classmethod
    @declared
    async def of(
        cls, documents: Iterable[Document], *, splitter: Splitter | None = None, embedder: Embedder | None = None,
        before: Corpus | None = None, index: MakeIndex = NumpyIndex,
    ) -> Corpus:  # fmt: skip
        """Cuts documents (in a thread, where they are loaded too) and embeds their passages.

        ``splitter`` is `by_heading` of 1,000 characters where none is given; without ``embedder`` there are no vectors;
        ``index`` is what compares them (`NumpyIndex`, `UsearchIndex`). Vectors of ``before``, made by an embedder of
        the same name, are taken over for texts that have not changed. Nothing is left of it that is not in
        ``documents``. Raises what loading raises; DocumentInvalid for two documents of one id; ModelError where the
        embedder failed: there is no half of a corpus.
        """
        passages, count = await asyncio.to_thread(_cut, documents, splitter or by_heading())
        matrix, embedded = None, 0
        if embedder is not None and passages:
            known = {} if before is None else before.vectors_of(embedder)
            fresh = list(dict.fromkeys(t for p in passages if (t := embedded_text(p)) and _key(t) not in known))
            for text, vector in zip(fresh, await _embedded(embedder, fresh), strict=True):
                known[_key(text)] = vector
            embedded = len(fresh)
            matrix = await asyncio.to_thread(matrix_of, [known[_key(embedded_text(p))] for p in passages])
        done = Indexed(documents=count, passages=len(passages), embedded=embedded, reused=0)
        if matrix is not None:
            done = msgspec.structs.replace(done, reused=len(passages) - embedded)
        return await asyncio.to_thread(
            cls, passages, embedder=embedder, matrix=matrix, index=index, documents=count, indexed=done
        )  # fmt: skip

    @property
    def dims(self) -> int:
        """How long its vectors are; 0 where it has none."""
        return 0 if self._matrix is None else int(self._matrix.shape[1])

    def vectors_of(self, embedder: Embedder) -> dict[str, Any]:
        """Its vectors by the digests of their texts; none where another embedder made them."""
        if self.embedder is None or self.embedder.name != embedder.name or self._matrix is None:
            return {}
        return {_key(embedded_text(passage)): self._matrix[n] for n, passage in enumerate(self.passages)}

    @property
    def fingerprint(self) -> str:
        """Whose vectors it has, ``name@dims``; blank where it has none."""
        return "" if self.embedder is None or not self.dims else fingerprint(self.embedder.name, self.dims)

    async def search(self, query: str, *, top: int = 4, mode: Mode | None = None) -> list[Hit]:
        """The passages that fit a question best, the best first.

        ``keyword`` ranks by words, ``vector`` by cosine; ``hybrid`` fuses the first 50 of both by their places
        (default where there is an embedder). UsageError for a mode that needs vectors that are not there, and where
        the embedder now gives vectors of another length (``embedder-mismatch``); ModelError where it failed.
        """
        mode = mode or ("hybrid" if self._vectors is not None else "keyword")
        if mode == "keyword":
            return self._hits(self._words.best(query, top), {})
        vectors = self._vectors
        if self.embedder is None or (vectors is None and self.passages):
            raise UsageError(
                f"mode={mode!r} compares vectors, and this corpus was made without an embedder",
                hint="Corpus.of(documents, embedder=...), or mode='keyword'",
            )
        if vectors is None or not query.strip():
            return []
        found = await embedded_soon(self.embedder, [query], of="query")
        try:
            (vector,) = found
            numbers = len(vector)
        except (TypeError, ValueError):
            told = f"the embedder {self.embedder.name!r} gave something else than one vector for one text"
            raise ModelError(told, kind="invalid") from None
        if numbers != self.dims:
            raise UsageError(
                f"the corpus has vectors of {self.fingerprint!r}, and the question's has {numbers} numbers",
                code="embedder-mismatch", hint="make the corpus anew with the embedder that is asked now",
            )  # fmt: skip
        _check_numbers(self.embedder, vector)
        near = vectors.nearest(vector, top if mode == "vector" else max(top, DEPTH))
        cosines = dict(near)
        if mode == "vector":
            return self._hits(near, cosines)
        return self._hits(fused((self._words.best(query, max(top, DEPTH)), near))[:top], cosines)

    def _hits(self, ranked: Iterable[tuple[int, float]], cosines: dict[int, float]) -> list[Hit]:
        return [Hit(passage=self.passages[n], score=score, cosine=cosines.get(n)) for n, score in ranked]

    # ---- as bytes

    def to_bytes(self) -> bytes:
        """The passages and their vectors, to be kept in a file; not the embedder."""
        vectors = b"" if self._matrix is None else self._matrix.astype("<f4").tobytes()
        name = "" if self.embedder is None else self.embedder.name
        stored = _Stored(_FORMAT, self.passages, self.documents, name, self.dims, vectors)
        return msgspec.msgpack.encode(stored)

    @classmethod
    def from_bytes(cls, data: bytes, *, embedder: Embedder | None = None, index: MakeIndex = NumpyIndex) -> Corpus:
        """A corpus that `to_bytes` wrote. ``embedder`` is the one that made its vectors; without it they are left out.

        DocumentInvalid for bytes that are none; ConfigurationError for an embedder of another name.
        """
        try:
            stored = msgspec.msgpack.decode(data, type=_Stored)
        except (msgspec.DecodeError, RecursionError):
            raise DocumentInvalid("these bytes are no corpus", hint="Corpus.to_bytes() writes them") from None
        size = 4 * stored.dims * len(stored.passages)
        if stored.format != _FORMAT or len(stored.vectors) != size or bool(size) != bool(stored.dims):
            raise DocumentInvalid(
                "these bytes are no corpus that this version of onrecord reads",
                hint="make it anew with Corpus.of(documents)",
            )
        if embedder is not None and stored.dims and embedder.name != stored.embedder:
            raise ConfigurationError(
                f"the corpus was made with the embedder {stored.embedder!r}, not with {embedder.name!r}",
                hint="give from_bytes the same one, or make the corpus anew",
            )
        matrix = None
        if embedder is not None and stored.dims:
            numpy = numpy_for_vectors()
            matrix = numpy.frombuffer(stored.vectors, dtype="<f4").reshape(len(stored.passages), stored.dims)
        return cls(stored.passages, embedder=embedder, matrix=matrix, index=index, documents=stored.documents)

    def __len__(self) -> int:
        return len(self.passages)

    def __repr__(self) -> str:
        return f"Corpus({self.documents} documents, {len(self)} passages, {self.fingerprint or 'words alone'})"


def _check_numbers(embedder: Embedder, vector: Sequence[float]) -> None:
    """ModelError for a vector that holds something else than finite numbers."""
    try:
        _ = matrix_of([vector])
    except UsageError:
        told = f"the embedder {embedder.name!r} gave a vector of something else than finite numbers"
        raise ModelError(told, kind="invalid") from None


def embedded_text(passage: Passage) -> str:
    """What of a passage is embedded: where it stands belongs to what it means."""
    return "\n".join(filter(None, (passage.title, passage.heading, passage.text)))


def _key(text: str) -> str:
    return digest(text.encode())


def _cut(documents: Iterable[Document], splitter: Splitter) -> tuple[list[Passage], int]:
    seen: dict[str, list[Passage]] = {}
    for document in documents:
        if document.id in seen:
            raise DocumentInvalid(f"two documents have the id {document.id!r}", hint="passages are cited by it")
        spans, text = splitter(document), document.text
        if any(not 0 <= start < stop <= len(text) for start, stop in spans):
            raise UsageError(
                f"the splitter cuts {document.id!r} where it has no text",
                hint="a splitter gives places (start, stop) inside document.text",
            )
        seen[document.id] = passages_of(document, spans)
    return list(chain.from_iterable(seen.values())), len(seen)


async def _embedded(embedder: Embedder, texts: Sequence[str]) -> list[Sequence[float]]:
    """Vectors of texts, in order. The first failure ends it all."""
    batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
    made: list[Sequence[Sequence[float]]] = [()] * len(batches)
    places = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, batch: Sequence[str]) -> None:
        async with places:
            vectors: object = await embedded(embedder, batch, of="passage")
        made[number] = list(vectors) if isinstance(vectors, Iterable) else []
        if len(made[number]) != len(batch):
            raise UsageError(f"the embedder {embedder.name!r} gave {len(made[number])} vectors for {len(batch)} texts")

    try:
        async with asyncio.TaskGroup() as group:
            for number, batch in enumerate(batches):
                _ = group.create_task(one(number, batch))
    except* OnrecordError as failed:
        raise failed.exceptions[0] from None
    return list(chain.from_iterable(made))
