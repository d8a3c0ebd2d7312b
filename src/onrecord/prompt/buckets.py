"""Runtime context: what the application knows right now, one bucket per writer, shown with the message of a turn.

A sensor, a game, a calendar each keep a bucket up to date. When a message is admitted the buckets are read, once, and
filed as data; the requests of that turn show them in front of its rounds, and no later turn does.
"""

from __future__ import annotations

import copy
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from sys import maxsize
from threading import Lock
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.content import Structured
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Input
from onrecord.conversation.messages import ContextMessage
from onrecord.conversation.render import context_text
from onrecord.declared import Declared, declared
from onrecord.errors import ConfigurationError, UsageError, check_count
from onrecord.jsonio import Json, writable
from onrecord.models.request import Piece, Request
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import Noted
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.contained import ends_take
from onrecord.turn.moments import ALLOW, SLOTS, Allow, Hooks, Rank
from onrecord.turn.turn import Turn

__all__ = (
    "ContextReader",
    "ContextRegistry",
    "ContextSnapshot",
    "ContextUpdate",
    "Ingested",
    "Recorded",
    "RuntimeContext",
    "context_message",
    "writer_of",
)

UNKNOWN = "unknown"
"""The writer of what names none."""


class ContextUpdate(Struct, frozen=True, kw_only=True):
    """What one writer tells: ``text`` for the model, to replace what it told before or to stand behind it.

    ``id`` names this update, ``context_id`` what it is about. The writer is ``source``, or what ``metadata`` says of
    the source: ``{"source": {"id": "weather", "module": "station-1"}}`` is the module of an extension.
    ``destinations`` say who may read it: ``{"all": True}``, ``{"include": [...]}``, ``{"exclude": [...]}``; anything
    else, and a list, which is an address for transport, leaves it to the owner.
    """

    text: str
    strategy: str = "replace-self"
    id: str = ""
    context_id: str = ""
    source: str = ""
    metadata: Mapping[str, Any] = {}
    destinations: Any = None
    created_at: datetime | None = None


class Ingested(Struct, frozen=True, kw_only=True):
    """What became of an update: whose bucket it went to, how, and how many entries that has now."""

    source_key: str
    mutation: Literal["replace", "append"]
    entry_count: int


class Recorded(Struct, frozen=True):
    """An update as it came in, with the writer whose it is."""

    source_key: str
    update: ContextUpdate


class ContextReader(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """Who reads: ``ids`` are names that updates may be addressed to; an ``owner`` reads what is addressed to nobody."""

    ids: tuple[str, ...] = ()
    owner: bool = False

    def may_read(self, update: ContextUpdate) -> bool:
        """Whether this update is meant for them; being excluded wins over everything."""
        held = update.destinations
        if not isinstance(held, Mapping):
            return self.owner
        if _names(self.ids, held.get("exclude")):
            return False
        if isinstance(every := held.get("all"), bool):
            return every
        if held.get("include"):
            return _names(self.ids, held.get("include"))
        return True if held.get("exclude") else self.owner


def _names(ids: Sequence[str], listed: object) -> bool:
    return isinstance(listed, (list, tuple, set, frozenset)) and any(id in listed for id in ids)


def writer_of(update: ContextUpdate) -> str:
    """The bucket of an update: ``extension:module``, the id of its source, its ``source``, or ``unknown``."""
    source = update.metadata.get("source")
    if isinstance(source, Mapping):
        extension, module = source.get("id"), source.get("module")
        if isinstance(extension, str) and extension:
            return f"{extension}:{module}" if isinstance(module, str) and module else extension
    return update.source or UNKNOWN


@declared
class ContextRegistry:
    """The buckets of all writers, and the latest ``history_limit`` updates in the order they came.

    What goes in and what comes out are copies, so nobody changes what somebody else was shown. Safe under threads.
    ``source_key`` says whose an update is (`writer_of`). ConfigurationError for a ``history_limit`` below 0.
    """

    def __init__(self, *, history_limit: int = 400, source_key: Callable[[ContextUpdate], str] = writer_of) -> None:
        check_count("ContextRegistry", "history_limit", history_limit, 0)
        self._source_key = source_key
        self._buckets: dict[str, list[ContextUpdate]] = {}
        self._history: deque[Recorded] = deque(maxlen=min(history_limit, maxsize))
        self._lock = Lock()

    def ingest(self, update: ContextUpdate, /) -> Ingested | None:
        """Takes an update in: ``replace-self`` or ``append-self``. None for any other strategy, which is only recorded.

        UsageError for one that cannot be copied; nothing changes then.
        """
        try:
            held = copy.deepcopy(update)
        except Exception as error:
            raise UsageError(
                f"this context cannot be copied: {type(error).__name__}",
                code="context-uncopied",
                hint="give plain values: texts, numbers, lists and objects",
            ) from error
        key = self._source_key(held)
        with self._lock:
            bucket = self._buckets.setdefault(key, [])
            self._history.append(Recorded(key, held))
            if held.strategy == "replace-self":
                bucket[:] = [held]
                return Ingested(source_key=key, mutation="replace", entry_count=1)
            if held.strategy == "append-self":
                bucket.append(held)
                return Ingested(source_key=key, mutation="append", entry_count=len(bucket))
        return None

    def remove_writer(self, key: str, /) -> bool:
        """Takes a writer's bucket away, when its module leaves, say. Whether there was one."""
        with self._lock:
            return self._buckets.pop(key, None) is not None

    def reset(self) -> None:
        """Empties everything, the history too."""
        with self._lock:
            self._buckets.clear()
            self._history.clear()

    def snapshot(self, reader: ContextReader | None = None) -> dict[str, list[ContextUpdate]]:
        """The buckets, in the order of their writers' first word; for a reader what they may read, no empty ones."""
        with self._lock:
            held = {key: list(bucket) for key, bucket in self._buckets.items()}
        if reader is not None:
            held = {key: [update for update in bucket if reader.may_read(update)] for key, bucket in held.items()}
            held = {key: bucket for key, bucket in held.items() if bucket}
        return copy.deepcopy(held)

    def active_contexts(self) -> list[ContextUpdate]:
        """All entries of all buckets, writer by writer."""
        return [update for bucket in self.snapshot().values() for update in bucket]

    def context_history(self) -> list[Recorded]:
        """The latest updates, oldest first, whatever became of them."""
        with self._lock:
            return copy.deepcopy(list(self._history))


# ---- in a turn -------------------------------------------------------------------------------------------------------


class ContextSnapshot(Body, frozen=True, gc=False, kw_only=True, tag="context.snapshot"):
    """What the application told when a turn's input was admitted: writers and texts, in order."""

    entries: tuple[tuple[str, str], ...]


class _SnapshotFold:
    """Keeps the turn's snapshot, over its pauses too."""

    name = "runtime-context"
    version = 1
    state = tuple[tuple[str, str], ...]
    kinds = frozenset({"context.snapshot"})
    scope: Literal["session", "turn"] = "turn"
    unfinished = False
    quotes = True

    def start(self) -> tuple[tuple[str, str], ...]:
        return ()

    def apply(self, state: tuple[tuple[str, str], ...], entry: Entry, /) -> tuple[tuple[str, str], ...]:
        return entry.body.entries if isinstance(entry.body, ContextSnapshot) else state


SNAPSHOT: Any = _SnapshotFold()

Told: TypeAlias = ContextUpdate | str | None
Provider: TypeAlias = Callable[[SessionKey], Told | Awaitable[Told]]
"""Asked once per turn, with the session's key; what it tells stands beside the buckets and is kept in none."""

Source: TypeAlias = Callable[[Turn], Awaitable[list[tuple[str, ContextUpdate]]]]


class RuntimeContext(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """Shows what the application knows right now, as it was when the turn's input was admitted.

    ``registry`` is read for ``reader`` (None: everything), or for whom a function of the turn says; ``providers`` are
    asked with the session's key and give an update, a text or None. One that fails, or gives something else, is noted,
    and nothing of it is shown. What they gave is one ``context.snapshot`` entry, and one piece of data in front of the
    turn's rounds, a line for each entry. A rule that denies the input comes first: then nothing is read. Nothing to
    tell: nothing is filed, and requests are as without the feature. ConfigurationError where there is nothing to read.
    """

    registry: ContextRegistry | None = None
    providers: tuple[Provider, ...] = ()
    reader: ContextReader | Callable[[Turn], ContextReader] | None = None

    def __post_init__(self) -> None:
        if self.registry is None and not self.providers:
            raise ConfigurationError(
                "RuntimeContext has nothing to read", hint="RuntimeContext(registry=ContextRegistry())"
            )
        for provider in self.providers:
            if not callable(provider):
                raise ConfigurationError(
                    f"a provider of RuntimeContext is a function of the session's key, not a {type(provider).__name__}",
                    hint="def provider(key): return a text, a ContextUpdate or None",
                )
        reader: object = self.reader
        is_plain = callable(reader) and not inspect.iscoroutinefunction(reader)
        if reader is not None and not isinstance(reader, ContextReader) and not is_plain:
            raise ConfigurationError(
                "reader= of RuntimeContext is a ContextReader, or a plain function of the turn that gives one",
                hint="RuntimeContext(registry=..., reader=ContextReader(owner=True))",
            )

    @property
    def name(self) -> str:
        """The feature's name."""
        return "runtime-context"

    def hooks(self, spec: AgentSpec) -> Hooks:
        return Hooks(
            on_input=self._admit, on_request=_show,
            # Behind the rules, so that nothing is read for an input that they deny.
            order={"input": SLOTS["input"]["RULES"] + 100, "request": SLOTS["request"]["MEMORY"]},
            folds=(SNAPSHOT,), bodies=(ContextSnapshot,), alone=True,
        )  # fmt: skip

    async def _admit(self, turn: Turn, input: Input) -> Allow[Input]:
        if isinstance(input, Answered):
            return ALLOW  # the turn goes on with what was known when it began
        entries = await turn.once("runtime-context", tuple[tuple[str, str], ...], lambda: self._read(turn))
        if entries:
            turn.note(ContextSnapshot(entries=entries))
        return ALLOW

    async def _read(self, turn: Turn) -> tuple[tuple[str, str], ...]:
        told = list[tuple[str, ContextUpdate]]()
        sources: list[tuple[str, Source]] = [("the reader", self._buckets)]
        sources += [("a provider", partial(_told, provider)) for provider in self.providers]
        for what, source in sources:
            try:
                told += await source(turn)
            except BaseException as error:
                if ends_take(error):
                    raise
                # What one source cannot tell is no reason to leave a person without an answer.
                turn.note(Noted(by=self.name, text=f"{what} failed: {type(error).__name__}"))
        return tuple((_line(key), _line(update.text)) for key, update in told if update.text.strip())

    async def _buckets(self, turn: Turn) -> list[tuple[str, ContextUpdate]]:
        """The buckets as the reader may see them. Where nobody says who reads, nothing is read."""
        if self.registry is None:
            return []
        reader = self.reader(turn) if callable(self.reader) else self.reader
        if callable(self.reader) and not isinstance(reader, ContextReader):
            raise TypeError("reader= of RuntimeContext gives a ContextReader")
        return [(key, update) for key, held in self.registry.snapshot(reader).items() for update in held]


async def _told(provider: Provider, turn: Turn) -> list[tuple[str, ContextUpdate]]:
    got = provider(turn.session.key)
    given: object = await got if inspect.isawaitable(got) else got
    if given is None:
        return []
    if isinstance(given, str):
        given = ContextUpdate(text=given, context_id=getattr(provider, "__name__", UNKNOWN))
    if not isinstance(given, ContextUpdate):
        raise TypeError("a provider gives a ContextUpdate, a text or None")
    return [(given.context_id or writer_of(given), given)]


def _line(text: str) -> str:
    """On one line: an entry that breaks it could pass for another writer's."""
    return writable(" ".join(text.split()))


async def _show(turn: Turn, request: Request) -> Request:
    entries: tuple[tuple[str, str], ...] = turn.state(SNAPSHOT)
    if not entries:
        return request
    text = context_text(_message(entries))
    piece = Piece(source="runtime-context", text=text, rank=Rank.FACT, place="turn")
    return replace(request, pieces=(*request.pieces, piece))


def context_message(snapshot: Mapping[str, Sequence[ContextUpdate]]) -> ContextMessage | None:
    """The buckets as one message of data; None where they say nothing. Ids, times and metadata are not shown."""
    entries = [(_line(key), _line(each.text)) for key, held in snapshot.items() for each in held if each.text.strip()]
    return _message(entries) if entries else None


def _message(entries: Sequence[tuple[str, str]]) -> ContextMessage:
    payload: Json = [{"source": source, "text": text} for source, text in entries]
    return ContextMessage(
        id="runtime-context", content=(Structured(kind="runtime-context", payload=payload),), writer="runtime-context"
    )  # fmt: skip
