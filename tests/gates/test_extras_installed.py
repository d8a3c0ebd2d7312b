"""Tests of an optional library skip where it is missing; where everything is tested, nothing is."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"[A-Za-z0-9_.-]+")


def _named(extra: str, extras: dict[str, list[str]]) -> set[str]:
    """The distributions of an extra, with those of the extras that it is made of."""
    names = set[str]()
    for line in extras[extra]:
        if within := re.match(r"onrecord\[(.+)\]", line):
            names |= {name for one in within[1].split(",") for name in _named(one.strip(), extras)}
        elif found := NAME.match(line):
            names.add(found[0])
    return names


def test_what_tests_skip_without_is_installed() -> None:
    """So a skip for want of ``mcp``, ``pypdf`` or another cannot pass for a test that ran."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    wanted, missing = _named("dev", extras), list[str]()
    assert {"mcp", "pypdf", "numpy", "opentelemetry-api", "pytest"} <= wanted
    for name in wanted:
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(name)
    assert missing == [], "make installs them: rm .venv/.installed-dev && make test"
