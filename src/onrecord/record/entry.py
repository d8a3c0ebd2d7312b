"""Entry: one fact with its place; Body: its typed content."""

from __future__ import annotations

from datetime import datetime

from msgspec import Raw, Struct

__all__ = ("Body", "Entry", "UnknownBody", "kind_of")


class Body(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="kind"):
    """Base of every entry body. A feature's own bodies derive from it with a namespaced ``tag``."""


class UnknownBody(Body, frozen=True, gc=False, kw_only=True, tag="unknown"):
    """A body of a kind that nothing here declares; ``raw`` is written back byte for byte."""

    was: str
    raw: Raw


class Entry(Struct, frozen=True, gc=False, kw_only=True):
    """One fact of a turn.

    ``n`` is its place in the turn and what ``cause`` points at; ``where`` is a path such as ``main/r2/c0``; ``seq``
    is its place in the session's stream, final once the commit succeeds; ``at`` is wall time, for timing only.
    """

    seq: int
    n: int
    turn: str
    take: int
    where: str
    at: datetime
    cause: int | None
    body: Body


def kind_of(body: Body) -> str:
    """The kind under which a body is stored, such as ``tool.started``."""
    if isinstance(body, UnknownBody):
        return body.was
    return str(body.__struct_config__.tag)
