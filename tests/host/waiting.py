"""A process that asks a person and is killed while it waits, or one that answers. Run: ``ask|answer|expire FOLDER``.

Each has its own agent, built alike, and its own store over the same file; what ran is a line of a file beside it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from onrecord import Agent, Host, Tool, approved
from onrecord.governance import CheckIn, NeedsCheckIn
from onrecord.host.questions import Caller
from onrecord.stores import SqliteStore
from onrecord.testing import ScriptedModel, call


def agent(folder: Path, *script: Any) -> Agent[Any, Any]:
    """The agent of every process; only what its model says next differs."""

    def pay(args: Any, ctx: Any) -> str:
        with (folder / "ran").open("a") as file:
            file.write(f"{args['euros']}\n")
        return "paid"

    tool = Tool("pay", pay, "Pay.", traits=(NeedsCheckIn(lambda args, _: args["euros"] > 5),))
    return Agent(ScriptedModel(*script), tools=[tool], features=[CheckIn(expires_s=3600)])


async def ask(folder: Path) -> None:
    """Asks, says so, and waits to be killed."""
    async with SqliteStore(folder / "x.db") as store, Host(agent(folder, call("pay", euros=8)), store=store) as host:
        result = await host.turn("s", "Pay eight euros")
        sys.stdout.write(f"{result.status}\n")
        sys.stdout.flush()
        time.sleep(60)  # noqa: ASYNC251 - nothing of this process goes on; it is killed here


async def answer(folder: Path) -> None:
    """Answers as somebody who may, twice, and says what came of it."""
    boss = Caller("Maria", audiences=frozenset({"approver"}))
    async with SqliteStore(folder / "x.db") as store, Host(agent(folder, "Paid eight."), store=store) as host:
        session = await store.load("s")
        assert session is not None
        assert session.question is not None
        yes = approved(session.question, by="Maria")
        done, again = await host.answer("s", yes, caller=boss), await host.answer("s", yes, caller=boss)
        sys.stdout.write(f"{done.status} {done.text} {again.status}\n")


if __name__ == "__main__":
    asyncio.run({"ask": ask, "answer": answer}[sys.argv[1]](Path(sys.argv[2])))
