"""Sessions and messages as JSON: small state apart from its messages, or both packed together."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Raw, Struct

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.log import Log
from onrecord.conversation.messages import Message
from onrecord.errors import StoreError
from onrecord.jsonio import UNREADABLE, Json, misfit
from onrecord.record.kinds import Pending
from onrecord.session.session import Session, SlotState, StoredSlot

__all__ = (
    "decode_message",
    "decode_state",
    "dumps_session",
    "encode_message",
    "encode_state",
    "loads_session",
    "pack",
    "slot_value",
    "stored_slots",
    "unpack",
)

T = TypeVar("T")


class _State(Struct, frozen=True, kw_only=True, omit_defaults=True):
    key: SessionKey
    version: int = 0
    generation: int = 0
    seq: int = 0
    owner: Identity | None = None
    parent: str | None = None
    data: Mapping[str, Json] = {}
    inputs: tuple[str, ...] = ()
    interruptions: tuple[str, ...] = ()
    pending: Pending | None = None
    last_user_at: datetime | None = None
    last_assistant_at: datetime | None = None
    slots: Mapping[str, StoredSlot] = {}
    digest_key: str = ""
    filed: tuple[str, ...] = ()


class _Packed(Struct, frozen=True):
    state: _State
    messages: tuple[Message, ...]


def _plain(value: object) -> object:
    """How a slot state's own types are written: a Log as a list."""
    if isinstance(value, Log):
        return list(value)
    raise TypeError(f"it holds an object of the type {type(value).__name__}")


def _typed(kind: type, value: object) -> object:
    if kind is Log or get_origin(kind) is Log:
        (item,) = get_args(kind) or (Any,)
        return Log(msgspec.convert(value, list[item]))  # type: ignore[valid-type]  # the item type is known at run time only
    raise TypeError(f"a slot state declares a {kind}, which JSON cannot give back")


_encode = msgspec.json.Encoder(enc_hook=_plain).encode
_COPIED = tuple(name for name in _State.__struct_fields__ if name != "slots")


@cache
def decoder(kind: Any) -> Callable[[bytes | Raw], Any]:
    """Reads JSON as this kind."""
    # Made on first use and kept: making one takes longer than a cold start should, using one is fast.
    return msgspec.json.Decoder(kind).decode


def _stored(kind: Any, data: bytes | Raw) -> Any:
    """What a store kept of a session. StoreError, without its content, when it does not decode."""
    try:
        return decoder(kind)(data)
    except UNREADABLE as error:
        raise StoreError(f"a stored session does not decode: {misfit(error)}", code="store-corrupt") from None


def decode_message(data: bytes | Raw) -> Message:
    """The message that `encode_message` wrote. StoreError when it does not decode."""
    message: Message = _stored(Message, data)
    return message


def encode_message(message: Message) -> bytes:
    """One message, as stores keep it."""
    return _encode(message)


def slot_value(slot: SlotState, kind: type[T]) -> T:
    """A slot's state as its fold declares it; fresh from a store it is decoded here, once.

    StoreError when it does not decode: its fold changed what it keeps, but not its version.
    """
    if isinstance(slot.value, Raw):
        try:
            return msgspec.json.decode(slot.value, type=kind, dec_hook=_typed)
        except UNREADABLE as error:
            raise StoreError(
                f"the stored state of a fold does not decode: {misfit(error)}",
                code="store-corrupt",
                hint="give the fold another version, and fold the record again: onrecord.session.refold(...)",
            ) from None
    value: T = slot.value
    return value


def stored_slots(session: Session) -> dict[str, StoredSlot]:
    """The states of features as they are written."""
    return {
        name: StoredSlot(
            slot.version, slot.value if isinstance(slot.value, Raw) else Raw(_encode(slot.value)), slot.quotes
        )
        for name, slot in session.slots.items()
    }


def _small(session: Session) -> _State:
    return _State(**{name: getattr(session, name) for name in _COPIED}, slots=stored_slots(session))


def encode_state(session: Session) -> bytes:
    """The small state of a session, without its messages."""
    return _encode(_small(session))


def _session(state: _State, conversation: Conversation) -> Session:
    slots = {name: SlotState(slot.version, slot.value, slot.quotes) for name, slot in state.slots.items()}
    return Session(**{name: getattr(state, name) for name in _COPIED}, slots=slots, conversation=conversation)


def decode_state(data: bytes, conversation: Conversation) -> Session:
    """A session from its small state and its messages. StoreError when the state does not decode."""
    return _session(_stored(_State, data), conversation)


def dumps_session(session: Session) -> bytes:
    """A whole session as JSON, its messages included."""
    return _encode(_Packed(_small(session), tuple(session.conversation.messages)))


def loads_session(data: bytes | Raw) -> Session:
    """The session that `dumps_session` wrote. StoreError when it does not decode."""
    held = _stored(_Packed, data)
    return _session(held.state, Conversation.of(held.messages))


def pack(session: Session) -> bytes:
    """A whole session in a few compressed bytes: what a process keeps of a conversation that waits."""
    return zlib.compress(dumps_session(session), 1)


def unpack(data: bytes) -> Session:
    """The session that `pack` made bytes of. StoreError when the bytes are not a packed session."""
    try:
        return loads_session(zlib.decompress(data))
    except zlib.error as error:
        raise StoreError(f"these bytes are not a packed session: {error}", code="store-corrupt") from None
