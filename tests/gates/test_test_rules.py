import sys
from pathlib import Path

import pytest

from gates.report import ROOT

pytestmark = pytest.mark.integration

pytest_plugins = ("pytester",)

CONFTEST = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
INI = """
[pytest]
addopts = --strict-markers -p pytest_asyncio.plugin -p pytest_timeout -p no:cacheprovider
pythonpath = {root}
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings = error
timeout = 20
markers =
    unit: a
    integration: b
    live: c
    bench: d
    docs: e
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty suite under the rules of ours; plugins it does not use are left out, for speed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(CONFTEST)
    pytester.makefile(".ini", pytest=INI.format(root=ROOT))
    return pytester


UNIT = "import pytest\npytestmark = pytest.mark.unit\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def test_a(): ...\n", "has no category; give the module one"),
        (
            "import pytest\npytestmark = [pytest.mark.unit, pytest.mark.docs]\ndef test_a(): ...\n",
            "['docs', 'unit']; give the module one",
        ),
        (UNIT + "@pytest.mark.bench\ndef test_a(): ...\n", "['bench'] belongs on the module"),
    ],
)
def test_a_module_has_exactly_one_category(suite: pytest.Pytester, text: str, told: str) -> None:
    """None, two, or one on a single test: nothing is run and the module is named."""
    suite.makepyfile(text)
    result = suite.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert told in result.stderr.str()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("import socket\n    socket.create_connection(('localhost', 1))", "a unit test looked up a host"),
        ("import socket\n    with socket.socket() as s: s.connect(('127.0.0.1', 1))", "a unit test used the network"),
        ("import time\n    time.sleep(0.01)", "a unit test slept"),
        ("import asyncio\n    asyncio.run(asyncio.sleep(0.01))", "a unit test slept"),
    ],
)
def test_a_unit_test_touches_nothing(suite: pytest.Pytester, body: str, told: str) -> None:
    """Network, host names and sleeping fail in unit tests and nowhere else."""
    suite.makepyfile(UNIT + f"def test_a():\n    {body}\n")
    result = suite.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    assert told in result.stdout.str()


def test_elsewhere_the_world_is_there_and_yielding_is_free(suite: pytest.Pytester) -> None:
    """Integration tests may sleep; unit tests may hand over to the loop."""
    suite.makepyfile(
        test_a=UNIT + "import asyncio\nasync def test_a():\n    assert await asyncio.sleep(0, 5) == 5\n",
        test_b=UNIT.replace("unit", "integration") + "import time\ndef test_b(): time.sleep(0.001)\n",
    )
    suite.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_warning_and_an_unknown_marker_are_errors(suite: pytest.Pytester) -> None:
    """Warnings fail the test that causes them."""
    suite.makepyfile(UNIT + "import warnings\ndef test_a(): warnings.warn('old')\n")
    suite.runpytest_subprocess().assert_outcomes(failed=1)


def test_a_snapshot_is_written_on_request_and_compared_ever_after(suite: pytest.Pytester) -> None:
    """Absent: fails and says how; written; equal: passes; different: fails."""
    page = UNIT.replace("unit", "integration") + "def test_a(snapshot): snapshot('a.txt', {!r})\ndef test_b(): ...\n"
    suite.makepyfile(test_a=page.format("one"))
    result = suite.runpytest_subprocess()
    result.assert_outcomes(failed=1, passed=1)
    assert "make snapshots" in result.stdout.str()
    suite.runpytest_subprocess("--write-snapshots").assert_outcomes(passed=1, deselected=1)
    suite.runpytest_subprocess().assert_outcomes(passed=2)
    assert (Path(suite.path) / "snapshots" / "a" / "a.txt").read_text() == "one"
    suite.makepyfile(test_a=page.format("two"))
    suite.runpytest_subprocess().assert_outcomes(failed=1, passed=1)


def test_a_layer_below_its_floor_fails_a_run_under_coverage(suite: pytest.Pytester) -> None:
    """The floors are compared before the closing line, whatever the tests said."""
    suite.makepyfile(UNIT + "def test_a(): ...\n")
    suite.makefile(".toml", pyproject="[tool.coverage.run]\nsource_pkgs = ['gates']\nbranch = true\n")
    result = suite.run(sys.executable, "-m", "coverage", "run", "-m", "pytest")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "has no floor in gates/coverage_floors.toml" in result.stdout.str()
    assert "1 passed" in result.outlines[-1]
