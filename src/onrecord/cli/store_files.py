"""``onrecord store``: check, migrate, back up and erase in a store's file."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from onrecord.cli.command import command
from onrecord.cli.failure import EXIT_CODES, FAILED, OK
from onrecord.cli.terminal import Screen

__all__ = ("ADDED", "declare")

ABOUT = "Look after a store's file: whether it is whole, its schema, copies of it, and what must be forgotten."

ADDED = {2: "it keeps rows now: what must be handled, and what must be delivered"}
"""What each schema brought."""


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Adds the command and its four to the parser."""
    epilog = f"onrecord store COMMAND --help has examples.\n\n{EXIT_CODES}"
    short = "check, migrate and back up a store's file, erase in it"
    parser = command(commands, shared, "store", short=short, about=ABOUT, epilog=epilog)
    kinds = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=type(parser))
    for add in (_check, _migrate, _backup, _erase):
        add(kinds, shared)


def _sub(
    kinds: Any, shared: argparse.ArgumentParser, name: str, short: str, about: str, examples: str
) -> argparse.ArgumentParser:
    epilog = f"examples:\n{examples}\n\n{EXIT_CODES}"
    parser = command(kinds, shared, name, short=short, about=about, epilog=epilog)
    parser.add_argument("file", metavar="FILE", help="a store's file")
    return parser


def _check(kinds: Any, shared: argparse.ArgumentParser) -> None:
    parser = _sub(
        kinds, shared, "check", "whether the file is whole and everything in it proves what it says",
        "SQLite's own check of the file; then every session of every tenant is decoded, folded and verified, and\n"
        "every row of the inbox and the outbox read. Nothing is changed. The exit code is 1 where something is wrong.",
        "  onrecord store check talk.db\n  onrecord store check talk.db --agent hotel.py:agent",
    )  # fmt: skip
    parser.add_argument("--agent", metavar="MODULE:AGENT", help="the agent, to check the states of its features too")
    parser.set_defaults(run=check, parser=parser)


def _migrate(kinds: Any, shared: argparse.ArgumentParser) -> None:
    parser = _sub(
        kinds, shared, "migrate", "bring a file to the newest schema, with a copy of what it was",
        "A store is brought up to date whenever it is opened; this does it at a time you choose, and keeps a copy.\n"
        "Stop what uses the file first: an older onrecord refuses a newer file.",
        "  onrecord store migrate talk.db\n  onrecord store migrate talk.db --copy /backup/talk.before.db",
    )  # fmt: skip
    parser.add_argument("--copy", metavar="FILE", help="where the copy goes (beside the file, as FILE.schema-N)")
    parser.set_defaults(run=migrate, parser=parser)


def _backup(kinds: Any, shared: argparse.ArgumentParser) -> None:
    parser = _sub(
        kinds, shared, "backup", "copy a store to a new file, as it is at one moment",
        "Others may go on writing. The copy appears under its name once it is whole and was read back; a file that is\n"
        "there already is never overwritten.",
        "  onrecord store backup talk.db talk.2026-09-20.db",
    )  # fmt: skip
    parser.add_argument("copy", metavar="COPY", help="the new file")
    parser.set_defaults(run=backup, parser=parser)


def _erase(kinds: Any, shared: argparse.ArgumentParser) -> None:
    parser = _sub(
        kinds, shared, "erase", "erase a session, messages of it, or a person, for good",
        "Messages, the contents of entries, state and rows go, and the file is rewritten so that no copy stays in it.\n"
        "The record keeps its numbers, and says that something was erased and why. Backups are not touched.\n"
        "It asks first; where nobody can be asked it needs --yes. The exit code is 1 where copies may be left.",
        '  onrecord store erase talk.db ana --why "asked for on 20 September"\n'
        '  onrecord store erase talk.db ana --message ana:said::m17~3/u --why "wrong person" --yes\n'
        '  onrecord store erase talk.db --person u-4711 --why "left us"',
    )  # fmt: skip
    parser.add_argument("session", metavar="SESSION", nargs="?", help="the session, with its sub-turns")
    parser.add_argument("--tenant", metavar="NAME", help="whose session it is, in stores of several tenants")
    parser.add_argument(
        "--message", metavar="ID", action="append", help="only the turn of this message; may be repeated"
    )
    parser.add_argument("--person", metavar="ID", help="all sessions that this person owns")
    parser.add_argument("--why", metavar="TEXT", required=True, help="what the record says of it; it stays")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.set_defaults(run=erase, parser=parser)


# ---- what they do ----------------------------------------------------------------------------------------------------


def check(args: argparse.Namespace) -> int:
    """Prints what holds and what does not."""
    from onrecord.cli.loading import agent_named
    from onrecord.cli.sources import store_named
    from onrecord.cli.store_check import store_checks
    from onrecord.cli.terminal import cut
    from onrecord.cli.verify import gap_lines

    path = store_named(args.file)
    agent = agent_named(args.agent) if args.agent else None
    screen, failed = Screen(), 0
    screen.line(f"store {path}", bold=True)
    for found in store_checks(path, agent, _counter(screen, "session")):
        failed += bool(found.gaps)
        if found.holds:
            screen.line(f"{'NOT' if found.gaps else 'ok '}  {found.holds}", bold=bool(found.gaps))
        for gap in gap_lines(found):
            screen.line(f"       {cut(gap, 0)}")
        for gone in found.erased:
            screen.line(f"-    {gone}", dim=True)
        if found.unchecked:
            screen.line(f"?    {found.unchecked}", dim=True)
    screen.line("all is well" if not failed else f"not well: {failed} of the checks above failed", bold=True)
    return FAILED if failed else OK


def migrate(args: argparse.Namespace) -> int:
    """Copies a file and brings it to the newest schema."""
    from onrecord.cli.sources import store_named
    from onrecord.stores.sqlite_schema import SCHEMA_VERSION, schema_version
    from onrecord.stores.sqlite_schema import migrate as bring_up_to_date
    from onrecord.stores.sqlite_upkeep import backup as copied

    path, screen = store_named(args.file), Screen()
    before = schema_version(path)
    if before == SCHEMA_VERSION:
        screen.line(f"{path} has schema {before} already, the newest that this onrecord knows: nothing to do")
        return OK
    if before < SCHEMA_VERSION:
        copy = args.copy or f"{path}.schema-{before}"
        size = copied(path, copy, progress=_counter(screen, "page"))
        screen.line(f"copied to {copy} ({size_told(size)})")
    bring_up_to_date(path)  # which also says what is wrong with a file that is too new
    screen.line(f"{path} had schema {before} and has schema {SCHEMA_VERSION}", bold=True)
    for version in range(before + 1, SCHEMA_VERSION + 1):
        screen.line(f"  {version}: {ADDED.get(version, 'changes inside')}")
    return OK


def backup(args: argparse.Namespace) -> int:
    """Copies a file."""
    from onrecord.cli.sources import store_named
    from onrecord.stores.sqlite_upkeep import backup as copied

    path, screen = store_named(args.file), Screen()
    size = copied(path, args.copy, progress=_counter(screen, "page"))
    screen.line(f"{path} copied to {args.copy} ({size_told(size)}), whole and read back")
    return OK


def erase(args: argparse.Namespace) -> int:
    """Erases in a file."""
    from onrecord.cli.store_erase import erase

    return erase(args)


def size_told(size: int) -> str:
    """``12.3 MB``."""
    return f"{size / 1_000_000:.1f} MB" if size >= 100_000 else f"{size / 1000:.1f} kB"


def _counter(screen: Screen, what: str) -> Callable[[int, int], None]:
    """Tells a terminal how far the work is, in one line that is taken back."""
    told = -1

    def count(done: int, total: int) -> None:
        nonlocal told
        percent = 100 * done // max(total, 1)
        if not screen.live or percent == told:
            return
        told = percent
        screen.erase()
        if done < total:
            screen.write(f"{what} {done} of {total} ({percent} %)", dim=True)

    return count
