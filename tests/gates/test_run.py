import sys

import pytest

from gates import run
from gates.report import ROOT

pytestmark = pytest.mark.integration


def test_a_failing_gate_fails_the_run_and_shows_its_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line per gate, the output of those that fail, and a nonzero code."""
    good, bad = [sys.executable, "-c", ""], [sys.executable, "-c", "import sys; print('why'); sys.exit(1)"]
    monkeypatch.setattr(run, "GATES", {"good": good, "bad": bad})
    monkeypatch.setattr(run, "ALONE", {"last": good})
    assert run.main([]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:2]] == [["ok", "good"], ["FAILED", "bad"]]
    assert lines[2].strip() == "why"
    assert lines[-1] == "2 of 3 gates passed; failed: bad"
    assert run.main(["good", "last"]) == 0


def test_an_unknown_gate_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A typing error does not pass for a passing gate."""
    assert run.main(["typo"]) == 2
    assert "unknown gate: typo; there are" in capsys.readouterr().out


def test_every_gate_script_is_run() -> None:
    """A script in gates/ that no list names would never fail."""
    named = {part.removeprefix("gates.") for command in (run.GATES | run.ALONE).values() for part in command}
    scripts = {path.stem for path in (ROOT / "gates").glob("*.py")}
    assert scripts - named == {"coverage_floors", "report", "run", "site_self_contained", "snapshot"}
