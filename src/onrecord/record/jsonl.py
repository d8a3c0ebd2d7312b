"""The record as JSON lines: one entry a line, unknown kinds kept byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

import msgspec
from msgspec import Raw, Struct

from onrecord.errors import ConfigurationError, RecordInvalid
from onrecord.jsonio import UNREADABLE, loads, misfit
from onrecord.record.entry import Body, Entry, UnknownBody
from onrecord.record.kinds import CORE_KINDS

__all__ = ("EntryCodec",)


class _Line(Struct, frozen=True):
    seq: int
    n: int
    turn: str
    take: int
    where: str
    at: datetime
    cause: int | None
    body: Raw


class _Kind(Struct, frozen=True):
    kind: str


class EntryCodec:
    """Encodes and decodes entries of the core kinds and of the given feature bodies.

    Raises ConfigurationError when two bodies share a kind. Decoding raises RecordInvalid without the line's content.
    """

    def __init__(self, bodies: Iterable[type[Body]] = ()) -> None:
        kinds: dict[str, type[Body]] = {}
        for body in (*CORE_KINDS, *bodies):
            kind = str(body.__struct_config__.tag)
            if kinds.setdefault(kind, body) is not body:
                raise ConfigurationError(f"two entry bodies are declared for the kind {kind!r}")
        self.kinds = kinds
        union: Any = reduce(or_, kinds.values())
        self._encode = msgspec.json.Encoder().encode
        self._line = msgspec.json.Decoder(_Line).decode
        self._kind = msgspec.json.Decoder(_Kind).decode
        self._body = msgspec.json.Decoder(union).decode

    def encode(self, entry: Entry) -> bytes:
        """One line, without its newline."""
        body = entry.body
        if isinstance(body, UnknownBody):
            line = _Line(entry.seq, entry.n, entry.turn, entry.take, entry.where, entry.at, entry.cause, body.raw)
            return self._encode(line)
        return self._encode(entry)

    def encode_body(self, body: Body) -> bytes:
        """The body alone, as stores keep it."""
        return bytes(body.raw) if isinstance(body, UnknownBody) else self._encode(body)

    def decode_body(self, raw: bytes | Raw) -> Body:
        """A body; of a kind nobody declared, an `UnknownBody`."""
        try:
            kind = self._kind(raw).kind
            if kind in self.kinds:
                body: Body = self._body(raw)
                return body
            loads(raw)  # whoever reads on, a redaction for one, takes it for JSON
        except UNREADABLE as error:
            raise RecordInvalid(f"a record body does not decode: {misfit(error)}") from None
        return UnknownBody(was=kind, raw=Raw(bytes(raw)))

    def decode(self, line: bytes) -> Entry:
        """One line. Raises RecordInvalid."""
        try:
            held = self._line(line)
        except UNREADABLE as error:
            raise RecordInvalid(f"a record line does not decode: {misfit(error)}") from None
        return Entry(
            seq=held.seq, n=held.n, turn=held.turn, take=held.take, where=held.where, at=held.at, cause=held.cause,
            body=self.decode_body(held.body),
        )  # fmt: skip

    def lines(self, entries: Iterable[Entry]) -> Iterator[bytes]:
        """Lines with their newlines."""
        for entry in entries:
            yield self.encode(entry) + b"\n"

    def read(self, lines: Iterable[bytes], *, name: str = "record") -> Iterator[Entry]:
        """Entries of a file's lines; blank lines are skipped. RecordInvalid names ``name`` and the line number."""
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield self.decode(line)
            except RecordInvalid as error:
                hint = "the file may be cut short or not a record" if not line.endswith(b"\n") else ""
                raise RecordInvalid(f"{name}, line {number}: {error}", hint=hint) from None
