"""One SQLite file and the one thread that touches it.

The connection is opened, used and closed in that thread and never leaves it, so several event loops can share a store
and a forked child cannot close it by accident. What is asked comes through a queue and is done in order, each act as a
whole: a caller that is cancelled has either not begun or is finished without being told.

Turns that are stored at the same moment share a transaction, so that many cost less than as many times one. Nobody is
told before it is committed; where one of them fails they are undone together and done one by one.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from onrecord.errors import ConfigurationError, MissingDependency, StoreError
from onrecord.stores import sqlite_schema
from onrecord.stores.sqlite_codec import CellCodec
from onrecord.stores.sqlite_faults import fault, is_busy, moved, passing, unfit
from onrecord.stores.sqlite_schema import connect

if TYPE_CHECKING:
    import sqlite3

__all__ = ("SqliteFile", "absolute_path", "transaction")

T = TypeVar("T")

_AT_ONCE = 32
"""Acts that share a transaction at most."""

_WAIT_S, _LONGEST_WAIT_S = 0.0001, 0.005
_CLOSING_S = 0.002
_EXIT_S = 10.0
"""Seconds that a process which ends without closing a store waits for what the store still has to write."""


Opens = Callable[[str, str, CellCodec], "tuple[sqlite3.Connection, bool]"]
"""Opens a file, making its tables where there are none; and says whether what is seen of it can ever change."""


def absolute_path(path: str | os.PathLike[str], *, instead: str) -> str:
    """Which file this is, wherever the working folder goes later. ConfigurationError for what names none.

    ``instead`` is what keeps the same in memory.
    """
    name = os.fspath(path)
    if not name.strip() or name == ":memory:" or name.startswith("file:") or "\0" in name:
        raise ConfigurationError(f"{name!r} does not name a file", hint=f"give a path; in memory use {instead}")
    return str(Path(name).absolute())  # not resolved: what a symbolic link leads to may change


class SqliteFile:
    """A file opened on first use. ``run`` does one act with its connection; after ``close`` nothing runs."""

    def __init__(self, codec: CellCodec, synchronous: str, opens: Opens = connect) -> None:
        self.path, self.codec = codec.path, codec
        self._served = _Served(codec, synchronous, opens)
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._pid = 0
        self._closed = False

    async def run(self, act: Callable[[sqlite3.Connection], T], *, shares: bool = False) -> T:
        """What ``act`` returns, done in the file's thread. StoreError instead of the driver's errors.

        An act changes nothing when it raises, and may be done again. One that ``shares`` is one `transaction`, and may
        be committed together with others.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._put(_Job(act, loop, answer, shares=shares))
        return await answer

    def _put(self, job: _Job) -> None:
        # Before the lock: in a forked child another thread of the parent may have held it.
        if self._pid and self._pid != os.getpid():
            raise StoreError(
                f"the store {self.path!r} was in use when this process was forked",
                code="store-forked",
                hint="make a store of its own in each process, after the fork",
            )
        with self._lock:
            if self._closed:
                raise StoreError(f"the store {self.path!r} is closed", code="store-closed", hint="make a new one")
            if self._thread is None:
                self._start()
            self._jobs.put(job)

    def _start(self) -> None:
        try:
            import sqlite3  # noqa: F401 - here, where the caller is told; in the thread nobody would be
        except ImportError:
            raise MissingDependency(
                "this Python was built without sqlite3", hint="install a Python that has it, or use another store"
            ) from None
        # Not joined by the interpreter's own end, which would wait for ever; `_end_all` does it.
        thread = Thread(target=_serve, args=(self._jobs, self._served), name=f"onrecord {self.path}", daemon=True)
        thread.start()
        self._thread, self._pid = thread, os.getpid()
        _running[thread] = self._jobs
        weakref.finalize(self, self._jobs.put, None).atexit = False

    async def close(self) -> None:
        """Finishes what was asked before, then closes the file; safe to call twice."""
        if self._pid and self._pid != os.getpid():
            return
        with self._lock:
            if not self._closed and self._thread is not None:
                self._jobs.put(None)
            self._closed = True
        while self._thread is not None and self._thread.is_alive():  # noqa: ASYNC110 - an Event belongs to one loop
            await asyncio.sleep(_CLOSING_S)


class _Job:
    __slots__ = ("act", "answer", "asked", "loop", "shares")

    def __init__(
        self, act: Callable[[sqlite3.Connection], Any], loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Any],
        *, shares: bool,
    ) -> None:  # fmt: skip
        self.act, self.loop, self.answer, self.shares = act, loop, answer, shares
        self.asked = time.monotonic()

    def tell(self, value: object, error: Exception | None) -> None:
        _tell(self.loop, [(self.answer, value, error)])


_Answer = tuple[asyncio.Future[Any], object, Exception | None]


def _tell(loop: asyncio.AbstractEventLoop, answers: Sequence[_Answer]) -> None:
    # A closed loop has nobody left who waits.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_deliver, answers)


def _deliver(answers: Sequence[_Answer]) -> None:
    for answer, value, error in answers:
        if answer.done():
            continue
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)


class _Served:
    """The file as its thread sees it: opened when needed, and again after an error that says it is not well."""

    def __init__(self, codec: CellCodec, synchronous: str, opens: Opens) -> None:
        self.path, self.codec, self.synchronous, self.opens = codec.path, codec, synchronous, opens
        self.identity = (0, 0)
        self.fixed = False

    def do(self, job: _Job, queue: _Queue, connection: sqlite3.Connection | None) -> sqlite3.Connection | None:
        """Does a job, with those behind it that share its transaction. Returns the connection to go on with."""
        jobs = [job]
        if job.shares and connection is not None and self._share(jobs, queue, connection):
            return connection
        for one in jobs:
            connection = self._do(one, connection)
        return connection

    def _share(self, jobs: list[_Job], queue: _Queue, connection: sqlite3.Connection) -> bool:
        """Does jobs in one transaction, and adds those that come until it is committed.

        False, and nothing has happened, where that does not go well.
        """
        import sqlite3

        if self.identity != _identity(self.path):
            return False
        values = list[object]()

        def act(connection: sqlite3.Connection) -> None:
            values.clear()
            with transaction(connection):
                for job in jobs:  # which grows
                    values.append(job.act(connection))
                    if len(values) == len(jobs) and (more := queue.sharing(len(jobs))) is not None:
                        jobs.append(more)

        try:
            _patiently(act, connection, jobs[0].asked)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                return False
            for job in jobs:
                job.tell(None, fault(error, self.path))
            return True
        except Exception:  # noqa: BLE001 - each of them meets its own error, on its own
            return False
        told: dict[asyncio.AbstractEventLoop, list[_Answer]] = {}
        for job, value in zip(jobs, values, strict=True):
            told.setdefault(job.loop, []).append((job.answer, value, None))
        for loop, answers in told.items():
            _tell(loop, answers)
        return True

    def _do(self, job: _Job, connection: sqlite3.Connection | None) -> sqlite3.Connection | None:
        import sqlite3

        if connection is not None and self.identity != _identity(self.path):
            # SQLite would leave its log behind, to be taken for that of the file which is there now.
            with suppress(sqlite3.Error):
                connection.execute("pragma wal_checkpoint(truncate)").fetchall()
            _let_go(connection)
            job.tell(None, moved(self.path))
            return None
        try:
            if connection is None:
                connection, self.fixed = self.opens(self.path, self.synchronous, self.codec)
                connection.execute("pragma busy_timeout=0")  # from here on `_patiently` waits
                self.identity = _identity(self.path)
            value = _patiently(job.act, connection, job.asked)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            job.tell(None, fault(error, self.path))
            if not passing(error):
                _let_go(connection)
                connection = None
        except (UnicodeEncodeError, OverflowError) as error:
            job.tell(None, unfit(error, self.path))
        except Exception as error:  # noqa: BLE001 - the caller gets it; this thread serves others too
            job.tell(None, error)
        else:
            job.tell(value, None)
        if self.fixed:  # what it sees never changes: the next act looks again
            _let_go(connection)
            connection = None
        return connection


def _patiently(act: Callable[[sqlite3.Connection], T], connection: sqlite3.Connection, asked: float) -> T:
    """Does an act again while other processes write, until `BUSY_S` after it was asked for.

    SQLite would sleep for a millisecond and more each time, several times as long as a writer takes: two processes
    would together write no more than one.
    """
    import sqlite3

    wait, end = _WAIT_S, 0.0
    while True:
        try:
            return act(connection)
        except sqlite3.OperationalError as error:
            now, patience = time.monotonic(), sqlite_schema.BUSY_S
            # What has waited behind others that waited for the same lock does not wait as long again.
            end = end or max(asked + patience, now + patience / 20)
            if not is_busy(error) or now >= end:
                raise
        time.sleep(wait)
        wait = min(wait * 1.25, _LONGEST_WAIT_S)


def _let_go(connection: sqlite3.Connection | None) -> None:
    import sqlite3

    if connection is not None:
        with suppress(sqlite3.Error):
            connection.close()


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - once per act: Path.stat costs twice as much
    except OSError:
        return (-1, -1)
    return (found.st_dev, found.st_ino)


class _Queue:
    """Jobs as they come; read by one thread. None is the last one."""

    __slots__ = ("_coming", "_next")

    def __init__(self, coming: SimpleQueue[_Job | None]) -> None:
        self._coming = coming
        self._next = list[_Job | None]()

    def next(self) -> _Job | None:
        """Waits for a job that somebody still waits for."""
        while True:
            job = self._next.pop() if self._next else self._coming.get()
            if job is None or not job.answer.cancelled():
                return job

    def sharing(self, place: int) -> _Job | None:
        """The next one, if it is there and shares a transaction that has that many already."""
        if place < _AT_ONCE and not self._next and not self._coming.empty():
            job = self._coming.get()
            if job is not None and job.shares and not job.answer.cancelled():
                return job
            self._next.append(job)
        return None


def _serve(jobs: SimpleQueue[_Job | None], served: _Served) -> None:
    # The connection lives in this frame alone: a forked child has no such frame, so it never closes it.
    connection: sqlite3.Connection | None = None
    queue = _Queue(jobs)
    while (job := queue.next()) is not None:
        connection = served.do(job, queue, connection)
        del job  # a store at rest must not keep its last change alive
    _let_go(connection)


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "immediate") -> Iterator[None]:
    """All or nothing: commits at the end, undoes everything when something is raised. Within another, a part of it."""
    is_whole = not connection.in_transaction
    if is_whole:
        connection.execute(f"begin {kind}")
    try:
        yield
        if is_whole:
            connection.execute("commit")
    finally:
        if is_whole and connection.in_transaction:
            connection.execute("rollback")


_running: weakref.WeakKeyDictionary[Thread, SimpleQueue[_Job | None]] = weakref.WeakKeyDictionary()


def _end_all() -> None:
    """Closes what a process leaves open, after what was asked before is done."""
    threads = [(thread, jobs) for thread, jobs in list(_running.items()) if thread.is_alive()]
    for _, jobs in threads:
        jobs.put(None)
    for thread, _ in threads:
        thread.join(_EXIT_S)


atexit.register(_end_all)
