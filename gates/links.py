"""Links inside the documents lead somewhere: files exist, and headings too."""

import re
from collections.abc import Iterator
from pathlib import Path

from gates.report import ROOT, finish, relative

PAGES = ("*.md", "docs/**/*.md", ".github/**/*.md")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def problems(root: Path = ROOT) -> Iterator[str]:
    """Every relative link whose file or heading is not there."""
    for page in sorted({path for pattern in PAGES for path in root.glob(pattern)}):
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        text = re.sub(r"`[^`\n]*`", "", text)
        for match in LINK.finditer(text):
            target = match.group(1) or match.group(2)
            if "://" in target or target.startswith("mailto:"):
                continue
            if told := _broken(page, target):
                yield f"{relative(page, root)}: link {target!r}: {told}"


def _broken(page: Path, target: str) -> str:
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    if not path.exists():
        return "no such file"
    if anchor and path.suffix == ".md" and anchor not in _anchors(path.read_text(encoding="utf-8")):
        return f"no heading {anchor!r}"
    return ""


def _anchors(text: str) -> set[str]:
    found: set[str] = set()
    for line in FENCE.sub("", text).splitlines():
        if heading := re.match(r"#+\s+(.*?)(?:\s+\{#([\w.-]+)\})?\s*$", line):
            words = re.sub(r"[^\w\s-]", "", heading.group(1).lower()).strip()
            found.add(heading.group(2) or re.sub(r"[\s]+", "-", words))
    return found


if __name__ == "__main__":
    finish(problems())
