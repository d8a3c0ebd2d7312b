"""What stands between us and a provider: proxies and certificates."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from onrecord.errors import ModelError
from onrecord.net.transport import close, post
from tests.net.loopback import JSON, OK, Loopback, Peer, answering, serving

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for localhost and its key, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=15)
    except FileNotFoundError:
        pytest.skip("no openssl command on this machine")
    both = folder / "both.pem"
    both.write_bytes((folder / "cert.pem").read_bytes() + (folder / "key.pem").read_bytes())
    return both


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    """What a server needs to speak TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
async def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Makes the client's verifying context trust the certificate, as SSL_CERT_FILE would in a fresh process."""
    import aiohttp.connector

    context = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", context)
    await close()
    yield
    await close()


async def ask(server: Loopback, url: str = "") -> bytes:
    """The whole answer to one request."""
    async with post(url or server.url, b"{}", headers={"Authorization": "sk-1"}, provider="acme") as reply:
        return await reply.read()


async def failure(server: Loopback, url: str = "") -> ModelError:
    """The error of a request that has to fail."""
    with pytest.raises(ModelError) as caught:
        await ask(server, url)
    assert caught.value.kind == "network"
    assert "sk-" not in str(caught.value)
    return caught.value


async def tunnel(peer: Peer) -> None:
    """A proxy that connects anywhere on this machine when asked with CONNECT."""
    asked = await peer.request()
    target = asked.line.split(" ")[1]
    await peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(target.rpartition(":")[2]))

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        sink.close()

    await asyncio.gather(copy(peer.reader, writer), copy(reader, peer.writer))


# ---- proxies ------------------------------------------------------------------------------------------------------
async def test_plain_http_goes_to_the_proxy_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy gets the full address and its own password, the target is not connected to."""
    async with serving(answering(OK)) as server, serving(answering(OK)) as proxy:
        monkeypatch.setenv("http_proxy", f"http://user:pass@127.0.0.1:{proxy.port}")
        assert await ask(server) == JSON
        assert await ask(server) == JSON
        assert (server.connections, proxy.connections) == (0, 1)
        asked = proxy.requests[1]
        assert asked.line == f"POST {server.url} HTTP/1.1"
        assert asked.fields["proxy-authorization"] == "Basic " + b64encode(b"user:pass").decode()
        assert asked.fields["authorization"] == "sk-1"
        monkeypatch.setenv("NO_PROXY", "127.0.0.0/8")
        assert await ask(server) == JSON
        assert (server.connections, proxy.connections) == (1, 1)


@pytest.mark.usefixtures("trusted")
async def test_https_goes_through_a_tunnel(monkeypatch: pytest.MonkeyPatch, tls: ssl.SSLContext) -> None:
    """The proxy sees host and port, and none of the request; the tunnel is kept."""
    async with serving(answering(OK), tls=tls) as server, serving(tunnel) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:pass@127.0.0.1:{proxy.port}")
        assert await ask(server) == JSON
        assert await ask(server) == JSON
        (asked,) = proxy.requests
        assert asked.line == f"CONNECT localhost:{server.port} HTTP/1.1"
        assert asked.fields["proxy-authorization"] == "Basic " + b64encode(b"user:pass").decode()
        assert "authorization" not in asked.fields
        assert "proxy-authorization" not in server.requests[0].fields
        await close()


@pytest.mark.usefixtures("trusted")
async def test_the_resend_works_through_a_tunnel(monkeypatch: pytest.MonkeyPatch, tls: ssl.SSLContext) -> None:
    """A tunnel that died while it was kept is replaced like any connection."""

    async def short_lived(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)

    async with serving(short_lived, tls=tls) as server, serving(tunnel) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        for _ in range(3):
            assert await ask(server) == JSON
        assert proxy.connections == 3
        await close()


async def test_a_proxy_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy's status is told, and that it is the proxy's."""
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    async with serving(answering(refusal)) as proxy:
        monkeypatch.setenv("all_proxy", f"127.0.0.1:{proxy.port}")
        error = await failure(Loopback(), "https://api.example.com/v1")
    assert str(error) == "acme: api.example.com is behind a proxy that answered with status 407"
    assert "NO_PROXY" in error.hint


async def test_a_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the proxy that cannot be reached, and its password stays untold."""
    monkeypatch.setenv("all_proxy", "http://user:sk-pass@127.0.0.1:9")
    error = await failure(Loopback(), "https://api.example.com/v1")
    assert "behind a proxy that cannot be reached (connection refused)" in str(error)


async def test_a_proxy_of_another_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """SOCKS is said not to work instead of being passed by."""
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    with pytest.raises(ModelError, match="not an HTTP proxy") as caught:
        await ask(Loopback(), "https://api.example.com/v1")
    assert caught.value.kind == "invalid"


# ---- TLS ----------------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("trusted")
async def test_tls(tls: ssl.SSLContext) -> None:
    """A trusted certificate is fine, and the connection is kept."""
    async with serving(answering(OK), tls=tls) as server:
        assert await ask(server) == JSON
        assert await ask(server) == JSON
        assert server.connections == 1
        await close()


async def test_a_self_signed_certificate_is_refused(tls: ssl.SSLContext) -> None:
    """With the reason, and with what can be done."""
    async with serving(answering(OK), tls=tls) as server:
        error = await failure(server)
        assert not server.requests
    assert "certificate that is not trusted (self-signed certificate)" in str(error)
    assert "SSL_CERT_FILE" in error.hint


async def test_a_server_without_tls_is_told_from_one_that_is_not_there() -> None:
    """The address was given with https:// and the server speaks http."""

    async def plain(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    async with serving(plain) as server:
        error = await failure(server, f"https://localhost:{server.port}/")
    assert "cannot be reached" in str(error)
    assert "http://" in error.hint


@pytest.mark.usefixtures("trusted")
async def test_a_certificate_for_another_name_is_refused(tls: ssl.SSLContext) -> None:
    """Trusted, but not for this host."""
    async with serving(answering(OK), tls=tls) as server:
        error = await failure(server, f"https://127.0.0.1:{server.port}/")
    assert "certificate that is not trusted" in str(error)


async def test_a_server_without_tls() -> None:
    """HTTPS to an HTTP server is told as what it is."""

    async def script(peer: Peer) -> None:
        await peer.reader.read(100)
        await peer.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    async with serving(script) as server:
        error = await failure(server, f"https://127.0.0.1:{server.port}/")
    assert "cannot be reached (wrong version number)" in str(error)


async def test_a_handshake_that_never_ends() -> None:
    """Connecting has a limit of its own."""

    async def mute(peer: Peer) -> None:
        await peer.gone()

    async with serving(mute) as server:
        url = f"https://127.0.0.1:{server.port}/"
        with pytest.raises(ModelError, match="did not take the connection in time") as caught:
            async with post(url, b"{}", headers={}, provider="acme", connect_s=0.1):
                pass
    assert caught.value.kind == "timeout"
