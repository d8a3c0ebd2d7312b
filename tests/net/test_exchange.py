"""What one exchange makes of its client: when it asks again, and whose fault an end is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from onrecord.errors import ModelError
from onrecord.net.exchange import Endpoint, Exchange, Meaning, Sent
from onrecord.net.silence import Alarm

pytestmark = pytest.mark.unit

URL = "http://host/v1"
LONG = {"content-length": "2"}


class Body:
    """A body that is there at once."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)

    async def readany(self) -> bytes:
        return self._pieces.pop(0)

    def at_eof(self) -> bool:
        return not self._pieces


class Played:
    """A client whose connections all fail, or that answers with these headers and then loses its connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, headers: Mapping[str, str] | None = None) -> None:
        self.alarm = Alarm(loop)
        self.asked = self.dropped = 0
        self._headers = headers

    def now(self, loop: asyncio.AbstractEventLoop, /) -> Any:
        return self

    def endpoint(self, url: str) -> Endpoint:
        return Endpoint(url, url, "http", "host", 80, "host")

    async def request(self, method: str, endpoint: Endpoint, body: Sent, *_: object) -> Any:
        self.asked += 1
        if self._headers is None:
            raise ConnectionError
        body.wire = SimpleNamespace(lost=ConnectionResetError())
        return SimpleNamespace(status=200, headers=self._headers, content=Body(b"a", b"b"), closed=True)

    def is_stale(self, body: Sent, problem: BaseException) -> bool:
        return True

    def drop_idle(self, endpoint: Endpoint) -> None:
        self.dropped += 1

    def meaning(self, problem: BaseException) -> Meaning:
        return Meaning("network", "closed the connection")


def asking(client: Any) -> Exchange:
    """One request through this client."""
    return Exchange(client, "POST", URL, b"{}", {}, "acme", 60.0, 30.0)


async def test_it_asks_again_once_however_stale_the_next_connection_is() -> None:
    """Another task may give an old connection back in between; the watch over the failed exchange ends with it."""
    client = Played(asyncio.get_running_loop())
    with pytest.raises(ModelError, match=r"^acme: host closed the connection"):
        await asking(client).__aenter__()
    assert (client.asked, client.dropped) == (2, 1)
    assert not client.alarm._watches


async def test_an_answer_of_just_the_limit_is_whole_and_one_byte_more_is_told() -> None:
    """A limit that is reached between two pieces cuts nothing off in silence."""
    async with asking(Played(asyncio.get_running_loop(), LONG)) as reply:
        assert await reply.read(2) == b"ab"
    async with asking(Played(asyncio.get_running_loop(), LONG)) as reply:
        with pytest.raises(ModelError, match="more than 1 bytes"):
            await reply.read(1)


@pytest.mark.parametrize("headers", [LONG, {"transfer-encoding": "chunked"}])
async def test_a_reset_behind_the_stated_end_is_no_failure(headers: dict[str, str]) -> None:
    """The answer is whole by its own account; only where the connection's end is its end does a reset cut it."""
    async with asking(Played(asyncio.get_running_loop(), headers)) as reply:
        assert await reply.read() == b"ab"
    async with asking(Played(asyncio.get_running_loop(), {})) as reply:
        with pytest.raises(ModelError, match="closed the connection"):
            await reply.read()
