import sys
from pathlib import Path

import pytest

from gates import import_budget, optional_extras

pytestmark = pytest.mark.integration


def test_a_light_package_is_within_the_budget() -> None:
    """Nothing third-party and no time: the standard library alone passes."""
    assert list(import_budget.problems("import json", "import json.tool")) == []


@pytest.mark.parametrize(
    ("package", "door", "told"),
    [
        ("import msgspec", "import json", "`import msgspec` loads msgspec"),
        ("import json", "import aiohttp", "`import aiohttp` loads aiohttp"),
        ("import json", "import sqlite3", "`import sqlite3` loads sqlite3"),
        ("import json", "x = sum(range(20_000_000))", "ms over `import asyncio`, at most 60 ms"),
    ],
)
def test_weight_and_time_are_refused(package: str, door: str, told: str) -> None:
    """A third-party module in the package, a heavy one behind the door, and a slow door each fail."""
    assert any(told in line for line in import_budget.problems(package, door))


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An importable package of two modules, one of which needs a light library that is always there."""
    package = tmp_path / "sample_for_extras"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "light.py").write_text("import json, msgspec\n\ndef later() -> None:\n    import aiohttp\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert sys.executable
    return package


def test_extras_are_optional_until_a_module_imports_one(sample: Path) -> None:
    """A library inside a function is fine; at module level its module is named."""
    assert list(optional_extras.problems(sample.name)) == []
    (sample / "heavy.py").write_text("import jsonschema_rs\n")
    assert "sample_for_extras.heavy needs 'jsonschema_rs' just to be imported" in optional_extras.problems(sample.name)


def test_a_library_below_a_package_is_found_too(sample: Path) -> None:
    """The hard dependency that is not light counts as well: aiohttp is loaded on first use only."""
    inner = sample / "inner"
    inner.mkdir()
    (inner / "__init__.py").write_text("")
    (inner / "wire.py").write_text("import aiohttp\n")
    assert "sample_for_extras.inner.wire needs 'aiohttp' just to be imported" in optional_extras.problems(sample.name)
