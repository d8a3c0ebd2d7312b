"""Every example of every page runs, and the runner sees those that do not."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gates.report import ROOT
from tests.docs.snippets import blocks, run_page

pytestmark = pytest.mark.docs

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [page for page in PAGES if any(b.language in {"python", "bash"} for b in blocks(page.read_text()))]


@pytest.fixture(autouse=True)
def _loggers() -> Iterator[None]:
    """Handlers and levels that an example gives to our loggers are its own."""
    log = logging.getLogger("onrecord")
    handlers, level = list(log.handlers), log.level
    yield
    log.handlers = handlers
    log.setLevel(level)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_example_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of one page run in order, in an empty folder, without a key and without a network."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
        monkeypatch.delenv(name)
    run_page(page, tmp_path)


def run(text: str, folder: Path) -> int:
    """Run a page given as text."""
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return run_page(page, folder)


def test_blocks_of_a_page_share_names_and_files(tmp_path: Path) -> None:
    """A later block uses what an earlier one defined; a titled block is a file too."""
    page = '```python title="one.py"\na = 1\n```\n\n```python\nprint(a + 1)\n```\n\n```text title="prints"\n2\n```\n'
    assert run(page, tmp_path) == 2
    assert (tmp_path / "one.py").read_text() == "a = 1\n"


@pytest.mark.parametrize(
    ("page", "error", "told"),
    [
        ("```python\nraise ValueError('old example')\n```\n", ValueError, "old example"),
        ('```python\nprint(1)\n```\n```text title="prints"\n2\n```\n', AssertionError, "page.md:5: it printed"),
        ("```bash\nonrecord no-such-command\n```\n", AssertionError, "exit code"),
    ],
)
def test_an_example_that_fails_or_prints_something_else_fails(
    tmp_path: Path, page: str, error: type[Exception], told: str
) -> None:
    """A raising block, a wrong output and a failing command are all told with their line."""
    with pytest.raises(error, match=told):
        run(page, tmp_path)


def test_a_file_that_a_command_runs_is_written_and_not_run_before(tmp_path: Path) -> None:
    """A titled block below the comment becomes a file; a command of the page runs it as a process of its own."""
    page = (
        '<!-- not run: the command below runs it -->\n```python title="two.py"\nimport sys\nprint(sys.argv[1])\n```\n'
        '```bash\npython two.py hello\n```\n```text title="prints"\nhello\n```\n'
    )
    assert run(page, tmp_path) == 1


def test_a_block_is_left_out_only_with_a_reason(tmp_path: Path) -> None:
    """The comment above a block is what leaves it out; commands of other programs are not run."""
    raising = "```python\nraise ValueError\n```\n"
    assert run(f"<!-- not run: needs a key -->\n{raising}\n```bash\nfalse\n```\n", tmp_path) == 0
    with pytest.raises(ValueError):  # noqa: PT011  # raised without a message by the sample
        run(f"<!-- skip -->\n{raising}", tmp_path)
