from collections.abc import Callable
from pathlib import Path

import pytest

from gates.size_and_names import problems

pytestmark = pytest.mark.integration

Tree = Callable[[dict[str, str]], Path]


def test_a_small_well_named_tree_passes(tree: Tree) -> None:
    """A module named after its folder, a provider's usual parts and command files are not double names."""
    root = tree(
        {
            "src/onrecord/session/__init__.py": "",
            "src/onrecord/session/session.py": "def fold() -> None: ...\n",
            "src/onrecord/providers/one/parse.py": "",
            "src/onrecord/providers/two/parse.py": "",
            "src/onrecord/cli/session.py": "",
        }
    )
    assert list(problems(root)) == []


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("src/onrecord/long.py", "x = 1\n" * 401, "401 lines, at most 400"),
        ("tests/test_long.py", "x = 1\n" * 401, "401 lines, at most 400"),
        ("src/onrecord/a.py", "def f() -> None:\n" + "    x = 1\n" * 60, "f() has 61 lines, at most 60"),
        ("src/onrecord/a.py", "class A:\n" + "".join(f"    def m{i}(self): ...\n" for i in range(16)), "16 methods"),
        ("src/onrecord/utils.py", "", "a module named 'utils' collects everything"),
        ("src/onrecord/base/__init__.py", "", "a module named 'base' collects everything"),
        ("tests/helpers.py", "", "a module named 'helpers' collects everything"),
        ("src/onrecord/queue.py", "", "'queue' is a standard library module"),
        ("src/onrecord/http/__init__.py", "", "'http' is a standard library module"),
        ("src/onrecord/a.py", "class TurnRunner: ...\n", "'TurnRunner' uses the retired word 'runner'"),
        ("src/onrecord/a.py", "def make_checkpoint() -> None: ...\n", "the retired word 'checkpoint'"),
        ("src/onrecord/a.py", "ROUTERS = ()\n", "the retired word 'router'"),
    ],
)
def test_one_bad_file_is_named(tree: Tree, name: str, text: str, told: str) -> None:
    """Each limit and each kind of name is refused once, with the file in the line."""
    (line,) = problems(tree({name: text}))
    assert line.startswith(name)
    assert told in line


def test_one_name_for_two_things_is_refused(tree: Tree) -> None:
    """Two modules of one name in different packages make a reader guess."""
    (line,) = problems(tree({"src/onrecord/turn/rows.py": "", "src/onrecord/stores/rows.py": ""}))
    assert line == "module name 'rows' has two meanings: src/onrecord/stores/rows.py, src/onrecord/turn/rows.py"


def test_private_names_and_dunder_methods_are_free(tree: Tree) -> None:
    """Retired words are about public names; dunder methods follow from the protocol a class has."""
    dunders = "".join(f"    def __d{i}__(self): ...\n" for i in range(30))
    assert list(problems(tree({"src/onrecord/a.py": f"_router = 1\nclass A:\n{dunders}"}))) == []
