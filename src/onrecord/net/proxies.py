"""Which proxy a request goes through, by the environment variables that curl made customary."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ("proxy_for",)

_RAW: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
_ENCODE: Callable[[str], Any] = getattr(os.environ, "encodekey", str) if _RAW is not os.environ else str
_NAMES = tuple(
    _ENCODE(name) for scheme in ("http", "https", "all") for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper())
)


def proxy_for(scheme: str, host: str, port: int, environ: Mapping[str, str] = os.environ) -> str | None:
    """The proxy's URL, or None to connect directly.

    ``HTTPS_PROXY`` or ``HTTP_PROXY`` by the scheme of the target, else ``ALL_PROXY``; the lower-case name wins over
    the upper-case one, and an empty value means no proxy. ``NO_PROXY`` lists exceptions, separated by commas.
    """
    if environ is os.environ:
        # Nearly every process has no proxy, and asking `os.environ` for what it lacks costs a microsecond each time.
        for name in _NAMES:
            if name in _RAW:
                break
        else:
            return None
    proxy = environ.get(f"{scheme}_proxy")
    if proxy is None and (scheme != "http" or "REQUEST_METHOD" not in environ):
        # Under CGI, HTTP_PROXY is whatever header a visitor sent as `Proxy`.
        proxy = environ.get(f"{scheme.upper()}_PROXY")
    if proxy is None:
        proxy = environ.get("all_proxy")
        if proxy is None:
            proxy = environ.get("ALL_PROXY")
    if not proxy:
        return None
    exceptions = environ.get("no_proxy")
    if exceptions is None:
        exceptions = environ.get("NO_PROXY", "")
    if exceptions and _excepted(host, port, exceptions):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _excepted(host: str, port: int, exceptions: str) -> bool:
    host = host.strip("[]").rstrip(".").lower()
    address = _address(host)
    return any(_covers(entry, host, port, address) for raw in exceptions.split(",") if (entry := raw.strip().lower()))


def _covers(entry: str, host: str, port: int, address: _Address | None) -> bool:
    """Whether one entry of NO_PROXY names this target.

    An entry is ``*``, a host or domain, an address or a network; with a port it covers that port alone.
    """
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            return False
    name, wanted = _split_port(entry)
    if wanted is not None and wanted != port:
        return False
    if address is not None:
        return _address(name) == address
    name = name.removeprefix("*").strip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _split_port(entry: str) -> tuple[str, int | None]:
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        port = rest.removeprefix(":")
    elif entry.count(":") == 1:
        name, _, port = entry.partition(":")
    else:  # no port, or a bare IPv6 address
        return entry, None
    return name, int(port) if port.isascii() and port.isdigit() else None


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(text: str) -> _Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
