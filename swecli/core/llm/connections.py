"""Connections to a server: addresses, proxies and certificates as the environment names them, and bodies that a gateway
compressed unasked.

httpcore keeps the connections. httpx, which is built on it, would add 4 MiB and a twentieth of a second to each start.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import ssl
import sys
import zlib
from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from swecli.core.llm.addresses import is_loopback

if TYPE_CHECKING:
    import httpcore

_LIMITS: Mapping[str, Any] = {"max_connections": 100, "max_keepalive_connections": 20, "keepalive_expiry": 5.0}
_UNQUOTED = "/%:@!$&'()*+,;=~?"


class AddressError(ValueError):
    """Not an address of HTTP; the message says why."""


class ProxySettingError(ValueError):
    """The environment names an unusable proxy; the message says why."""


class CertificateSettingError(OSError):
    """The environment names unreadable certificates; the message says which."""


class EncodingError(ValueError):
    """A compressed body is damaged; the message says how."""


def failures() -> tuple[type[Exception], ...]:
    """All errors of a request; httpcore's have no common base."""
    import httpcore

    own = (AddressError, ProxySettingError, EncodingError, UnicodeError, ImportError, OSError, ExceptionGroup)
    timeouts, network = httpcore.TimeoutException, httpcore.NetworkError
    return (*own, timeouts, network, httpcore.ProtocolError, httpcore.ProxyError, httpcore.UnsupportedProtocol)


def open_pool(base_url: str) -> httpcore.AsyncConnectionPool:
    """Connections for one server, through its proxy if it has one. Reads certificates, which takes a moment.

    Raises:
        AddressError: ``base_url`` is none.
        ProxySettingError, CertificateSettingError: the environment names something unusable.
        ImportError: a package for SOCKS proxies is not installed.
    """
    import httpcore

    _split(base_url, AddressError)
    context, proxy = _tls_context(base_url), proxy_of(base_url)
    if proxy is None:
        return httpcore.AsyncConnectionPool(ssl_context=context, **_LIMITS)
    parts = _split(proxy, ProxySettingError)
    named = None if parts.username is None else (parts.username, parts.password or "")
    login = None if named is None else (unquote(named[0]).encode(), unquote(named[1]).encode())
    address = f"{parts.scheme}://{_host(parts)}"
    if parts.scheme in ("http", "https"):
        own = _tls_context(proxy)
        return httpcore.AsyncHTTPProxy(address, login, ssl_context=context, proxy_ssl_context=own, **_LIMITS)
    if parts.scheme in ("socks5", "socks5h"):
        if importlib.util.find_spec("socksio") is None:
            raise ImportError("socksio is not installed")
        return httpcore.AsyncSOCKSProxy(address, proxy_auth=login, ssl_context=context, **_LIMITS)
    raise ProxySettingError(f"{parts.scheme} is no protocol of a proxy")


def request_of(
    url: str, headers: Mapping[str, str], body: bytes | None, seconds: Mapping[str, float | None]
) -> httpcore.Request:
    """A POST of ``body``, or a GET without one. Name and password in the URL are sent as its login. ``seconds`` are the
    limits for ``connect``, ``pool``, ``write`` and ``read``.

    Raises:
        AddressError: ``url`` is none.
        UnicodeError: a header is not ASCII.
    """
    import httpcore

    parts = _split(url, AddressError)
    if parts.scheme not in ("http", "https"):
        raise AddressError("it does not start with http:// or https://")
    host = _host(parts)
    query = f"?{quote(parts.query, safe=_UNQUOTED)}" if parts.query else ""
    target = quote(parts.path or "/", safe=_UNQUOTED) + query
    fields = {"host": host, "connection": "keep-alive", **{name.lower(): value for name, value in headers.items()}}
    if parts.username or parts.password:
        login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        fields["authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    if body is not None:
        fields["content-length"] = str(len(body))
    return httpcore.Request(
        "GET" if body is None else "POST",
        httpcore.URL(f"{parts.scheme}://{host}{target}"),
        headers=[(name.encode("ascii"), value.encode("ascii")) for name, value in fields.items()],
        content=body,
        extensions={"timeout": dict(seconds)},
    )


def _split(url: str, error: type[AddressError | ProxySettingError]) -> SplitResult:
    """The parts of an address with a host and a possible port."""
    if not url.isprintable():
        raise error("it contains control characters")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as problem:
        raise error(str(problem)) from problem
    if not parts.hostname or any(character.isspace() for character in parts.netloc):
        raise error("it names no host")
    return parts


def _host(parts: SplitResult) -> str:
    """Host and port in ASCII."""
    name = parts.hostname or ""
    try:
        name = name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise AddressError(f"{name} is not a host name") from error
    name = f"[{name}]" if ":" in name else name
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return name if parts.port in (None, usual) else f"{name}:{parts.port}"


def proxy_of(base_url: str) -> str | None:
    """The proxy that the environment, or the system, names for an address. This machine is reached directly."""
    everywhere = sys.platform in ("darwin", "win32") or any(name.lower().endswith("_proxy") for name in os.environ)
    if is_loopback(base_url) or not everywhere:
        return None
    from urllib.request import getproxies, proxy_bypass  # they load half of the library for HTTP and mail

    parts, known = urlsplit(base_url), getproxies()
    proxy = known.get(parts.scheme) or known.get("all")
    if not proxy or proxy_bypass(parts.netloc.rpartition("@")[2]) or proxy_bypass(parts.hostname or ""):
        return None  # without port and brackets, as NO_PROXY names an IPv6 address
    return proxy if "://" in proxy else f"http://{proxy}"


def _tls_context(url: str) -> ssl.SSLContext | None:
    """Certificates from ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, else the system's and certifi's; None for plain
    HTTP."""
    if urlsplit(url).scheme == "http":
        return None
    file, directory = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or directory:
        try:
            return ssl.create_default_context(cafile=file or None, capath=directory or None)
        except OSError as error:
            named = f"SSL_CERT_FILE ({file})" if file else f"SSL_CERT_DIR ({directory})"
            raise CertificateSettingError(f"cannot use {named}: {error.strerror or error}") from error
    context = ssl.create_default_context()
    context.load_verify_locations(str(importlib.import_module("certifi").where()))
    return context


def encodings(header: str) -> list[str]:
    """The encodings that a content-encoding header names, in the order of their application."""
    named = [name.strip().lower() for name in header.split(",")]
    return [name for name in named if name not in ("", "identity")]


READABLE = frozenset(("gzip", "x-gzip", "deflate"))


class Inflater:
    """Decompresses a body in one encoding of ``READABLE`` as it arrives."""

    def __init__(self, encoding: str) -> None:
        self._is_gzip = encoding != "deflate"
        self._stream = zlib.decompressobj(zlib.MAX_WBITS | 16 if self._is_gzip else zlib.MAX_WBITS)
        self._has_begun = False

    def feed(self, data: bytes) -> bytes:
        """The content of the next piece.

        Raises:
            EncodingError: the data are damaged.
        """
        try:
            return self._stream.decompress(data)
        except zlib.error as error:
            if self._is_gzip or self._has_begun:
                raise EncodingError(str(error)) from error
            # "deflate" means zlib's format, but some servers send the bare one.
            self._is_gzip, self._stream = True, zlib.decompressobj(-zlib.MAX_WBITS)
            return self.feed(data)
        finally:
            self._has_begun = True
