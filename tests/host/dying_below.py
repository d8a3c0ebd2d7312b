"""A process that dies in the store's thread, before a statement that commits a turn with sub-agents. Run: FOLDER.

It forks one for each statement, from the first to the last: a message calls two clerks side by side, both pay and one
asks; the answer ends it. Whenever the process dies, another one finds the parent's turn and its children's, or neither,
and brings everything to its end with the same keys for the same payments.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from onrecord import Agent, Answered, Said
from onrecord.host import Host
from onrecord.models.request import Request
from onrecord.record.kinds import ToolReturned, TurnPaused
from onrecord.stores import SqliteStore
from onrecord.testing import ScriptedModel
from tests.agent.children import Effects, ask, clerk
from tests.host.crashing import Wall
from tests.host.dying import DIED, died
from tests.host.faults import FaultyStore
from tests.stores.filled import intact
from tests.turn.acting import texts


class Written(Effects):
    """Effects as lines of a file that outlives the process."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file

    def pay(self, args: Any, ctx: Any) -> str:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps([ctx.key, args["what"]]) + "\n")
        return super().pay(args, ctx)


def _boss(file: Path) -> Agent[Any, str]:
    below = clerk(Written(file)).as_tool(concurrency_safe=True)
    return Agent(ScriptedModel(*[_says] * 3), name="boss", tools=[below])


def _says(request: Request) -> Any:
    """Whichever take it is, the model asks for the same."""
    return "Done." if texts(request) else ask("pay:a order:A", "pay:b")


async def _talk(store: SqliteStore, effects: Wall, file: Path) -> str:
    """Says what there is to say, and answers what is asked; everything may have been said before."""
    host = Host(_boss(file), store=store, effects=effects, poll_s=0.01)
    try:
        async with asyncio.timeout(10):
            await (await host.send("s", Said("Hi", key="m"))).result()
            held = await store.load("s")
            if held is not None and held.question is not None:
                result = await host.answer("s", Answered(held.question.key, value="XL"))
                return result.text
            return held.conversation.messages[-1].text if held is not None else ""  # type: ignore[union-attr]  # an answer
    finally:
        await host.close(drain_s=0)


async def _live(folder: Path, place: int) -> None:
    left, effects = [place], Wall("first")

    def before(call: str, sql: str) -> None:
        left[0] -= call == "commit"
        if left[0] == 0:
            os._exit(DIED)

    store = FaultyStore(folder / f"{place}.db", effects)
    store.before = before
    await _talk(store, effects, folder / f"{place}.paid")
    await store.close()


async def _whole(store: SqliteStore) -> list[Any]:
    """What is stored of the parent's calls, and of the sessions below it: both or neither."""
    calls = paused = 0
    async for entry in store.entries("s"):
        calls += isinstance(entry.body, ToolReturned)
        paused += isinstance(entry.body, TurnPaused)
    below = [key for key in await store.sessions() if key.id != "s"]
    ends = [
        [type(e.body).__name__ async for e in store.entries(key) if type(e.body).__name__.startswith("Turn")][-1]
        for key in below
    ]
    return [calls, paused, sorted(ends)]


async def _check(folder: Path, place: int) -> None:
    """The next process on the file."""
    path, effects = folder / f"{place}.db", Wall("next")
    effects.advance(minutes=10)
    store = SqliteStore(path, clock=effects.now)
    found = await _whole(store)
    text = await _talk(store, effects, folder / f"{place}.paid")
    ended = await _whole(store)
    await store.close()
    lines = (folder / f"{place}.paid").read_text(encoding="utf-8").splitlines()
    paid = sorted(what for _, what in {tuple(json.loads(line)) for line in lines})
    fine = found in ([0, 0, []], [1, 1, ["TurnClosed", "TurnPaused"]], [2, 1, ["TurnClosed"] * 2])
    if not fine or ended != [2, 1, ["TurnClosed"] * 2] or text != "Done." or paid != ["a", "b"] or not intact(path):
        raise SystemExit(f"after a death before statement {place}: {found} {ended} {text!r} {paid}")


def main(folder: Path) -> None:
    """One process for each statement, until one has no more."""
    warnings.simplefilter("ignore", DeprecationWarning)
    place = 1
    while died(_live(folder, place), place):
        asyncio.run(_check(folder, place))
        place += 1
    print(json.dumps({"deaths": place - 1}))  # noqa: T201 - this is its output


if __name__ == "__main__":
    main(Path(sys.argv[1]))
