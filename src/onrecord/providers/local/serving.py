"""Runs as a process of its own: loads one GGUF file and serves it on 127.0.0.1 until its standard input ends.

A process, because loading holds Python's global lock for seconds, llama.cpp aborts where other code raises, and a
killed process gives back all of its memory. Standard input is the leash: it ends when the parent closes it or dies in
whatever way. The first line there holds the settings, the first line out holds the address or the problem, as JSON.
This file is run by its path and imports nothing of the library.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

# Tokens of a prompt evaluated at a stretch. llama.cpp notices a caller who left between stretches only; on a processor
# 64 tokens cost nothing in speed and take a second or two, on a graphics card short stretches would be slow.
BATCH, BATCH_ON_GPU = 64, 512
# What llama.cpp may keep in memory of conversations that lost their place to others (its own default is 8 GB).
CACHE_MIB = 1024
# The model takes all cores while it writes; the program that reads it should get one when it needs it.
NICENESS = 5


def start(leash: BinaryIO, said: BinaryIO) -> Any:
    """Loads what the first line of the leash names and tells the address; None when told why it could not."""
    settings = json.loads(leash.readline())
    _die_with_parent(leash.fileno())
    sys.path.extend(settings.get("packages", ()))
    try:
        server = load(settings)
    except Exception as problem:  # noqa: BLE001 - whatever the wheel raises, the parent tells it
        _say(said, {"error": f"{type(problem).__name__}: {problem}"})
        return None
    _say(said, {"address": server.listening_address})
    return server


def hold(leash: BinaryIO) -> None:
    """Waits until the leash ends."""
    while leash.read(1):
        pass


def load(settings: Mapping[str, Any]) -> Any:
    """The running llama.cpp server for these settings. Raises what the wheel raises."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["name"]}
    params.n_parallel = settings["parallel"]
    params.n_ctx = settings["context_tokens"] * settings["parallel"]
    params.api_keys = [settings["key"]]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.verbosity = 1  # errors only
    params.use_jinja = True
    params.ui = False
    params.endpoint_slots = False
    params.offline = True
    params.cache_ram_mib = CACHE_MIB
    params.n_batch = params.n_ubatch = BATCH_ON_GPU if _has_gpu(xllamacpp) else BATCH
    if settings.get("cores"):
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["cores"]
    if settings.get("gpu_layers") is not None:
        params.n_gpu_layers = settings["gpu_layers"]
    if settings.get("chat_template"):
        params.chat_template = settings["chat_template"]
    return xllamacpp.Server(params)


def _has_gpu(xllamacpp: Any) -> bool:
    return any("gpu" in str(device.get("type", "")).lower() for device in xllamacpp.get_device_info())


def _say(said: BinaryIO, told: Mapping[str, str]) -> None:
    said.write(json.dumps(told).encode() + b"\n")
    said.flush()


def _die_with_parent(leash: int) -> None:
    """Ends this process when the leash does, also while loading, when no Python code of it can run."""
    try:
        import fcntl
        import select
        import signal

        # The kernel signals the end of the pipe, and nobody handles SIGIO.
        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(leash, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(leash, fcntl.F_SETFL, fcntl.fcntl(leash, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([leash], [], [], 0)[0]:  # nothing follows the settings but the end: it came before this
            os._exit(0)
    except (ImportError, AttributeError, OSError, ValueError):
        pass  # there the process ends when it has loaded and reads the leash


def run() -> None:  # pragma: no cover - in the process only; tests of `process` see what it does
    """The whole life of the process."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    # llama.cpp and its libraries may print: what the parent reads is kept apart from that.
    said = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = start(sys.stdin.buffer, said)  # held by name: it ends when nobody holds it
    if server is not None:
        # What is printed from here on could hold words of a conversation; the parent kept the rest in a file.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        hold(sys.stdin.buffer)
    said.close()
    os._exit(0)  # the server's own way out waits for requests that still run


if __name__ == "__main__":  # pragma: no cover - as `run`
    run()
