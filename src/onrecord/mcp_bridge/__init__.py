"""Tools of servers that speak the Model Context Protocol, over stdio and streamable HTTP. Needs the extra ``mcp``."""

from onrecord.mcp_bridge.failures import ServerFailed
from onrecord.mcp_bridge.limits import Limits
from onrecord.mcp_bridge.mcp_tools import McpTools
from onrecord.mcp_bridge.sources import Http, Stdio

__all__ = ("Http", "Limits", "McpTools", "ServerFailed", "Stdio")
