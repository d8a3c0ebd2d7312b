from collections.abc import Callable
from pathlib import Path

import pytest

from gates import dead_code, reasons, source_imports, type_checking_imports

pytestmark = pytest.mark.integration

Tree = Callable[[dict[str, str]], Path]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("from onrecord import Agent\n", "not from the top-level barrel"),
        ("from onrecord.turn.take import _open\n", "'_open' is private to onrecord.turn.take"),
        ("import aiohttp\n", "import 'aiohttp' inside the function that needs it"),
        ("try:\n    from pydantic import BaseModel\nexcept ImportError:\n    pass\n", "import 'pydantic' inside"),
        ("class A:\n    import aiohttp\n", "import 'aiohttp' inside"),
    ],
)
def test_imports_that_break_a_house_rule(tree: Tree, text: str, told: str) -> None:
    """The barrel, private names and third-party libraries at module level are refused."""
    (line,) = source_imports.problems(tree({"src/onrecord/a.py": text}))
    assert line.startswith("src/onrecord/a.py:")
    assert told in line


def test_imports_that_are_fine(tree: Tree) -> None:
    """Light and standard libraries anywhere, heavy ones inside functions or for type checkers only."""
    text = (
        "import json\nimport msgspec\nfrom typing import TYPE_CHECKING\nfrom onrecord.turn.take import open_turn\n"
        "if TYPE_CHECKING:\n    import aiohttp\n\ndef call() -> None:\n    import aiohttp\n"
    )
    suite = "import pytest\n"
    root = tree({"src/onrecord/a.py": text, "src/onrecord/testing/conformance/store.py": suite})
    assert list(source_imports.problems(root)) == []


def test_type_checking_imports_are_listed_and_only_shrink(tree: Tree) -> None:
    """A new exempt import is refused, and so is a listed one that is gone; siblings in a package are free."""
    hidden = "if TYPE_CHECKING:\n    from onrecord.{} import X\n"
    root = tree(
        {
            "src/onrecord/session/a.py": hidden.format("turn.take"),
            "src/onrecord/session/b.py": hidden.format("session.a"),
            type_checking_imports.ALLOWED: "# comment\n",
        }
    )
    (line,) = type_checking_imports.problems(root)
    assert line.startswith("src/onrecord/session/a.py -> onrecord.turn.take: an import under TYPE_CHECKING")

    (root / type_checking_imports.ALLOWED).write_text("src/onrecord/session/a.py -> onrecord.turn.take\n")
    assert list(type_checking_imports.problems(root)) == []

    (root / "src/onrecord/session/a.py").write_text("")
    (line,) = type_checking_imports.problems(root)
    assert "no longer there; remove it" in line


def test_a_function_that_nobody_names_is_dead(tree: Tree) -> None:
    """A definition no other line names is told; one that only a test names is alive."""
    root = tree(
        {
            "src/onrecord/a.py": "def _dead() -> None: ...\n\ndef tested() -> None: ...\n",
            "tests/test_a.py": "from onrecord.a import tested\n\ntested()\n",
        }
    )
    (line,) = dead_code.problems(root)
    assert "unused function '_dead'" in line
    (root / "src/onrecord/a.py").write_text("def tested() -> None: ...\n")
    assert list(dead_code.problems(root)) == []


@pytest.mark.parametrize("comment", ["noqa: BLE001", "type: ignore[misc]", "pragma: no cover", "noqa: A001, B002"])
def test_looking_away_needs_a_reason(tree: Tree, comment: str) -> None:
    """A silenced line says why on the same line."""
    root = tree({"src/onrecord/a.py": f"x = 1  # {comment}\n"})
    (line,) = reasons.problems(root)
    assert line.startswith("src/onrecord/a.py:1: ")
    assert "without a reason" in line
    for reason in ("  # a handler may raise anything", " - a handler may raise anything"):
        (root / "src/onrecord/a.py").write_text(f"x = 1  # {comment}{reason}\n")
        assert list(reasons.problems(root)) == []


def test_a_lint_exception_needs_a_reason(tree: Tree) -> None:
    """Each rule that is ignored in the configuration has a comment behind it."""
    root = tree({"pyproject.toml": 'ignore = [\n  "D107",  # the class says it\n  "D203",\n]\n'})
    assert list(reasons.problems(root)) == ['pyproject.toml:3: "D203" is ignored without a reason']
