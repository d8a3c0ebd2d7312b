"""What a server lists, tool by tool: which are offered under which id, and why others are left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from onrecord.jsonio import Json, dumps
from onrecord.mcp_bridge.limits import Limits
from onrecord.mcp_bridge.schemas import Refused, fit_schema
from onrecord.mcp_bridge.shown_words import clean, hides, named, without

__all__ = ("RESERVED", "Described", "Listing", "Wanted", "listing_of")

_other = re.compile(r"[^a-zA-Z0-9_-]").sub
ID_LENGTH = 64
"""Longer names of tools are refused by models."""
NAME_LENGTH = 128
TOLD = 20
"""Tools that are left out and named one by one; of more their number is told."""

RESERVED = frozenset(
    """
    read_skill list_skills read_skill_file skip_step ask_human request_input ask_fields present respond_with_schema
    run_overview find_context_errors find_in_trace trace_node trace_slice backtrack who_wrote get_value
    inspect_tool_call inspect_tool_run read_narrative explain_run
    """.split()
)
"""Names of the library's own tools. No server's tool is called so, whether or not an agent has that feature."""


class Wanted(Struct, frozen=True, kw_only=True):
    """What an application wants of a server: the names it takes (None: all) and those that it does not."""

    server: str
    prefix: str
    allow: frozenset[str] | None
    deny: frozenset[str]
    limits: Limits
    trusts_hints: bool


class Described(Struct, frozen=True, kw_only=True):
    """One tool as it is offered. ``name`` is the server's own."""

    id: str
    name: str
    description: str
    parameters: Mapping[str, Json]
    read_only: bool
    destructive: bool


class Listing(Struct, frozen=True, kw_only=True):
    """Tools in the order of their ids, and what there is to say about the others."""

    tools: tuple[Described, ...] = ()
    notices: tuple[str, ...] = ()


def listing_of(
    listed: Sequence[object], wanted: Wanted, refused: Collection[str] = (), secrets: Sequence[str] = ()
) -> Listing:
    """Checks what a server lists. Nothing that it says raises: a tool that cannot be offered is left out and told.

    ``refused`` are names of tools whose arguments cannot be sent; one that repeats one of the ``secrets`` is left out.
    """
    offers = _Offers(wanted, refused, secrets)
    left, names = list[str](), set[str]()
    tools = [each for each in listed if isinstance(each, Mapping)]
    if len(tools) < len(listed):
        left.append(f"{len(listed) - len(tools)} of what {wanted.server!r} lists are no tools")
    for raw in sorted(tools, key=_order):
        name = raw.get("name")
        if isinstance(name, str):
            names.add(name)
            if not _is_wanted(name, wanted):
                continue
        try:
            offers.add(raw, name)
        except Refused as why:
            left.append(without(f"tool {named(name)} of {wanted.server!r} is left out: {why}", secrets))
    missing = sorted((wanted.allow or frozenset()) - names)
    left += [f"{wanted.server!r} lists no tool {named(name)}, which is allowed" for name in missing]
    return Listing(tools=tuple(offers.found[id] for id in sorted(offers.found)), notices=_told(left))


class _Offers:
    """What is offered of one listing so far, and how much room is left."""

    def __init__(self, wanted: Wanted, refused: Collection[str], secrets: Sequence[str]) -> None:
        self._wanted, self._refused, self._secrets = wanted, refused, secrets
        self._room = wanted.limits.listing
        self.found: dict[str, Described] = {}

    def add(self, raw: Mapping[str, Any], name: object) -> None:
        """Raises Refused for a tool that cannot be offered beside the others."""
        limits = self._wanted.limits
        made = _described(raw, name, self._wanted)
        if made.name in self._refused:
            raise Refused("it asks for headers that cannot be sent")
        if (held := self.found.get(made.id)) is not None:
            raise Refused(f"{named(held.name)} has the same id, {made.id!r}")
        if len(self.found) >= limits.tools:
            raise Refused(f"there are {limits.tools} tools already")
        schema = dumps(made.parameters).decode()
        if any(secret in text for secret in self._secrets for text in (made.id, made.name, made.description, schema)):
            raise Refused("it repeats a secret")
        size = len(made.description) + len(schema)
        if size > self._room:
            raise Refused(f"the server's descriptions have more than {limits.listing} characters together")
        self._room -= size
        self.found[made.id] = made


def _order(raw: Mapping[str, Any]) -> tuple[str, str]:
    name = raw.get("name")
    return (_other("_", name), name) if isinstance(name, str) else ("", "")


def _is_wanted(name: str, wanted: Wanted) -> bool:
    return name not in wanted.deny and (wanted.allow is None or name in wanted.allow)


def _described(raw: Mapping[str, Any], name: object, wanted: Wanted) -> Described:
    id = _id(name, wanted.prefix)
    told = raw.get("description")
    words = clean(told, wanted.limits.description) if isinstance(told, str) else ""
    hints: object = raw.get("annotations")
    given = hints if wanted.trusts_hints and isinstance(hints, Mapping) else {}
    reads = given.get("readOnlyHint") is True
    return Described(
        id=id, name=str(name), description=f"From the server {wanted.server!r}: {words}".rstrip(": "),
        parameters=fit_schema(raw.get("inputSchema"), wanted.limits.schema), read_only=reads,
        destructive=not reads and given.get("destructiveHint") is not False,
    )  # fmt: skip


def _id(name: object, prefix: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise Refused("it has no name")
    if len(name) > NAME_LENGTH or hides(name):
        raise Refused("its name is too long or holds characters that nobody sees")
    id = prefix + _other("_", name)
    if len(id) > ID_LENGTH:
        raise Refused(f"its id, {id!r}, has more than {ID_LENGTH} characters")
    if id in RESERVED:
        raise Refused("a tool of the library has this name")
    return id


def _told(left: Collection[str]) -> tuple[str, ...]:
    kept = tuple(left)[:TOLD]
    return kept if len(kept) == len(left) else (*kept, f"and {len(left) - len(kept)} more")
