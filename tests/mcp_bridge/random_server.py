"""A server over stdio whose answers are random, some of them well-formed: ``python random_server.py SEED``."""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any

KEYS = (
    "tools", "content", "name", "inputSchema", "type", "properties", "nextCursor", "structuredContent", "isError",
    "result", "$ref", "text", "annotations", "_meta",
)  # fmt: skip
WORDS = ("", "echo", "object", "text", "\u202e", "image", "AAAA", "\ud800x")
JUNK = ("{\n", "junk\n", "[]\n", "\x00\n", '{"jsonrpc":"2.0"}\n', '{"a":1}\n')
UNASKED = ("notifications/tools/list_changed", "notifications/message", "notifications/progress", "x")
REQUESTS = ("ping", "sampling/createMessage", "roots/list", "elicitation/create", "x")


class Server:
    """Answers a line at a time."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - nothing here is a secret

    def value(self, depth: int = 0) -> Any:
        """Any JSON."""
        pick = self._random
        if depth > 3 or pick.random() < 0.5:
            return pick.choice([None, True, 0, 2**70, 1.5, 1e308, {}, [], {"type": "text", "text": "x"}, *WORDS])
        if pick.random() < 0.6:
            return {pick.choice(KEYS): self.value(depth + 1) for _ in range(pick.randrange(5))}
        return [self.value(depth + 1) for _ in range(pick.randrange(4))]

    def tool(self) -> Any:
        """A tool, or what might be one."""
        schema = {"type": "object", "properties": self.value()}
        name = self._random.choice(["a", "b", "c\x00", self.value()])
        made = {"name": name, "inputSchema": schema, "description": self.value(), "annotations": self.value()}
        return self._random.choice([made, made, self.value()])

    def answer(self, method: str) -> Any:
        """A result, right or not."""
        pick = self._random
        if method == "initialize":
            info = {"name": pick.choice(["f", "\x1b[2J"]), "version": "1"}
            capabilities = {"tools": pick.choice([{}, {"listChanged": True}])}
            return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
        if method == "tools/list":
            listed: dict[str, Any] = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
            listed["tools"] += [self.tool() for _ in range(pick.randrange(6))]
            return listed | ({"nextCursor": pick.choice(["p", self.value()])} if pick.random() < 0.2 else {})
        right = {"content": [{"type": "text", "text": "ok"}]}
        odd = {"content": [self.value(), self.value()], "structuredContent": self.value()}
        return pick.choice([right, {"content": self.value()}, odd, self.value()])

    def aside(self, id: object) -> Any:
        """What is sent before the answer; None where nothing is."""
        kind = self._random.random()
        if kind < 0.05:
            odd = self._random.choice([id, "x", 999, None, []])
            return {"jsonrpc": "2.0", "id": odd, "error": self.value()}
        if kind < 0.15:
            method = self._random.choice(REQUESTS)
            return {"jsonrpc": "2.0", "id": "e", "method": method, "params": self.value()}
        if kind < 0.25:
            return {"jsonrpc": "2.0", "method": self._random.choice(UNASKED), "params": self.value()}
        return None

    def lines(self, message: dict[str, Any]) -> list[str]:
        """What is written for one message."""
        method, id = message.get("method"), message.get("id")
        if id is None or not isinstance(method, str):
            return []
        if self._random.random() < 0.02:
            os._exit(1)
        written = [self._random.choice(JUNK)] if self._random.random() < 0.08 else []
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": id}
        if method in {"initialize", "tools/list", "tools/call"}:
            answer["result"] = self.answer(method)
        else:
            answer["error"] = {"code": -32601, "message": "no"}
        messages = [self.aside(id), answer] if self._random.random() > 0.02 else []
        return [*written, *(json.dumps(each) + "\n" for each in messages if each is not None)]


if __name__ == "__main__":
    server = Server(int(sys.argv[1]))
    for line in sys.stdin:
        for told in server.lines(json.loads(line)):
            sys.stdout.write(told)
        sys.stdout.flush()
