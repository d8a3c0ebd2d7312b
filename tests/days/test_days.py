import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.integration, pytest.mark.timeout(90),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL"),
]  # fmt: skip


def test_ten_short_days_keep_every_promise(tmp_path: Path) -> None:
    """Forty customers, two workers, a shared clock, some ten SIGKILLs: no message doubled, no effect, no wake lost.

    `make days` is the long form: a thousand customers.
    """
    asked = ["--sessions", "40", "--days", "10", "--step", "7200", "--kills", "12", "--folder", str(tmp_path)]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.days.run", *asked],
        capture_output=True, text=True, check=False, timeout=85,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    assert "\n0 promises broken" in ended.stdout
