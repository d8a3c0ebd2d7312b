"""``onrecord record``: show, why, export and verify what a store or a record file holds."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from onrecord.cli.command import command
from onrecord.cli.failure import EXIT_CODES, FAILED, OK, Wrong, aside

if TYPE_CHECKING:
    from onrecord.cli.sources import Held

__all__ = ("add_agent", "add_leaving", "add_source", "declare", "warn_broken")

ABOUT = "Read, explain, export and verify records, from a store's file or from a file that export wrote."


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Adds the command and its four to the parser."""
    epilog = f"onrecord record COMMAND --help has examples.\n\n{EXIT_CODES}"
    short = "read, explain, export and verify records"
    parser = command(commands, shared, "record", short=short, about=ABOUT, epilog=epilog)
    kinds = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=type(parser))
    for add in (_show, _why, _export, _verify):
        add(kinds, shared)


def add_source(parser: argparse.ArgumentParser) -> None:
    """The arguments that say which record is meant."""
    parser.add_argument("source", metavar="FILE", help="a store's file, or a record that export wrote")
    parser.add_argument("session", metavar="SESSION", nargs="?", help="which session; not needed where there is one")
    parser.add_argument(
        "--tenant", metavar="NAME", default="", help="whose session it is, in stores of several tenants"
    )


def add_agent(parser: argparse.ArgumentParser) -> None:
    """The agent whose features fold states of their own."""
    parser.add_argument("--agent", metavar="MODULE:AGENT", help="the agent, to check the states of its features too")


def add_leaving(parser: argparse.ArgumentParser) -> None:
    """The options of commands that show entries."""
    parser.add_argument(
        "--agent", metavar="MODULE:AGENT",
        help="the agent: its Redaction says what is shown, and its features know their entries and states",
    )  # fmt: skip
    parser.add_argument(
        "--redact", metavar="PATTERN", action="append", default=[],
        help="take out of all texts what matches this regular expression; may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--redact-name", metavar="NAME", action="append", default=[],
        help="take out the value of every JSON member of this name; may be given several times",
    )  # fmt: skip
    parser.add_argument("--no-texts", action="store_true", help="take out every text, and leave names and numbers")


def _sub(
    kinds: Any, shared: argparse.ArgumentParser, name: str, short: str, about: str, examples: str
) -> argparse.ArgumentParser:
    epilog = f"examples:\n{examples}\n\n{EXIT_CODES}"
    parser = command(kinds, shared, name, short=short, about=about, epilog=epilog)
    add_source(parser)
    return parser


def _show(kinds: Any, shared: argparse.ArgumentParser) -> None:
    parser = _sub(
        kinds, shared, "show", "a session entry by entry, or which sessions there are",
        "One line for each entry, grouped by turn and drawn as the tree of rounds and calls.\n"
        "Without a session a store lists those it has.",
        "  onrecord record show talk.db                which sessions there are\n"
        "  onrecord record show talk.db ana            what happened in one\n"
        "  onrecord record show talk.db ana --turns 2  only its last two turns\n"
        "  onrecord record show talk.db ana --json     the entries as JSON lines",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="JSON lines instead of text")
    parser.add_argument("--full", action="store_true", help="long texts are not cut")
    parser.add_argument("--turns", metavar="N", type=_count, help="only the last N turns")
    add_leaving(parser)
    parser.set_defaults(run=show, parser=parser)


def _why(kinds: Any, shared: argparse.ArgumentParser) -> None:
    parser = _sub(
        kinds, shared, "why", "why an entry, or the last answer, came about",
        "The entries that led to one, as sentences: which message, which request with which texts, which calls and\n"
        "results, which rule. A number or 'last' alone is an entry; for a session of such a name give both.",
        "  onrecord record why talk.db ana last   why the last answer is what it is\n"
        "  onrecord record why talk.db ana 17     why entry 17 is there",
    )  # fmt: skip
    parser.add_argument(
        "which", metavar="SEQ|last", nargs="?", help="the number of an entry, or 'last' for the last answer (last)"
    )
    parser.add_argument("--full", action="store_true", help="long texts are not cut")
    parser.add_argument("--language", choices=("en", "pt", "es"), default="en", help="what to tell it in (en)")
    add_leaving(parser)
    parser.set_defaults(run=why, parser=parser)


def _export(kinds: Any, shared: argparse.ArgumentParser) -> None:
    parser = _sub(
        kinds, shared, "export", "a session's record as a file that verifies by itself",
        "JSON lines: a header, then one entry a line, each sealed to the one before it. All digests are made anew\n"
        "with a key of this file, so that it can be given away: none of the store's digests is in it.\n"
        "What is redacted is not in it either, and what is left verifies all the same.\n"
        "A file is written whole or not at all, and only an earlier export is written over.",
        "  onrecord record export talk.db ana -o ana.jsonl\n"
        "  onrecord record export talk.db ana | gzip > ana.jsonl.gz\n"
        "  onrecord record export talk.db ana --redact '\\d{4} \\d{4}' --redact-name card -o ana.jsonl\n"
        "  gunzip -c ana.jsonl.gz | onrecord record verify /dev/stdin",
    )  # fmt: skip
    # Two arguments, since Python versions write an option with two names in different ways.
    parser.add_argument("--output", metavar="FILE", help="where to write it (standard output); -o FILE for short")
    parser.add_argument("-o", dest="output", metavar="FILE", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    add_leaving(parser)
    parser.set_defaults(run=export, parser=parser)


def _verify(kinds: Any, shared: argparse.ArgumentParser) -> None:
    parser = _sub(
        kinds, shared, "verify", "whether a record is whole and proves what it says",
        "Entries are numbered without a gap, they fold to the stored session, and every request can be rebuilt from\n"
        "them with every digest proved. Each gap is named; the exit code is 1 when there is one.",
        "  onrecord record verify talk.db ana\n  onrecord record verify ana.jsonl",
    )  # fmt: skip
    add_agent(parser)
    parser.set_defaults(run=verify, parser=parser)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("expected a number from 1 on")
    return int(text)


# ---- what they do ----------------------------------------------------------------------------------------------------


def show(args: argparse.Namespace) -> int:
    """Prints a session, or the list of sessions."""
    from onrecord.cli.leaving import leaves_of, named_agent
    from onrecord.cli.sources import held, is_store, stored_sessions
    from onrecord.cli.terminal import Screen
    from onrecord.cli.timeline import about, as_it_leaves, session_lines, turn_lines
    from onrecord.jsonio import dumps

    screen, agent = Screen(), named_agent(args)
    leaves = leaves_of(args, agent)
    if args.session is None and is_store(args.source):
        sessions = [as_it_leaves(session, leaves) for session in stored_sessions(args.source, args.tenant)]
        if args.json:
            for session in sessions:
                screen.json(dumps(about(session)))
        else:
            for text in session_lines(args.source, sessions, screen):
                screen.drawn(text)
        return OK
    found = held(args.source, args.session, tenant=args.tenant, agent=agent).leaving(leaves)
    entries = found.entries
    if args.turns is not None:
        last = set(list(dict.fromkeys(entry.turn for entry in entries))[-args.turns :])
        entries = tuple(entry for entry in entries if entry.turn in last)
    if args.json:
        for entry in entries:
            screen.json(found.codec.encode(entry))
    else:
        for text in turn_lines(entries, screen, whole=args.full, record=found.entries):
            screen.drawn(text)
        warn_broken(found)
    return OK


def why(args: argparse.Namespace) -> int:
    """Prints why an entry is there."""
    from onrecord.cli.leaving import leaves_of, named_agent
    from onrecord.cli.sources import held
    from onrecord.cli.terminal import Screen
    from onrecord.cli.why import why_lines
    from onrecord.honesty.slices import last_answer

    session, which = args.session, args.which
    if which is None and session is not None and (session == "last" or session.isdecimal()):
        session, which = None, session  # the session was left out
    which = which or "last"
    if which != "last" and not which.isdecimal():
        raise Wrong(f"{which!r} is no entry", hint="give a number as record show prints it, or 'last'")
    agent, screen = named_agent(args), Screen()
    found = held(args.source, session, tenant=args.tenant, agent=agent).leaving(leaves_of(args, agent))
    record = found.record()
    seq = last_answer(record) if which == "last" else int(which)
    if seq is None:
        raise Wrong(f"session {found.key.id!r} has no entries", hint="nothing happened in it yet")
    for text in why_lines(record, seq, screen, whole=args.full, language=args.language):
        screen.drawn(text)
    warn_broken(found)
    return OK


def export(args: argparse.Namespace) -> int:
    """Writes a record file."""
    from onrecord.cli.export_file import write_export
    from onrecord.cli.leaving import leaves_of, named_agent
    from onrecord.cli.record_file import exported
    from onrecord.cli.sources import held
    from onrecord.cli.terminal import plural

    agent = named_agent(args)
    found = held(args.source, args.session, tenant=args.tenant, agent=agent)
    if found.session is None:
        raise Wrong(f"{args.source!r} is no store", hint="a record file is exported already: copy it")
    lines = list(exported(found.session, found.entries, found.codec, leaves_of(args, agent)))
    if args.output is None or args.output == "-":
        sys.stdout.flush()
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()
    else:
        write_export(args.output, lines)
        aside(f"{plural(len(lines) - 1, 'entry', 'entries')} of session {found.key.id!r} written to {args.output!r}")
    return OK


def verify(args: argparse.Namespace) -> int:
    """Prints what holds and what does not."""
    from onrecord.cli.loading import agent_named
    from onrecord.cli.sources import held
    from onrecord.cli.terminal import Screen, cut
    from onrecord.cli.verify import checks, gap_lines

    agent = agent_named(args.agent) if args.agent else None
    found, screen, failed = held(args.source, args.session, tenant=args.tenant, agent=agent), Screen(), 0
    screen.line(f"session {found.key.id!r} in {found.path}", bold=True)
    for check in checks(found):
        failed += bool(check.gaps)
        if check.holds:
            screen.line(f"{'NOT' if check.gaps else 'ok '}  {check.holds}", bold=bool(check.gaps))
        for gap in gap_lines(check):
            screen.line(f"       {cut(gap, 0)}")
        for gone in check.erased:
            screen.line(f"-    {cut(gone, 0)}")
        if check.unchecked:
            screen.line(f"?    not checked: {check.unchecked}", dim=True)
    screen.line("verified" if not failed else f"does not verify: {failed} of the checks above failed", bold=True)
    return FAILED if failed else OK


def warn_broken(found: Held) -> None:
    """Says on stderr that a file is not as it was written."""
    if found.broken:
        aside(f"onrecord: {found.path!r} was changed since it was written: {found.broken[0]}")
        aside("  hint: onrecord record verify names every gap")
