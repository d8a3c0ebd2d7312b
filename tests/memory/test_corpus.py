"""A corpus: passages found by words and by vectors, kept as bytes, made anew for what has changed only."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.errors import ConfigurationError, DocumentInvalid, MissingDependency, ModelError, UsageError
from onrecord.memory import Corpus, Document, HashingEmbedder, Indexed, NumpyIndex, UsearchIndex, by_heading, whole
from onrecord.memory.keyword_index import MOST, KeywordIndex
from onrecord.memory.loaders import markdown_document
from onrecord.memory.terms import terms
from onrecord.memory.vector_index import matrix_of

pytestmark = pytest.mark.unit

GUIDE = Document(
    "guide.md", "Refunds take ten days.\n\nParking is free at the hotel.\n\nBreakfast begins at seven.", title="Guide"
)
RULES = markdown_document(b"# Pets\n\nDogs are welcome, cats too.\n\n# Smoking\n\nNobody smokes inside.", "rules.md")


class Counting:
    """Hashes, and counts what it is asked."""

    def __init__(self, name: str = "counting", dims: int = 64) -> None:
        self.name, self.hashes = name, HashingEmbedder(dims)
        self.asked: list[tuple[str, str]] = []

    async def embed(self, texts: Sequence[str], /, *, of: Literal["query", "passage"]) -> Any:
        self.asked += [(of, text) for text in texts]
        return await self.hashes.embed(texts, of=of)


async def ids(corpus: Corpus, query: str, **about: Any) -> list[str]:
    """The passages found, by id."""
    return [hit.passage.id for hit in await corpus.search(query, **about)]


# ---- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Café, the CAFÉ!", ["the", "cafe", "the", "cafe"]),
        ("snake_case x-1 3.5", ["snake", "case", "x", "1", "3", "5"]),
        ("Straße ﬁne", ["strasse", "fine"]),
        ("取消预订 ok 預", ["取消", "消预", "预订", "ok", "預"]),
        ("abc予約def", ["abc", "予約", "def"]),
        ("예약을 취소", ["예약", "약을", "취소"]),
        ("👍 \u200b", []),
        ("x" * 99, ["x" * 64]),
    ],
)
def test_words_are_compared_without_case_and_accents(text: str, words: list[str]) -> None:
    """And scripts without spaces by pairs of letters."""
    assert terms(text) == words


@given(st.text())
def test_words_are_letters_and_digits(text: str) -> None:
    """Whatever the text: what search engines take for syntax never is in one."""
    assert all(word.isalnum() or not word.isascii() for word in terms(text))
    assert all('"' not in word and word for word in terms(text))


def test_rare_words_count_more() -> None:
    """And longer texts are held back; equal ones come in their order."""
    index = KeywordIndex(["a b", "a c", "a c " + "a " * 30, "d", "d"])
    assert [number for number, _ in index.best("c a", 9)] == [1, 2, 0]
    assert [number for number, _ in index.best("d", 9)] == [3, 4]
    assert index.best("zebra", 9) == []
    assert index.best("a", 0) == []
    assert KeywordIndex([]).best("a", 3) == []
    assert KeywordIndex(["", "!"]).best("a", 3) == []


def test_a_question_of_common_words_looks_at_the_rarest_first() -> None:
    """So that a search costs no more in a large corpus; the one word that there is counts however common it is."""
    index = KeywordIndex([*["all of it"] * MOST, "all of it needle"])
    assert [number for number, _ in index.best("all of needle", 2)] == [MOST]
    assert len(index.best("all", 3)) == 3


async def test_without_an_embedder_it_is_words() -> None:
    """And needs no library."""
    corpus = await Corpus.of([GUIDE, RULES], splitter=by_heading(40))
    assert await ids(corpus, "where do I park, parking?", top=1) == ["guide.md#2"]
    assert await ids(corpus, "pets", top=1) == ["rules.md#1"]  # the heading counts
    assert await ids(corpus, "zebra") == []
    (hit, *_) = await corpus.search("dogs")
    assert (hit.passage.heading, hit.cosine) == ("Pets", None)
    assert (len(corpus), corpus.dims, corpus.fingerprint) == (5, 0, "")
    assert repr(corpus) == "Corpus(2 documents, 5 passages, words alone)"
    for mode in ("hybrid", "vector"):
        with pytest.raises(UsageError, match="without an embedder"):
            await corpus.search("x", mode=mode)


async def test_what_is_second_by_words_and_by_vectors_comes_first() -> None:
    """Also where only one is asked for: both rankings are read further than that before they are fused."""
    held = {"tram, tram": 0.0, "bus": 1.0, "a tram or train": 0.9, "rail": 0.6, "road": 0.5, "tram": 1.0}

    class Knowing:
        name = "knowing"

        async def embed(self, texts: Sequence[str], /, *, of: Literal["query", "passage"]) -> Any:
            return [(held[text], (1 - held[text] ** 2) ** 0.5) for text in texts]

    documents = [Document(f"d{n}", text) for n, text in enumerate(held) if text != "tram"]
    corpus = await Corpus.of(documents, splitter=whole, embedder=Knowing())
    found = {mode: (await corpus.search("tram", top=1, mode=mode))[0].passage.text for mode in ("keyword", "vector")}
    assert found == {"keyword": "tram, tram", "vector": "bus"}
    assert [hit.passage.text for hit in await corpus.search("tram", top=1)] == ["a tram or train"]


async def test_two_documents_of_one_id_are_refused() -> None:
    """Their passages could not be told apart."""
    with pytest.raises(DocumentInvalid, match=r"guide\.md"):
        await Corpus.of([GUIDE, GUIDE])


async def test_a_splitter_that_cuts_beside_the_text_is_told() -> None:
    """Offsets are a promise."""
    with pytest.raises(UsageError, match=r"guide\.md"):
        await Corpus.of([GUIDE], splitter=lambda _: [(0, 10_000)])


async def test_an_empty_corpus_finds_nothing() -> None:
    """In no mode."""
    corpus = await Corpus.of([], embedder=HashingEmbedder())
    assert [await corpus.search("x", mode=mode) for mode in ("keyword", "vector", "hybrid", None)] == [[], [], [], []]


# ---- vectors ---------------------------------------------------------------------------------------------------------


async def test_both_rankings_are_fused() -> None:
    """What stands high in both comes first; each alone may be asked for."""
    corpus = await Corpus.of([GUIDE, RULES], splitter=by_heading(40), embedder=HashingEmbedder())
    assert corpus.fingerprint == "hashing-256@256"
    assert (await ids(corpus, "refund in ten days"))[0] == "guide.md#1"
    assert (await ids(corpus, "smokng?", mode="vector", top=1)) == ["rules.md#2"]  # misspelt: no word is shared
    assert await ids(corpus, "smokng?", mode="keyword") == []
    hits = await corpus.search("parking", top=3)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.cosine is not None and -1.001 <= hit.cosine <= 1.001 for hit in hits)
    assert hits[0].score == pytest.approx(2 / 61)
    assert await corpus.search(" ", mode="vector") == []


async def test_what_has_not_changed_is_not_embedded_again() -> None:
    """By its text, wherever it stands now; what is gone is gone."""
    one = Counting()
    before = await Corpus.of([GUIDE, RULES], splitter=by_heading(40), embedder=one)
    assert before.indexed == Indexed(documents=2, passages=5, embedded=5, reused=0)
    one.asked.clear()
    edited = Document("guide.md", GUIDE.text.replace("seven", "eight"), title="Guide")
    after = await Corpus.of([edited], splitter=by_heading(40), embedder=one, before=before)
    assert after.indexed == Indexed(documents=1, passages=3, embedded=1, reused=2)
    assert [text for _, text in one.asked] == ["Guide\nBreakfast begins at eight."]
    assert await ids(after, "dogs", mode="keyword") == []
    assert await ids(after, "parking free hotel", top=1) == ["guide.md#2"]
    other = Counting("another")
    again = await Corpus.of([edited], splitter=by_heading(40), embedder=other, before=before)
    assert again.indexed.reused == 0


async def test_m142_vectors_of_another_length_are_refused() -> None:
    """Case 142: a question is not compared with what cannot be compared with it."""
    one = Counting()
    corpus = await Corpus.of([GUIDE], embedder=one)
    one.hashes = HashingEmbedder(32)
    with pytest.raises(UsageError) as told:
        await corpus.search("parking")
    assert told.value.code == "embedder-mismatch"
    assert "counting@64" in str(told.value)


async def test_it_is_kept_as_bytes() -> None:
    """With its vectors, which belong to an embedder of one name; without one it is words."""
    one = Counting()
    corpus = await Corpus.of([GUIDE, RULES], splitter=by_heading(40), embedder=one)
    data = corpus.to_bytes()
    back = Corpus.from_bytes(data, embedder=one)
    assert (back.passages, back.fingerprint, back.documents) == (corpus.passages, corpus.fingerprint, 2)
    assert await back.search("parking") == await corpus.search("parking")
    assert back.to_bytes() == data
    words = Corpus.from_bytes(data)
    assert (words.fingerprint, await ids(words, "dogs")) == ("", ["rules.md#1"])
    with pytest.raises(ConfigurationError, match="counting"):
        Corpus.from_bytes(data, embedder=HashingEmbedder())
    plain = Corpus.from_bytes((await Corpus.of([GUIDE])).to_bytes(), embedder=one)
    assert plain.fingerprint == ""
    endless = msgspec.msgpack.encode([1, [], 0, "x", 2**62, b""])
    for broken in (b"", b"nonsense", data[:50], b"\x96\x02" + data[2:], endless):
        with pytest.raises(DocumentInvalid):
            Corpus.from_bytes(broken)


async def test_a_failing_embedder_leaves_no_half_of_a_corpus() -> None:
    """Its error goes through, as it is."""

    class Failing(Counting):
        async def embed(self, texts: Sequence[str], /, *, of: Literal["query", "passage"]) -> Any:
            if len(self.asked) > 100:
                raise ModelError("busy", kind="rate")
            return await super().embed(texts, of=of)

    many = [Document(f"d{i}", f"text {i}") for i in range(500)]
    with pytest.raises(ModelError, match="busy"):
        await Corpus.of(many, splitter=whole, embedder=Failing())


@pytest.mark.parametrize("raised", [OSError("secret"), TimeoutError(), ConfigurationError("no key")])
async def test_whatever_an_embedder_raises_comes_alone(raised: Exception) -> None:
    """Of all the calls that ran side by side one error, and one of ours, that tells no words of others."""

    class Failing(Counting):
        async def embed(self, texts: Sequence[str], /, *, of: Literal["query", "passage"]) -> Any:
            raise raised

    many = [Document(f"d{i}", f"text {i}") for i in range(200)]
    with pytest.raises((ModelError, ConfigurationError)) as told:
        await Corpus.of(many, splitter=whole, embedder=Failing())
    assert "secret" not in str(told.value)
    assert isinstance(told.value, ConfigurationError) == isinstance(raised, ConfigurationError)


@pytest.mark.parametrize(
    "vectors",
    [[[1.0], [1.0, 2.0]], [[float("nan")]] * 2, [[]] * 2, [["a"]] * 2, [[1.0]], [], [[1.0]] * 3, None, [[1e39]] * 2],
    ids=range(9),
)
async def test_an_embedder_that_gives_something_else_is_told(vectors: Any) -> None:
    """Vectors of several lengths, numbers that are none, too few and too many."""

    class Odd(Counting):
        async def embed(self, texts: Sequence[str], /, *, of: Literal["query", "passage"]) -> Any:
            return vectors

    with pytest.raises(UsageError):
        await Corpus.of([Document("a", "x"), Document("b", "y")], splitter=whole, embedder=Odd())


def test_nearest_are_by_cosine() -> None:
    """Exact, ties in order, and a text without a vector is near to nothing."""
    index = NumpyIndex(matrix_of([[1, 0], [3, 3], [0, 2], [0, 0], [5, 0]]))
    assert index.nearest([2, 0], 3) == [(0, 1.0), (4, 1.0), (1, pytest.approx(0.7071, abs=1e-4))]
    assert [number for number, _ in index.nearest([0, 1], 99)] == [2, 1, 0, 3, 4]
    assert index.nearest([1, 0], 0) == []


async def test_a_graph_of_neighbours_finds_the_same() -> None:
    """Over a few passages the approximate search misses none."""
    graph = await Corpus.of([GUIDE, RULES], splitter=by_heading(40), embedder=HashingEmbedder(), index=UsearchIndex)
    exact = await Corpus.of([GUIDE, RULES], splitter=by_heading(40), embedder=HashingEmbedder())
    for query in ("parking", "dogs", "when is breakfast"):
        assert (await ids(graph, query))[0] == (await ids(exact, query))[0]
    matrix = matrix_of([[1, 0], [3, 3], [0, 2], [-1, 0]])
    found, told = UsearchIndex(matrix).nearest([2, 0], 4), NumpyIndex(matrix).nearest([2, 0], 4)
    assert [number for number, _ in found] == [number for number, _ in told] == [0, 1, 2, 3]
    assert [near for _, near in found] == pytest.approx([near for _, near in told], abs=1e-6)
    assert UsearchIndex(matrix).nearest([1, 0], 0) == []


async def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(MissingDependency) as told:
        await Corpus.of([GUIDE], embedder=HashingEmbedder())
    assert told.value.hint == "pip install 'onrecord[retrieval]'"


# ---- hashing ---------------------------------------------------------------------------------------------------------


async def test_hashes_are_the_same_for_ever() -> None:
    """Vectors that are stored must be found again by another version."""
    (vector,) = await HashingEmbedder(8).embed(["Cancel a booking"], of="query")
    assert vector == pytest.approx([0, 0, 0, -1 / 3, -2 / 3, 0, 2 / 3, 0])
    assert sum(x * x for x in vector) == pytest.approx(1)
    assert await HashingEmbedder(8).embed([""], of="query") == [[0.0] * 8]


async def test_forms_of_a_word_are_near_each_other() -> None:
    """And it says what it is for."""
    embedder = HashingEmbedder()
    one, form, other = await embedder.embed(["cancel my booking", "cancelling bookings", "warm soup"], of="passage")
    near = sum(a * b for a, b in zip(one, form, strict=True))
    far = sum(a * b for a, b in zip(one, other, strict=True))
    assert near > 0.3
    assert far < 0.15
    assert "not meaning" in embedder.about


@pytest.mark.parametrize("dims", [7, 0, -1, 1.5, "8", True, 100_000])
def test_dimensions_that_make_no_sense_are_refused(dims: Any) -> None:
    """When it is made."""
    with pytest.raises(ConfigurationError):
        HashingEmbedder(dims)
