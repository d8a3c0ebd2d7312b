"""Rows that wait in a store, as the command line lists them, tries them again and deletes them."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from onrecord.cli.failure import OK, Wrong, meant
from onrecord.cli.sources import store_named
from onrecord.cli.terminal import Screen, cut, plural, safe, wide_enough
from onrecord.conversation.identity import SessionKey
from onrecord.jsonio import Json, dumps
from onrecord.session.inbox import Box, Row, kind_of_row
from onrecord.stores.sqlite import SqliteStore

__all__ = ("drop", "list_rows", "retry")

_PAGE = 1000
_WIDEST = 40


def list_rows(args: argparse.Namespace) -> int:
    """Prints the rows."""
    screen, now = Screen(), datetime.now(UTC)
    rows = [row for row in _found(args) if row.dead or not args.parked]
    if args.json:
        for row in rows:
            screen.json(dumps(_about(row)))
        return OK
    counts = [plural(sum(row.box == box for row in rows), "row") + f" {box}" for box in _boxes(args)]
    parked = sum(bool(row.dead) for row in rows)
    screen.line(f"{', '.join(counts)}, {parked} parked, in {args.file}", bold=True)
    names = [row.session.id + (f" ({row.session.tenant})" if row.session.tenant else "") for row in rows]
    wide, wider = (min(max(map(len, texts), default=0), _WIDEST) for texts in (names, [row.key for row in rows]))
    for row, name in zip(rows, names, strict=True):
        told = f"{row.box:<3}  {wide_enough(name, wide)}  {wide_enough(row.key, wider)}  {_state(row, now)}"
        screen.drawn(f"  {safe(told)}")
    return OK


def retry(args: argparse.Namespace) -> int:
    """Revives parked rows."""
    parked = [row for row in _chosen(args) if row.dead]
    count = _each(args.file, parked, "revive")
    Screen().line(f"{plural(count, 'row')} of {_sessions(parked)} can be taken again" if count else "nothing is parked")
    return OK


def drop(args: argparse.Namespace) -> int:
    """Deletes rows that nobody has leased."""
    screen, now = Screen(), datetime.now(UTC)
    rows = [row for row in _chosen(args) if row.dead or not args.parked]
    free = [row for row in rows if row.lease_until is None or row.lease_until <= now]
    kept = len(rows) - len(free)
    if free and not _agreed(args, free):
        screen.line("nothing was deleted")
        return OK
    count = _each(args.file, free, "cancel")
    kept += len(free) - count
    stays = f"; {kept} stay, since a worker has them" if kept else ""
    screen.line(f"{plural(count, 'row')} deleted{stays}" if rows else "there is nothing to delete")
    return OK


def _agreed(args: argparse.Namespace, rows: Sequence[Row]) -> bool:
    if args.yes:
        return True
    parked = sum(bool(row.dead) for row in rows)
    told = f"{plural(len(rows), 'row')} ({parked} parked) of {_sessions(rows)}"
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Wrong(f"{told} would be deleted, and nobody can be asked", hint="--yes deletes them without asking")
    try:
        return input(f"delete {safe(told)}? [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        print()
        return False


# ---- reading and changing ------------------------------------------------------------------------------------------


def _boxes(args: argparse.Namespace) -> tuple[Box, ...]:
    return ("in", "out") if args.box is None else (args.box,)


def _found(args: argparse.Namespace) -> list[Row]:
    """The rows that a command line names, in order of box and number."""
    path = store_named(args.file)
    session = None if args.session is None else SessionKey(args.session, tenant=args.tenant or "")

    async def read() -> list[Row]:
        rows: list[Row] = []
        async with SqliteStore(path) as store:
            for box in _boxes(args):
                after, more = 0, True
                while more:
                    page = await store.rows(box, session, after=after, limit=_PAGE)
                    rows += page
                    more = len(page) == _PAGE
                    after = page[-1].n if page else after
        return rows

    return [row for row in asyncio.run(read()) if args.tenant is None or row.session.tenant == args.tenant]


def _chosen(args: argparse.Namespace) -> list[Row]:
    """Those of them whose key is named, if any is. Wrong for a key that no row has."""
    rows = _found(args)
    if args.key is None:
        return rows
    there = {row.key for row in rows}
    for key in args.key:
        if key not in there:
            hint = meant(key, there, otherwise="onrecord inbox list shows the keys there are")
            raise Wrong(f"no row has the key {key!r}", hint=hint)
    return [row for row in rows if row.key in args.key]


def _each(path: str, rows: Sequence[Row], what: str) -> int:
    """Revives or cancels rows, a session and box at a time. How many."""
    grouped: dict[tuple[Box, SessionKey], list[str]] = {}
    for row in rows:
        grouped.setdefault((row.box, row.session), []).append(row.key)

    async def act() -> int:
        async with SqliteStore(path) as store:
            change = store.revive if what == "revive" else store.cancel
            return sum([await change(box, session, keys=keys) for (box, session), keys in grouped.items()])

    return asyncio.run(act()) if grouped else 0


# ---- telling ---------------------------------------------------------------------------------------------------------


def _sessions(rows: Sequence[Row]) -> str:
    keys = list(dict.fromkeys(row.session for row in rows))
    return f"session {keys[0].id!r}" if len(keys) == 1 else plural(len(keys), "session")


def _state(row: Row, now: datetime) -> str:
    return ", ".join(_states(row, now))


def _states(row: Row, now: datetime) -> Iterator[str]:
    if row.dead:
        yield f"parked: {cut(row.dead, 100)}"
    elif row.lease_until is not None:
        left = row.lease_until - now
        yield f"leased by {row.owner}" + (
            f" for {_span(left)}" if left > timedelta() else f", ran out {_span(-left)} ago"
        )
    elif row.due is not None:
        yield f"due in {_span(row.due - now)}" if row.due > now else f"due {_span(now - row.due)} ago"
    if row.attempt:
        yield plural(row.attempt, "attempt")
    if row.rung:
        yield f"failed {'once' if row.rung == 1 else f'{row.rung} times'}"
    if row.cancel is not None:
        yield "told to stop"


def _span(time: timedelta) -> str:
    seconds = int(time.total_seconds())
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {name}"
    return f"{seconds} s"


def _about(row: Row) -> dict[str, Json]:
    """The same about one row, as plain JSON."""
    return {
        "box": row.box, "tenant": row.session.tenant, "session": row.session.id, "key": row.key, "n": row.n,
        "kind": kind_of_row(row.body), "due": row.due, "attempt": row.attempt, "clean": row.clean, "rung": row.rung,
        "retry_at": row.retry_at, "floor": row.floor, "owner": row.owner, "lease_until": row.lease_until,
        "told_to_stop": row.cancel is not None, "parked": row.dead,
    }  # fmt: skip
