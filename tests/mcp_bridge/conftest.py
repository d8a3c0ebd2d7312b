"""What tests of servers begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mcp_bridge.serving import Raw


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    """A server over stdio that does what it is told."""
    return Raw(tmp_path)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that do not end by themselves are ended soon."""
    monkeypatch.setattr("onrecord.mcp_bridge.transports.GRACE_S", 0.25)
