"""What a probe finds out about a real endpoint: a full one, and ones that lack something, lie, or are not there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord.errors import ModelError, UsageError
from onrecord.models.learned import Learned
from onrecord.models.model import Model, preset
from onrecord.models.retry import Reliable
from onrecord.providers import http_model
from onrecord.providers.probe import Probed, probe, probe_json_with_tools
from onrecord.testing.scripted import ScriptedModel, call, raises
from tests.net.loopback import SSE_HEAD, Peer, Script, answering, chunk, serving
from tests.providers.chat_server import SECRET, delta, model_at, sse, status
from tests.providers.probed_server import answering_as

pytestmark = pytest.mark.integration


async def found(script: Script, **fields: Any) -> tuple[Probed, list[dict[str, Any]]]:
    """What a probe found, and the bodies that it sent."""
    async with serving(script) as server:
        told = await probe(model_at(server), samples=2, waits_s=(), **fields)
        assert SECRET not in repr(told)
        return told, [json.loads(one.body) for one in server.requests]


def works(told: Probed) -> dict[str, bool]:
    """Each finding by its name."""
    return {finding.name: finding.works for finding in told.findings}


def seen(told: Probed, name: str) -> str:
    """What a finding says."""
    return next(finding.seen for finding in told.findings if finding.name == name)


async def test_a_server_that_can_everything_is_found_to() -> None:
    """Nine calls, all to the one model, each capped; and the card says so."""
    heard: list[str] = []
    told, bodies = await found(answering_as(), told=heard.append)
    assert heard == ["streaming", "tools", "schema", "tools with schema"]
    assert works(told) == dict.fromkeys(heard, True)
    assert told.error is None
    card = told.card
    assert (card.tools, card.structured, card.structured_with_tools) == (True, "native", True)
    assert {body["model"] for body in bodies} == {"m"}
    assert all(body["max_tokens"] for body in bodies)
    assert len(bodies) == 1 + 2 + 1 + 4
    assert seen(told, "streaming") == "the answer came in 2 pieces; tokens are counted"


async def test_s8_tools_with_a_schema_are_tried_both_ways_on_the_model_itself() -> None:
    """``{use, calls, samples}``: of a model with a fallback and settings around it, the model alone is asked."""
    spare = ScriptedModel(*["never asked"] * 9)

    class Falling:
        """A wrapper that would rather ask another model."""

        def __init__(self, model: Model) -> None:
            self.model, self.card, self.wire, self.stream = model, model.card, model.wire, spare.stream

    async with serving(answering_as()) as server:
        wrapped = preset(Falling(Reliable(model_at(server))), temperature=0.9)
        told = await probe_json_with_tools(wrapped, waits_s=())
        bodies = [json.loads(one.body) for one in server.requests]
    assert (told.use, told.calls, told.samples) == ("response_format", {"response_format": 3, "prompt": 3}, 3)
    assert ["response_format" in body for body in bodies] == [True] * 3 + [False] * 3
    assert all(body["tools"] and body["model"] == "m" and "temperature" not in body for body in bodies)
    assert spare.requests == []


async def test_s8_what_suppresses_calls_is_not_the_way_to_go() -> None:
    """The prompt is, where it calls more often; nothing, where neither does."""
    async with serving(answering_as(both="ignored")) as server:
        told = await probe_json_with_tools(model_at(server), samples=1, waits_s=())
    assert (told.use, told.calls) == ("prompt", {"response_format": 0, "prompt": 1})
    async with serving(answering_as(tools="ignored")) as server:
        told = await probe_json_with_tools(model_at(server), samples=1, waits_s=())
    assert (told.use, told.calls) == (None, {"response_format": 0, "prompt": 0})


async def test_s8_its_errors_propagate() -> None:
    """And a model that has no second way says so."""
    async with serving(answering_as(both="refused")) as server:
        with pytest.raises(ModelError, match="bad_format"):
            await probe_json_with_tools(model_at(server), waits_s=())
    with pytest.raises(UsageError, match="one way"):
        await probe_json_with_tools(ScriptedModel(), waits_s=())


async def test_a_server_without_tools_is_found_to_and_others_learn_nothing_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A probe looks at what is; it changes nothing."""
    monkeypatch.setattr(http_model, "LEARNED", Learned())
    told, bodies = await found(answering_as(tools="refused"))
    assert works(told) == {"streaming": True, "tools": False, "schema": True}
    assert (told.card.tools, told.card.structured) == (False, "native")
    assert "status 400" in seen(told, "tools")
    assert not http_model.LEARNED
    assert len(bodies) == 3


@pytest.mark.parametrize(
    ("how", "saw"),
    [
        ("ignored", "answered without calling the tool, 2 times of 2"),
        ("wrong name", "called a tool that there is not, 2 times of 2"),
        ("no json", "called the tool with arguments that do not fit, 2 times of 2"),
        ("deaf", "called the tool, and did not answer from its result"),
    ],
)
async def test_a_server_that_takes_tools_and_does_not_mean_it_is_found_out(how: str, saw: str) -> None:
    """Tools that are taken and ignored, calls that are none, results that nobody reads."""
    told, _ = await found(answering_as(tools=how))
    assert (seen(told, "tools"), told.card.tools) == (saw, False)


@pytest.mark.parametrize(
    ("how", "saw"),
    [
        ("refused", "native: openai-compatible answered with status 400 (bad_format); json: the answer fits"),
        ("ignored", "native: the answer does not fit; json: the answer fits"),
    ],
)
async def test_a_server_without_schemas_may_still_have_json(how: str, saw: str) -> None:
    """The strictest way that works is the card's; tools beside it are not tried."""
    told, _ = await found(answering_as(schema=how))
    assert (seen(told, "schema"), told.card.structured) == (saw, "json")
    assert "tools with schema" not in works(told)


async def test_a_server_that_knows_no_formats_is_asked_in_words() -> None:
    """Whatever stands around the JSON."""
    told, _ = await found(answering_as(refuses={"response_format": status(500)}))
    assert (told.card.structured, works(told)["schema"]) == ("prompt", True)


async def test_a_schema_that_is_refused_beside_tools_alone_is_a_finding() -> None:
    """And so is one that keeps the model from calling."""
    for how in ("refused", "ignored"):
        told, _ = await found(answering_as(both=how))
        assert works(told) == {"streaming": True, "tools": True, "schema": True, "tools with schema": False}
        assert (told.card.structured, told.card.structured_with_tools) == ("native", False)


async def test_a_server_that_does_not_stream_is_usable_all_the_same() -> None:
    """Its answers come in one piece, and nothing is counted."""
    told, _ = await found(answering_as(streams=False, counts=False))
    assert seen(told, "streaming") == "the answer comes in one piece; tokens are not counted"
    assert works(told) == {"streaming": False, "tools": True, "schema": True, "tools with schema": True}


@pytest.mark.parametrize(
    ("script", "kind", "calls"),
    [
        (answering(status(401)), "auth", 1),
        (answering(status(429)), "rate", 1),
        (answering(status(404, body='{"error":{"message":"model not found"}}')), "model", 1),
        (answering(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<ht>"), "invalid", 1),
        (answering_as(refuses={'"tools"': status(402)}), "quota", 2),
    ],
)
async def test_what_is_about_the_whole_endpoint_ends_the_probe(script: Script, kind: str, calls: int) -> None:
    """With what was found until then."""
    told, bodies = await found(script)
    assert told.error is not None
    assert (told.error.kind, len(bodies), len(told.findings)) == (kind, calls, calls - 1)


async def test_a_server_that_is_not_there_is_told() -> None:
    """Nothing is raised."""
    async with serving(answering()) as server:
        pass
    told = await probe(model_at(server), waits_s=())
    assert told.error is not None
    assert (told.error.kind, told.findings) == ("network", ())


async def test_a_server_that_never_ends_its_answer_is_left() -> None:
    """By the time it may take, and by how much it may say."""

    async def endless(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD)
        while True:
            await peer.send(chunk(sse(delta("word " * 5000)).split(b"\n\n")[0] + b"\n\n"))

    told, _ = await found(endless)
    assert told.error is not None
    assert "does not end its answer" in str(told.error)

    async def silent(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    told, _ = await found(silent, limit_s=0.05)
    assert told.error is not None
    assert told.error.kind == "timeout"


async def test_models_without_an_endpoint_are_asked_as_they_are() -> None:
    """One way each: what their card says."""
    weather = call("weather_of", place="Lisbon")
    facts = '{"place_name":"Lisbon","degrees_celsius":17}'
    model = ScriptedModel(consult=["one", weather, "17 degrees", facts])
    told = await probe(model, samples=1)
    assert works(told) == {"streaming": False, "tools": True, "schema": True}
    assert told.card == model.card
    broken = await probe(ScriptedModel(consult=["one", raises("invalid"), raises("invalid")]), samples=1)
    assert works(broken) == {"streaming": False, "tools": False, "schema": False}
