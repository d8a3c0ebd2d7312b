"""Results that are too long to show are stored; tools spend the tickets (cases N162 to N164, spec 23)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Image, Text
from onrecord.errors import ConfigurationError, FeatureConflict, ToolInvalid, UsageError
from onrecord.governance.rules import after_tool
from onrecord.jsonio import digest, loads
from onrecord.prompt.artifact_entries import (
    ArtifactMinted,
    ArtifactPresented,
    ArtifactRefused,
    ArtifactResolved,
)
from onrecord.prompt.artifact_store import Artifact, ArtifactScope, MemoryArtifacts
from onrecord.prompt.artifacts import Artifacts
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.testing.conformance.feature import FeatureConformance, InertFeatureConformance, MakeFeature
from onrecord.turn.moments import SLOTS, Allow, Deny, Hooks, Returned
from onrecord.turn.turn import Turn
from tests.prompt.placing import LONG, ROWS, placed, scope, ticket
from tests.turn.acting import Named, bodies, read, results, texts, tool, turn

pytestmark = pytest.mark.unit


class TestIdle(InertFeatureConformance):
    """Short results, no refs: nothing changes."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return Artifacts


class TestPlacing(FeatureConformance):
    """Placing every result it keeps the promises of all features."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return lambda: Artifacts(1, present=True)


# ---- placement -------------------------------------------------------------------------------------------------------


async def test_n162_a_long_result_becomes_a_ticket() -> None:
    """The store has all of it, under the tool's kind; the model reads the ticket (case N162)."""
    artifacts = Artifacts(100)
    result, text = await placed(artifacts, LONG)
    held = ticket(text)
    assert (held["kind"], held["mediaType"], held["bytes"]) == ("tool-result/search", "text/plain", 500)
    assert "do not make it up" in held["reason"]
    assert await artifacts.store.get(scope(), held["ref"]) == LONG.encode()
    (minted,) = bodies(result, ArtifactMinted)
    assert (minted.ref, minted.bytes, minted.call.rsplit("/", 1)[-1]) == (held["ref"], 500, "c0")
    assert results(result) == [("search", "returned")]
    assert LONG.encode() not in b"".join(Agent(ScriptedModel(), features=[artifacts]).plan.codec.lines(result.entries))


@pytest.mark.parametrize(("length", "is_placed"), [(100, False), (101, True)])
async def test_n162_at_the_limit_it_is_shown(length: int, is_placed: bool) -> None:
    """Only what is longer is placed (case N162)."""
    result, text = await placed(Artifacts(100), "x" * length)
    assert (text != "x" * length) is is_placed
    assert len(bodies(result, ArtifactMinted)) == is_placed


class Broken(MemoryArtifacts):
    """A store whose disk is full."""

    async def put(self, scope: ArtifactScope, artifact: Artifact, data: bytes, /) -> None:
        raise OSError("disk full")


async def test_n162_a_store_that_fails_leaves_the_result_as_it_is() -> None:
    """The turn is fine, and the record says what failed (case N162)."""
    result, text = await placed(Artifacts(100, store=Broken()), LONG)
    assert text == LONG
    assert [(body.op, body.reason, body.tool) for body in bodies(result, ArtifactRefused)] == [
        ("put", "OSError", "search")
    ]


async def test_n163_what_a_ceiling_refuses_is_not_stored() -> None:
    """It stands before placement (case N163)."""

    async def ceiling(turn: Turn, returned: Returned) -> Deny:
        return Deny("Too much: ask for less.")

    stops = Named("ceiling", Hooks(after_tool=ceiling, order={"after_tool": SLOTS["after_tool"]["CEILING"]}))
    artifacts = Artifacts(100)
    result, text = await placed(artifacts, LONG, stops)
    assert text == "Too much: ask for less."
    assert bodies(result, ArtifactMinted) == []
    assert await artifacts.store.list(scope()) == []


async def test_what_is_stored_is_what_a_rule_left() -> None:
    """A rule that hides something hides it in the store too; it is a text then, whatever the result was."""

    @after_tool
    async def hides(turn: Turn, returned: Returned) -> Allow[Returned]:
        return Allow(replace(returned, content=(Text("y" * 300),)), "hidden")

    artifacts = Artifacts(100)
    _, text = await placed(artifacts, ROWS, hides)
    held = ticket(text)
    assert held["mediaType"] == "text/plain"
    assert await artifacts.store.get(scope(), held["ref"]) == b"y" * 300


async def test_a_tool_that_failed_or_shows_a_picture_is_not_placed() -> None:
    """An error is there to be read; a picture has no characters."""

    def fails(*_: Any) -> Any:
        raise ValueError(LONG)

    picture = Image(url="https://example.org/a.png", description=LONG)
    model = ScriptedModel([call("fails"), call("draws")], "done")
    agent = Agent(model, tools=[tool("fails", fails), tool("draws", lambda *_: picture)], features=[Artifacts(100)])
    result = await turn(agent)
    assert LONG in texts(model.requests[1])[0]
    assert bodies(result, ArtifactMinted) == []


async def test_a_tools_own_limit_applies_to_the_ticket() -> None:
    """It is the last net, behind placement."""
    model = ScriptedModel([call("search")], "done")
    search = tool("search", lambda *_: LONG, max_result_size_chars=40)
    await turn(Agent(model, tools=[search], features=[Artifacts(100)]))
    text = texts(model.requests[1])[0]
    assert text.startswith('{"placed":true,"ref":"art_')
    assert "[truncated:" in text


async def test_the_same_result_has_the_same_ref() -> None:
    """In one session; in another one the ref is another, and so is that of another tool."""
    artifacts = Artifacts(100)
    model = ScriptedModel(*[[call("search"), call("search"), call("find")], "done"] * 2)
    agent = Agent(model, tools=[tool(name, lambda *_: LONG) for name in ("search", "find")], features=[artifacts])
    await turn(agent, session="s")
    await turn(agent, session="other", effects=FakeEffects())
    refs = [[ticket(text)["ref"] for text in texts(request)] for request in (model.requests[1], model.requests[3])]
    assert refs[0][0] == refs[0][1] != refs[0][2]
    assert len(await artifacts.store.list(scope())) == 2


async def test_a_ref_cannot_be_made_from_what_it_names() -> None:
    """A secret of the session is in it: knowing the rows is not enough, and one session's refs are not another's."""
    refs = set[str]()
    for effects in (FakeEffects(), OtherEffects()):
        model = ScriptedModel([call("search")], "done")
        agent = Agent(model, tools=[tool("search", lambda *_: LONG)], features=[Artifacts(100)])
        await turn(agent, session="s", effects=effects)
        refs.add(ticket(texts(model.requests[1])[0])["ref"])
    assert len(refs) == 2
    unkeyed = digest(b"\x1f".join((b"tool-result/search", LONG.encode())), "")
    assert f"art_{unkeyed}" not in refs


class OtherEffects(FakeEffects):
    """Another world, with other secrets."""

    def nonce(self) -> str:
        return f"other {super().nonce()}"


async def test_bytes_that_are_not_what_was_stored_are_not_handed_out() -> None:
    """Whatever a store gives; and what is over is not listed."""

    class Swaps(MemoryArtifacts):
        async def get(self, scope: ArtifactScope, ref: str, /) -> bytes | None:
            return b"other"

    artifacts, seen = Artifacts(None, store=Swaps(), ttl_s=60), list[Any]()

    async def works(args: Mapping[str, Any], ctx: Any) -> str:
        own = artifacts.of(ctx)
        if not await own.list() and not seen:
            held = await own.put("words", "note")
            seen.append(len(await own.list()))
            with pytest.raises(UsageError, match="cannot be read") as raised:
                await own.get(held.ref)
            seen.append(raised.value.code)
        else:
            seen.append(len(await own.list()))
        return "ok"

    clock = FakeEffects()
    agent = Agent(ScriptedModel(*[[call("works")], "done"] * 2), tools=[tool("works", works)], features=[artifacts])
    first = await agent.turn("hi", session="s", effects=clock)
    clock.advance(seconds=60)
    await agent.turn("hi", session=first.session, effects=clock)
    assert seen == [1, "artifact-damaged", 0]
    assert [body.reason for body in bodies(first, ArtifactRefused)] == ["artifact-damaged"]


# ---- in handlers -----------------------------------------------------------------------------------------------------


async def test_a_handler_stores_and_reads_by_itself() -> None:
    """In its own session; what it asks for in vain is an error that says so."""
    artifacts = Artifacts(None)
    seen: list[Any] = []

    async def works(args: Mapping[str, Any], ctx: Any) -> str:
        own = artifacts.of(ctx)
        held = await own.put({"a": [1]}, "table", label="sums", parents=("art_x",))
        text = await own.put("words", "note")
        seen.extend([await own.get(held.ref), await own.get(text.ref), (await own.head(held.ref)).label])
        seen.append([one.kind for one in await own.list()])
        with pytest.raises(UsageError, match="nothing is stored under this ref") as raised:
            await own.get("art_" + "0" * 24)
        assert raised.value.code == "artifact-missing"
        return "ok"

    model = ScriptedModel([call("works")], "done")
    result = await turn(Agent(model, tools=[tool("works", works)], features=[artifacts]), session="s")
    assert texts(model.requests[1]) == ["ok"]
    assert seen == [{"a": [1]}, "words", "sums", ["table", "note"]]
    assert [body.via for body in bodies(result, ArtifactResolved)] == ["get", "get"]
    assert [body.label for body in bodies(result, ArtifactMinted)] == ["sums", ""]


async def test_artifacts_that_are_not_mounted_say_so() -> None:
    """By name of the option, not in silence."""
    artifacts = Artifacts(100)

    async def works(args: Mapping[str, Any], ctx: Any) -> str:
        artifacts.of(ctx)
        return "never"

    model = ScriptedModel([call("works")], "done")
    await turn(Agent(model, tools=[tool("works", works)], features=[Artifacts(100)]))
    assert texts(model.requests[1]) == ['{"error":"these artifacts are not part of this agent"}']


# ---- before the person -----------------------------------------------------------------------------------------------


async def test_the_model_may_put_one_before_the_person() -> None:
    """On the record, for a screen that reads it; a ref that names nothing is told with those that do."""
    model = ScriptedModel(
        [call("search")], lambda request: [call("present", ref=ticket(texts(request)[0])["ref"], **{"as": "table"})],
        [call("present", ref="art_" + "0" * 24)], "done",
    )  # fmt: skip
    agent = Agent(model, tools=[tool("search", lambda *_: LONG)], features=[Artifacts(100, present=True)])
    result = await turn(agent, session="s")
    (presented,) = bodies(result, ArtifactPresented)
    assert (presented.shown_as, presented.what) == ("table", "tool-result/search")
    refused = loads(texts(model.requests[-1])[2])
    assert refused == {"error": "nothing is stored under this ref", "refs": [presented.ref]}
    assert read(model.requests[0])["tools"] == ["search", "present"]


async def test_only_the_latest_refs_are_told() -> None:
    """Ten of them: a list of all would be a long result itself."""
    found = tool("search", lambda args, _: f"{args['n']} {LONG}")
    calls = [call("search", n=n) for n in range(12)]
    model = ScriptedModel(calls, [call("present", ref="art_" + "0" * 24)], "done")
    await turn(Agent(model, tools=[found], features=[Artifacts(100, present=True)]))
    *placed, refused = texts(model.requests[-1])
    assert loads(refused)["refs"] == [ticket(text)["ref"] for text in placed[2:]]


def test_there_is_no_such_tool_unless_it_is_asked_for() -> None:
    """The requests of an agent that places nothing are those of one without."""
    assert list(Agent(ScriptedModel(), features=[Artifacts()]).plan.tools) == []
    with pytest.raises(ToolInvalid, match="two tools have the id 'present'"):
        Agent(ScriptedModel(), tools=[tool("present")], features=[Artifacts(present=True)])
    with pytest.raises(FeatureConflict, match="'artifacts' is given twice"):
        Agent(ScriptedModel(), features=[Artifacts(), Artifacts()])


NO_TIME = [{"ttl_s": seconds} for seconds in (0, -1.0, float("inf"), float("nan"))]


@pytest.mark.parametrize("given", [{"max_inline_chars": 0}, {"max_inline_chars": True}, *NO_TIME])
def test_numbers_that_make_no_sense_are_refused(given: Any) -> None:
    """When they are declared."""
    with pytest.raises(ConfigurationError, match="of Artifacts is a"):
        Artifacts(**given)
