from collections.abc import Callable
from pathlib import Path

import pytest

from gates import coverage_floors, docs_site, help_pages, links, locks, site_self_contained, wording

pytestmark = pytest.mark.integration

Tree = Callable[[dict[str, str]], Path]

HASHED = "msgspec==0.23.0 \\\n    --hash=sha256:00ff\n"


def test_a_lock_that_is_pinned_and_hashed_passes(tree: Tree) -> None:
    """Pins with hashes and no address."""
    assert list(locks.problems(tree(dict.fromkeys(locks.LOCKS, HASHED)))) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("--index-url somewhere\n" + HASHED, "names a registry address"),
        (HASHED + "# from " + "https" + "://somewhere\n", "names a registry address"),
        ("msgspec>=0.20 \\\n    --hash=sha256:00ff\n", "msgspec>=0.20 is not pinned"),
        ("msgspec==0.23.0\n", "msgspec==0.23.0 has no hash"),
        ("torch==2.0 \\\n    --hash=sha256:00ff\n", "must never be installed by tests"),
    ],
)
def test_a_lock_that_names_a_place_or_lets_go_is_refused(tree: Tree, text: str, told: str) -> None:
    """Addresses, loose versions, missing hashes and torch."""
    lines = list(locks.problems(tree({locks.LOCKS[0]: text, locks.LOCKS[1]: HASHED})))
    assert any(told in line for line in lines)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("It is simply there.", "'simply' praises"),
        ("Add a middleware.", "the glossary says 'feature'"),
        ("Look in /" + "home/ana/onrecord.", "names a place on a machine"),
    ],
)
def test_words_that_are_banned_in_documents(tree: Tree, text: str, told: str) -> None:
    """Praise, retired words and machine paths; a page about moving may use the retired words."""
    (line,) = wording.problems(tree({"docs/page.md": f"# Page\n\n{text}\n"}))
    assert line.startswith("docs/page.md:3: ")
    assert told in line
    assert list(wording.problems(tree({"docs/page.md": f"{wording.ALLOWED}\n\nMiddleware becomes a feature.\n"}))) == []


def test_links_lead_to_files_and_headings(tree: Tree) -> None:
    """A missing file and a missing heading are told; code and outside links are not looked at."""
    good = "# One two\n\n[a](#one-two) [b](docs/page.md#part) [c](https://example.org/x) `[d](nowhere.md)`\n"
    root = tree({"README.md": good, "docs/page.md": "# Page\n\n## Part\n\n```\n[e](nowhere.md)\n```\n"})
    assert list(links.problems(root)) == []
    (root / "docs/page.md").write_text("# Page\n\n[back](../README.md#one) [gone](gone.md)\n")
    assert sorted(links.problems(root)) == [
        "README.md: link 'docs/page.md#part': no heading 'part'",
        "docs/page.md: link '../README.md#one': no heading 'one'",
        "docs/page.md: link 'gone.md': no such file",
    ]


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/x.css">',
        '<img src="http://cdn.example/x.png">',
        '<pre class="mermaid"><code>a</code></pre>',
        '<p style="background: url(https://cdn.example/x.png)">a</p>',
    ],
)
def test_a_page_that_loads_from_elsewhere_is_refused(tmp_path: Path, page: str) -> None:
    """Scripts, styles, images and diagrams from another host fail; a link to click passes."""
    (tmp_path / "index.html").write_text('<a href="https://example.org">x</a><script src="x.js"></script>')
    assert list(site_self_contained.problems(tmp_path)) == []
    (tmp_path / "other.html").write_text(page)
    (line,) = site_self_contained.problems(tmp_path)
    assert line.startswith("other.html: loads ")


def test_an_empty_site_and_a_remote_style_are_refused(tmp_path: Path) -> None:
    """A site that was not built proves nothing; style sheets are read too."""
    assert "holds no page" in next(site_self_contained.problems(tmp_path))
    (tmp_path / "index.html").write_text("")
    (tmp_path / "x.css").write_text("@font-face { src: url(https://fonts.example/x.woff2) }")
    (line,) = site_self_contained.problems(tmp_path)
    assert line == "x.css: loads https://fonts.example/x.woff2"


def test_a_help_text_in_the_documents_must_be_current(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stale block is told and can be rewritten; line breaks do not matter."""
    monkeypatch.setattr(help_pages, "help_text", lambda command: f"usage: {command}\n")
    block = '```text title="onrecord chat --help"\n{}\n```\n'
    root = tree({"docs/cli.md": block.format("usage:\n  onrecord chat --help")})
    assert list(help_pages.problems(root)) == []
    (root / "docs/cli.md").write_text(block.format("usage: onrecord talk"))
    (line,) = help_pages.problems(root)
    assert line.startswith("docs/cli.md: `onrecord chat --help` prints something else now")
    assert list(help_pages.problems(root, write=True)) == []
    assert (root / "docs/cli.md").read_text() == block.format("usage: onrecord chat --help")


def test_coverage_below_a_floor_is_refused(tree: Tree) -> None:
    """Per package, lines and branches together; a package without a floor is told."""
    root = tree({coverage_floors.FLOORS: "[floors]\nturn = 80\ntop = 100\n"})
    summary = {"num_statements": 8, "covered_lines": 8, "num_branches": 2, "covered_branches": 0}
    report = {"files": {"src/onrecord/turn/take.py": {"summary": summary}}}
    assert list(coverage_floors.problems(report, root)) == []
    summary["covered_lines"] = 7
    assert list(coverage_floors.problems(report, root)) == ["coverage: turn is at 70.0 %, its floor is 80 %"]
    report["files"]["src/onrecord/net/sse.py"] = {"summary": summary}
    assert "coverage: net has no floor in gates/coverage_floors.toml" in coverage_floors.problems(report, root)


def test_a_broken_link_fails_the_build_of_the_site(tree: Tree) -> None:
    """A page that is fine builds; a link to a page that is not there fails, and is named."""
    config = "site_name: sample\ntheme: {name: material, font: false}\nplugins: []\n"
    root = tree({"mkdocs.yml": config, "docs/index.md": "# Start\n"})
    assert list(docs_site.problems(root)) == []
    (root / "docs/index.md").write_text("# Start\n\n[gone](gone.md)\n")
    assert any("gone.md" in line for line in docs_site.problems(root))


def test_a_site_with_remote_fonts_is_refused(tree: Tree) -> None:
    """The theme's default fonts come from another host; the gate sees them in the built pages."""
    root = tree({"mkdocs.yml": "site_name: sample\ntheme: {name: material}\nplugins: []\n", "docs/index.md": "# A\n"})
    assert any("loads https" in line for line in docs_site.problems(root))
