"""Retrieval in a turn: what is shown, as what, with which source; and what the record says of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from onrecord.agent import Agent
from onrecord.conversation.content import Citation
from onrecord.conversation.inputs import Happened
from onrecord.errors import ConfigurationError, FeatureFailed, ModelError
from onrecord.memory import (
    Corpus,
    Document,
    HashingEmbedder,
    PlainShelf,
    Retrieve,
    Served,
    by_heading,
    cited,
    embedding,
    served,
    whole,
)
from onrecord.memory.loaders import markdown_document
from onrecord.memory.memory import Memory
from onrecord.memory.ports import Space
from onrecord.memory.retrieve import HEADER
from onrecord.memory.strategies import Recent
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool
from tests.memory.remembering import kept_by, recalled_in, session, shown_data, told

pytestmark = pytest.mark.unit

BOOK = Document(
    "book.pdf", "Refunds take ten days.\n\nRefunds of fees take longer.", title="The Book", url="https://x.example/book",
    pages=(0, 24),
)  # fmt: skip
RULES = markdown_document(b"# Pets\n\nDogs are welcome.\n\n# Smoking\n\nNobody smokes inside.", "rules.md")


async def corpus_of(*documents: Document, embedder: Any = None) -> Corpus:
    """A small corpus."""
    return await Corpus.of(documents or (BOOK, RULES), splitter=by_heading(30), embedder=embedder)


async def asked(text: Any, feature: Any, *, answer: str = "ok") -> tuple[Any, list[str]]:
    """One turn: the result, and what its request showed as data."""
    model = ScriptedModel(answer)
    result = await told(Agent(model, features=[feature]), text, session())
    return result, shown_data(model.requests[0])


async def test_m179_each_passage_is_shown_and_told_by_its_source() -> None:
    """Case 179: two passages, with score and place, and together the text that was shown."""
    result, (data,) = await asked("How long do refunds take?", Retrieve(await corpus_of()))
    one = '<source id="book.pdf#1" title="The Book" page="1">\nRefunds take ten days.\n</source>'
    two = '<source id="book.pdf#2" title="The Book" page="2">\nRefunds of fees take longer.\n</source>'
    assert data == f"{HEADER}\n{one}\n{two}"
    (recalled,) = recalled_in(result)
    assert [(s.id, s.place, s.kind, s.page, s.url) for s in recalled.served] == [
        ("book.pdf#1", 1, "passage", 1, "https://x.example/book"),
        ("book.pdf#2", 2, "passage", 2, "https://x.example/book"),
    ]
    scores = [s.score for s in recalled.served]
    assert all(isinstance(score, float) for score in scores)
    assert scores == sorted(scores, key=lambda score: -(score or 0))
    assert [BOOK.text[s.start : s.stop] for s in recalled.served] == [
        "Refunds take ten days.",
        "Refunds of fees take longer.",
    ]
    assert recalled.chars == len(one) + len(two)


async def test_m142_retrieval_writes_nothing() -> None:
    """Case 142: it is read only; nothing is mounted that could write."""
    feature = Retrieve(await corpus_of())
    hooks = feature.hooks(Agent(ScriptedModel()).spec)
    assert (hooks.on_settle, hooks.forget, hooks.folds) == (None, None, ())
    result, _ = await asked("dogs", feature)
    assert kept_by(result) == []


async def test_m142_vectors_of_another_length_fail_the_turn() -> None:
    """Case 142: a corpus and an embedder that do not fit are a mistake, not a matter of ranking."""

    class Turning(HashingEmbedder, frozen=True):
        async def embed(self, texts: Sequence[str], /, *, of: Literal["query", "passage"]) -> Any:
            return await HashingEmbedder(64 if of == "passage" else 32).embed(texts, of=of)

    corpus = await corpus_of(embedder=Turning())
    with pytest.raises(FeatureFailed) as failed:
        await asked("dogs", Retrieve(corpus))
    assert getattr(failed.value.__cause__, "code", "") == "embedder-mismatch"


async def test_headings_say_where_a_passage_stands() -> None:
    """In the frame and on the record."""
    result, (data,) = await asked("dogs", Retrieve(await corpus_of()))
    assert '<source id="rules.md#1" title="Pets" heading="Pets">' in data
    assert recalled_in(result)[0].served[0].heading == "Pets"


async def test_answers_can_be_led_back_to_their_sources() -> None:
    """Each id in brackets that was served, and no other."""
    text = "Ten days [book.pdf#1], fees later [book.pdf#2; rules.md#1]. See [1] and [nothing.md#9]."
    result, _ = await asked("refunds", Retrieve(await corpus_of()), answer=text)
    found = cited(result.text, served(result.entries))
    assert found == (
        Citation(url="https://x.example/book", title="The Book", start=9, stop=21),
        Citation(url="https://x.example/book", title="The Book", start=34, stop=58),
    )
    assert [text[c.start : c.stop] for c in found] == ["[book.pdf#1]", "[book.pdf#2; rules.md#1]"]
    assert cited("[a]", [Served(id="a", kind="passage", place=1, heading="H")]) == (
        Citation(url="a", title="H", stop=3),
    )


async def test_nothing_found_is_nothing_shown() -> None:
    """The request is that of an agent without it, and the record has no entry."""
    result, data = await asked("zebra", Retrieve(await corpus_of()))
    assert (data, recalled_in(result)) == ([], [])


async def test_without_a_message_nothing_is_looked_for() -> None:
    """Unless a function says what to look for."""
    corpus = await corpus_of()
    event = Happened("arrived", key="k", payload={"with": "dogs"})
    result, _ = await asked(event, Retrieve(corpus))
    assert recalled_in(result) == []
    result, data = await asked(
        event,
        Retrieve(corpus, query=lambda turn: turn.input.payload["with"] if isinstance(turn.input, Happened) else ""),
    )
    assert "Dogs are welcome" in data[-1]


async def test_a_turn_looks_once() -> None:
    """All its requests show the same."""
    corpus, asked_for = await corpus_of(), list[str]()

    def query(turn: Any) -> str:
        asked_for.append(turn.id)
        return "dogs"

    model = ScriptedModel([call("look")], "done")
    agent = Agent(model, tools=[Tool("look", lambda *_: "x")], features=[Retrieve(corpus, query=query)])
    result = await told(agent, "hi", session())
    assert (len(asked_for), len(recalled_in(result))) == (1, 1)
    assert shown_data(model.requests[0]) == shown_data(model.requests[1]) != []


async def test_each_tenant_has_a_corpus() -> None:
    """Chosen by a function of the turn; a tenant without one gets nothing."""
    corpora = {"a": await corpus_of(BOOK), "b": await corpus_of(RULES)}
    feature = Retrieve(lambda turn: corpora.get(turn.session.key.tenant))
    shown = {}
    for tenant in ("a", "b", "c"):
        model = ScriptedModel("ok")
        await told(Agent(model, features=[feature]), "refunds for dogs", session(tenant=tenant))
        shown[tenant] = "".join(shown_data(model.requests[0]))
    assert ("Refunds" in shown["a"], "Dogs" in shown["a"]) == (True, False)
    assert ("Refunds" in shown["b"], "Dogs" in shown["b"]) == (False, True)
    assert shown["c"] == ""


async def test_passages_below_a_threshold_are_not_shown() -> None:
    """By cosine; the record says which."""
    corpus = await corpus_of(embedder=HashingEmbedder())
    result, (data,) = await asked("refunds take ten days", Retrieve(corpus, mode="vector", threshold=0.5))
    assert data.count("<source ") == 1
    (recalled,) = recalled_in(result)
    assert {one.why for one in recalled.rejected} == {"below-threshold"}
    assert (recalled.considered, recalled.embedder) == (4, "hashing-256@256")


async def test_a_search_by_words_names_no_embedder() -> None:
    """None was asked, though the corpus has one."""
    corpus = await corpus_of(embedder=HashingEmbedder())
    result, _ = await asked("refunds take ten days", Retrieve(corpus, mode="keyword"))
    assert [recalled.embedder for recalled in recalled_in(result)] == [""]


async def test_what_does_not_fit_is_left_out_and_named() -> None:
    """A passage is shown whole, or not."""
    result, (data,) = await asked("refunds", Retrieve(await corpus_of(), max_chars=100))
    assert data.count("<source ") == 1
    assert [(one.id, one.why) for one in recalled_in(result)[0].rejected] == [("book.pdf#2", "over-budget")]


async def test_a_shorter_passage_behind_one_that_does_not_fit_is_shown() -> None:
    """The budget leaves out what is too long for it, and nothing else."""
    long, short = Document("long", "refunds of fees " + "and more " * 12), Document("short", "refunds, in short")
    result, (data,) = await asked(
        "refunds fees", Retrieve(await Corpus.of([long, short], splitter=whole), max_chars=100)
    )
    (recalled,) = recalled_in(result)
    assert ("refunds, in short" in data, "and more" in data) == (True, False)
    assert [(one.id, one.why) for one in recalled.rejected] == [("long#1", "over-budget")]
    assert (recalled.rejected[0].score or 0) > (recalled.served[0].score or 0)


@pytest.mark.parametrize("mode", [None, "vector"])
@pytest.mark.parametrize(
    ("given", "code"),
    [
        (ModelError("busy", kind="rate"), "model-rate"),
        (OSError("secret"), "model-unknown"),
        ("hangs", "model-timeout"),
        ([], "model-invalid"),
        (None, "model-invalid"),
        ([[float("nan")] * 256], "model-invalid"),
        ([["a"] * 256], "model-invalid"),
    ],
    ids=["down", "raises", "hangs", "none", "nothing", "no numbers", "texts"],
)
async def test_an_embedder_that_fails_leaves_words(
    mode: Any, given: Any, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn goes on, and the record says what was missed; with vectors alone there is nothing."""

    class Failing(HashingEmbedder, frozen=True):
        async def embed(self, texts: Sequence[str], /, *, of: Literal["query", "passage"]) -> Any:
            if of == "passage":
                return await HashingEmbedder.embed(self, texts, of=of)
            if isinstance(given, Exception):
                raise given
            if given == "hangs":
                await asyncio.Event().wait()
            return given

    if given == "hangs":
        monkeypatch.setattr(embedding, "EMBEDDING_S", 0.0)
    corpus = await corpus_of(embedder=Failing())
    result, data = await asked("dogs", Retrieve(corpus, mode=mode))
    (recalled,) = recalled_in(result)
    assert (recalled.missed, recalled.embedder, len(data)) == (code, "", int(mode is None))


async def test_memory_and_documents_stand_beside_each_other() -> None:
    """Each in a frame of its own, in the order of the features."""
    shelf = PlainShelf()
    model = ScriptedModel("ok", "ok")
    agent = Agent(model, features=[Memory(shelf, (Recent(3),)), Retrieve(await corpus_of())])
    await told(agent, "I have a dog", session("one"))
    result = await told(agent, "Are dogs welcome?", session("two"))
    remembered, sources = shown_data(model.requests[1])
    assert remembered.startswith("[Remembered]")
    assert sources.startswith("[Sources]")
    assert [one.feature for one in recalled_in(result)] == ["memory", "retrieve"]
    assert await shelf.search(Space(owner=session().owner), "episode", "dogs", limit=9) == []


def test_a_corpus_and_its_size_are_on_the_manifest() -> None:
    """What an agent could look into is part of what it is."""
    corpus = Corpus(())
    agent = Agent(ScriptedModel(), features=[Retrieve(corpus), Retrieve(lambda _: None, name="other", mode="vector")])
    assert agent.spec.manifest["retrieve"] == {
        "retrieve": {"top": 4, "mode": "", "max_chars": 6000, "passages": 0, "embedder": ""},
        "other": {"top": 4, "mode": "vector", "max_chars": 6000},
    }


USELESS: list[tuple[str, dict[str, Any]]] = [
    ("no corpus", {"corpus": "docs/"}),
    ("a coroutine", {"corpus": None}),
    ("nothing to show", {"top": 0}),
    ("no room", {"max_chars": 0}),
    ("an unknown mode", {"mode": "magic"}),
    ("vectors of words", {"mode": "vector"}),
    ("both of words", {"mode": "hybrid"}),
    ("a threshold of words", {"threshold": 0.5}),
    ("a threshold beside words", {"corpus": lambda _: None, "mode": "keyword", "threshold": 0.5}),
    ("a threshold that is no cosine", {"corpus": lambda _: None, "threshold": 2}),
]


@pytest.mark.parametrize("given", [given for _, given in USELESS], ids=[name for name, _ in USELESS])
def test_a_useless_retrieval_is_refused_when_it_is_made(given: dict[str, Any]) -> None:
    """Nothing that could never show anything is built, and nothing that would be ignored is taken."""
    about = dict(given)
    corpus = about.pop("corpus", Corpus(()))
    with pytest.raises(ConfigurationError) as told:
        Retrieve(corpus, **about)
    assert str(told.value)
