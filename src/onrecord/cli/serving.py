"""A worker while it runs: the host, its signals, its health."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from onrecord.agent import Agent
from onrecord.cli.failure import INTERRUPTED, OK, PIPE, Wrong, aside, let_go, said_of
from onrecord.cli.interrupts import on_interrupt
from onrecord.cli.loading import function_named, served_named
from onrecord.cli.terminal import plural
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import StoreError
from onrecord.host import Deliver, Health, Host

__all__ = ("serve",)

EVERY_S = 60.0
"""How often the health is told."""


def serve(args: argparse.Namespace) -> int:
    """The whole command: returns its exit code."""
    found = served_named(args.agent)
    printed = _Printed()
    if isinstance(found, Host):
        _refuse_beside_a_host(args)
        host, path = found, repr(found.store)
    else:
        host, path = _made(args, found, printed), str(args.store)
    return asyncio.run(_Serving(host, path, args, printed).run())


def _refuse_beside_a_host(args: argparse.Namespace) -> None:
    for option in ("store", "model", "turns", "deliver", "given"):
        if getattr(args, option) is not None:
            told = f"--{option} is not for a host that is ready"
            raise Wrong(told, hint=f"give it to the Host, or name the agent instead of {args.agent}")


def _made(args: argparse.Namespace, agent: Agent[Any, Any], printed: _Printed) -> Host[Any, Any]:
    if args.store is None:
        raise Wrong("a worker needs a store to serve", hint="give --store FILE, or name a Host that has one")
    from onrecord.stores.sqlite import SqliteStore

    agent = agent.with_(model=args.model) if args.model is not None else agent
    deliver: Deliver = printed if args.deliver is None else function_named(args.deliver, "--deliver")
    given = None if args.given is None else function_named(args.given, "--given")
    store = SqliteStore(args.store, bodies=agent.plan.codec.kinds.values())
    return Host(agent, store=store, deliver=deliver, given=given, turns=args.turns or 64)


class _Printed:
    """Standard output as a channel: a line of JSON for each message, delivered once it is written."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def __call__(self, session: SessionKey, message: Outgoing) -> None:
        told = {"session": session.id} | ({"tenant": session.tenant} if session.tenant else {})
        told |= msgspec.to_builtins(message)
        try:
            print(msgspec.json.encode(told).decode(), flush=True)
        except BrokenPipeError:
            let_go(sys.stdout)
            self.gone.set()
            raise


class _Serving:
    """One worker, from its first signal handler to its exit code."""

    def __init__(self, host: Host[Any, Any], path: str, args: argparse.Namespace, printed: _Printed) -> None:
        self.host, self.path, self.args, self.printed = host, path, args, printed
        self.stop = asyncio.Event()
        self.now = asyncio.Event()

    async def run(self) -> int:
        """Serves until a signal comes, or with ``--once`` until nothing is due."""
        with self._signals():
            try:
                await self.host.store.next_due("in")  # a wrong path is told here
                if not self.args.once:
                    await self._tell_health()
                await self._serve()
                if not self.args.once:
                    await self._say_stopping()
            finally:
                await self.host.close(drain_s=self.args.drain)
                await self._tell_last()
                await self.host.store.close()
        return PIPE if self.printed.gone.is_set() else OK

    async def _serve(self) -> None:
        """Until one of these has ended: the work, the wish that it stops, the reader of what is printed."""
        ends = [self.host.work(once=self.args.once), self.stop.wait(), self.printed.gone.wait()]
        tasks = [asyncio.ensure_future(end) for end in ends]
        if not self.args.once:
            tasks.append(asyncio.ensure_future(self._keep_telling()))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()

    # ---- signals

    @contextmanager
    def _signals(self) -> Iterator[None]:
        with ExitStack() as held:
            for number in (signal.SIGINT, signal.SIGTERM):
                held.enter_context(on_interrupt(self._stop, number))
            if hasattr(signal, "SIGUSR1"):
                held.enter_context(on_interrupt(self.now.set, signal.SIGUSR1))
            yield

    def _stop(self) -> None:
        if self.stop.is_set():
            os._exit(INTERRUPTED)  # rows that are leased here can be leased by others once their leases end
        self.stop.set()

    # ---- health

    async def _keep_telling(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY_S):
                    await self.now.wait()
            self.now.clear()
            await self._try_to_tell()

    async def _try_to_tell(self) -> None:
        """The health, or why there is none: what the worker does besides, and its exit code, stay what they are."""
        try:
            await self._tell_health()
        except (StoreError, OSError) as error:
            aside(f"onrecord worker: no health: {said_of(error)[0]}")

    async def _tell_health(self) -> None:
        health = await self.host.health()
        if self.args.health == "-":
            aside(f"onrecord worker: {health}; {self.path}")
        else:
            _replace(Path(self.args.health), health, self.path)

    async def _tell_last(self) -> None:
        """What the whole run did. A run to the end of a crontab says nothing on standard error."""
        if self.args.once and self.args.health == "-":
            return
        await self._try_to_tell()

    async def _say_stopping(self) -> None:
        with suppress(StoreError):
            running = (await self.host.health()).running
            aside(f"onrecord worker: stopping; {plural(running, 'turn')} may end within {self.args.drain:g} s")


def _replace(target: Path, health: Health, path: str) -> None:
    """Puts the file in its place whole, so that whoever reads it never sees half of one."""
    told = {"store": path, **msgspec.to_builtins(health)}
    unfinished = target.with_name(f".onrecord-{secrets.token_hex(6)}")
    try:
        unfinished.write_bytes(msgspec.json.encode(told) + b"\n")
        unfinished.replace(target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        error.filename, error.filename2 = str(target), None
        raise
