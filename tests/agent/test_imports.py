"""What a process loads for an agent: the core, and nothing that it does not use (architecture §6, §14)."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration


def test_an_agent_imports_no_feature_no_transport_and_no_sdk() -> None:
    """Building one and taking a turn in a fresh interpreter loads the core alone."""
    program = (
        "import asyncio, sys\n"
        "from onrecord import Agent\n"
        "from onrecord.testing import ScriptedModel\n"
        "asyncio.run(Agent(ScriptedModel('hi')).turn('hello'))\n"
        "print(' '.join(sorted(m for m in sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=15)
    loaded = set(done.stdout.split())
    packages = {m.split(".")[1] for m in loaded if m.startswith("onrecord.") and m.count(".") >= 2}
    assert packages <= {"conversation", "record", "models", "tools", "session", "turn", "testing"}
    foreign = {"aiohttp", "pydantic", "yarl", "multidict", "jsonschema_rs", "sqlite3", "httpx", "openai"}
    assert loaded & foreign == set()


def test_a_rule_loads_the_rules_and_no_other_feature_of_governance() -> None:
    """What else the package has is loaded when it is named, and a name that it has not is told."""
    program = (
        "import sys\n"
        "from onrecord import before_tool\n"
        "print(' '.join(m for m in sys.modules if m.startswith('onrecord.governance.')))\n"
        "import onrecord.governance as governance\n"
        "assert set(governance.__all__) <= set(dir(governance))\n"
        "assert all(getattr(governance, name) is not None for name in governance.__all__)\n"
        "try:\n"
        "    governance.Nothing\n"
        "except AttributeError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=15)
    loaded, told = done.stdout.splitlines()
    assert loaded.split() == ["onrecord.governance.rules"]
    assert told == "module 'onrecord.governance' has no attribute 'Nothing'"
