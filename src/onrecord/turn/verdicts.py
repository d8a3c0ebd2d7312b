"""Filing verdicts: what a feature changed, denied, asked or said why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from onrecord.jsonio import Json, digest
from onrecord.record.kinds import VerdictFiled
from onrecord.turn.moments import Moment
from onrecord.turn.turn import Turn

__all__ = ("file_verdict", "fingerprint")

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=repr).encode


def fingerprint(turn: Turn, value: object) -> str:
    """Digest of a value, keyed by the session, so that a record shows that something changed but not what."""
    try:
        data = _encode(value)
    except Exception:  # noqa: BLE001 - what cannot be written down still has a kind
        data = type(value).__name__.encode()
    return digest(data, turn.session.digest_key)


def _as_text(value: object) -> str:
    """A value as the record keeps it: text as it is, anything else as JSON; empty where there is none, or no way."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return _encode(value).decode()
    except Exception:  # noqa: BLE001 - what cannot be written down has its digest still
        return ""


def file_verdict(
    turn: Turn, moment: Moment, by: str, verdict: Literal["allow", "deny", "ask", "revise", "stop"], why: str,
    *, call: str = "", before: object = None, after: object = None, data: Mapping[str, Json] | None = None,
    where: str = "main", keeps: bool = False,
) -> int:  # fmt: skip
    """Files one verdict and returns its place in the turn. ``keeps``: with the text of what changed or was denied."""
    body = VerdictFiled(
        moment=moment, by=by, verdict=verdict, why=why, call=call, data=data or {},
        before="" if before is None else fingerprint(turn, before),
        after="" if after is None else fingerprint(turn, after),
        before_text=_as_text(before) if keeps else "", after_text=_as_text(after) if keeps else "",
    )  # fmt: skip
    return turn.note(body, where=where).n
