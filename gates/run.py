"""Run the gates: all of them, or those named on the command line. One line each; the output of those that fail.

Two at a time, for two cores; the import budget alone at the end, because it measures.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gates.report import ROOT

PYTHON = sys.executable
BIN = Path(PYTHON).parent


def _gate(name: str) -> list[str]:
    return [PYTHON, "-m", f"gates.{name}"]


GATES: dict[str, list[str]] = {
    "types": [PYTHON, "-m", "mypy"],
    "docs-site": _gate("docs_site"),
    "layers": [str(BIN / "lint-imports")],
    "lint": [PYTHON, "-m", "ruff", "check", "--output-format", "concise"],
    "format": [PYTHON, "-m", "ruff", "format", "--check"],
    "size-and-names": _gate("size_and_names"),
    "source-imports": _gate("source_imports"),
    "type-checking-imports": _gate("type_checking_imports"),
    "public-api": _gate("public_api"),
    "names": _gate("names_snapshot"),
    "optional-extras": _gate("optional_extras"),
    "reasons": _gate("reasons"),
    "locks": _gate("locks"),
    "wording": _gate("wording"),
    "links": _gate("links"),
    "help-pages": _gate("help_pages"),
    "spelling": [str(BIN / "codespell")],
    "dead-code": _gate("dead_code"),
    "pyproject": [str(BIN / "validate-pyproject"), "pyproject.toml"],
}
ALONE = {"import-budget": _gate("import_budget")}


def _run(name: str) -> tuple[str, bool, float, str]:
    start = time.perf_counter()
    command = (GATES | ALONE)[name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return name, done.returncode == 0, time.perf_counter() - start, (done.stdout + done.stderr).strip()


def main(names: list[str]) -> int:
    """Run the named gates, or all, and return the exit code."""
    if unknown := sorted(set(names) - GATES.keys() - ALONE.keys()):
        print(f"unknown gate: {', '.join(unknown)}; there are {', '.join(GATES | ALONE)}")
        return 2
    chosen = names or [*GATES, *ALONE]
    failed: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(_run, [name for name in chosen if name in GATES]))
    for name, passed, seconds, output in [*results, *(_run(name) for name in chosen if name in ALONE)]:
        print(f"{'ok    ' if passed else 'FAILED'} {name:<22} {seconds:5.1f} s")
        if not passed:
            failed.append(name)
            print(_indented(output))
    told = f"; failed: {', '.join(failed)}" if failed else ""
    print(f"{len(chosen) - len(failed)} of {len(chosen)} gates passed{told}")
    return 1 if failed else 0


def _indented(output: str) -> str:
    lines = output.splitlines()
    if len(lines) > 60:
        with tempfile.NamedTemporaryFile("w", suffix=".txt", prefix="gate-", delete=False, encoding="utf-8") as file:
            file.write(output)
        lines = [*lines[:60], f"... {len(lines) - 60} more lines in {file.name}"]
    width = max(shutil.get_terminal_size().columns, 120)
    return "\n".join(f"       {line[: 2 * width]}" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
