"""Documents use the glossary, sell nothing, and name no place on anyone's machine.

A page that must use a replaced word (because it explains a move from another library) says so once, in a comment:
``<!-- words: allowed -->``.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from gates.report import ROOT, finish, relative

PAGES = ("*.md", "docs/**/*.md", ".github/**/*.md")
ALLOWED = "<!-- words: allowed -->"

# Words that praise instead of saying what happens.
PRAISE = (
    "blazing", "cutting-edge", "easily", "effortless", "effortlessly", "elegant", "enterprise-grade", "game-changing",
    "leverage", "leverages", "obviously", "powerful", "robust", "seamless", "seamlessly", "simply", "state-of-the-art",
    "supercharge", "unleash", "world-class",
)  # fmt: skip
# Words the glossary replaced, and what it says instead. Only those that no sentence needs in another meaning.
RETIRED = {
    "guardrail": "rule",
    "guardrails": "rules",
    "middleware": "feature",
    "orchestrator": "host",
    "reducer": "fold",
    "system turn": "context message",
    "user turn": "user message",
}
PLACES = re.compile(r"(?<![\w./~])/(home|root|Users|work|tmp|opt|mnt)/[\w.]")


def problems(root: Path = ROOT) -> Iterator[str]:
    """Every banned word and machine path in the documents of a tree."""
    for page in sorted({path for pattern in PAGES for path in root.glob(pattern)}):
        if any(part in {".venv", "site"} for part in page.relative_to(root).parts):
            continue
        text = page.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), start=1):
            for told in _line(line, retired=ALLOWED not in text):
                yield f"{relative(page, root)}:{number}: {told}"


def _line(line: str, *, retired: bool) -> Iterator[str]:
    for word in PRAISE:
        if re.search(rf"\b{re.escape(word)}\b", line, re.IGNORECASE):
            yield f"{word!r} praises; say what happens"
    for word, successor in RETIRED.items() if retired else ():
        if re.search(rf"\b{re.escape(word)}\b", line, re.IGNORECASE):
            yield f"{word!r} is retired; the glossary says {successor!r}"
    if found := PLACES.search(line):
        yield f"names a place on a machine: {found.group()!r}..."


if __name__ == "__main__":
    finish(problems())
