"""Episodes found by what they mean: beside words, and in their place nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.errors import ConfigurationError, ModelError
from onrecord.memory import Episodes, HashingEmbedder, Memory, PlainShelf, embedding
from onrecord.record.kinds import Noted
from onrecord.testing import ScriptedModel
from tests.memory.remembering import recalled_in, session, shown_data, told

pytestmark = pytest.mark.unit

MEANINGS = (("cat", "feline", "kitten"), ("car", "lorry", "van"), ("rain", "weather", "wet"))


class Senses:
    """An embedder that knows a few synonyms. ``fails`` is what it raises; one that ``hangs`` never answers."""

    def __init__(
        self, name: str = "senses", *, width: int = 3, fails: Exception | None = None, gives: Any = None,
        hangs: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.width, self.fails, self.gives, self.hangs = name, width, fails, gives, hangs
        self.asked: list[tuple[str, str]] = []

    async def embed(self, texts: Sequence[str], /, *, of: str) -> Any:
        self.asked += [(of, text) for text in texts]
        if self.fails is not None:
            raise self.fails
        if self.hangs:
            await asyncio.Event().wait()
        if self.gives is not None:
            return self.gives
        rows = [[float(any(w in text for w in words)) for words in MEANINGS] for text in texts]
        return [[*row, *[0.0] * (self.width - 3)] for row in rows]


def agents(*senses: Senses, **about: Any) -> tuple[list[Agent[Any, str]], list[ScriptedModel]]:
    """Agents that share a shelf, each with an embedder of its own."""
    shelf, models = PlainShelf(), [ScriptedModel(*["ok"] * 9) for _ in senses]
    episodes = [Episodes(2, embedder=one, **about) for one in senses]
    return [Agent(model, features=[Memory(shelf, (one,))]) for model, one in zip(models, episodes, strict=True)], models


def data(model: ScriptedModel) -> str:
    """What its last request shows as data."""
    return "".join(shown_data(model.requests[-1]))


async def test_an_exchange_is_found_by_what_it_means() -> None:
    """Though no word of the question is in it; each text is embedded once, as what it is."""
    senses = Senses()
    (agent,), (model,) = agents(senses, threshold=0.5)
    await told(agent, "my feline sleeps", session("one"))
    await told(agent, "the lorry broke", session("two"))
    await told(agent, "what does a kitten do", session("three"))
    assert "my feline sleeps" in data(model)
    assert "lorry" not in data(model)
    assert senses.asked[-2:] == [
        ("query", "what does a kitten do"),
        ("passage", "user: what does a kitten do\nassistant: ok"),
    ]
    assert len(senses.asked) == 6


async def test_words_still_count() -> None:
    """Without a threshold, and with an embedder that knows nothing of the question."""
    (agent,), (model,) = agents(Senses())
    await told(agent, "order 7731 is late", session("one"))
    await told(agent, "hello", session("two"))
    await told(agent, "where is 7731", session("three"))
    assert data(model).index("7731") < data(model).find("hello") or "hello" not in data(model)


@pytest.mark.parametrize("other", [Senses("newer"), Senses(width=5)], ids=["model", "dimension"])
async def test_vectors_of_another_embedder_are_not_compared(other: Senses) -> None:
    """What an older model or another length left is found by its words; nothing fails."""
    (old, new), (_, model) = agents(Senses(), other, threshold=0.5)
    await told(old, "my feline sleeps", session("one"))
    result = await told(new, "my kitten", session("two"))
    assert "feline" in data(model)  # by "my"
    assert (recalled_in(result)[0].missed, len(recalled_in(result)[0].served)) == ("", 1)
    await told(new, "kitten", session("three"))
    assert "user: my kitten" in data(model)
    assert "feline" not in data(model)


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (Senses(fails=ModelError("busy", kind="rate")), "model-rate"),
        (Senses(fails=ConnectionError("secret")), "model-unknown"),
        (Senses(hangs=True), "model-timeout"),
        (Senses(gives=[]), "embedder-invalid"),
        (Senses(gives=[[float("nan")] * 3]), "embedder-invalid"),
        (Senses(gives=[[1.0], [1.0]]), "embedder-invalid"),
        (Senses(gives=[[]]), "embedder-invalid"),
    ],
    ids=["down", "raises", "hangs", "none", "not numbers", "too many", "empty"],
)
async def test_an_embedder_that_fails_costs_the_meaning_and_not_the_words(
    broken: Senses, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn goes on, what is said is kept, and the record says what was missed."""
    if broken.hangs:
        monkeypatch.setattr(embedding, "EMBEDDING_S", 0.0)
    (agent,), (model,) = agents(broken)
    first = await told(agent, "my feline sleeps", session("one"))
    assert [e.body.text for e in first.entries if isinstance(e.body, Noted)] == [
        f"kept to be found by its words alone: {code}"
    ]
    second = await told(agent, "feline?", session("two"))
    assert "my feline sleeps" in data(model)
    assert recalled_in(second)[0].missed == f"episodes: {code}"


async def test_age_counts_against_what_is_near() -> None:
    """Half as much at half its life: so a nearer exchange of long ago stands behind one of today."""
    (agent,), (model,) = agents(Senses(), half_life=timedelta(days=10))
    await told(agent, "a cat, a feline", session("one"))
    await told(agent, "a kitten in the rain", session("two"), day=40)
    result = await told(agent, "cat", session("three"), day=40)
    first, second = recalled_in(result)[0].served
    assert (first.score or 0) > (second.score or 0)
    assert data(model).index("kitten in the rain") < data(model).index("a cat, a feline")


def test_what_would_be_of_no_use_is_refused() -> None:
    """A threshold of nothing, and one that is no cosine."""
    for given in ({"threshold": 0.5}, {"threshold": 2.0, "embedder": HashingEmbedder()}):
        with pytest.raises(ConfigurationError, match="is a cosine"):
            Episodes(**given)
