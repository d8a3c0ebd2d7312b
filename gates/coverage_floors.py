"""Branch coverage per layer does not fall: ``gates/coverage_floors.toml`` holds the floors, and they may only rise."""

import json
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gates.report import ROOT, finish

FLOORS = "gates/coverage_floors.toml"


def problems(report: Mapping[str, Any], root: Path = ROOT) -> Iterator[str]:
    """Layers whose coverage, from a ``coverage json`` report, lies below their floor."""
    floors: Mapping[str, float] = tomllib.loads((root / FLOORS).read_text(encoding="utf-8"))["floors"]
    covered: dict[str, int] = defaultdict(int)
    possible: dict[str, int] = defaultdict(int)
    for name, file in report["files"].items():
        place = _place(name)
        totals = file["summary"]
        covered[place] += totals["covered_lines"] + totals.get("covered_branches", 0)
        possible[place] += totals["num_statements"] + totals.get("num_branches", 0)
    for place in sorted(possible):
        if place not in floors:
            yield f"coverage: {place} has no floor in {FLOORS}"
            continue
        percent = 100.0 * covered[place] / possible[place] if possible[place] else 100.0
        if percent < floors[place]:
            yield f"coverage: {place} is at {percent:.1f} %, its floor is {floors[place]} %"


def _place(file: str) -> str:
    """The package of a file below ``onrecord``, or ``top`` for the modules beside the packages."""
    inside = file.replace("\\", "/").split("onrecord/", 1)[-1].split("/")
    return inside[0] if len(inside) > 1 else "top"


if __name__ == "__main__":
    finish(problems(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
