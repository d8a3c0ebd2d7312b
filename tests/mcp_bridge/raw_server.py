"""A server of tools over stdio without any library: it does just what a test asks for, and starts at once.

``python raw_server.py STATE`` reads its tools from ``STATE/tools.json`` at every listing, appends a line to
``STATE/seen`` for whatever it is sent, and writes its process id to ``STATE/pid``. How it behaves stands in
``STATE/how``, words between spaces.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

STATE = Path(sys.argv[-1])
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def how() -> list[str]:
    """How it is to behave."""
    path = STATE / "how"
    return path.read_text().split() if path.exists() else []


def say(message: dict[str, Any]) -> None:
    """Sends a message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def seen(line: str) -> None:
    """Keeps a line for the test."""
    with (STATE / "seen").open("a") as file:
        file.write(line + "\n")


def text(words: str, **more: Any) -> dict[str, Any]:
    """A result of one text."""
    return {"content": [{"type": "text", "text": words}], **more}


RESULTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "echo": lambda asked: text(asked["args"].get("text", "")),
    "key": lambda asked: text(str(asked["meta"].get("onrecord/key"))),
    "env": lambda _: text(os.environ.get("API_TOKEN", "none")),
    "fail": lambda _: text("no such city", isError=True),
    "picture": lambda _: {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]},
    "big": lambda asked: text("x" * int(asked["args"]["size"])),
    "later": lambda _: text("now"),
    "odd": lambda _: {"content": "not a list", "isError": 7},
}


def called(name: str, args: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a call; None where there will never be one."""
    if name == "garbage":
        sys.stdout.write('{"this is": no json\n')
        sys.stdout.flush()
    elif name == "die":
        os._exit(3)
    elif name == "changed":
        say({"method": "notifications/tools/list_changed"})
        return text("changed")
    elif name != "hang":
        return RESULTS[name]({"args": args, "meta": meta}) if name in RESULTS else text(f"no {name}", isError=True)
    return None


FORM = {"message": "password?", "requestedSchema": {"type": "object", "properties": {}}}
MODERN = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}


def call_answered(params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a call, or what a server of today says in its place."""
    name = params["name"]
    if "asks" in how():
        say({"id": "e1", "method": "elicitation/create", "params": FORM})
        told = json.loads(sys.stdin.readline())
        return text(json.dumps(told.get("error") or told.get("result")))
    if name == "later" and "requestState" not in params:
        return {"resultType": "input_required", "requestState": "1"}
    if name == "asks":
        asked = {"method": "elicitation/create", "params": {"mode": "form", **FORM}}
        return {"resultType": "input_required", "inputRequests": {"e": asked}}
    return called(name, params.get("arguments") or {}, params.get("_meta") or {})


def until_killed() -> None:
    """Reads nothing more and says nothing more: only a client that ends this process gets rid of it."""
    threading.Event().wait()


def answer(message: dict[str, Any]) -> None:
    """Answers one message."""
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    seen(f"{method} {params.get('name') or params.get('requestId') or ''}".strip())
    behaviour = how()
    tools = {} if "no-tools" in behaviour else {"tools": {"listChanged": True}}
    if method == "initialize":
        if "slow" in behaviour:
            until_killed()
        info = {"name": "raw", "version": "1.2.3"}
        result: dict[str, Any] | None = {"protocolVersion": "2025-06-18", "capabilities": tools, "serverInfo": info}
    elif method == "server/discover" and "modern" in behaviour:
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    elif method == "tools/list":
        if "dies-listing" in behaviour:
            os._exit(4)
        listed = json.loads((STATE / "tools.json").read_text())
        at = int(params.get("cursor") or 0)
        result = (
            {"tools": listed[at : at + 2], "nextCursor": str(at + 2)} if "pages" in behaviour else {"tools": listed}
        )
    elif method == "tools/call":
        result = call_answered(params)
    else:
        if id is not None:
            say({"id": id, "error": {"code": -32601, "message": "no such method"}})
        return
    if result is not None:
        say({"id": id, "result": {**(MODERN if "modern" in behaviour else {}), **result}})


def main() -> None:
    """Serves until its input ends."""
    (STATE / "pid").write_text(str(os.getpid()))
    if "banner" in how():
        sys.stdout.write('Welcome!\n\n{"level": "info", "text": "listening"}\n')
    if "dies" in how():
        sys.exit(5)
    for line in sys.stdin:
        deaf = "deaf" in how()
        answer(json.loads(line))
        if deaf:
            until_killed()


if __name__ == "__main__":
    main()
