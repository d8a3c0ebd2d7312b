"""How a server can fail a call: in our words, or in its own."""

from __future__ import annotations

from onrecord.errors import OnrecordError

__all__ = ("CallRefused", "ServerFailed", "SessionGone")


class ServerFailed(OnrecordError):
    """A server of tools cannot be used as it is, and ``code`` says how. It holds nothing that the server said.

    ``mcp-unreachable``: no connection came about; ``mcp-lost``: it ended while something was asked; ``mcp-timeout``: no
    answer in time; ``mcp-refused``: an HTTP status instead of one; ``mcp-malformed``: something that is no answer.
    """

    default_code = "mcp-unreachable"

    def __init__(self, code: str, why: str, *, hint: str = "") -> None:
        super().__init__(why, code=code, hint=hint)


class CallRefused(Exception):
    """The server answered a call with an error of the protocol. Its words are for the model alone."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class SessionGone(Exception):
    """The server does not know this connection any more, and did nothing: the call may be made over a new one."""
