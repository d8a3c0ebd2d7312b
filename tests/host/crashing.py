"""A process that dies in the store's thread, just before a statement of a turn. Run as a script: FOLDER; prints JSON.

It forks a child for each statement, from the first to the last: the child takes one turn with a message out and ends
itself there. Then another host on the same file, once the leases have ended, must bring everything to its end.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

from onrecord import Agent, Said
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.outgoing import Outgoing, Wake
from onrecord.host import Host
from onrecord.record.kinds import TurnOpened
from onrecord.testing import FakeEffects, ScriptedModel
from onrecord.turn.director import Stage
from onrecord.turn.turn import Turn
from tests.host.dying import DIED, died
from tests.host.faults import FaultyStore, is_write
from tests.stores.filled import intact


class Floor:
    """A message is answered and arms a wake; the wake says one line."""

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        if isinstance(turn.input, Said):
            stage.arm(Wake(key="later", at=turn.first_now + timedelta(seconds=1)))
            await stage.speak(turn.spec.brief)
        else:
            await stage.say("Time is up.", key="up")


class Wall(FakeEffects):
    """A clock that this test moves; names of hosts differ."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def nonce(self) -> str:
        return f"{self.name}-{super().nonce()}"


async def _live(folder: Path, effects: Wall, place: int, told: Path) -> None:
    """Takes what there is, and dies before write number ``place``, in the store's thread."""
    left = [place]

    def before(call: str, sql: str) -> None:
        if call and (is_write(sql) or sql.startswith("begin")):
            left[0] -= 1
            if left[0] == 0:
                os._exit(DIED)

    async def deliver(session: SessionKey, message: Outgoing) -> None:
        with told.open("a", encoding="utf-8") as file:
            file.write(json.dumps([message.key, message.text]) + "\n")

    store = FaultyStore(folder / f"{place}.db", effects)
    store.before = before
    agent: Agent[Any, Any] = Agent(ScriptedModel("Hello."), director=Floor())
    host = Host(agent, store=store, effects=effects, deliver=deliver, poll_s=0.01)
    await host.send("s", Said("Hi", key="m"))
    async with asyncio.timeout(10):
        while True:
            effects.advance(seconds=0.2)
            await asyncio.sleep(0.002)
            held = await store.load("s")
            rows = [*await store.rows("in"), *await store.rows("out")]
            if held is not None and held.version > 1 and not rows:
                break
    await host.close()
    await store.close()


async def _check(folder: Path, place: int, told: Path) -> None:
    """The next host on the file brings everything to its end, once."""
    path = folder / f"{place}.db"
    effects = Wall("next")
    effects.advance(minutes=10)
    store = FaultyStore(path, effects)

    async def deliver(session: SessionKey, message: Outgoing) -> None:
        with told.open("a", encoding="utf-8") as file:
            file.write(json.dumps([message.key, message.text]) + "\n")

    agent: Agent[Any, Any] = Agent(ScriptedModel("Hello.", "Hello."), director=Floor())
    host = Host(agent, store=store, effects=effects, deliver=deliver, poll_s=0.01)
    ticket = await host.send("s", Said("Hi", key="m"))  # a sender that heard nothing sends again
    await ticket.result()
    async with asyncio.timeout(10):
        while [*await store.rows("in"), *await store.rows("out")]:
            effects.advance(seconds=0.2)
            await asyncio.sleep(0.002)
    turns = [e.body.input_kind async for e in store.entries("s") if isinstance(e.body, TurnOpened)]
    held = await store.load("s")
    await host.close()
    await store.close()
    texts = [] if held is None else [getattr(m, "text", "") for m in held.conversation.messages]
    lines = await asyncio.to_thread(told.read_text, encoding="utf-8")
    said = {tuple(json.loads(line)) for line in lines.splitlines()}
    if turns != ["said", "woke"] or texts != ["Hi", "Hello.", "Time is up."] or not intact(path):
        raise SystemExit(f"after a death before statement {place}: {turns} {texts}")
    if sorted(text for _, text in said) != ["Hello.", "Time is up."]:
        raise SystemExit(f"after a death before statement {place}: {said} was delivered")


def main(folder: Path) -> None:
    """One child for each statement, until one has no more."""
    warnings.simplefilter("ignore", DeprecationWarning)
    place = 0
    while True:
        place += 1
        told = folder / f"{place}.told"
        told.touch()
        if not died(_live(folder, Wall("child"), place, told), place):
            break
        asyncio.run(_check(folder, place, told))
    print(json.dumps({"deaths": place - 1}))  # noqa: T201 - this is its output


if __name__ == "__main__":
    main(Path(sys.argv[1]))
