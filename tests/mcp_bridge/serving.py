"""Servers of tools for tests: over stdio one that does what it is told, over HTTP a real one; and what they leave."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from onrecord.agent import Agent
from onrecord.mcp_bridge import McpTools, Stdio
from onrecord.record.kinds import Noted
from onrecord.testing import ScriptedModel
from onrecord.turn.result import TurnResult
from tests.host.hosting import settled

RAW = Path(__file__).with_name("raw_server.py")
TOOLS = ("echo", "key", "env", "fail", "picture", "big", "garbage", "odd", "die", "hang", "changed")


class Raw:
    """The state of a raw server, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lists(*TOOLS)

    def lists(self, *tools: object) -> None:
        """What it lists from now on."""
        made = [{"name": t, "inputSchema": {"type": "object"}} if isinstance(t, str) else t for t in tools]
        (self.folder / "tools.json").write_text(json.dumps(made))

    def behaves(self, *how: str) -> None:
        (self.folder / "how").write_text(" ".join(how))

    @property
    def seen(self) -> list[str]:
        """What it was sent so far, but for what only opens a connection."""
        path = self.folder / "seen"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if not line.startswith(("server/discover", "initialize", "notifications/init"))]

    @property
    def starts(self) -> int:
        path = self.folder / "seen"
        return path.read_text().count("initialize\n") if path.exists() else 0

    @property
    def pid(self) -> int:
        return int((self.folder / "pid").read_text())

    @property
    def stdio(self) -> Stdio:
        return Stdio((sys.executable, "-S", str(RAW), str(self.folder)), quiet=True)

    def tools(self, **settings: Any) -> McpTools:
        return McpTools(settings.pop("source", self.stdio), name="raw", **{"prefix": "", **settings})


async def asked(
    tools: McpTools | Sequence[McpTools], *script: Any, session: str = "s", own: Sequence[Any] = (), **more: Any
) -> tuple[TurnResult[Any], ScriptedModel]:
    """One turn of an agent with these tools and this script."""
    model = ScriptedModel(*script)
    given = [tools] if isinstance(tools, McpTools) else list(tools)
    result: TurnResult[Any] = await Agent(model, tools=[*given, *own], **more).turn("hi", session=session)
    return result, model


def notes(result: TurnResult[Any]) -> list[str]:
    """What the record says of servers."""
    return [e.body.text for e in result.entries if isinstance(e.body, Noted) and e.body.by.startswith("mcp:")]


def is_running(pid: int) -> bool:
    """Whether a process is there, and no corpse."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def open_files() -> int:
    """How many files this process holds open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def gone(pid: int, within_s: float = 8.0) -> bool:
    """Whether a process ends in time."""
    async with asyncio.timeout(within_s):
        await settled(lambda: not is_running(pid))
    return True


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """An ASGI application on 127.0.0.1, and its address."""
    import uvicorn

    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_level="critical", lifespan="on", timeout_graceful_shutdown=1, ws="none")
        server = uvicorn.Server(config)
        running = asyncio.create_task(server._serve(sockets=[bound]))  # without taking over signals
        try:
            await settled(lambda: server.started)
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running
