import os
from pathlib import Path

import pytest

from tests.host.dying import deaths

pytestmark = [pytest.mark.integration, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]


def test_a_process_may_die_before_any_statement(tmp_path: Path) -> None:
    """The next host ends what it began: one turn, its wake, and each message under one key with one text."""
    assert deaths("crashing.py", tmp_path) > 20
