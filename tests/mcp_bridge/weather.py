"""A real server with tools of all kinds, as people write them. Needs the extra ``mcp``."""

from __future__ import annotations

import base64

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel

from tests.mcp_bridge.raw_server import PIXEL


class Password(BaseModel):
    """What the server would like to know."""

    password: str


def weather_server() -> MCPServer:
    """The server, anew."""
    server = MCPServer("weather", version="2.0")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def degrees(city: str) -> dict[str, float]:
        """Degrees in a city."""
        return {"celsius": 21.5}

    @server.tool()
    def sky() -> Image:
        """A picture of the sky."""
        return Image(data=base64.b64decode(PIXEL), format="png")

    @server.tool()
    def fails() -> str:
        """Fails."""
        raise RuntimeError("internal detail")

    @server.tool()
    async def more(ctx: Context) -> str:
        """Adds a tool."""

        def added() -> str:
            """Added."""
            return "it works"

        server.add_tool(added)
        await ctx.notify_tools_changed()
        return "added"

    @server.tool()
    async def asks(ctx: Context) -> str:
        """Asks the person for a password."""
        answer = await ctx.elicit("Your password?", Password)
        return str(answer)

    return server
