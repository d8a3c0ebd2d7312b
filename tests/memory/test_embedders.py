"""Embeddings over HTTP, from a server on this machine that does what each test says."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from onrecord.errors import ConfigurationError, ModelError
from onrecord.memory import Corpus, Document, whole
from onrecord.net.transport import close
from onrecord.providers.api_keys import Key
from onrecord.providers.openai_compatible import HttpEmbedder, embedder_named, embeddings
from tests.net.loopback import Loopback, Peer, Script, serving

pytestmark = pytest.mark.integration

CANARY = "xylographer"


def answer(value: Any, status: str = "200 OK", *fields: str) -> bytes:
    """A whole answer with this JSON."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    head = "".join(f"{field}\r\n" for field in ("Content-Type: application/json", *fields))
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body


def vectors(*items: Any) -> dict[str, Any]:
    """What a server sends for vectors."""
    data = [{"object": "embedding", "index": at, "embedding": item} for at, item in enumerate(items)]
    return {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}


def in_turn(*answers: bytes | Callable[[Any], Any]) -> Script:
    """Answers requests with these, one after the other, and the last for all others."""
    left = list(answers)

    async def script(peer: Peer) -> None:
        while True:
            asked = json.loads((await peer.request()).body)
            now = left.pop(0) if len(left) > 1 else left[0]
            await peer.send(now if isinstance(now, bytes) else answer(now(asked)))

    return script


def lengths(asked: Any) -> Any:
    """A vector of two numbers for each text, in no good order, as a server may."""
    made = vectors(*([float(len(text)), 1.0] for text in asked["input"]))
    made["data"].reverse()
    return made


def of(server: Loopback, **about: Any) -> HttpEmbedder:
    """An embedder that asks this server, and never sleeps."""
    waited: list[float] = about.pop("waited", [])

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    given: dict[str, Any] = {
        "key": Key("sk-1"),
        "base_url": f"http://127.0.0.1:{server.port}/v1/",
        "sleep": sleep,
    } | about
    return HttpEmbedder("test", "m-1", **given)


async def test_texts_become_vectors_in_their_order() -> None:
    """Whatever order the server sends them in; what it is asked is what its documentation says."""
    async with serving(in_turn(lengths)) as server:
        made = await of(server).embed(["a", "bbb", "cc"], of="passage")
        assert made == [[1.0, 1.0], [3.0, 1.0], [2.0, 1.0]]
        (asked,) = server.requests
        assert asked.line == "POST /v1/embeddings HTTP/1.1"
        assert asked.fields["authorization"] == "Bearer sk-1"
        assert json.loads(asked.body) == {"model": "m-1", "input": ["a", "bbb", "cc"], "encoding_format": "float"}
        assert await of(server).embed([], of="passage") == []
        assert len(server.requests) == 1
        await close()


async def test_shorter_vectors_and_prefixes_are_asked_for() -> None:
    """Where the model has such things; both are in the name, by which vectors are known."""
    async with serving(in_turn(lengths)) as server:
        embedder = of(server, dims=2, prefixes=("query: ", "passage: "))
        await embedder.embed(["a"], of="query")
        await embedder.embed(["a"], of="passage")
        told = [json.loads(asked.body) for asked in server.requests]
        assert [(one["input"], one["dimensions"]) for one in told] == [(["query: a"], 2), (["passage: a"], 2)]
        assert embedder.name == "test:m-1/2/query: |passage: "
        assert repr(embedder) == f"HttpEmbedder({embedder.name!r})"
        await close()


async def test_a_server_that_does_not_number_is_taken_at_its_order() -> None:
    """Some leave the index out."""
    bare = {"data": [{"embedding": [1, 2]}, {"embedding": [3, 4]}]}
    async with serving(in_turn(answer(bare))) as server:
        assert await of(server).embed(["a", "b"], of="query") == [[1.0, 2.0], [3.0, 4.0]]
        await close()


async def test_busy_servers_are_waited_for() -> None:
    """As long as they say, up to three times; other failures are told at once."""
    busy, waited = answer({"error": {"message": CANARY}}, "429 Too Many Requests", "Retry-After: 2"), list[float]()
    async with serving(in_turn(busy, answer({}, "503 Service Unavailable"), lengths)) as server:
        assert await of(server, waited=waited).embed(["abc"], of="query") == [[3.0, 1.0]]
        assert waited == [2.0, 3.0]
        await close()
    waited.clear()
    async with serving(in_turn(busy)) as server:
        with pytest.raises(ModelError) as told:
            await of(server, waited=waited).embed([CANARY], of="query")
        assert (told.value.kind, len(waited), len(server.requests)) == ("rate", 3, 4)
        assert CANARY not in f"{told.value} {told.value.hint}"
        await close()
    async with serving(in_turn(answer({}, "429 Too Many Requests", "Retry-After: 3600"))) as server:
        with pytest.raises(ModelError):
            await of(server).embed(["a"], of="query")
        assert len(server.requests) == 1
        await close()


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (answer({"error": {"message": "Incorrect API key"}}, "401 Unauthorized"), "auth"),
        (answer({"error": {"message": "no"}}, "404 Not Found"), "model"),
        (answer(b"<html>"), "invalid"),
        (answer(b"[" * 5000), "invalid"),
        (answer({"data": []}), "invalid"),
        (answer(vectors([1.0], [2.0])), "invalid"),
        (answer(vectors([])), "invalid"),
        (answer({"data": [{"index": 7, "embedding": [1.0]}]}), "invalid"),
        (answer(vectors(["a"])), "invalid"),
    ],
    ids=["key", "address", "page", "deep", "none", "too many", "empty", "misnumbered", "no numbers"],
)
async def test_what_is_wrong_is_told(sent: bytes, kind: str) -> None:
    """By kind, without what was sent either way."""
    async with serving(in_turn(sent)) as server:
        with pytest.raises(ModelError) as told:
            await of(server).embed([CANARY], of="query")
        assert told.value.kind == kind
        assert CANARY not in f"{told.value!r} {told.value.hint}"
        await close()


async def test_vectors_of_several_lengths_are_refused() -> None:
    """They could not be compared."""
    async with serving(in_turn(answer(vectors([1.0], [1.0, 2.0])))) as server:
        with pytest.raises(ModelError, match="several lengths"):
            await of(server).embed(["a", "b"], of="query")
        await close()


async def test_a_corpus_is_made_through_it() -> None:
    """From end to end, in batches of sixty-four."""
    async with serving(in_turn(lengths)) as server:
        documents = [Document(f"d{i}", "x" * (i + 1)) for i in range(130)]
        corpus = await Corpus.of(documents, splitter=whole, embedder=of(server))
        assert (corpus.fingerprint, len(server.requests)) == ("test:m-1@2", 3)
        assert len(await corpus.search("xx", mode="vector", top=2)) == 2
        await close()


def test_names_lead_to_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and addresses are where those of their models are."""
    for name in ("OPENAI_BASE_URL", "MISTRAL_BASE_URL", "OLLAMA_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert embedder_named("openai:text-embedding-3-small", dims=256).name == "openai:text-embedding-3-small/256"
    assert embedder_named("mistral:mistral-embed").name == "mistral:mistral-embed"
    assert embedder_named("ollama:nomic-embed-text").name == "ollama:nomic-embed-text"
    assert embeddings("http://localhost:8080/v1", "bge").name == "openai-compatible:bge"
    for wrong in ("nobody:x", "openai:", "openai"):
        with pytest.raises(ConfigurationError):
            embedder_named(wrong)
    with pytest.raises(ConfigurationError):
        embeddings("localhost:8080", "bge")
    with pytest.raises(ConfigurationError):
        embeddings("http://localhost:8080/v1", "bge", dims=0)


async def test_a_key_that_is_missing_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is sent."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError) as told:
        await embedder_named("openai:m", base_url="http://127.0.0.1:9/v1").embed(["a"], of="query")
    assert (told.value.kind, "OPENAI_API_KEY" in told.value.hint) == ("auth", True)


async def test_a_header_of_its_own_carries_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the vendor wants it; and no key is sent to servers that need none."""
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "az-1")
    async with serving(in_turn(lengths)) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        await embedder_named("azure:mine", base_url=url).embed(["a"], of="query")
        await embeddings(url, "m").embed(["a"], of="query")
        await embeddings(url, "m", headers={"authorization": "Bearer own"}, api_key="x").embed(["a"], of="query")
        azure, none, own = (asked.fields for asked in server.requests)
        assert (azure["api-key"], "authorization" in azure) == ("az-1", False)
        assert {"authorization", "api-key"}.isdisjoint(none)
        assert own["authorization"] == "Bearer own"
        await close()
