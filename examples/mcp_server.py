"""A small MCP server over stdio: what a clinic knows of its appointments. `mcp_tools.py` starts it.

pip install "onrecord[mcp]"
python examples/mcp_server.py        # waits for a client on its input
"""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

BOOKED = {"2026-12-01": ["09:00", "09:30"], "2026-12-02": ["14:00"]}
HOURS = ("09:00", "09:30", "10:00", "14:00")

server = MCPServer("clinic")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def free_times(day: str) -> list[str]:
    """The times that are free on a day, such as 2026-12-01."""
    return [hour for hour in HOURS if hour not in BOOKED.get(day, [])]


@server.tool()
def book(day: str, time: str) -> str:
    """Books a time on a day."""
    if time in BOOKED.get(day, []):
        raise ValueError(f"{time} is taken")
    BOOKED.setdefault(day, []).append(time)
    return f"booked {day} at {time}"


if __name__ == "__main__":
    server.run("stdio")
