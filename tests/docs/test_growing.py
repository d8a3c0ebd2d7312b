"""The guide in which an agent grows: every step is one line, and its end is the example of the repository."""

import re

import pytest

from gates.report import ROOT
from tests.docs.snippets import blocks

pytestmark = pytest.mark.docs

PAGE = (ROOT / "docs/guides/growing.md").read_text(encoding="utf-8")
STEPS = (
    "A rule", "Permissions", "A person who approves", "Redaction", "A window", "Instructions", "Skills", "A memory",
    "Documents", "Long results", "A budget", "Commentary", "Self-explanation",
)  # fmt: skip


def sections() -> dict[str, str]:
    """What stands below each heading."""
    parts = re.split(r"^## (.*)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_each_step_is_one_line_and_shows_what_it_does() -> None:
    """One addition to the list, then what is seen of it."""
    held = sections()
    assert list(held) == [
        "Plain", "Tools", *STEPS, "A bundle", "In one file", "Killed while a person is asked", "Further"
    ]  # fmt: skip
    for name in STEPS:
        told = list(blocks(held[name]))
        assert sum(block.text.count("\nfeatures +=") for block in told) == 1, name
        assert any(block.title == "prints" for block in told), name


def test_the_whole_agent_is_the_example_of_the_repository() -> None:
    """Letter by letter, so that whoever copies one has the other."""
    (shown,) = [block.text for block in blocks(PAGE) if block.title == "support_governed.py"]
    assert shown == (ROOT / "examples/support_governed.py").read_text(encoding="utf-8")
