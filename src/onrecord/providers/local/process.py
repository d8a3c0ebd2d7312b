"""The process that serves one GGUF file: started on first use, shared, restarted when it died, stopped at exit.

One per (file, settings) in this Python process, for all event loops. Starting happens in a daemon thread, so it delays
neither a loop nor the end of the program. `serving` is what runs inside and how it never outlives us.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import json
import os
import secrets
import subprocess
import sys
import tempfile
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread
from typing import IO, Any

from msgspec import Struct
from msgspec.structs import asdict

from onrecord.errors import ModelError

__all__ = ("Endpoint", "ModelProcess", "Settings", "model_process", "stop_all")

PROVIDER = "local"
_SCRIPT = Path(__file__).with_name("serving.py")
_TOLD_BYTES = 4096
_LOOKS, _LOOK_S = 15, 0.02


class Settings(Struct, frozen=True, kw_only=True):
    """How a file is served. None leaves a setting to llama.cpp; ``context_tokens`` is per conversation at a time."""

    path: str
    name: str
    context_tokens: int
    parallel: int = 1
    cores: int | None = None
    gpu_layers: int | None = None
    chat_template: str = ""


class Endpoint(Struct, frozen=True):
    """Where the process answers, and the key that only it and we know."""

    base_url: str
    key: str

    def __repr__(self) -> str:
        return f"Endpoint({self.base_url!r})"


class ModelProcess:
    """One file being served. Every method may be called from any thread and any loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._started: Future[Endpoint] | None = None

    async def endpoint(self) -> Endpoint:
        """The address, once the model is loaded. Cancelling the wait leaves it loading. Raises ModelError."""
        return await asyncio.wrap_future(self._starting())

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    async def ended(self) -> bool:
        """Whether it does not run. A connection breaks a moment before the process that broke it is gone."""
        for _ in range(_LOOKS):
            if self.pid is None:
                return True
            await asyncio.sleep(_LOOK_S)
        return False

    def stop(self) -> None:
        """Ends the process now and gives its memory back; the next use starts another."""
        with self._lock:
            process, self._process, self._started = self._process, None, None
        if process is not None:
            _end(process)

    def _starting(self) -> Future[Endpoint]:
        with self._lock:
            started = self._started
            if started is None or (started.done() and self.pid is None):
                dead, self._process = self._process, None
                if dead is not None:
                    _end(dead)
                started = self._started = Future()
                # A running future cannot be cancelled, so a caller who leaves does not take the others along.
                started.set_running_or_notify_cancel()
                Thread(target=self._start, args=(started,), name="onrecord-local", daemon=True).start()
            return started

    def _start(self, started: Future[Endpoint]) -> None:
        try:
            with tempfile.TemporaryFile() as told:
                endpoint = self._launch(started, told)
        except ModelError as problem:
            started.set_exception(problem)
        except Exception as problem:  # noqa: BLE001 - waiting callers get whatever it was
            error = self._error(f"could not be started: {problem}")
            error.__cause__ = problem
            started.set_exception(error)
        else:
            started.set_result(endpoint)

    def _launch(self, started: Future[Endpoint], told: IO[bytes]) -> Endpoint:
        key = secrets.token_urlsafe(24)
        process = subprocess.Popen(  # noqa: S603 - our own file, run by this very Python
            [sys.executable, "-P", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=told,
            **_apart(),
        )
        with self._lock:
            wanted = self._started is started
            if wanted:
                self._process = process
        if not wanted:
            _end(process)
            raise self._error("was stopped while it was loading")
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101 - both are pipes
        try:
            process.stdin.write(_order(self.settings, key))
            process.stdin.flush()
            line = process.stdout.readline()
        except (OSError, ValueError):  # it died, or was stopped, in between
            line = b""
        answer: dict[str, str] = json.loads(line) if line else {}
        if "address" in answer:
            return Endpoint(answer["address"] + "/v1", key)
        _end(process)
        if self._started is not started:
            raise self._error("was stopped while it was loading")
        raise self._failure(answer.get("error", ""), _last_words(told), process.returncode)

    def forget(self) -> None:
        """In a forked child: leaves the process to the parent, and does not hold the leash that ends it."""
        held, self._process, self._started = self._process, None, None
        self._lock = Lock()  # another thread may have held the old one while forking
        if held is not None:
            held.returncode = 0  # not our child: never waited for
            _close(held)

    def _failure(self, problem: str, words: str, code: int) -> ModelError:
        if "No module named" in problem:
            return self._error(f"needs a package that is not there: {problem}", hint='pip install "onrecord[local]"')
        if problem or words:
            about = f"could not be loaded: {words or problem}"
            return self._error(about, hint="try another GGUF file, or fewer context_tokens if memory is short")
        hint = "memory may be short: try a smaller file, or fewer context_tokens"
        return self._error(f"could not be loaded: its process ended with status {code}", hint=hint)

    def _error(self, what: str, *, hint: str = "") -> ModelError:
        return ModelError(f"{PROVIDER}: {self.settings.name} {what}", kind="model", provider=PROVIDER, hint=hint)


@functools.cache
def _at_exit() -> None:
    atexit.register(stop_all)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)


_processes: dict[Settings, ModelProcess] = {}
_registry = Lock()


def model_process(settings: Settings) -> ModelProcess:
    """The process for these settings, shared by all models that have them; not started yet if it is new."""
    with _registry:
        _at_exit()
        found = _processes.get(settings)
        if found is None:
            found = _processes[settings] = ModelProcess(settings)
        return found


def stop_all() -> None:
    """Stops every process of this module; runs at exit."""
    for process in tuple(_processes.values()):
        process.stop()


def _forget() -> None:
    global _registry  # noqa: PLW0603 - another thread may have held it while forking
    _registry = Lock()
    for process in _processes.values():
        process.forget()


def _order(settings: Settings, key: str) -> bytes:
    """The first line on the leash. The key travels here, since arguments and environments can be read by others."""
    wheel = find_spec("xllamacpp")
    places = [*(wheel.submodule_search_locations or ()), wheel.origin] if wheel is not None else []
    packages = [str(Path(place).parent) for place in places[:1] if place]
    return json.dumps({**asdict(settings), "key": key, "packages": packages}).encode() + b"\n"


def _apart() -> dict[str, Any]:
    """So that Ctrl-C in a terminal interrupts the program and not its model."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    return {"start_new_session": True}


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # settings that were never read are still in its buffer
                pipe.close()


def _last_words(told: IO[bytes]) -> str:
    """The line in which llama.cpp says what is wrong."""
    size = told.seek(0, os.SEEK_END)
    told.seek(max(0, size - _TOLD_BYTES))
    lines = [line.strip() for line in told.read().decode(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower() or "failed" in line.lower()]
    return (telling or lines or [""])[0][:300]
