"""Proxies are taken from the environment as curl takes them."""

from __future__ import annotations

import pytest

from onrecord.net.proxies import proxy_for

pytestmark = pytest.mark.unit

P = "http://proxy:3128"


@pytest.mark.parametrize(
    ("environ", "scheme", "expected"),
    [
        ({}, "https", None),
        ({"HTTPS_PROXY": P}, "https", P),
        ({"HTTPS_PROXY": P}, "http", None),
        ({"https_proxy": "http://low:1", "HTTPS_PROXY": P}, "https", "http://low:1"),
        ({"https_proxy": "", "HTTPS_PROXY": P}, "https", None),
        ({"ALL_PROXY": P}, "https", P),
        ({"all_proxy": P}, "http", P),
        ({"all_proxy": "", "ALL_PROXY": P}, "https", None),
        ({"HTTP_PROXY": "proxy:3128"}, "http", P),
        ({"HTTP_PROXY": P, "REQUEST_METHOD": "GET"}, "http", None),
        ({"http_proxy": P, "REQUEST_METHOD": "GET"}, "http", P),
    ],
)
def test_which_variable_counts(environ: dict[str, str], scheme: str, expected: str | None) -> None:
    """The scheme's own variable before ALL_PROXY, lower case before upper, empty for none."""
    assert proxy_for(scheme, "api.example.com", 443, environ) == expected


@pytest.mark.parametrize(
    ("no_proxy", "host", "port", "direct"),
    [
        ("*", "api.example.com", 443, True),
        ("api.example.com", "api.example.com", 443, True),
        ("example.com", "api.example.com", 443, True),
        (".example.com", "API.example.com", 443, True),
        ("*.example.com", "api.example.com", 443, True),
        (".example.com", "example.com", 443, True),
        ("example.com", "badexample.com", 443, False),
        ("example.com:443", "api.example.com", 443, True),
        ("example.com:8443", "api.example.com", 443, False),
        ("other, example.com ,", "api.example.com.", 443, True),
        ("127.0.0.1", "127.0.0.1", 80, True),
        ("127.0.0.1:81", "127.0.0.1", 80, False),
        ("10.0.0.0/8", "10.20.30.40", 80, True),
        ("10.0.0.0/8", "11.20.30.40", 80, False),
        ("10.0.0.0/8", "api.example.com", 80, False),
        ("0.0.1", "10.0.0.1", 80, False),
        ("fd00::/8", "fd12::1", 80, True),
        ("[fd12::1]:80", "[fd12::1]", 80, True),
        ("::1", "::1", 80, True),
        ("nonsense/99", "10.0.0.1", 80, False),
        (".", "api.example.com", 80, False),
        ("", "api.example.com", 80, False),
    ],
)
def test_no_proxy(no_proxy: str, host: str, port: int, direct: bool) -> None:
    """NO_PROXY names hosts, domains, addresses and networks, each with a port or without."""
    found = proxy_for("https", host, port, {"HTTPS_PROXY": P, "NO_PROXY": no_proxy})
    assert (found is None) == direct


def test_the_process_environment_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable set later counts from then on."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert proxy_for("https", "api.example.com", 443) is None
    monkeypatch.setenv("HTTPS_PROXY", P)
    assert proxy_for("https", "api.example.com", 443) == P
    monkeypatch.setenv("NO_PROXY", "example.com")
    assert proxy_for("https", "api.example.com", 443) is None
