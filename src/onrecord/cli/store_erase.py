"""``onrecord store erase``: a session, some of its messages, or a person, out of a store's file for good."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence

from onrecord.cli.failure import FAILED, OK, Wrong, meant
from onrecord.cli.sources import no_session, store_named
from onrecord.cli.terminal import Screen, plural, safe
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.messages import Message
from onrecord.session.erasure import Erasure
from onrecord.stores.sqlite import SqliteStore

__all__ = ("erase",)


def erase(args: argparse.Namespace) -> int:
    """Erases, after a yes, and says whether anything may be left."""
    path, screen = store_named(args.file), Screen()
    if (args.session is None) == (args.person is None):
        raise Wrong("it is not said what to erase", hint="name a SESSION, or a person with --person")
    if args.person is not None and args.message:
        raise Wrong("--message goes with a SESSION", hint="leave out --person, or --message")
    if not args.why.strip():
        raise Wrong("--why gives no reason", hint="it is all that the record says of it afterwards")
    what = asyncio.run(_meant(path, args))
    if not _agreed(what, yes=args.yes):
        screen.line("nothing was erased")
        return OK
    done = asyncio.run(_erased(path, args))
    counts = (
        plural(done.sessions, "session"), plural(done.messages, "message"), plural(done.entries, "entry", "entries"),
        plural(done.rows, "row"),
    )  # fmt: skip
    screen.line(f"erased: {', '.join(counts)}", bold=True)
    if args.person is not None and not done.sessions:
        screen.line(f"no session is owned by {safe(args.person)!r}; erased sessions have no owner any more")
    for place in done.remains:
        told = (
            "in the log beside the file, since somebody reads it" if place == "log" else "in unused pages of the file"
        )
        screen.line(f"copies may be left {told}: run this again when nobody uses the file", bold=True)
    return FAILED if done.remains else OK


def _key(args: argparse.Namespace) -> SessionKey:
    return SessionKey(args.session, tenant=args.tenant or "")


async def _meant(path: str, args: argparse.Namespace) -> str:
    """What would be erased, in words. Wrong for what there is not."""
    if args.person is not None:
        return f"everything of {args.person!r}" + (f" of tenant {args.tenant!r}" if args.tenant else "")
    key = _key(args)
    async with SqliteStore(path) as store:
        session = await store.load(key)
        if session is None:
            raise await no_session(store, path, key)
    messages: Sequence[Message] = session.conversation.messages
    if not args.message:
        return f"session {key.id!r} ({plural(len(messages), 'message')}, {plural(session.seq, 'entry', 'entries')})"
    there = {message.id for message in messages}
    for id in args.message:
        if id not in there:
            hint = meant(id, there, otherwise="onrecord record show --json tells the ids of messages")
            raise Wrong(f"session {key.id!r} holds no message {id!r}", hint=hint)
    return f"the turns of {plural(len(args.message), 'message')} of session {key.id!r}"


def _agreed(what: str, *, yes: bool) -> bool:
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Wrong(f"{what} would be erased, and nobody can be asked", hint="--yes erases without asking")
    try:
        return input(f"erase {safe(what)}, for good? [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        print()
        return False


async def _erased(path: str, args: argparse.Namespace) -> Erasure:
    async with SqliteStore(path) as store:
        if args.person is not None:
            who = Identity(tenant=args.tenant or "", principal=args.person)
            done = await store.erase(who, why=args.why)
        else:
            done = await store.erase(_key(args), messages=args.message, why=args.why)
        if not done.remains:
            return done
        swept = await store.sweep()  # however large the file is: whoever types this waits
    return Erasure(
        sessions=done.sessions, messages=done.messages, entries=done.entries, rows=done.rows, gone=done.gone,
        remains=swept.remains,
    )  # fmt: skip
