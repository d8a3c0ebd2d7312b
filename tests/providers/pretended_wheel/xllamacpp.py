"""Stands in for the llama.cpp wheel: serves what the "model file" scripts, over the same HTTP interface.

The file is a GGUF head followed by `SCRIPT` and JSON: ``replies`` (one list of text pieces per request, the last one
repeated; a piece that is an object is sent as the delta it is), ``pause_s`` between pieces, and what to do wrong.
What was asked is appended to ``<file>.asked``, one JSON line for each request.
"""

import json
import os
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SCRIPT = b"\n--script--\n"


class CommonParams(SimpleNamespace):
    """Takes every setting."""

    def __init__(self) -> None:
        super().__init__(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())


def get_device_info() -> list[dict[str, str]]:
    """One processor."""
    return [{"name": "CPU", "type": "GGML_BACKEND_DEVICE_TYPE_CPU"}]


class Server:
    """Loads, listens, and answers until it is garbage."""

    def __init__(self, params: Any) -> None:
        path = Path(params.model.path)
        script = json.loads(path.read_bytes().partition(SCRIPT)[2])
        path.with_suffix(".params").write_text(json.dumps({n: repr(v) for n, v in vars(params).items()}))
        if words := script.get("says"):
            os.write(2, words.encode())
        if "load_s" in script:
            time.sleep(script["load_s"])
        if "load_exit" in script:
            os._exit(script["load_exit"])
        if script.get("load_error"):
            raise RuntimeError(script["load_error"])
        os.write(1, b"noise of a library on standard output\n")
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(script, path, params.api_keys[0]))
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __del__(self) -> None:
        if not sys.is_finalizing() and hasattr(self, "_http"):
            self._http.shutdown()
            self._http.server_close()


def _handler(script: dict[str, Any], path: Path, key: str) -> type[BaseHTTPRequestHandler]:
    asked = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            """Nobody reads it."""

        def do_POST(self) -> None:
            nonlocal asked
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.headers.get("authorization") != f"Bearer {key}":
                self._whole(401, {"error": {"message": "Invalid API Key", "type": "authentication_error"}})
                return
            if error := script.get("error"):
                self._whole(error["code"], {"error": error})
                return
            with path.with_suffix(".asked").open("a") as file:
                file.write(json.dumps(body) + "\n")
            replies = script["replies"]
            pieces = replies[min(asked, len(replies) - 1)]
            asked += 1
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for piece in pieces:
                if piece == "<die>":
                    os._exit(9)
                if piece == "<cut>":
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                time.sleep(script.get("pause_s", 0))
                self._event({"delta": {"content": piece} if isinstance(piece, str) else piece, "finish_reason": None})
            self._event({"delta": {}, "finish_reason": script.get("finish", "stop")})
            self._send(b"data: [DONE]\n\n")
            self._send(b"")

        def _event(self, choice: dict[str, Any]) -> None:
            held = {"choices": [{"index": 0, **choice}], "model": "pretended", "object": "chat.completion.chunk"}
            self._send(b"data: " + json.dumps(held).encode() + b"\n\n")

        def _send(self, data: bytes) -> None:
            try:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            except OSError:  # the caller left
                path.with_suffix(".left").touch()
                raise

        def _whole(self, status: int, held: dict[str, Any]) -> None:
            body = json.dumps(held).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
