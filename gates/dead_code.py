"""No function, method or class in ``src`` that nothing names: not the library, its tests, examples or benchmarks.

Vulture finds them; arguments and fields are left out, since protocols and stored values name what others read.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from gates.report import ROOT, finish

LOOKED_AT = ("src", "tests", "examples", "benchmarks")
# Names that Python itself calls; the last one is argparse's.
BY_PYTHON = ("__getattr__", "__dir__", "__aexit__", "_print_message")
KEPT = re.compile(r"^src\S*: (unused (function|method|class)|unreachable code|unsatisfiable)")


def problems(root: Path = ROOT) -> Iterator[str]:
    """Every definition below ``src`` that is never named again."""
    paths = [part for part in LOOKED_AT if (root / part).is_dir()]
    command = [sys.executable, "-m", "vulture", "--min-confidence", "60", "--ignore-names", ",".join(BY_PYTHON), *paths]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 3}:
        yield f"vulture failed: {done.stderr.strip() or done.stdout.strip()}"
    yield from (line for line in done.stdout.splitlines() if KEPT.match(line))


if __name__ == "__main__":
    finish(problems())
