"""Who is talking and which conversation it is."""

from __future__ import annotations

from msgspec import Struct

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
    """A plain string names a session of no tenant."""
    return SessionKey(key) if isinstance(key, str) else key
