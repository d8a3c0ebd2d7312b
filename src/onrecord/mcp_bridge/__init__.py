"""Tools of servers that speak the Model Context Protocol, over stdio and streamable HTTP. Needs the extra ``mcp``.

From an agent down to a server: ``mcp_tools`` (the toolset) has a ``link`` for each session, which offers and calls; a
link has a ``reach``, which connects, connects again and remembers what was listed; that has a ``connection`` at most,
over one of the ``transports``. What a server says is made fit on its way up by ``listing``, ``schemas``, ``results``
and ``shown_words``, within ``limits``.
"""

from onrecord.mcp_bridge.failures import ServerFailed
from onrecord.mcp_bridge.limits import Limits
from onrecord.mcp_bridge.mcp_tools import McpTools
from onrecord.mcp_bridge.sources import Http, Stdio

__all__ = ("Http", "Limits", "McpTools", "ServerFailed", "Stdio")
