"""An exported record: JSON lines, a header first, each line sealed to the one before it.

The header says which session it is, how many entries follow, the key of every digest in the file (made for this file
alone), and the digest of the session that the entries fold to. Each line ends with its seal: a digest chained over
all lines before it, so that a line that was changed, removed or moved is named by its number.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

import onrecord
from onrecord.conversation.identity import SessionKey
from onrecord.errors import RecordInvalid
from onrecord.jsonio import UNREADABLE, Json, canonical, chained, digest
from onrecord.record.entry import Entry
from onrecord.record.jsonl import EntryCodec
from onrecord.record.leaving import Leaves, leaving
from onrecord.session.codec import encode_message, encode_state
from onrecord.session.folding import NO_FOLDS
from onrecord.session.session import Session
from onrecord.session.walking import resalted, walk

__all__ = ("FORMAT", "Header", "RecordFile", "comparable", "exported", "read_record", "state_digest")

FORMAT = 1
"""The newest format of an exported record that this library writes and reads."""

_SEAL = re.compile(rb',"seal":"([0-9a-f]+)"\}\s*$')
_NOT_FOLDED = ("key", "version", "owner", "parent", "slots", "digest_key")
_header = msgspec.json.Decoder(dict[str, Json]).decode


class Header(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first line of a record file. ``redacted``: what leaves a record under a redaction, and proves just that."""

    onrecord: str
    format: int
    session: SessionKey
    entries: int
    digest_key: str
    state: str
    by: str = ""
    redacted: bool = False


class RecordFile(Struct, frozen=True, kw_only=True):
    """What a record file holds; ``header`` is None for bare entries. ``broken`` says which lines are not as sealed.

    Sealed lines without a header are broken: nothing proves them.
    """

    header: Header | None
    entries: tuple[Entry, ...]
    broken: tuple[str, ...] = ()


# ---- writing ---------------------------------------------------------------------------------------------------------


def exported(
    session: Session, entries: Sequence[Entry], codec: EntryCodec, leaves: Leaves = leaving
) -> Iterator[bytes]:
    """The lines of a record file with digests of its own. RecordInvalid when the record does not fold.

    ``leaves`` says how entries leave, see `onrecord.record.leaving`. A file of redacted entries verifies as any: its
    digests are of the texts that are in it.
    """
    key = secrets.token_hex(16)
    start = Session(key=session.key, digest_key=session.digest_key)
    redacted = leaves is not leaving
    shown = walk(start, map(leaves, entries), NO_FOLDS) if redacted else None
    made = list(resalted(walk(start, entries, NO_FOLDS), session.digest_key, key, shown))
    left = [entry if redacted else leaves(entry) for entry, _ in made]
    fresh = made[-1][1] if made else {}
    if redacted:  # another session: what these entries fold to
        state = state_digest(_last(session.key, left, key), key)
    else:
        held = comparable(session)
        held["filed"] = [fresh.get(mark) or digest(mark.encode(), key) for mark in session.filed]
        state = digest(canonical(held), key)
    kept = [codec.encode(entry) for entry in left]
    header = Header(
        onrecord="record", format=FORMAT, session=session.key, entries=len(kept), digest_key=key, state=state,
        by=f"onrecord {onrecord.__version__}", redacted=redacted,
    )  # fmt: skip
    seal = ""
    for line in (msgspec.json.encode(header), *kept):
        seal = chained(seal, line, key)
        yield line[:-1] + b',"seal":"' + seal.encode() + b'"}\n'


def _last(session: SessionKey, entries: Sequence[Entry], key: str) -> Session:
    """What entries fold to."""
    folded = Session(key=session, digest_key=key)
    for one in walk(folded, entries, NO_FOLDS):
        folded = one.session or folded
    return folded


def comparable(session: Session) -> dict[str, Json]:
    """What folding must reproduce of a session, as plain JSON: everything but what only a store or a host knows."""
    state: dict[str, Json] = msgspec.json.decode(encode_state(session))
    for name in _NOT_FOLDED:
        state.pop(name, None)
    state["messages"] = [msgspec.json.decode(encode_message(message)) for message in session.conversation.messages]
    return state


def state_digest(session: Session, key: str) -> str:
    """The digest of what folding must reproduce."""
    return digest(canonical({"filed": [], **comparable(session)}), key)


# ---- reading ---------------------------------------------------------------------------------------------------------


def read_record(path: str, codec: EntryCodec) -> RecordFile:
    """A record file, or bare entries, one JSON object a line. RecordInvalid names the line that cannot be read."""
    with Path(path).open("rb") as file:  # once: a pipe cannot be read twice
        lines = [(number, line) for number, line in enumerate(file, 1) if line.strip()]
    if not lines:
        raise RecordInvalid(f"{path!r} is empty", hint="onrecord record export writes record files")
    header = _read_header(path, lines[0][1])
    if header is None:
        sealed = any(_SEAL.search(line) for _, line in lines)
        broken = ["its header line is missing, without which no seal can be checked"] if sealed else []
        return RecordFile(header=None, entries=tuple(_entries(path, lines, codec)), broken=tuple(broken))
    broken = list(_broken(lines, header.digest_key))
    entries = tuple(_entries(path, lines[1:], codec, redacted=header.redacted))
    if len(entries) != header.entries:
        broken.append(f"the header counts {header.entries} entries, {len(entries)} follow it")
    return RecordFile(header=header, entries=entries, broken=tuple(broken))


def _read_header(path: str, line: bytes) -> Header | None:
    try:
        found = _header(line)
    except UNREADABLE:
        raise RecordInvalid(
            f"{path!r} is neither a store nor a record: its first line is no JSON object",
            hint="name a store's file, or a file that onrecord record export wrote",
        ) from None
    if "onrecord" not in found:
        return None
    form = found.get("format")
    if isinstance(form, int) and form > FORMAT:
        raise RecordInvalid(
            f"{path!r} has format {form}, this onrecord reads formats up to {FORMAT}",
            hint="a newer onrecord wrote it: update onrecord",
        )
    try:
        return msgspec.convert(found, Header)
    except msgspec.ValidationError as error:
        raise RecordInvalid(f"{path}, line 1: its header does not decode: {error}", hint="export it again") from None


def _entries(
    path: str, lines: Iterable[tuple[int, bytes]], codec: EntryCodec, *, redacted: bool = False
) -> Iterator[Entry]:
    """With ``redacted``, a body that its feature cannot read is one of an unknown kind: whoever exported it without
    the agent had the texts taken out that only the agent knows to be names.
    """
    plain = EntryCodec()
    for number, line in lines:
        try:
            try:
                yield codec.decode(line)
            except RecordInvalid:
                if not redacted:
                    raise
                yield plain.decode(line)
        except RecordInvalid as error:
            hint = "the file is cut short" if not line.endswith(b"\n") else "the line was changed, or is no entry"
            raise RecordInvalid(f"{path}, line {number}: {error}", hint=hint) from None


def _broken(lines: Iterable[tuple[int, bytes]], key: str) -> Iterator[str]:
    """Lines that are not what was written there. Each is judged by the seal of the one before it, as it stands."""
    before = ""
    for number, line in lines:
        found = _SEAL.search(line)
        if found is None:
            yield f"line {number} has no seal"
            continue
        seal = found[1].decode()
        if chained(before, line[: found.start()] + b"}", key) != seal:
            yield f"line {number} is not as it was written, or does not follow the line before it"
        before = seal
