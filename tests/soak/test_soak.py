import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.integration, pytest.mark.timeout(60),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL"),
]  # fmt: skip


def test_a_short_soak_keeps_every_promise(tmp_path: Path) -> None:
    """Ten SIGKILLs at random moments: nothing accepted is lost, nothing is doubled. `make soak` is the long form."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.soak.run", "--kills", "10", "--folder", str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=55,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    assert "\n0 promises broken" in ended.stdout
