"""Which compatible vendors can be used on this machine."""

from __future__ import annotations

import socket
from typing import NamedTuple
from urllib.parse import urlsplit

from onrecord.errors import ConfigurationError
from onrecord.providers.api_keys import Key
from onrecord.providers.openai_compatible.vendors import VENDORS, address_of

__all__ = ("Available", "available", "by_key")

_PROBE_S = 0.3


class Available(NamedTuple):
    """Whether models of a provider can be used here, and what is there or missing."""

    name: str
    usable: bool
    why: str


def available() -> list[Available]:
    """Every provider that speaks Chat Completions. Reads the environment, and tries the ports of servers run here."""
    found = [by_key("openai", "OPENAI_API_KEY")]
    for name, vendor in VENDORS.items():
        if vendor.runs_here:
            found.append(_by_port(name, address_of(name)))
        else:
            found.append(by_key(name, vendor.key, place=vendor.place))
    return found


def by_key(name: str, variable: str, *, place: str = "") -> Available:
    """A provider by the variable of its key, and by that of its endpoint where it has no address of its own."""
    missing = [] if Key(variable=variable).read() is not None else [variable]
    if place:
        try:
            address_of(name)
        except ConfigurationError:
            missing.append(place)
    if missing:
        return Available(name, usable=False, why=f"set {' and '.join(missing)}")
    return Available(name, usable=True, why=f"{variable} is set")


def _by_port(name: str, url: str) -> Available:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "localhost", port), timeout=_PROBE_S):
            return Available(name, usable=True, why=f"a server answers at {url}")
    except (OSError, ValueError):  # nobody answers, or the variable holds no address at all
        return Available(name, usable=False, why=f"start its server at {url}, or set {name.upper()}_BASE_URL")
