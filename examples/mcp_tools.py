"""An agent with the tools of an MCP server, which it starts: `mcp_server.py` beside this file.

    pip install "onrecord[mcp]"
    python examples/mcp_tools.py

The model plays a script, so it needs no key. What books something asks a person first, whatever the server says
of its tools.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from msgspec.structs import replace

from onrecord import Agent, Host, Tool, approved
from onrecord.governance import CheckIn, NeedsCheckIn
from onrecord.mcp_bridge import McpTools, Stdio
from onrecord.testing import ScriptedModel, call

SERVER = Path(__file__).with_name("mcp_server.py")


def careful(tool: Tool) -> Tool:
    """Every tool but the one that only looks needs a person's word."""
    if tool.id == "clinic_free_times":
        return replace(tool, read_only=True, destructive=False)
    return replace(tool, traits=(NeedsCheckIn("always"),))


clinic = McpTools(Stdio((sys.executable, str(SERVER)), quiet=True), name="clinic", adjust=careful)
model = ScriptedModel(
    call("clinic_free_times", day="2026-12-01"),
    call("clinic_book", day="2026-12-01", time="10:00"),
    "You are booked for 10:00.",
)
agent = Agent(model, instructions="You book appointments.", tools=[clinic], features=[CheckIn()])


async def main() -> None:
    """One visit: look, book, and ask before booking."""
    async with Host(agent) as host:
        paused = await host.turn("ana", "Book me in on the first of December.")
        if paused.question is None:
            return
        print("asked:", paused.question.text)
        done = await host.turn("ana", approved(paused.question, by="reception"))
        print(done.text)


if __name__ == "__main__":
    asyncio.run(main())
