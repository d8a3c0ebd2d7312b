"""How the command line fails: one line that says what is wrong, one that says what to do, and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from onrecord.cli.terminal import safe
from onrecord.errors import ConfigurationError, MissingDependency, OnrecordError, StoreError, UsageError

__all__ = (
    "FAILED", "INTERRUPTED", "OK", "PIPE", "USAGE", "Wrong", "aside", "code_of", "debugging", "let_go", "logged",
    "meant", "said_of", "tell",
)  # fmt: skip

OK, FAILED, USAGE, INTERRUPTED, PIPE = 0, 1, 2, 130, 141

EXIT_CODES = """\
exit codes:
  0    fine
  1    what was asked for failed, or something did not verify
  2    wrong usage: an unknown option, or a name that leads nowhere
  130  interrupted with Ctrl-C
  141  whoever read the output went away"""


class Wrong(OnrecordError):
    """Something on the command line leads nowhere; ``hint`` says where it could have led."""

    default_code = "command-line"


_NOWHERE = frozenset({"store-is-folder", "store-no-folder"})
"""Codes of a store whose path, by itself, leads nowhere."""


def meant(name: str, names: Iterable[str], *, otherwise: str) -> str:
    """A hint: the nearest of the other names there are, or another hint where none is near."""
    from difflib import get_close_matches

    close = get_close_matches(name, [one for one in names if one != name], n=1)
    return f"did you mean {close[0]!r}?" if close else otherwise


def code_of(error: BaseException) -> int:
    """The exit code that an error ends with."""
    if isinstance(error, MissingDependency):
        return FAILED
    if isinstance(error, StoreError) and error.code in _NOWHERE:
        return USAGE
    return USAGE if isinstance(error, (Wrong, UsageError, ConfigurationError)) else FAILED


def debugging(args: object = None) -> bool:
    """Whether tracebacks were asked for."""
    return bool(getattr(args, "debug", False)) or os.environ.get("ONRECORD_DEBUG", "") not in {"", "0"}


@contextmanager
def logged(*, debug: bool) -> Iterator[None]:
    """Inside, nothing that the library logs is shown, for other lines tell it; with --debug all of it is, on stderr."""
    import logging

    class Aside(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            aside(f"{record.name}: {safe(record.getMessage())}")

    log, handler = logging.getLogger("onrecord"), Aside() if debug else logging.NullHandler()
    level = log.level
    log.addHandler(handler)
    if debug:
        log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def said_of(error: BaseException) -> tuple[str, str]:
    """What is wrong, in one line, and what to do."""
    told = " ".join(str(error).split())
    if isinstance(error, OnrecordError):
        return told, " ".join(error.hint.split())
    if isinstance(error, OSError):
        where = "" if error.filename is None else f": {os.fspath(error.filename)!r}"
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        return f"{error.strerror or told}{where}", "make room" if full else "check the path and its permissions"
    name = type(error).__name__
    hint = "this is not meant to happen: --debug shows where it did"
    if isinstance(error, MemoryError):
        hint = "the data does not fit in memory"
    if isinstance(error, RecursionError):
        hint = "data that is nested this deeply cannot be handled; --debug shows where it was met"
    return f"{name}: {told}" if told else name, hint


def tell(error: BaseException, *, debug: bool) -> int:
    """Writes the error to stderr and returns its exit code."""
    if debug:
        aside("".join(traceback.format_exception(error)).rstrip("\n"))
    told, hint = said_of(error)
    aside(f"onrecord: {safe(told)}")
    if hint:
        aside(f"  hint: {safe(hint)}")
    return code_of(error)


def aside(text: str) -> None:
    """A line on stderr. Where nothing can be written there, what was done and its exit code stay what they are."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        let_go(sys.stderr)


def let_go(stream: TextIO) -> None:
    """Nobody takes what is still buffered there: it must not raise again when Python ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
