"""The head of a GGUF file: enough to say what a file is, or why it is no model, before anything is loaded."""

from __future__ import annotations

import struct
from pathlib import Path

from msgspec import Struct

from onrecord.errors import ConfigurationError

__all__ = ("GgufHead", "check_gguf", "read_head")

MAGIC = b"GGUF"
# The facts wanted stand before the vocabulary, which begins within a few kilobytes.
HEAD_BYTES = 1 << 16
SUFFIX = ".gguf"

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9

# Architectures of files that lie beside models and cannot chat.
_NO_CHAT = {
    "clip": "holds the image encoder of a model, not the model",
    "bert": "is an embedding model and cannot chat",
    "nomic-bert": "is an embedding model and cannot chat",
    "jina-bert-v2": "is an embedding model and cannot chat",
}


class GgufHead(Struct, frozen=True, kw_only=True):
    """What a model file says of itself; ``context_tokens`` is what the model was trained for."""

    architecture: str = ""
    name: str = ""
    context_tokens: int | None = None


def check_gguf(path: Path) -> GgufHead:
    """The head of the model at ``path``. Raises ConfigurationError for a file that is missing or cannot chat."""
    if path.is_dir():
        raise ConfigurationError(f"{str(path)!r} is a folder, not a GGUF file", hint=_others(path))
    try:
        with path.open("rb") as file:
            data = file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise ConfigurationError(f"there is no model file {str(path)!r}", hint=_others(path.parent)) from None
    except OSError as problem:
        told = f"the model file {str(path)!r} cannot be read: {problem.strerror}"
        raise ConfigurationError(told, hint=f"see who may read it: ls -l {path}") from None
    if not data.startswith(MAGIC):
        raise ConfigurationError(f"{str(path)!r} is no GGUF file: {_looks_like(data)}", hint=_others(path.parent, path))
    head = read_head(data)
    if head.architecture in _NO_CHAT:
        told = f"{str(path)!r} {_NO_CHAT[head.architecture]}"
        raise ConfigurationError(told, hint=_others(path.parent, path))
    return head


def read_head(data: bytes) -> GgufHead:
    """The facts in the first bytes of a GGUF file; what is not there, or not understood, stays empty."""
    facts: dict[str, object] = {}
    try:
        _, _, count = struct.unpack_from("<IQQ", data, len(MAGIC))
        at = len(MAGIC) + 20
        for _ in range(count):
            key, at = _string(data, at)
            if key.startswith("tokenizer."):
                break
            facts[key], at = _value(data, at)
    except (struct.error, KeyError, UnicodeDecodeError, RecursionError):
        pass  # an unknown kind of value, lists in lists without end, or more than was read: llama.cpp judges the file
    architecture = facts.get("general.architecture")
    name = facts.get("general.name")
    context = facts.get(f"{architecture}.context_length")
    return GgufHead(
        architecture=architecture if isinstance(architecture, str) else "",
        name=name if isinstance(name, str) else "",
        context_tokens=context if isinstance(context, int) and context > 0 else None,
    )


def _string(data: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from("<Q", data, at)
    end = at + 8 + size
    if end > len(data):
        raise struct.error
    return data[at + 8 : end].decode(), end


def _value(data: bytes, at: int) -> tuple[object, int]:
    (kind,) = struct.unpack_from("<I", data, at)
    return _typed(data, at + 4, kind)


def _typed(data: bytes, at: int, kind: int) -> tuple[object, int]:
    if kind == _STRING:
        return _string(data, at)
    if kind == _ARRAY:
        inner, count = struct.unpack_from("<IQ", data, at)
        at += 12
        for _ in range(count):
            _, at = _typed(data, at, inner)
        return None, at
    form = "<" + _SCALARS[kind]
    (value,) = struct.unpack_from(form, data, at)
    return value, at + struct.calcsize(form)


def _looks_like(data: bytes) -> str:
    if not data:
        return "it is empty"
    if data.startswith(b"version https://git-lfs"):
        return "it is a Git LFS pointer, the model itself was not fetched (git lfs pull)"
    if data.lstrip()[:1] == b"<":
        return "it is a web page, saved instead of the model"
    if data.startswith(b"PK"):
        return "it is a zip archive"
    return "it does not begin with the letters GGUF"


def _others(folder: Path, wrong: Path | None = None) -> str:
    """What to name instead: a GGUF file of that folder, if it has one."""
    found = sorted(p for p in folder.glob(f"*{SUFFIX}") if p != wrong and _begins_right(p))
    if found:
        return f"that folder has {found[0].name!r}: name it as model 'local:{found[0]}'"
    return "name a GGUF file of an instruct model: 'local:/path/to/model.gguf'"


def _begins_right(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:  # a folder, or a file that we may not read: neither can be named instead
        return False
