"""The request that most tests of the transport send."""

from __future__ import annotations

import traceback

import pytest

from onrecord.errors import ModelError
from onrecord.net.transport import post
from tests.net.loopback import Loopback

HEADERS = {"Authorization": "Bearer sk-in-a-header"}
BODY = b'{"secret":"in-the-body"}'


async def ask(server: Loopback, body: bytes = BODY, *, silence_s: float = 5.0) -> bytes:
    """The whole answer to one request."""
    async with post(server.url, body, headers=HEADERS, provider="acme", silence_s=silence_s) as reply:
        return await reply.read()


async def refused(server: Loopback, *, silence_s: float = 5.0) -> ModelError:
    """The error of a request that has to fail; it names provider and host and nothing private."""
    with pytest.raises(ModelError) as caught:
        await ask(server, silence_s=silence_s)
    error = caught.value
    text = f"{error} {error.hint}"
    assert text.startswith(f"acme: {server.host}:{server.port} ")
    shown = text + "".join(traceback.format_exception(error))
    assert not [word for word in ("sk-in", "in-the-body", "/v1/chat") if word in shown]
    assert error.provider == "acme"
    return error
