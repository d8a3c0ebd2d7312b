"""What erasing makes of a session: pure functions over what a store holds of it.

Whole turns are erased, never single messages: a reply quotes its question, a request shows both. Every body of such a
turn becomes an `Erased`; what other entries hold of it goes with it: the histories of later requests, previews of
replied messages, provider items that were generated from it. At the end stands an entry that says so and what the
session keeps, so that the record that is left folds to the session that is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import Identity, SessionKey, session_key
from onrecord.conversation.inputs import Woke
from onrecord.conversation.messages import AssistantMessage, Message
from onrecord.errors import RecordInvalid, StoreError, UsageError
from onrecord.jsonio import writable
from onrecord.record.entry import Body, Entry, kind_of
from onrecord.record.kinds import (
    DataPatched,
    Erased,
    HistoryChanged,
    TurnClosed,
    TurnInput,
    TurnInterrupted,
    WakeArmed,
)
from onrecord.session.codec import stored_slots
from onrecord.session.core_folds import CORE
from onrecord.session.erasure import Kept, Retention
from onrecord.session.folding import land, refold
from onrecord.session.quoting import Names, unquoted, without_payload
from onrecord.session.session import Session
from onrecord.session.walking import Walked, resalted, walk
from onrecord.session.working import NO_FOLDS

__all__ = (
    "ERASURE", "Rewritten", "Told", "asked", "blank", "check_kinds", "descendants", "erased_entry", "is_blank",
    "named_turns", "old_turns", "without",
)  # fmt: skip


ERASURE = "erasure"
"""Where the entries stand that tell of an erasure."""


class Rewritten(Struct, frozen=True):
    """A session after an erasure. ``changed`` are the stored entries that read otherwise now, ``added`` come behind
    them; ``erased`` counts the bodies that went and ``gone`` names their turns.
    """

    session: Session
    changed: tuple[Entry, ...]
    added: tuple[Entry, ...]
    erased: int
    gone: frozenset[str]


def erased_entry(entry: Entry, why: str, at: datetime) -> Entry:
    """The entry with nothing left but its place and kind."""
    if isinstance(entry.body, Erased):
        return entry
    return replace(entry, body=Erased(was=kind_of(entry.body), why=why, at=at))


def asked(
    what: SessionKey | Identity | str, messages: Sequence[str] | None, why: str
) -> tuple[SessionKey | Identity, tuple[str, ...] | None]:
    """What is to be erased, as a store takes it. UsageError for what could erase more or less than was meant."""
    told: object = why
    if not isinstance(told, str) or not why.strip() or writable(why) != why:
        raise UsageError("an erasure says why", hint='pass why="asked by the customer"; it stays on the record')
    if isinstance(what, Identity):
        if not what.principal:
            raise UsageError("an Identity without a principal is nobody", hint="name who is to be erased")
        if messages is not None:
            raise UsageError("messages are erased of one session", hint="give its SessionKey instead of an Identity")
        return what, None
    ids: object = messages
    if ids is not None and (isinstance(ids, str) or not isinstance(ids, Collection) or not _are_texts(ids)):
        raise UsageError("messages= takes several ids", hint="write messages=[message.id]")
    return session_key(what), None if messages is None else tuple(messages)


def _are_texts(ids: Collection[object]) -> bool:
    return all(isinstance(id, str) for id in ids)


# ---- a whole session -------------------------------------------------------------------------------------------------


def blank(session: Session, *, why: str, at: datetime, digest_key: str) -> tuple[Session, tuple[Entry, ...]]:
    """The session with nothing in it, and the entries that say so, behind those it has."""
    bare = Session(
        key=session.key, version=session.version, seq=session.seq, owner=session.owner, parent=session.parent,
        digest_key=digest_key,
    )  # fmt: skip
    return _filed(bare, Kept(generation=session.generation + 1, why=why), at)


def is_blank(left: Sequence[Body]) -> bool:
    """Whether these bodies, all that are not erased, are those of an erasure which left nothing in the session."""
    if len(left) != 2 or not isinstance(left[1], TurnClosed):
        return False
    told = left[0]
    if not isinstance(told, HistoryChanged) or told.op != "erase":
        return False
    kept = msgspec.json.decode(told.value, type=Kept)
    return kept == Kept(generation=kept.generation, why=kept.why)


def _filed(session: Session, kept: Kept, at: datetime) -> tuple[Session, tuple[Entry, ...]]:
    """The session once the erasure is on its record, in the next version."""
    turn = f"{session.key.id}:history:{session.seq}"
    bodies = (HistoryChanged(op="erase", value=Raw(msgspec.json.encode(kept))), TurnClosed(status="silent"))
    entries = tuple(
        Entry(seq=session.seq + n, n=n, turn=turn, take=1, where=ERASURE, at=at, cause=n - 1 if n else None, body=body)
        for n, body in enumerate(bodies)
    )
    return replace(land(session, entries), version=session.version + 1), entries


def _erases(body: Body) -> bool:
    return isinstance(body, HistoryChanged) and body.op == "erase"


# ---- some turns ------------------------------------------------------------------------------------------------------


class Told(Struct, frozen=True):
    """A record walked once: its entries, and which turn each message came from, also those long removed.

    ``filers`` are the turns that filed messages of others: a message that drops a question files what the paused turn
    had said.
    """

    session: Session
    entries: tuple[Entry, ...]
    origins: dict[str, str]
    filers: dict[str, str]

    @classmethod
    def of(cls, session: Session, entries: Sequence[Entry]) -> Told:
        """StoreError when the record does not fold: then nothing but the whole session can be erased."""
        start = Session(key=session.key, digest_key=session.digest_key)
        try:
            return cls(session, tuple(entries), *_origins(walk(start, entries, NO_FOLDS)))
        except RecordInvalid as error:
            raise StoreError(
                f"the record of session {session.key.id!r} does not fold: {error}",
                code="store-record",
                hint="no turn of it can be erased alone; erase the whole session",
            ) from None


def _origins(walked: Iterable[Walked]) -> tuple[dict[str, str], dict[str, str]]:
    origins, filers = dict[str, str](), dict[str, str]()
    known, imports = Conversation().messages, False
    for one in walked:
        body = one.entry.body
        imports |= isinstance(body, HistoryChanged) and body.op == "import"
        if one.session is None:
            continue
        told = one.session.conversation.messages
        for message in told.since(told.shared_with(known)):
            # Imported messages name turns of their own; of all others some are filed by a later turn.
            if message.id not in origins:  # else a change of history before it shows it again
                origins[message.id] = one.entry.turn if imports else message.turn or one.entry.turn
                filers[message.id] = one.entry.turn
        known, imports = told, False
    return origins, filers


def named_turns(told: Told, messages: Collection[str]) -> frozenset[str]:
    """The turns that these messages belong to, and the changes of history that are about them."""
    return _with_changes(told, {told.origins[id] for id in messages if id in told.origins})


def old_turns(told: Told, before: datetime) -> frozenset[str]:
    """The turns that were over before this instant and are not erased yet."""
    young = {entry.turn for entry in told.entries if entry.at >= before}
    left = {entry.turn for entry in told.entries if not isinstance(entry.body, Erased)}
    return _with_changes(told, left - young - {entry.turn for entry in told.entries if _erases(entry.body)})


def _with_changes(told: Told, turns: set[str]) -> frozenset[str]:
    """Changes of history go with the messages they are about, and stay while these stay: or they would come back."""
    for place, entry in enumerate(told.entries):
        body, about, filer = entry.body, "", ""
        if isinstance(body, HistoryChanged) and body.op in {"edit", "remove"}:
            about, filer = told.origins.get(body.message, ""), told.filers.get(body.message, "")
        elif isinstance(body, TurnInterrupted) and body.of != entry.turn:
            about = body.of
        elif isinstance(body, HistoryChanged) and body.op == "reset":
            stays = any(earlier.turn not in turns for earlier in told.entries[:place])
            about = "" if stays else entry.turn
        else:
            continue
        (turns.add if about in turns or filer in turns else turns.discard)(entry.turn)
    return frozenset(turns)


def without(
    told: Told, turns: frozenset[str], *, why: str, at: datetime, digest_key: str, keeps_state: bool
) -> Rewritten:
    """The session without these turns.

    With ``keeps_state`` what it knows stays: data, and the states of features that repeat nothing of what was said.
    Otherwise data that these turns changed go, and all states of features, since nobody here can say which of them
    hold what.
    """
    session, entries = told.session, told.entries
    # An earlier erasure's entry is replaced by the new one.
    gone = turns | {entry.turn for entry in entries if _erases(entry.body)}
    first = next((place for place, entry in enumerate(entries) if entry.turn in turns), len(entries))
    names = Names.of(entries[place] for place in range(len(entries)) if entries[place].turn not in gone)
    woken = frozenset[str]() if keeps_state else _woken(entries, turns)

    def stripped(entry: Entry) -> Entry:
        body = unquoted(entry.body, names)
        return replace(entry, body=without_payload(body) if entry.turn in woken else body)

    left = [
        erased_entry(entry, why, at) if entry.turn in gone else stripped(entry) if place > first else entry
        for place, entry in enumerate(entries)
    ]
    start = Session(key=session.key, digest_key=session.digest_key)
    salted = [entry for entry, _ in resalted(walk(start, left, NO_FOLDS), session.digest_key, digest_key)]
    after = refold(session.key, salted, digest_key=digest_key)
    patched = () if keeps_state else _patched(entries, turns)
    kept = Kept(
        generation=session.generation + 1, why=why, inputs=session.inputs, interruptions=session.interruptions,
        data={k: v for k, v in session.data.items() if k not in patched and after.data.get(k) != v},
        slots={name: slot for name, slot in stored_slots(session).items() if keeps_state and not slot.quotes},
        last_user_at=session.last_user_at, last_assistant_at=session.last_assistant_at,
    )  # fmt: skip
    base = replace(
        after, version=session.version, owner=session.owner, parent=session.parent,
        conversation=_conversation(told, after, turns),
    )  # fmt: skip
    final, added = _filed(base, kept, at)
    changed = tuple(new for old, new in zip(entries, salted, strict=True) if new.body is not old.body)
    erased = sum(isinstance(new.body, Erased) and not isinstance(old.body, Erased)
                 for old, new in zip(entries, salted, strict=True) if old.turn in turns)  # fmt: skip
    return Rewritten(final, changed, added, erased, gone)


def _woken(entries: Iterable[Entry], turns: Collection[str]) -> frozenset[str]:
    """The turns that wakes of these turns began: what such a wake carries was written by the turn that armed it."""
    armed, found = dict[str, str](), set[str]()
    for entry in entries:
        body = entry.body
        if isinstance(body, WakeArmed):
            armed[body.wake.key] = entry.turn
        elif isinstance(body, TurnInput) and isinstance(body.input, Woke) and armed.get(body.input.key) in turns:
            found.add(entry.turn)
    return frozenset(found)


def _patched(entries: Iterable[Entry], turns: Collection[str]) -> set[str]:
    """The data that these turns changed."""
    return {
        name
        for entry in entries
        if entry.turn in turns and isinstance(entry.body, DataPatched)
        for name in (*entry.body.patch, *entry.body.drop)
    }


def _conversation(told: Told, after: Session, turns: Collection[str]) -> Conversation:
    """What the record that is left tells; with messages in it that no record ever told, the stored ones that stay."""
    stored = told.session.conversation.messages
    if all(message.id in told.origins for message in stored):
        return after.conversation
    told_of = {message.id: message for message in after.conversation.messages}
    stay = (m for m in stored if told.origins.get(m.id, m.turn) not in turns)
    return Conversation.of(told_of.get(m.id) or _portable(m) for m in stay)


def _portable(message: Message) -> Message:
    if not isinstance(message, AssistantMessage):
        return message
    return replace(message, rounds=tuple(replace(r, continuation=None) for r in message.rounds))


# ---- by age and kind -------------------------------------------------------------------------------------------------

_BUILDING = {str(kind.__struct_config__.tag) for kind in CORE} | {str(Erased.__struct_config__.tag)}


def check_kinds(policy: Retention) -> None:
    """UsageError where single entries are to be erased without which no session could be folded, or for no policy."""
    given: object = policy
    if not isinstance(given, Retention):
        raise UsageError(f"expire takes a Retention, not {type(given).__name__}", hint="write Retention(rows=...)")
    for kind in policy.kinds:
        if kind in _BUILDING:
            raise UsageError(
                f"sessions are built of entries of the kind {kind!r}, so they cannot be erased alone",
                hint="Retention(entries=...) erases whole turns by age",
            )


def descendants(key: SessionKey, parents: Iterable[tuple[SessionKey, str | None]]) -> list[SessionKey]:
    """The sessions of sub-turns below this one, the deepest first."""
    below: dict[str, list[SessionKey]] = {}
    for child, parent in parents:
        if parent is not None and child.tenant == key.tenant and child != key:
            below.setdefault(parent, []).append(child)
    found, level = list[SessionKey](), [key]
    while level:
        level = [child for above in level for child in below.pop(above.id, ())]
        found += level
    return found[::-1]
