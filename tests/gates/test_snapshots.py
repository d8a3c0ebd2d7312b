import sys
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Literal

import pytest
from msgspec import Struct

from gates import names_snapshot, public_api

pytestmark = pytest.mark.integration

Tree = Callable[[dict[str, str]], Path]

SOURCE = '''
__all__ = ("Price", "ask", "LIMIT")
LIMIT: int = 3

class _Head(Struct, frozen=True):
    currency: str

class Price(_Head, frozen=True, kw_only=True):
    """A price."""
    FREE = 0
    total: int
    note: str = ""
    _hidden: int = 0
    @property
    def free(self) -> bool: ...
    def _private(self) -> None: ...

async def ask(text: str, *, by: str = "me") -> Price: ...
def not_public() -> None: ...
'''


def test_public_api_shows_names_signatures_fields_and_methods(tree: Tree) -> None:
    """What is written is what a user can call, nothing private."""
    text = public_api.render(tree({"src/onrecord/price.py": SOURCE, "src/onrecord/_inner.py": SOURCE}))
    assert text == (
        "onrecord.price\n"
        "  LIMIT: int = 3\n"
        "  class Price(_Head, kw_only=True)\n"
        "    currency: str\n"
        "    FREE = 0\n"
        "    total: int\n"
        "    note: str = ''\n"
        "    @property def free(self) -> bool\n"
        "  async def ask(text: str, *, by: str='me') -> Price\n"
    )


def test_a_changed_signature_is_a_readable_difference(tree: Tree) -> None:
    """A renamed parameter fails with the old and the new line; rewriting makes it pass."""
    root = tree({"src/onrecord/price.py": SOURCE})
    assert list(public_api.problems(root, write=True)) == []
    assert list(public_api.problems(root)) == []

    (root / "src/onrecord/price.py").write_text(SOURCE.replace("by: str", "who: str"))
    told = list(public_api.problems(root))
    assert "the public API differs" in told[0]
    assert "  -  async def ask(text: str, *, by: str='me') -> Price" in told
    assert "  +  async def ask(text: str, *, who: str='me') -> Price" in told


class Opened(Struct, tag_field="kind", tag="turn.opened"):
    """A body as the core declares them."""


class Rank(IntEnum):
    """Ranks as the core declares them."""

    BASE = 0
    BRIEF = 600


class Broken(Exception):
    """An error as the core declares them."""

    default_code = "broken"


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """Stand-ins for the three modules that publish names."""
    modules = {name: ModuleType(name) for name in ("onrecord.errors", "onrecord.record.kinds", "onrecord.turn.moments")}
    errors, kinds, moments = modules.values()
    errors.__dict__.update(Broken=Broken, ErrorKind=Literal["rate", "network"], __all__=("Broken",))
    kinds.__dict__.update(CORE_KINDS=(Opened,))
    moments.__dict__.update(MOMENTS=("input",), SLOTS={"input": {"RULES": 500, "CLOCK": 100}}, Rank=Rank)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return modules


def test_published_names_are_stored_and_a_renamed_kind_fails(
    published: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kinds, codes, moments, slots and ranks are in the file; a renamed slot is a difference."""
    source = tmp_path / "src" / "onrecord" / "take.py"
    source.parent.mkdir(parents=True)
    source.write_text('Outcome(code="stale")\nUsageError("no", code="asker-gone")\n_unfit("store-full")\n')
    assert list(names_snapshot.problems(tmp_path, write=True)) == []
    text = (tmp_path / names_snapshot.SNAPSHOT).read_text()
    for line in ("turn.opened", "broken Broken", "rate", "input CLOCK 100", "BRIEF 600"):
        assert f"  {line}\n" in text
    assert "error codes of their own\n  asker-gone\n  store-full\n\noutcome codes\n  stale\n" in text
    assert list(names_snapshot.problems(tmp_path)) == []

    monkeypatch.setattr(published["onrecord.turn.moments"], "SLOTS", {"input": {"RULES": 500, "TIME": 100}})
    told = list(names_snapshot.problems(tmp_path))
    assert "  -  input CLOCK 100" in told
    assert "  +  input TIME 100" in told


def test_a_module_that_publishes_nothing_is_named(published: dict[str, ModuleType], tmp_path: Path) -> None:
    """A missing list is one clear line, not a traceback."""
    del published["onrecord.record.kinds"].__dict__["CORE_KINDS"]
    (line,) = names_snapshot.problems(tmp_path)
    assert line.startswith("onrecord.record.kinds.CORE_KINDS does not exist")
