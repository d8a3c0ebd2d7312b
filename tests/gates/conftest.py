"""A small tree that every gate accepts, to be spoilt in one place at a time."""

from collections.abc import Callable
from pathlib import Path

import pytest

Tree = Callable[[dict[str, str]], Path]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Write files below an empty folder that has the layout of the repository, and return the folder."""

    def write(files: dict[str, str]) -> Path:
        good = {"src/onrecord/__init__.py": '"""The package."""\n', "README.md": "# Sample\n"}
        for name, text in (good | files).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write
