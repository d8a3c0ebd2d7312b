"""The lock files are complete and name no place: every line pinned and hashed, no address, nothing that pulls torch."""

import re
from collections.abc import Iterator
from pathlib import Path

from gates.report import ROOT, finish

LOCKS = ("requirements/dev.txt", "requirements/run.txt")
NEVER = re.compile(r"^(torch|torchvision|torchaudio|nvidia-.*|triton)==")


def problems(root: Path = ROOT) -> Iterator[str]:
    """Every line of a lock file that names an address, is not pinned, has no hash, or must not be there."""
    for lock in LOCKS:
        text = (root / lock).read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), start=1):
            if "://" in line or re.search(r"--(extra-)?index-url|--find-links|-i ", line):
                yield f"{lock}:{number}: names a registry address"
        for requirement in _requirements(text):
            name = requirement.split()[0]
            if not re.match(r"^[A-Za-z0-9._-]+==[^\s;]+", requirement):
                yield f"{lock}: {name} is not pinned to one version"
            if "--hash=sha256:" not in requirement:
                yield f"{lock}: {name} has no hash"
            if NEVER.match(name):
                yield f"{lock}: {name} must never be installed by tests"


def _requirements(text: str) -> list[str]:
    joined = text.replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.startswith("#")]


if __name__ == "__main__":
    finish(problems())
