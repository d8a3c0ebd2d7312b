"""A SQLite file of one purpose beside that of a store: made, and recognised before anything is written to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from onrecord.errors import MissingDependency, StoreError
from onrecord.stores.sqlite_codec import CellCodec
from onrecord.stores.sqlite_faults import unusable_path
from onrecord.stores.sqlite_file import transaction
from onrecord.stores.sqlite_schema import BUSY_S, write_ahead

if TYPE_CHECKING:
    import sqlite3

__all__ = ("OwnFile",)


class OwnFile(Struct, frozen=True, kw_only=True):
    """Files of ``what``: the number that marks them, the ``version`` of their ``schema``, and what makes it.

    ``instead`` is what keeps the same in memory, for whoever can have no such file.
    """

    what: str
    instead: str
    id: int
    version: int
    schema: tuple[str, ...]

    def open(self, path: str, synchronous: str, codec: CellCodec) -> tuple[sqlite3.Connection, bool]:
        """Opens such a file, making its tables where there are none. StoreError for a file of anybody else.

        Nothing of what is deleted in it stays readable.
        """
        import sqlite3

        connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
        try:
            self._recognise(connection, path)
            write_ahead(connection)
            connection.execute(f"pragma synchronous={synchronous}")
            connection.execute("pragma secure_delete=on")  # what is deleted is overwritten at once
            codec.check(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                raise self._foreign(path, "is not a SQLite file") from None
            raise
        return connection, False

    def _recognise(self, connection: sqlite3.Connection, path: str) -> None:
        """Makes the tables of a new file, or checks whose an old one is."""

        def number(what: str) -> Any:
            return connection.execute(what).fetchone()[0]

        if not number("pragma application_id") and not number("select count(*) from sqlite_master"):
            with transaction(connection):
                if not number("select count(*) from sqlite_master"):  # else another process was faster
                    self._make(connection)
        if number("pragma application_id") != self.id:
            raise self._foreign(path, "belongs to another application")
        if number("pragma user_version") != self.version:
            raise StoreError(
                f"the file of {self.what} {path!r} has a schema that this version of onrecord does not know",
                code="store-newer", hint="a newer onrecord wrote it: update onrecord; the file was not touched",
            )  # fmt: skip

    def _make(self, connection: sqlite3.Connection) -> None:
        import sqlite3

        for sql in (*self.schema, f"pragma application_id={self.id}", f"pragma user_version={self.version}"):
            try:
                connection.execute(sql)
            except sqlite3.OperationalError as error:
                if "fts5" not in str(error):
                    raise
                raise MissingDependency(
                    "this Python's SQLite was built without its full text index FTS5",
                    hint=f"install a Python that has it, or keep {self.what} in {self.instead}",
                ) from None

    def _foreign(self, path: str, what: str) -> StoreError:
        return unusable_path(path) or StoreError(
            f"the file {path!r} {what}; it was not touched",
            code="store-foreign",
            hint=f"give {self.what} a file of their own",
        )
