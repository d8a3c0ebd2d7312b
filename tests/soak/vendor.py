"""The world outside: a model vendor that fails in every usual way, and a till that books each key once.

One process of its own on a loopback port. It stays alive while workers are killed, as vendors do.
"""

# ruff: noqa: S311  chance, not secrets
from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

from tests.soak.diary import Diary

__all__ = ("serve",)

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_BUSY = b"HTTP/1.1 429 X\r\nRetry-After: %b\r\nContent-Length: 2\r\n\r\n{}"
_BROKEN = b"HTTP/1.1 500 X\r\nContent-Length: 2\r\n\r\n{}"


class Vendor:
    """Answers chat requests and bookings. ``calm``: a file that, once it is there, ends all failures."""

    def __init__(self, chance: random.Random, calm: Path, diary: Diary) -> None:
        self.chance, self.calm, self.diary = chance, calm, diary
        self.booked: dict[str, tuple[int, str]] = {}
        self.said = 0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection until either side ends it."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                at = head.lower().find(b"content-length:")
                size = int(head[at + 15 :].split(b"\r", 1)[0]) if at > 0 else 0
                body = json.loads(await reader.readexactly(size))
                stays = self.book(body, writer) if b"/till" in head[:40] else await self.chat(body, writer)
                if not stays:
                    return
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            return
        finally:
            writer.close()

    def book(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        """Books an amount under a key; the same key again gets the first receipt."""
        key, amount = body["key"], body["amount"]
        if key not in self.booked:
            self.booked[key] = (amount, f"receipt {len(self.booked)}")
            self.diary.note("booked", key=key, amount=amount, receipt=self.booked[key][1])
        before, receipt = self.booked[key]
        self.diary.note("asked to book", key=key, amount=amount, differs=before != amount)
        told = receipt.encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(told), told))
        return True

    async def chat(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        """One reply: whole, late, refused, cut off or with calls."""
        chance, wild = self.chance, not self.calm.exists()
        await asyncio.sleep(chance.uniform(0, 0.1) if wild else 0)
        fate = chance.random() if wild else 1.0
        if fate < 0.04:
            writer.write(_BUSY % chance.choice([b"0", b"1"]))
            return True
        if fate < 0.08:
            writer.write(_BROKEN)
            return True
        events = self.events(body)
        cut = chance.randrange(len(events)) if fate < 0.12 else -1
        writer.write(_HEAD)
        for n, event in enumerate(events):
            if n == cut:
                writer.transport.abort()
                return False
            data = f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await writer.drain()
            await asyncio.sleep(chance.uniform(0, 0.04) if wild else 0)
        writer.write(b"0\r\n\r\n")
        return True

    def events(self, body: dict[str, Any]) -> list[Any]:
        """Words that no other reply has, or calls where there are tools and none was called yet."""
        self.said += 1
        asked = body["messages"][-1].get("role") != "tool"
        if body.get("tools") and asked and self.chance.random() < 0.4:
            names = self.chance.choice([["book"], ["look"], ["look", "look"], ["book", "look", "book"], ["refund"]])
            return [*(_call(n, name, self.said) for n, name in enumerate(names)), _delta({}, "tool_calls"), "[DONE]"]
        words = [f"Reply {self.said}", " goes", " on", f" to {self.chance.random():.6f}."]
        return [*(_delta({"content": word}) for word in words), _delta({}, "stop"), "[DONE]"]


def _call(n: int, name: str, said: int) -> dict[str, Any]:
    arguments = {} if name == "look" else {"amount": said * 10 + n}
    function = {"name": name, "arguments": json.dumps(arguments)}
    return _delta({"tool_calls": [{"index": n, "id": f"call_{said}_{n}", "type": "function", "function": function}]})


def _delta(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def serve(folder: Path, seed: str) -> None:
    """Runs until it is killed; the file ``port`` says where."""

    async def run() -> None:
        vendor = Vendor(random.Random(seed), folder / "calm", Diary(folder / "diary"))
        server = await asyncio.start_server(vendor.connected, "127.0.0.1", 0)
        (folder / "port.new").write_text(str(server.sockets[0].getsockname()[1]), encoding="utf-8")
        (folder / "port.new").rename(folder / "port")
        await server.serve_forever()

    asyncio.run(run())
