"""Importing costs little: no third-party module for the package, a stated time for the door.

Measured as CPU time in fresh interpreters with warm bytecode, the best of several runs (others sharing the machine
only add to it), with 1.5 times head room. `ONRECORD_IMPORT_MS` sets another budget.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from gates.report import finish

BUDGET_MS = 40.0
HEAD_ROOM = 1.5
RUNS = 9
# Loaded by nobody who only declares an agent.
HEAVY = (
    "aiohttp", "jsonschema_rs", "numpy", "opentelemetry", "pydantic", "pypdf", "selectolax", "sqlite3", "usearch",
    "xllamacpp",
)  # fmt: skip
OUTER = (
    "onrecord.cli", "onrecord.memory", "onrecord.net", "onrecord.providers", "onrecord.stores", "onrecord.telemetry",
    "onrecord.testing",
)  # fmt: skip

LOADED = """
import json, sys
before = set(sys.modules)
{statement}
print(json.dumps(sorted(set(sys.modules) - before)))
"""

TIME = """
import asyncio, time
start = time.process_time()
{statement}
print((time.process_time() - start) * 1000)
"""


def problems(package: str = "import onrecord", door: str = "from onrecord import Agent") -> Iterator[str]:
    """What importing the package or the door loads or costs beyond the budget."""
    with tempfile.TemporaryDirectory() as cache:
        ours = sys.stdlib_module_names | {"onrecord"}
        for name in sorted({_root(m) for m in _loaded(package, cache)} - ours):
            yield f"`{package}` loads {name}"
        new = _loaded(door, cache)
        for name in sorted({_root(m) for m in new} & set(HEAVY)) + [m for m in new if m in OUTER]:
            yield f"`{door}` loads {name}"
        budget = float(os.environ.get("ONRECORD_IMPORT_MS", BUDGET_MS)) * HEAD_ROOM
        taken = min(float(_python(TIME.format(statement=door), cache)) for _ in range(RUNS))
        if taken > budget:
            yield f"`{door}` takes {taken:.0f} ms over `import asyncio`, at most {budget:.0f} ms"


def _loaded(statement: str, cache: str) -> list[str]:
    return [str(name) for name in json.loads(_python(LOADED.format(statement=statement), cache))]


def _root(module: str) -> str:
    return module.partition(".")[0]


def _python(code: str, cache: str) -> str:
    """Run code in a fresh interpreter whose bytecode is kept in a folder of our own; the first run warms it."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE" and not k.startswith("COV")}
    environment["PYTHONPYCACHEPREFIX"] = cache
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["it failed without a word"]
        finish([f"cannot be imported: {last[0]}"])
    return done.stdout


if __name__ == "__main__":
    finish(problems())
