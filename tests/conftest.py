"""What holds for every test: one category per module, no world in unit tests, snapshots, coverage floors."""

import asyncio
import json
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import settings

from gates.coverage_floors import problems as coverage_problems

CATEGORIES = frozenset({"unit", "integration", "live", "bench", "docs"})
WHOLE_RUN = "not bench and not live"  # what `make test` measures

# `pytest` draws anew at each run, so that many runs see many examples; `make thorough` sees them in one. `make test`
# draws the same ones for the same tests: what it says of a commit is no matter of luck.
# There is no deadline for one example: on a busy machine an import in the first one is slower than any that would help.
settings.register_profile("everyday", max_examples=60, deadline=None)
settings.register_profile("repeatable", max_examples=60, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile("everyday")


def pytest_configure() -> None:
    """A run in the background inherits an ignored Ctrl-C, and would hand that on to the programs it presses it in."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# ---- one category per module --------------------------------------------------------------------------------------
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse modules without exactly one category, and categories given to single tests."""
    if wrong := sorted({told for item in items for told in _category_problems(item)}):
        raise pytest.UsageError("\n".join(wrong))
    if config.getoption("--write-snapshots"):
        chosen = [item for item in items if "snapshot" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


def _category_problems(item: pytest.Item) -> Iterator[str]:
    module = item.getparent(pytest.Module)
    if module is None:
        return
    own = sorted({mark.name for mark in module.own_markers} & CATEGORIES)
    if len(own) != 1:
        yield f"{module.nodeid}: has {own or 'no category'}; give the module one: pytestmark = pytest.mark.unit"
    elsewhere = {mark.name for node in item.listchain() if node is not module for mark in node.own_markers}
    if extra := sorted(elsewhere & CATEGORIES):
        yield f"{item.nodeid}: {extra} belongs on the module, not on a test"


# ---- unit tests touch nothing -------------------------------------------------------------------------------------
def _refuse(what: str) -> Callable[..., NoReturn]:
    def refused(*args: object, **kwargs: object) -> NoReturn:
        pytest.fail(f"a unit test {what}; use a fake, or mark the module as integration", pytrace=True)

    return refused


@pytest.fixture(autouse=True)
def _no_world_in_unit_tests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("unit") is None:
        return
    for name in ("connect", "connect_ex", "bind", "sendto"):
        monkeypatch.setattr(socket.socket, name, _refuse("used the network"))
    monkeypatch.setattr(socket, "getaddrinfo", _refuse("looked up a host"))
    monkeypatch.setattr(time, "sleep", _refuse("slept"))
    real_sleep = asyncio.sleep

    async def only_yield(delay: float, result: object = None) -> object:
        if delay > 0:
            _refuse("slept")()
        return await real_sleep(0, result)

    monkeypatch.setattr(asyncio, "sleep", only_yield)


# ---- snapshots ----------------------------------------------------------------------------------------------------
def pytest_addoption(parser: pytest.Parser) -> None:
    """`--write-snapshots` runs the tests that use `snapshot` and stores what they see now."""
    parser.addoption("--write-snapshots", action="store_true", help="store what snapshot tests see now")


class Snapshot:
    """Compares text or bytes with a file beside the tests: ``snapshot("two rounds.json", body)``."""

    def __init__(self, folder: Path, *, write: bool) -> None:
        self.folder, self.write = folder, write

    def __call__(self, name: str, now: str | bytes) -> None:
        """Fail with a difference when the stored file does not hold exactly this."""
        path = self.folder / name
        data = now.encode() if isinstance(now, str) else now
        if self.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        elif not path.exists():
            pytest.fail(f"no snapshot {path.name!r}: run `make snapshots`, read the file, commit it", pytrace=False)
        else:
            assert data.decode() == path.read_text(encoding="utf-8"), "if this is meant: make snapshots"


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Snapshot:
    """The snapshots of this test module, in ``tests/snapshots/<module>/``."""
    module = Path(str(request.path)).stem.removeprefix("test_")
    folder = Path(__file__).parent / "snapshots" / module
    return Snapshot(folder, write=bool(request.config.getoption("--write-snapshots")))


# ---- coverage floors, told before pytest's closing line --------------------------------------------------------------
_floors = pytest.StashKey[list[str]]()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Under `coverage run` over the whole suite, compare the layers with their floors."""
    config = session.config
    # In two halves, as `make test` runs it, the floors are compared once both are there.
    some = config.getoption("keyword") or config.getoption("ignore")
    named = config.args_source is pytest.Config.ArgsSource.ARGS or some
    whole = not named and config.getoption("markexpr") in {"", WHOLE_RUN}
    measuring = _running_coverage()
    if measuring is None or not whole or exitstatus != 0:
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "coverage.json"
        measuring.stop()
        measuring.json_report(outfile=str(file))
        measuring.start()
        told = list(coverage_problems(json.loads(file.read_text(encoding="utf-8"))))
    session.config.stash[_floors] = told
    if told:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _running_coverage() -> Any:
    import coverage

    return coverage.Coverage.current()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which layers lie below their floor."""
    for line in config.stash.get(_floors, []):
        terminalreporter.write_line(line, red=True)
