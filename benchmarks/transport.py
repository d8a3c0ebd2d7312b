"""The transport beside a plain aiohttp loop: the same bytes sent, the same JSON read, turn and turn about.

    python benchmarks/transport.py [--rounds 9] [--json FILE]

A server of a few lines runs on one core, the clients on another. Only the ratios mean anything on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import time
import warnings
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import aiohttp

from onrecord.net.transport import post

HEADERS = {"authorization": "Bearer k", "content-type": "application/json"}
ANSWER = json.dumps(
    {"id": "c1", "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "forty-two " * 5}}]}
).encode()
DELTA = (
    b'data: {"id":"chatcmpl-1000001","object":"chat.completion.chunk","created":1750000000,"model":"mock-1",'
    b'"service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"alpha "},'
    b'"logprobs":null,"finish_reason":null}]}\n\n'
)
JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(ANSWER)
SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


# ---- the server ---------------------------------------------------------------------------------------------------
class Server(asyncio.Protocol):
    """Answers each POST; a path of /stream/N/PAUSE answers with N deltas, PAUSE milliseconds apart."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        self.transport = cast("asyncio.Transport", transport)
        self.head = b""
        self.missing = -1

    def data_received(self, data: bytes) -> None:
        """Counts the body down and answers at its end."""
        if self.missing < 0:
            head, end, rest = (self.head + data).partition(b"\r\n\r\n")
            if not end:
                self.head = head
                return
            self.head = head
            length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
            self.missing = int(length[15:])
            data = rest
        self.missing -= len(data)
        if self.missing == 0:
            path = self.head.split(b" ", 2)[1]
            self.head, self.missing = b"", -1
            self.answer(path)

    def answer(self, path: bytes) -> None:
        """Sends what the path asks for."""
        if not path.startswith(b"/stream"):
            self.transport.write(JSON_HEAD + ANSWER)
            return
        _, _, count, pause = path.split(b"/")
        self.transport.write(SSE_HEAD)
        chunk = b"%x\r\n%b\r\n" % (len(DELTA), DELTA)
        self.pump(chunk, int(count), int(pause) / 1000)

    def pump(self, chunk: bytes, left: int, pause: float) -> None:
        """Sends the next deltas and comes back for the rest."""
        loop = asyncio.get_running_loop()
        for _ in range(1 if pause else 50):
            if left:
                self.transport.write(chunk)
                left -= 1
        if left:
            loop.call_later(pause, self.pump, chunk, left, pause)
        else:
            self.transport.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


def serve(pipe: Connection) -> None:
    """The server's process; tells its port."""
    pin(-1)

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=1024)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def pin(which: int) -> None:
    """Keeps the process on one core where the system can."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[which]})


# ---- the two clients ----------------------------------------------------------------------------------------------
class Plain:
    """What one would write by hand."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=HEADERS)

    async def call(self, body: bytes) -> str:
        """The text of one answer."""
        async with self.session.post(f"{self.base}/chat", data=body) as answer:
            answer.raise_for_status()
            return str(json.loads(await answer.read())["choices"][0]["message"]["content"])

    async def stream(self, body: bytes, count: int, pause: int) -> tuple[int, float]:
        """How many deltas came, and when the first did."""
        seen, first, start, rest = 0, 0.0, time.perf_counter(), b""
        async with self.session.post(f"{self.base}/stream/{count}/{pause}", data=body) as answer:
            async for chunk in answer.content.iter_any():
                rest += chunk
                *events, rest = rest.split(b"\n\n")
                for event in events:
                    if event == b"data: [DONE]" or not event.startswith(b"data: "):
                        continue
                    choices = json.loads(event[6:])["choices"]
                    if choices and choices[0]["delta"].get("content"):
                        seen += 1
                        first = first or time.perf_counter() - start
        return seen, first


class Ours:
    """The same over `onrecord.net.transport`."""

    def __init__(self, base: str) -> None:
        self.base = base

    async def call(self, body: bytes) -> str:
        """The text of one answer."""
        async with post(f"{self.base}/chat", body, headers=HEADERS, provider="bench") as answer:
            return str(json.loads(await answer.read())["choices"][0]["message"]["content"])

    async def stream(self, body: bytes, count: int, pause: int) -> tuple[int, float]:
        """How many deltas came, and when the first did."""
        seen, first, start = 0, 0.0, time.perf_counter()
        async with post(f"{self.base}/stream/{count}/{pause}", body, headers=HEADERS, provider="bench") as answer:
            async for events in answer.event_batches(silence_s=60):
                for event in events:
                    if event == b"[DONE]":
                        continue
                    choices = json.loads(event)["choices"]
                    if choices and choices[0]["delta"].get("content"):
                        seen += 1
                        first = first or time.perf_counter() - start
        return seen, first


Client = Plain | Ours


# ---- what is measured: each returns one number, less is better ----------------------------------------------------
def body(messages: int) -> bytes:
    """A request with that many messages."""
    said = [
        {"role": "user", "content": f"message {i}: the quick brown fox jumps over the lazy dog. " * 4}
        for i in range(messages)
    ]
    return json.dumps({"model": "m", "messages": said}).encode()


SHORT, LONG = body(2), body(10_000)


async def one_call(client: Client) -> float:
    """CPU of a short call."""
    start = time.process_time()
    for _ in range(300):
        await client.call(SHORT)
    return (time.process_time() - start) / 300 * 1e6


async def long_call(client: Client) -> float:
    """CPU of a call with a long history."""
    start = time.process_time()
    for _ in range(15):
        await client.call(LONG)
    return (time.process_time() - start) / 15 * 1e6


async def long_wall(client: Client) -> float:
    """Time of a call with a long history."""
    start = time.perf_counter()
    for _ in range(15):
        await client.call(LONG)
    return (time.perf_counter() - start) / 15 * 1e6


async def delta(client: Client) -> float:
    """CPU of a delta when many come in one read."""
    start = time.process_time()
    seen = sum([(await client.stream(SHORT, 2000, 0))[0] for _ in range(4)])
    return (time.process_time() - start) / seen * 1e6


async def paced_delta(client: Client) -> float:
    """CPU of a delta that comes alone."""
    start = time.process_time()
    seen, _ = await client.stream(SHORT, 300, 1)
    return (time.process_time() - start) / seen * 1e6


async def first_delta(client: Client) -> float:
    """Time to the first delta."""
    return statistics.median([(await client.stream(SHORT, 3, 2))[1] for _ in range(40)]) * 1e6


def crowd(sessions: int) -> Callable[[Client], Awaitable[float]]:
    """Time of a call when so many sessions call at once."""

    async def measure(client: Client) -> float:
        each = max(1, 2048 // sessions)

        async def session() -> None:
            for _ in range(each):
                await client.call(SHORT)

        start = time.perf_counter()
        await asyncio.gather(*(session() for _ in range(sessions)))
        return (time.perf_counter() - start) / (each * sessions) * 1e6

    return measure


MEASURES: dict[str, Callable[[Client], Awaitable[float]]] = {
    "one call, CPU": one_call,
    "streamed delta in a burst, CPU": delta,
    "streamed delta every ms, CPU": paced_delta,
    "first delta, wall": first_delta,
    "call of 64 at once, wall": crowd(64),
    "call of 256 at once, wall": crowd(256),
    f"call with {len(LONG) / 1e6:.1f} MB, CPU": long_call,
    f"call with {len(LONG) / 1e6:.1f} MB, wall": long_wall,
}


async def compare(base: str, rounds: int, only: str) -> dict[str, dict[str, float]]:
    """Every measure, both clients by turns."""
    plain, ours = Plain(base), Ours(base)
    results: dict[str, dict[str, float]] = {}
    for name, measure in MEASURES.items():
        if only not in name:
            continue
        figures: dict[Client, list[float]] = {plain: [], ours: []}
        for turn in range(rounds + 1):
            for client in (plain, ours) if turn % 2 else (ours, plain):
                figures[client].append(await measure(client))
        kept = {client: values[1:] for client, values in figures.items()}  # the first round warms up
        ratio = statistics.median(ours / plain for plain, ours in zip(kept[plain], kept[ours], strict=True))
        results[name] = {
            "plain_us": round(statistics.median(kept[plain]), 2),
            "ours_us": round(statistics.median(kept[ours]), 2),
            "ratio": round(ratio, 3),
        }
        print(f"{name:34}{results[name]['plain_us']:>12}{results[name]['ours_us']:>12}{ratio:>8.2f}", flush=True)
    await plain.session.close()
    return results


def main() -> None:
    """Starts the server, measures, prints."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--only", default="", help="measures whose name holds this text")
    arguments.add_argument("--json", type=Path)
    options = arguments.parse_args()
    warnings.simplefilter("ignore", ResourceWarning)  # the plain loop hands large bodies over as bytes
    near, far = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(far,), daemon=True)
    server.start()
    port = near.recv()
    pin(0)
    print(f"{'microseconds, medians':34}{'plain':>12}{'ours':>12}{'ratio':>8}")
    results = asyncio.run(compare(f"http://127.0.0.1:{port}", options.rounds, options.only))
    server.terminate()
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
