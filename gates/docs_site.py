"""The documentation builds without a warning, and the built site is self-contained."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gates.report import ROOT, finish
from gates.site_self_contained import problems as remote_loads


def problems(root: Path = ROOT) -> Iterator[str]:
    """Warnings of a strict build, then what the built pages would load from elsewhere.

    Never with `--quiet`: it hides warnings from `--strict` too.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
        environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # an announcement of the theme's makers
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines()
            yield from [line for line in lines if not line.startswith("INFO")] or ["mkdocs failed without a word"]
            return
        yield from remote_loads(Path(folder))


if __name__ == "__main__":
    finish(problems())
