"""Whatever is looked away from says why: ``noqa``, ``type: ignore``, ``pragma: no cover``, skips, and lint exceptions.

In code the reason follows on the same line, after a dash or a second ``#``: ``# noqa: BLE001 - a handler may raise``.
In ``pyproject.toml`` every line of an ``ignore`` list ends with a comment.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from gates.report import ROOT, finish, python_files, relative

LOOKED_AT = ("src", "tests", "gates", "examples", "benchmarks")
SILENCED = re.compile(r"#\s*(noqa|type:\s*ignore|pragma:\s*no (cover|branch))\b(?P<rest>.*)$")
REASON = re.compile(r"(#|-)\s*(?!noqa|type:|pragma:)\S.{7,}")
RULE = re.compile(r'^\s*"[A-Z]+\d*",')


def problems(root: Path = ROOT) -> Iterator[str]:
    """Every silenced line and every lint exception without its reason."""
    for part in LOOKED_AT:
        for path in python_files(root / part):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                found = SILENCED.search(line)
                if found and not REASON.search(found["rest"]) and not _quoted(line, found.start()):
                    place = f"{relative(path, root)}:{number}"
                    yield f"{place}: {found[1]} without a reason; add `- why` or `# why` behind it"
    config = root / "pyproject.toml"
    for number, line in enumerate(config.read_text(encoding="utf-8").splitlines() if config.exists() else (), start=1):
        if RULE.match(line) and '", "' not in line and "#" not in line:
            yield f"pyproject.toml:{number}: {line.strip().rstrip(',')} is ignored without a reason"


def _quoted(line: str, at: int) -> bool:
    """True where the comment stands inside a string of one line: a sample, as in this gate's own test."""
    return line[:at].count('"') % 2 == 1 or line[:at].count("`") % 2 == 1


if __name__ == "__main__":
    finish(problems())
