"""The process that serves a file: one, shared, restarted, stopped, and never left behind."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onrecord.errors import ModelError
from onrecord.providers.local import process as module
from onrecord.providers.local import serving
from onrecord.providers.local.process import ModelProcess, Settings, model_process
from tests.providers.gguf_files import WHEEL, scripted

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
SLOW = 30  # longer than any test here: what waits for it would be noticed


@pytest.fixture(autouse=True)
def _wheel(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(WHEEL))
    yield
    module.stop_all()
    module._processes.clear()


def settings(file: Path, parallel: int = 1) -> Settings:
    """Settings for a file."""
    return Settings(path=str(file), name=file.name, context_tokens=512, parallel=parallel)


def gone(pid: int, within_s: float = 5.0) -> bool:
    """Whether a process ends in time. A dead one that nobody waited for counts as ended."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return True
            state = ""
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


async def test_it_starts_once_for_many_callers_loops_and_models(tmp_path: Path) -> None:
    """One process for equal settings; its key is not shown."""
    held = settings(scripted(tmp_path / "m.gguf", ["hi"]))
    process = model_process(held)
    assert process.pid is None
    first, second = await asyncio.gather(process.endpoint(), model_process(held).endpoint())
    pid = process.pid
    elsewhere = await asyncio.to_thread(asyncio.run, process.endpoint())
    assert first == second == elsewhere
    assert process.pid == pid
    assert first.base_url.startswith("http://127.0.0.1:")
    assert first.key not in repr(first)
    assert model_process(settings(tmp_path / "m.gguf", parallel=2)) is not process


@pytest.mark.skipif(not hasattr(os, "getsid"), reason="no sessions here")
async def test_a_key_pressed_in_the_terminal_does_not_reach_it(tmp_path: Path) -> None:
    """Ctrl-C interrupts the program, whose model is outside its terminal's session."""
    process = model_process(settings(scripted(tmp_path / "m.gguf", ["hi"])))
    await process.endpoint()
    assert process.pid is not None
    assert os.getsid(process.pid) == process.pid


async def test_the_settings_reach_the_wheel(tmp_path: Path) -> None:
    """Every one of them, and only the loopback address."""
    file = scripted(tmp_path / "m.gguf", ["hi"])
    held = Settings(
        path=str(file), name="m", context_tokens=512, parallel=2, cores=1, gpu_layers=7, chat_template="{{ x }}"
    )
    await model_process(held).endpoint()
    seen = json.loads(file.with_suffix(".params").read_text())
    assert (seen["n_ctx"], seen["n_parallel"], seen["n_gpu_layers"]) == ("1024", "2", "7")
    assert (seen["hostnames"], seen["n_batch"], seen["chat_template"]) == ("['127.0.0.1']", "64", "'{{ x }}'")
    assert seen["cpuparams"] == "namespace(n_threads=1)"


async def test_loading_never_holds_the_loop(tmp_path: Path) -> None:
    """The loop goes on turning while a model loads."""
    process = model_process(settings(scripted(tmp_path / "m.gguf", ["hi"], load_s=0.5)))
    waiting = asyncio.ensure_future(process.endpoint())
    turns = 0
    while not waiting.done():
        await asyncio.sleep(0.005)
        turns += 1
    assert turns > 20


async def test_a_caller_who_leaves_does_not_take_the_others_along(tmp_path: Path) -> None:
    """The start goes on for whoever stays."""
    process = model_process(settings(scripted(tmp_path / "m.gguf", ["hi"], load_s=0.3)))
    leaving, staying = (asyncio.ensure_future(process.endpoint()) for _ in range(2))
    await asyncio.sleep(0.05)
    leaving.cancel()
    assert (await staying).key
    assert leaving.cancelled()


async def test_a_dead_one_is_started_again(tmp_path: Path) -> None:
    """On the next use."""
    process = model_process(settings(scripted(tmp_path / "m.gguf", ["hi"])))
    first = await process.endpoint()
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    assert await process.ended()
    second = await process.endpoint()
    assert second != first


async def test_stop_ends_it_and_the_next_use_starts_another(tmp_path: Path) -> None:
    """Stopping twice is stopping once."""
    process = model_process(settings(scripted(tmp_path / "m.gguf", ["hi"])))
    await process.endpoint()
    pid = process.pid
    assert pid
    process.stop()
    process.stop()
    assert gone(pid)
    await process.endpoint()
    assert process.pid not in {None, pid}


async def test_stop_while_it_loads_tells_those_who_wait(tmp_path: Path) -> None:
    """They do not wait for ever."""
    process = model_process(settings(scripted(tmp_path / "m.gguf", ["hi"], load_s=SLOW)))
    waiting = asyncio.ensure_future(process.endpoint())
    while process.pid is None:  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.01)
    await asyncio.to_thread(process.stop)
    with pytest.raises(ModelError, match="stopped while it was loading"):
        await waiting


async def test_stop_before_there_is_anything_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that starts although it was stopped is ended at once."""
    process = model_process(settings(scripted(tmp_path / "m.gguf", ["hi"])))
    real: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen
    made: list[subprocess.Popen[bytes]] = []

    def popen(*args: object, **options: object) -> subprocess.Popen[bytes]:
        process.stop()
        made.append(real(*args, **options))
        return made[0]

    monkeypatch.setattr(subprocess, "Popen", popen)
    with pytest.raises(ModelError, match="stopped while it was loading"):
        await process.endpoint()
    assert made[0].returncode is not None


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ({"load_error": "bad file"}, "m.gguf could not be loaded: RuntimeError: bad file"),
        ({"says": "loading\nerror: unknown model architecture\nexiting\n", "load_error": "bad"}, "unknown model arch"),
        ({"says": "out of luck", "load_exit": 3}, "out of luck"),
        ({"says": "x" * 2000, "load_exit": 3}, "could not be loaded: x{300}(?!x)"),
        ({"load_exit": 3}, "its process ended with status 3"),
        ({"load_error": "No module named 'numpy'"}, "needs a package that is not there"),
    ],
)
async def test_what_cannot_be_loaded_says_why(tmp_path: Path, script: dict[str, str], told: str) -> None:
    """In llama.cpp's words where it has any."""
    process = model_process(settings(scripted(tmp_path / "m.gguf", ["hi"], **script)))
    with pytest.raises(ModelError, match=told) as caught:
        await process.endpoint()
    assert (caught.value.kind, caught.value.provider) == ("model", "local")
    assert caught.value.hint
    assert process.pid is None


async def test_what_cannot_even_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cause is kept."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no python"))
    process = model_process(settings(scripted(tmp_path / "m.gguf", ["hi"])))
    with pytest.raises(ModelError, match="could not be started") as caught:
        await process.endpoint()
    assert isinstance(caught.value.__cause__, FileNotFoundError)


PARENT = """
import asyncio, os, sys
sys.path[:0] = {paths!r}
from onrecord.providers.local.process import Settings, model_process
process = model_process(Settings(path={path!r}, name="m", context_tokens=512))
async def main():
    waiting = asyncio.ensure_future(process.endpoint())
    while process.pid is None:
        await asyncio.sleep(0.01)
    if {loaded!r}:
        await waiting
    print(process.pid, flush=True)
    {ending}
asyncio.run(main())
"""


def ended_with(file: Path, ending: str, *, loaded: bool) -> int:
    """Runs a program that starts a process and ends in some way; the id of that process."""
    code = PARENT.format(paths=[str(ROOT / "src"), str(WHEEL)], path=str(file), loaded=loaded, ending=ending)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=15, check=False)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return int(done.stdout)


@pytest.mark.parametrize("ending", ["return", "sys.exit(3)", "os.kill(os.getpid(), 9)", "os._exit(1)"])
def test_it_never_outlives_the_program(tmp_path: Path, ending: str) -> None:
    """However the program ends, SIGKILL included."""
    file = scripted(tmp_path / "m.gguf", ["hi"])
    assert gone(ended_with(file, ending, loaded=True))


@pytest.mark.skipif(sys.platform == "win32", reason="there a process that loads ends when it has loaded")
@pytest.mark.parametrize("ending", ["return", "os.kill(os.getpid(), 9)"])
def test_nor_while_it_loads(tmp_path: Path, ending: str) -> None:
    """Although no Python code of it can run then."""
    file = scripted(tmp_path / "m.gguf", ["hi"], load_s=SLOW)
    started = time.monotonic()
    assert gone(ended_with(file, ending, loaded=False))
    assert time.monotonic() - started < SLOW / 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_leaves_the_process_to_its_parent(tmp_path: Path) -> None:
    """The child neither uses nor ends it."""
    code = PARENT.format(
        paths=[str(ROOT / "src"), str(WHEEL)],
        path=str(scripted(tmp_path / "m.gguf", ["hi"])),
        loaded=True,
        ending="if os.fork() == 0: os._exit(0 if process.pid is None else 1)\n    "
        "assert os.wait()[1] == 0 and process.pid is not None",
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=15, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert gone(int(done.stdout))


def test_forget_lets_go_of_the_leash_and_kills_nothing() -> None:
    """What a forked child does."""
    process = ModelProcess(Settings(path="m", name="m", context_tokens=1))
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=pipe, stdout=pipe) as held:
        process._process = held
        module._processes[process.settings] = process
        module._forget()
        assert process.pid is None
        assert held.stdin is not None
        assert held.stdin.closed
        assert held.returncode == 0  # so that nobody in the child waits for what is not its own
        held.returncode = None  # the child is this test's own after all


# ---- inside the process -------------------------------------------------------------------------------------------
def order(file: Path) -> bytes:
    """The first line on a leash."""
    return (
        json.dumps({"path": str(file), "name": "m", "parallel": 1, "context_tokens": 64, "key": "k"}).encode() + b"\n"
    )


def test_the_process_tells_its_address_and_waits_for_the_end(tmp_path: Path) -> None:
    """What follows the settings does not matter, only that it ends."""
    read, write = os.pipe()
    os.write(write, order(scripted(tmp_path / "m.gguf", ["hi"])))
    said = io.BytesIO()
    with os.fdopen(read, "rb") as leash, pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "_die_with_parent", lambda _: None)  # it would be this process that dies
        server = serving.start(leash, said)
        assert json.loads(said.getvalue()) == {"address": server.listening_address}
        waiting = threading.Thread(target=serving.hold, args=(leash,))
        waiting.start()
        os.write(write, b"more")
        waiting.join(0.05)
        assert waiting.is_alive()
        os.close(write)
        waiting.join(5)
        assert not waiting.is_alive()


def test_the_process_tells_what_is_wrong(tmp_path: Path) -> None:
    """On the same line where the address would be."""
    said = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "_die_with_parent", lambda _: None)
        file = scripted(tmp_path / "m.gguf", load_error="no")
        with (tmp_path / "leash").open("wb") as leash:
            leash.write(order(file))
        with (tmp_path / "leash").open("rb") as leash:
            assert serving.start(leash, said) is None
    assert json.loads(said.getvalue()) == {"error": "RuntimeError: no"}


@pytest.mark.parametrize(("kind", "batch"), [("DEVICE_TYPE_IGPU", 512), ("DEVICE_TYPE_CPU", 64)])
def test_a_graphics_card_gets_longer_stretches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, batch: int
) -> None:
    """Short ones would be slow there."""
    import xllamacpp

    monkeypatch.setattr(xllamacpp, "get_device_info", lambda: [{"type": kind}])
    serving.load(json.loads(order(scripted(tmp_path / "m.gguf", ["hi"]))))
    assert json.loads((tmp_path / "m.params").read_text())["n_batch"] == str(batch)


def test_without_signals_the_leash_is_only_read() -> None:
    """A platform without them is no error."""
    serving._die_with_parent(-1)  # no such descriptor: nothing to be told by, and no error
