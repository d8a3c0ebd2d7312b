"""Who is talking and which conversation it is."""

from __future__ import annotations

from msgspec import Struct

from onrecord.errors import UsageError

__all__ = ("Identity", "SessionKey", "session_key")


class _Named(Struct, frozen=True, gc=False):
    id: str


class SessionKey(_Named, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Names a session; every store keys by tenant as well."""

    tenant: str = ""


class Identity(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Who owns a session, as the host knows them."""

    tenant: str = ""
    principal: str = ""


def session_key(key: SessionKey | str) -> SessionKey:
    """A plain string names a session of no tenant. UsageError for what names none."""
    if isinstance(key, str):
        return SessionKey(key)
    given: object = key
    parts: tuple[object, ...] = (key.id, key.tenant) if isinstance(given, SessionKey) else (given,)
    for part in parts:
        if not isinstance(part, str):
            raise UsageError(
                f"a session is named by a text, not by {type(part).__name__}",
                hint="give a text, or SessionKey(id, tenant=...)",
            )
    return key
