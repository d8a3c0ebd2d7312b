"""Moving sessions here from the library that flows come from, and looking whether a session fits its flows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from onrecord.conversation.identity import SessionKey, session_key
from onrecord.conversation.outgoing import Wake
from onrecord.errors import StoreError, UsageError
from onrecord.flows.direct import Flows
from onrecord.flows.entries import FLOWS, FlowsImported
from onrecord.flows.fitting import check_session
from onrecord.flows.old_blobs import FlowIdOf, Imported, Unreadable, read_blob
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import DataPatched, HistoryChanged, Noted, TextSaid, TurnClosed, TurnOpened, WakeArmed
from onrecord.session.folding import Folds, land
from onrecord.session.history import raw_value
from onrecord.session.inbox import wake_row
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.timing import whole_ms
from onrecord.turn.effects import PlainEffects

__all__ = ("check_session", "import_change", "import_session")

BY = "import"
"""Who makes the entries of an import."""


def import_session(
    blob: object, session_id: SessionKey | str, *, flow_id_of: FlowIdOf | None = None, now: datetime
) -> Session:
    """A session of the library that flows come from, as one of ours, for callers who keep sessions themselves.

    ``blob`` is what was stored, a mapping or its JSON, of version 4 or 3.x, with keys in snake_case or camelCase. Its
    runs, claims, fields, handled messages, last times and history come along; its version does not. Of a 3.x session
    the flow that it was in the middle of goes on as a run with the key ``legacy``; ``flow_id_of`` names the flow that a
    trigger belongs to now (default: the trigger's own name; an empty one drops its claim). ``now`` is when it is
    imported, with a UTC offset.

    StoreError (``store-corrupt``) names the session and why its blob cannot be read. To keep it in a store, commit
    `import_change`.
    """
    return import_change(blob, session_id, flow_id_of=flow_id_of, now=now).session


def import_change(
    blob: object, session_id: SessionKey | str, *, flow_id_of: FlowIdOf | None = None, now: datetime,
    flows: Flows | None = None, context: object = None, options: Sequence[object] = (),
) -> Change:  # fmt: skip
    """The same as a change to commit, with the entries that tell of it: ``await store.commit(import_change(...))``.

    The session must not be in that store yet. With ``flows``, the wakes that the session waits for are armed: those of
    its parked runs, and of silence as it is judged with ``context`` and ``options`` (`FlowOptions`).
    """
    key = session_key(session_id)
    given: object = now
    if not isinstance(given, datetime) or given.utcoffset() is None:
        raise UsageError("the time of an import has no UTC offset", hint="pass now=datetime.now(UTC)")
    now = whole_ms(now)
    try:
        held = read_blob(blob, key.id, flow_id_of or str, now)
    except Unreadable as why:
        raise StoreError(
            f'stored session "{key.id}" is unreadable: {why}. Repair or delete the row; it is never replaced by a '
            "fresh conversation.",
            code="store-corrupt",
        ) from None
    new = Session(key=key, digest_key=PlainEffects().nonce())
    session, entries = new, list[Entry]()
    for bodies in _takes(held, now):
        session = _landed(session, bodies, now, entries)
    wakes = () if flows is None else flows.pending_wakes(session, now=now, context=context, options=options)
    if wakes:
        session = _landed(session, _armed(wakes, now), now, entries)
    rows = tuple(wake_row(key, wake) for wake in wakes)
    return Change(session=session, messages=tuple(session.conversation.messages), entries=tuple(entries), put=rows)


def _takes(held: Imported, now: datetime) -> Iterator[tuple[Body, ...]]:
    """What happened elsewhere, told as takes: the messages handled, when each side spoke last, and what is known."""
    inputs = held.inputs or ("",)
    for input in inputs[:-1]:
        yield _opened(held.last_user_at or now, input), _CLOSED
    if held.last_user_at is not None:
        wrote = TextSaid(key=f"{BY}/user", text="", side="user")
        yield _opened(held.last_user_at, inputs[-1]), wrote, _CLOSED
    elif inputs[-1]:
        yield _opened(now, inputs[-1]), _CLOSED
    if held.last_assistant_at is not None:
        yield _opened(held.last_assistant_at), TextSaid(key=f"{BY}/assistant", text=""), _CLOSED
    known: list[Body] = []
    if held.history:
        known.append(HistoryChanged(op="import", by=BY, value=raw_value(held.history)))
    if held.data:
        known.append(DataPatched(patch=held.data))
    if held.metadata:
        known.append(Noted(by=BY, text="metadata of the stored session", about=held.metadata))
    yield _opened(now), *known, FlowsImported(state=held.state), _CLOSED


def _armed(wakes: tuple[Wake, ...], now: datetime) -> tuple[Body, ...]:
    return _opened(now), *(WakeArmed(wake=wake) for wake in wakes), _CLOSED


def _opened(now: datetime, input_key: str = "") -> TurnOpened:
    return TurnOpened(input_kind=BY, row=BY, now=now, input_key=input_key)


_CLOSED = TurnClosed(status="silent")


def _landed(session: Session, bodies: tuple[Body, ...], at: datetime, into: list[Entry]) -> Session:
    """The session after one take of these bodies, whose entries are added."""
    turn = f"{session.key.id}:{BY}:{session.seq}"
    take = [
        Entry(seq=session.seq + n, n=n, turn=turn, take=1, where="main", at=at, cause=n - 1 if n else None, body=body)
        for n, body in enumerate(bodies)
    ]
    into += take
    return land(session, take, Folds((FLOWS,)))
