"""The documentation builds without a warning, and the built site is self-contained."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gates.report import ROOT, finish
from gates.site_self_contained import problems as remote_loads


def problems(root: Path = ROOT) -> Iterator[str]:
    """Warnings of a strict build, then what the built pages would load from elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            yield from (done.stdout + done.stderr).strip().splitlines() or ["mkdocs failed without a word"]
            return
        yield from remote_loads(Path(folder))


if __name__ == "__main__":
    finish(problems())
