"""How a server can fail a call: in our words, or in its own."""

from __future__ import annotations

from onrecord.errors import OnrecordError

__all__ = ("CallRefused", "ServerFailed", "SessionGone")


class ServerFailed(OnrecordError):
    """A server of tools cannot be used as it is. ``code`` is ``mcp-`` and the kind of failure.

    ``unreachable``: no connection came about; ``lost``: it ended while something was asked; ``timeout``: no answer in
    time; ``refused``: an HTTP status instead of one; ``malformed``: something that is no answer. It holds nothing that
    the server said.
    """

    default_code = "mcp-unreachable"

    def __init__(self, kind: str, why: str, *, hint: str = "") -> None:
        super().__init__(why, code=f"mcp-{kind}", hint=hint)


class CallRefused(Exception):
    """The server answered a call with an error of the protocol. Its words are for the model alone."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class SessionGone(Exception):
    """The server does not know this connection any more, and did nothing: the call may be made over a new one."""
