import subprocess
import sys
from pathlib import Path

import pytest

from gates.report import ROOT

pytestmark = pytest.mark.integration


def validated(pyproject: Path) -> subprocess.CompletedProcess[str]:
    """Check the metadata of a package as the gate does."""
    command = [str(Path(sys.executable).parent / "validate-pyproject"), str(pyproject)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_metadata_of_the_package_is_valid_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    """A version that is none is named."""
    broken = tmp_path / "pyproject.toml"
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    broken.write_text(text.replace('version = "', 'version = "not a version ', 1), encoding="utf-8")
    assert validated(ROOT / "pyproject.toml").returncode == 0
    refused = validated(broken)
    assert refused.returncode != 0
    assert "version" in refused.stdout + refused.stderr
