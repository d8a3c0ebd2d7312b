"""What a store's file keeps of values: their bytes, sealed where the store was given a cipher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from onrecord.errors import StoreError

if TYPE_CHECKING:
    import sqlite3

__all__ = ("CellCodec", "Cipher")

_PROOF = b"onrecord"


class Cipher(Protocol):
    """Seals what a store writes. Called in the store's own thread, one call at a time.

    ``about`` says which cell it is; opened under another ``about`` a cell must not open (associated data), so that
    nobody can put one in the place of another. Both raise whatever they like.
    """

    def seal(self, data: bytes, about: bytes, /) -> bytes:
        """The sealed bytes; of equal data preferably other ones each time."""
        ...

    def open(self, data: bytes, about: bytes, /) -> bytes:
        """What was sealed. Raises for another key, another ``about``, or bytes that were changed."""
        ...


class CellCodec:
    """Between a value's bytes and the cells of one file."""

    __slots__ = ("cipher", "path")

    def __init__(self, path: str, cipher: Cipher | None = None) -> None:
        self.path, self.cipher = path, cipher

    def seal(self, data: bytes, *about: str | int) -> bytes:
        """The bytes as the cell keeps them."""
        return data if self.cipher is None else self.cipher.seal(data, msgspec.json.encode(about))

    def open(self, data: bytes, *about: str | int) -> bytes:
        """The bytes that were sealed. StoreError when the cell does not open."""
        if self.cipher is None:
            return data
        try:
            return bytes(self.cipher.open(data, msgspec.json.encode(about)))
        except Exception:  # noqa: BLE001 - a cipher raises what it likes, and its words may hold a key
            raise _refused(self.path, "holds a cell that does not open: it was changed, or put elsewhere") from None

    def check(self, connection: sqlite3.Connection) -> None:
        """StoreError (``store-key``) unless the file is sealed as this codec seals; one that holds nothing yet gets so.

        A file that is sealed is so from its first session on: nothing in it is readable, or all of it.
        """
        sealed = connection.execute("select count(*) from sqlite_master where name='sealed'").fetchone()[0]
        if not sealed and self.cipher is None:
            return
        if sealed and self.cipher is None:
            raise _refused(self.path, "is sealed", "open it with the cipher it was written with: cipher=...")
        if not sealed:
            connection.execute("begin immediate")
            try:
                self._begin(connection)
                connection.execute("commit")
            finally:
                if connection.in_transaction:
                    connection.execute("rollback")
        for (proof,) in connection.execute("select proof from sealed").fetchall():
            try:
                right = self.open(proof, "proof") == _PROOF
            except StoreError:
                right = False
            if not right:
                raise _refused(self.path, "was sealed with another key", "open it with the key it was written with")

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Seals a file in which nothing was ever stored."""
        (used,) = connection.execute("select count(*) from sqlite_sequence").fetchone()
        there = connection.execute("select count(*) from sqlite_master where name='sealed'").fetchone()[0]
        if there:
            return  # another process was faster
        if used:
            hint = "leave cipher= out; to seal what is there, copy its sessions into a new store"
            raise _refused(self.path, "was written without a cipher", hint)
        connection.execute("create table sealed(proof blob not null)")
        connection.execute("insert into sealed values(?)", (self.seal(_PROOF, "proof"),))


def _refused(path: str, what: str, hint: str = "restore the last good copy") -> StoreError:
    return StoreError(f"the store {path!r} {what}", code="store-key", hint=hint)
