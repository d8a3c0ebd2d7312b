"""How the command line fails: one line that says what is wrong, one that says what to do, and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable

from onrecord.cli.terminal import safe
from onrecord.errors import ConfigurationError, MissingDependency, OnrecordError, UsageError

__all__ = ("FAILED", "INTERRUPTED", "OK", "PIPE", "USAGE", "Wrong", "code_of", "debugging", "meant", "said_of", "tell")

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


def meant(name: str, names: Iterable[str], *, otherwise: str) -> str:
    """A hint: the nearest of the names there are, or another hint where none is near."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(names), n=1)
    return f"did you mean {close[0]!r}?" if close else otherwise


def code_of(error: BaseException) -> int:
    """The exit code that an error ends with."""
    if isinstance(error, MissingDependency):
        return FAILED
    return USAGE if isinstance(error, (Wrong, UsageError, ConfigurationError)) else FAILED


def debugging(args: object = None) -> bool:
    """Whether tracebacks were asked for."""
    return bool(getattr(args, "debug", False)) or os.environ.get("ONRECORD_DEBUG", "") not in {"", "0"}


def said_of(error: BaseException) -> tuple[str, str]:
    """What is wrong, in one line, and what to do."""
    told = " ".join(str(error).split())
    if isinstance(error, OnrecordError):
        return told, " ".join(error.hint.split())
    if isinstance(error, OSError):
        where = "" if error.filename is None else f": {os.fspath(error.filename)!r}"
        return f"{error.strerror or told}{where}", "check the path and its permissions"
    name = type(error).__name__
    hint = "this is not meant to happen: --debug shows where it did"
    if isinstance(error, MemoryError):
        hint = "the data does not fit in memory"
    return f"{name}: {told}" if told else name, hint


def tell(error: BaseException, *, debug: bool) -> int:
    """Writes the error to stderr and returns its exit code."""
    sys.stdout.flush()
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    told, hint = said_of(error)
    print(f"onrecord: {safe(told)}", file=sys.stderr)
    if hint:
        print(f"  hint: {safe(hint)}", file=sys.stderr, flush=True)
    return code_of(error)
