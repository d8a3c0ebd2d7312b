"""Agents whose results are stored and spent, as tests of artifacts write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onrecord.agent import Agent
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.jsonio import loads
from onrecord.models.request import Request
from onrecord.prompt.artifact_store import ArtifactScope
from onrecord.prompt.artifacts import Artifacts
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.tools.declare import tool as declared
from onrecord.tools.tool import ToolContext
from tests.turn.acting import texts, tool, turn

__all__ = ("ANA", "DAY", "LONG", "ROWS", "SCOPE", "Spending", "placed", "scope", "ticket")

LONG = "x" * 500
ROWS = [{"city": "Lund", "price": 90}] * 30
DAY = FakeEffects().now()
ANA = Identity(tenant="hotel", principal="ana")
SCOPE = ArtifactScope(session=SessionKey("s", tenant="t"), owner=ANA)


def ticket(text: str) -> Mapping[str, Any]:
    """A ticket as the model reads it."""
    held: Mapping[str, Any] = loads(text)
    assert list(held) == ["placed", "ref", "kind", "mediaType", "bytes", "reason"]
    assert held["placed"] is True
    return held


async def placed(artifacts: Artifacts, result: Any, *features: Any) -> tuple[Any, str]:
    """A turn in which a tool gives this result, and what the model reads of it."""
    model = ScriptedModel([call("search")], "done")
    agent = Agent(model, tools=[tool("search", lambda *_: result)], features=[*features, artifacts])
    done = await turn(agent, session="s")
    return done, texts(model.requests[1])[0]


def scope(session: str = "s") -> ArtifactScope:
    """The scope of a session of nobody."""
    return ArtifactScope(session=SessionKey(session))


class Spending:
    """An agent whose ``search`` gives rows and whose ``count`` wants them; a script that spends the first ticket."""

    def __init__(self, artifacts: Artifacts | None = None, result: Any = ROWS, ref: str = "", then: Any = ()) -> None:
        self.artifacts = artifacts or Artifacts(100)
        self.got: list[Any] = []

        @self.artifacts.wants(rows="tool-result/search")
        @declared
        def count(rows: list[dict[str, Any]], ctx: ToolContext[Any]) -> str:
            """Counts rows."""
            self.got.append((rows, self.artifacts.of(ctx).wanted["rows"].kind))
            return f"{len(rows)} rows"

        self.count = count

        def spend(request: Request) -> list[Any]:
            return [call("count", rows=ref or ticket(texts(request)[0])["ref"])]

        self.model = ScriptedModel([call("search")], spend, *then, "done")
        search = tool("search", lambda *_: result)
        self.agent: Agent[Any, str] = Agent(self.model, tools=[search, count], features=[self.artifacts])
