import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]


def test_a_process_may_die_before_any_statement(tmp_path: Path) -> None:
    """The next host ends what it began: one turn, its wake, and each message under one key with one text."""
    script = Path(__file__).parent / "crashing.py"
    ended = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False, timeout=19,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["deaths"] > 20
