"""GGUF files for tests: a head with facts, and a script for the pretended wheel behind it."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from onrecord.jsonio import Json

WHEEL = Path(__file__).parent / "pretended_wheel"
SCRIPT = b"\n--script--\n"


def string(text: str) -> bytes:
    """A string as GGUF writes it."""
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def fact(key: str, value: str | int | list[str]) -> bytes:
    """One fact of the head."""
    if isinstance(value, list):
        return string(key) + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(string(one) for one in value)
    if isinstance(value, int):
        return string(key) + struct.pack("<II", 4, value)
    return string(key) + struct.pack("<I", 8) + string(value)


def head(*facts: bytes, count: int | None = None) -> bytes:
    """The head of a file of version 3."""
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(facts) if count is None else count) + b"".join(facts)


def model_head(*, architecture: str = "qwen2", context_tokens: int = 32768) -> bytes:
    """The head of an ordinary chat model."""
    return head(
        fact("general.architecture", architecture),
        fact("general.tags", ["chat", "code"]),
        fact("general.name", "Small Model"),
        fact(f"{architecture}.context_length", context_tokens),
        fact("tokenizer.ggml.model", "gpt2"),
        count=26,
    )


def scripted(path: Path, *replies: list[Json], **script: Json) -> Path:
    """A model file that the pretended wheel plays."""
    path.write_bytes(model_head() + SCRIPT + json.dumps({"replies": replies, **script}).encode())
    return path


def asked(path: Path) -> list[Json]:
    """The bodies that the model was sent."""
    file = path.with_suffix(".asked")
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
