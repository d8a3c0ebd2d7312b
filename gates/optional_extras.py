"""Extras are optional: every module of the package imports in an interpreter that has msgspec and nothing else.

All other installed libraries, aiohttp included, are hidden from the import system, whatever is installed.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions

from gates.report import finish

ALWAYS = {"msgspec", "onrecord", "tzdata"}
# The conformance suites are pytest classes.
WITH_PYTEST = ("onrecord.testing.conformance",)

CODE = """
import importlib, json, pkgutil, sys
hidden = set(json.loads(sys.argv[1]))
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None
sys.meta_path.insert(0, Hide())
package = importlib.import_module(sys.argv[2])
skipped = tuple(json.loads(sys.argv[3]))
for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".", onerror=lambda name: None):
    if module.name.startswith(skipped) or module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] in hidden:
            print(f"{module.name} needs {missing.name!r} just to be imported")
        else:
            print(f"{module.name} cannot be imported: {missing}")
"""


def problems(package: str = "onrecord") -> Iterator[str]:
    """Modules that cannot be imported without an extra."""
    hidden = sorted(set(packages_distributions()) - ALWAYS - set(sys.stdlib_module_names))
    for skipped, still_hidden in ((WITH_PYTEST, hidden), ((), _without_pytest(hidden))):
        arguments = [json.dumps(still_hidden), package, json.dumps(skipped)]
        done = subprocess.run([sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, check=False)
        yield from done.stdout.splitlines()
        if done.returncode:
            yield (done.stderr.strip().splitlines() or ["the import check itself failed"])[-1]


def _without_pytest(hidden: list[str]) -> list[str]:
    keep = {"_pytest", "iniconfig", "packaging", "pluggy", "py", "pygments", "pytest"}
    return [name for name in hidden if name not in keep]


if __name__ == "__main__":
    finish(dict.fromkeys(problems()))
