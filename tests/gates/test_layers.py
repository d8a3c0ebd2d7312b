import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gates.report import ROOT

pytestmark = pytest.mark.integration

MODULES = (
    "__main__", "agent", "cli/main", "conditions", "conversation/content", "declared", "declared_types", "lazy_names",
    "errors", "jsonio", "models/model", "net/transport",
    "flows/flow", "governance/rules", "honesty/commentary", "host/host", "mcp_bridge/mcp_tools",
    "memory/ports", "prompt/window",
    "providers/anthropic/client",
    "providers/google/client", "providers/local/client", "providers/offline/client", "providers/openai_chat/client",
    "providers/openai_compatible/vendors", "providers/openai_responses/client", "record/entry", "session/store",
    "skills/skill", "stores/sqlite", "subturn", "sync", "telemetry/otel", "testing/scripted", "timing", "tools/tool",
    "turn/take",
)  # fmt: skip


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    """The packages of the library as empty modules, under the real contracts."""
    for module in MODULES:
        path = tmp_path / "src" / "onrecord" / f"{module}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    for folder in [p for p in (tmp_path / "src").rglob("*") if p.is_dir()]:
        (folder / "__init__.py").write_text("")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on a tree as the gate does."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "COLUMNS": "200"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def test_imports_that_point_down_keep_every_contract(skeleton: Path) -> None:
    """Down the layers, through net, and up only for type checkers."""
    package = skeleton / "src" / "onrecord"
    (package / "cli/main.py").write_text("import onrecord.agent\nimport onrecord.providers.offline.client\n")
    (package / "providers/openai_chat/client.py").write_text("import onrecord.net.transport\n")
    (package / "net/transport.py").write_text("def send():\n    import aiohttp\n")
    up = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import onrecord.turn.take\n"
    (package / "errors.py").write_text(up)
    done = lint(skeleton)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "BROKEN" not in done.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("errors", "import onrecord.timing", "layers"),
        ("conversation/content", "import onrecord.record.entry", "layers"),
        ("tools/tool", "import onrecord.models.model", "layers"),
        ("turn/take", "import onrecord.agent", "layers"),
        ("turn/take", "def late():\n    import onrecord.stores.sqlite", "layers"),
        ("agent", "import onrecord.providers.openai_chat.client", "layers"),
        ("stores/sqlite", "import onrecord.providers.offline.client", "layers"),
        ("session/store", "import onrecord.tools.tool", "session does not know"),
        ("providers/local/client", "import onrecord.turn.take", "adapters see values and ports"),
        ("providers/local/client", "import onrecord.providers.offline.client", "providers are independent"),
        ("governance/rules", "import onrecord.agent", "features see L0 to L3"),
        ("telemetry/otel", "import onrecord.agent", "features see L0 to L3"),
        ("governance/rules", "import onrecord.host.host", "features see L0 to L3"),
        ("memory/ports", "import onrecord.host.host", "features see L0 to L3"),
        ("memory/ports", "def keep():\n    import sqlite3", "sqlite3 lives in stores"),
        ("prompt/window", "def compare():\n    import numpy", "what reads documents and compares vectors"),
        ("agent", "import onrecord.host.host", "layers"),
        ("host/host", "import onrecord.stores.sqlite", "layers"),
        ("testing/scripted", "import onrecord.stores.sqlite", "testing sees L0 to L4"),
        ("agent", "import onrecord.testing.scripted", "nothing in the library needs the test doubles"),
        ("providers/openai_chat/client", "def send():\n    import aiohttp", "aiohttp lives in net/transport.py"),
        ("governance/rules", "def trace():\n    import opentelemetry", "opentelemetry lives in telemetry/otel.py"),
        ("session/store", "def open():\n    import sqlite3", "sqlite3 lives in stores"),
        ("honesty/commentary", "import onrecord.testing.scripted", "nothing in the library needs the test doubles"),
        ("prompt/window", "def keep():\n    import sqlite3", "sqlite3 lives in stores"),
    ],
)
def test_one_import_in_the_wrong_direction_breaks_its_contract(
    skeleton: Path, module: str, line: str, contract: str
) -> None:
    """Each contract is seen failing for the import it is there to stop, and only that contract."""
    (skeleton / "src" / "onrecord" / f"{module}.py").write_text(line + "\n")
    done = lint(skeleton)
    broken = [told for told in done.stdout.splitlines() if told.endswith("BROKEN")]
    assert done.returncode == 1, done.stdout + done.stderr
    assert any(told.startswith(contract) for told in broken), done.stdout
    assert "1 broken" in done.stdout or contract.startswith(("session", "testing sees", "adapters"))


def test_a_package_that_no_layer_names_is_refused(skeleton: Path) -> None:
    """A new package must be given its place before it can land."""
    package = skeleton / "src" / "onrecord" / "novelties"
    package.mkdir()
    (package / "__init__.py").write_text("")
    done = lint(skeleton)
    assert done.returncode == 1
    assert "novelties" in done.stdout


@pytest.mark.parametrize(
    ("contract", "besides"),
    [
        ("testing-is-last", {"testing"}),
        ("retrieval", {"memory", "testing"}),
        ("sqlite", {"cli", "stores", "testing"}),
    ],
)
def test_a_contract_about_all_packages_names_each(contract: str, besides: set[str]) -> None:
    """A package that is new and not on the list would be free to import anything, and nobody would see it."""
    held = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (named,) = [set(each["source_modules"]) for each in held if each["id"] == contract]
    packages = {path.name for path in (ROOT / "src" / "onrecord").iterdir() if (path / "__init__.py").exists()}
    assert {f"onrecord.{name}" for name in packages - besides} <= named
