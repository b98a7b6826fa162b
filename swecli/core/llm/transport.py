"""HTTP to a model server: connections with proxies and certificates as the environment names them, one streamed
request, and small fetches.

httpcore keeps the connections. httpx, which is built on it, would add 4 MiB and a twentieth of a second to each start.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import importlib.util
import os
import ssl
import sys
import zlib
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit

from msgspec import Struct

from swecli.core.llm.addresses import is_local, is_loopback, without_password
from swecli.core.llm.json_values import compact, parse_event
from swecli.core.llm.remedies import PROXY_LOGIN_HINT
from swecli.core.llm.types import ProviderError

if TYPE_CHECKING:
    import httpcore


_Close = Callable[[], Awaitable[None]]

MAX_ERROR_BODY = 1_000_000
"""Bytes of an error body that are read."""
_REST_SECONDS = 2.0
"""Longest wait for the end of a body behind its answer."""


class Timeouts(Struct, frozen=True):
    """Time limits in seconds. ``first`` is the longest wait for the first meaningful event, ``idle`` the longest wait
    between two of them; keep-alives do not count. None means no limit."""

    connect: float = 10.0
    write: float = 60.0
    first: float | None = 600.0
    idle: float | None = 120.0
    error_body: float = 10.0
    grace: float = 3.0
    """Longest wait for usage and the end of the stream after the stop reason."""


class HttpResponse:
    """A response with a pending body. Header names are in lower case."""

    def __init__(
        self, status: int, headers: Mapping[str, str], chunks: AsyncGenerator[bytes, None], close: _Close
    ) -> None:
        self.status = status
        self.headers = headers
        self._chunks = chunks
        self._close = close
        self.watch: Callable[[bytes], None] | None = None
        """Receives each piece of the body too."""

    @property
    def encoding_trouble(self) -> str:
        """Problem with a body in an unrequested, unsupported encoding, as a clause; empty if there is none."""
        unknown = [name for name in encodings(self.headers.get("content-encoding", "")) if name not in READABLE]
        return f"is encoded as {', '.join(unknown)}, which swecli did not request and cannot read" if unknown else ""

    @property
    def tells_its_end(self) -> bool:
        """Whether a body that the server breaks off is an error of the connection, not the end of the body."""
        chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        return chunked or "content-length" in self.headers

    async def read(self) -> bytes | None:
        """The next piece of the body as it arrives, None at its end.

        Raises:
            ProviderError: kind ``network`` or ``protocol``.
        """
        chunk = await anext(self._chunks, None)
        if chunk is not None and self.watch is not None:
            self.watch(chunk)
        return chunk

    async def read_error_body(self, seconds: float) -> bytes:
        """The part of an error's body that arrives within ``seconds`` and a reasonable size."""
        body = bytearray()
        try:
            async with asyncio.timeout(seconds):
                while len(body) < MAX_ERROR_BODY and (chunk := await self.read()) is not None:
                    body += chunk
        except (TimeoutError, ProviderError):
            return bytes(body)
        return bytes(body)

    async def read_out(self) -> None:
        """Read what is behind the whole answer, usually only the mark of the body's end, and close: the connection then
        serves the next request. One whose body goes on is closed."""
        self.watch = None
        try:
            async with asyncio.timeout(_REST_SECONDS):
                while await self.read() is not None:
                    pass
        except (TimeoutError, ProviderError):
            pass  # the answer is complete
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection at once, unless the body was read to its end."""
        await self._chunks.aclose()
        await self._close()


class Transport:
    """Keeps connections to one server. Redirects are not followed: a key is sent only to the host it belongs to.
    Proxies and certificates come from the environment; this machine is reached directly."""

    def __init__(self, base_url: str, timeouts: Timeouts) -> None:
        self._base_url = base_url
        self._limits = {"connect": timeouts.connect, "pool": timeouts.connect, "write": timeouts.write, "read": None}
        self._pool: httpcore.AsyncConnectionPool | None = None
        self._opening = asyncio.Lock()
        self._answered: set[asyncio.Task[None]] = set()
        """Responses whose rest is being read."""

    async def close(self) -> None:
        for task in (answered := list(self._answered)):
            task.cancel()
        await asyncio.gather(*answered, return_exceptions=True)
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

    async def send(self, url: str, headers: Mapping[str, str], body: bytes | None = None) -> HttpResponse:
        """Send ``body``, or ask for ``url`` where there is none, and give the response as soon as its head is there.
        The caller closes it. Name and password in the URL are sent as its login.

        Raises:
            ProviderError: kind ``network``, ``protocol`` or (no URL) ``bad_request``.
        """
        try:
            async with self._opening:  # requests at once share one pool: another would never be closed
                pool = self._pool = self._pool or await asyncio.to_thread(open_pool, self._base_url)
            import httpcore  # loaded in the thread

            address, host, login = _address(url)
            fields = {"host": host, "connection": "keep-alive"}
            fields |= {name.lower(): text for name, text in headers.items()}
            fields |= {"authorization": login} if login else {}
            fields |= {"content-length": str(len(body))} if body is not None else {}
            request = httpcore.Request(
                "GET" if body is None else "POST",
                address,
                headers=[(name.encode("ascii"), text.encode("ascii")) for name, text in fields.items()],
                content=body,
                extensions={"timeout": self._limits},
            )
            response = await pool.handle_async_request(request)
        except failures() as error:
            raise self._unreached(self._error(error)) from error
        head: dict[str, str] = {}
        for name, value in response.headers:
            field, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace")
            head[field] = f"{head[field]}, {text}" if field in head else text
        return HttpResponse(response.status, head, self._chunks(response, head), response.aclose)

    def release(self, response: HttpResponse) -> None:
        """Take back a response whose answer is whole, and its connection for the next request."""
        task = asyncio.create_task(response.read_out())
        self._answered.add(task)
        task.add_done_callback(self._answered.discard)

    async def _chunks(self, response: httpcore.Response, head: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        named = encodings(head.get("content-encoding", ""))
        inflaters = [Inflater(name) for name in reversed(named) if name in READABLE]
        try:
            async for chunk in response.aiter_stream():
                for inflater in inflaters:
                    chunk = inflater.feed(chunk)
                if chunk:
                    yield chunk
        except failures() as error:
            raise self._error(error) from error

    def _unreached(self, error: ProviderError) -> ProviderError:
        """The error with the server that a later attempt may reach."""
        if error.kind != "network" or not error.retryable:
            return error
        return dataclasses.replace(error, unreached=_server(self._base_url))

    def _error(self, error: Exception) -> ProviderError:
        import httpcore

        server = _server(self._base_url)
        words = _system_words(error) or str(error) or type(error).__name__
        if isinstance(error, AddressError | ExceptionGroup):
            shown = without_password(self._base_url)
            return ProviderError("bad_request", f"{shown!r} is not a base URL: {words}", hint=_URL_HINT)
        if isinstance(error, httpcore.LocalProtocolError | UnicodeError):
            return ProviderError(
                "bad_request", "a header contains characters that HTTP does not allow", hint=_HEADER_HINT
            )
        if isinstance(error, ImportError):
            return _final("SOCKS proxies need the Python package socksio", _SOCKS_HINT)
        if isinstance(error, ProxySettingError):
            return _final(f"cannot use the proxy settings: {words}", _PROXY_HINT)
        near = is_local(self._base_url)
        proxy = proxy_of(self._base_url)
        hint = _THROUGH_PROXY_HINT if proxy else _SERVER_HINT if near else _NETWORK_HINT
        if isinstance(error, httpcore.ConnectTimeout):
            through = f" through the proxy {_server(proxy)}" if proxy else ""
            return ProviderError("network", f"no connection to {server}{through} in time", hint=hint)
        if isinstance(error, httpcore.ProxyError) and words.startswith("407"):
            return _final(f"the proxy refused: {words}", PROXY_LOGIN_HINT)
        if isinstance(error, httpcore.ProxyError):
            return ProviderError("network", f"the proxy refused: {words}", hint=_PROXY_HINT)
        if isinstance(error, httpcore.ConnectError) and "CERTIFICATE_VERIFY_FAILED" in words:
            other = "mismatch" in words
            return _final(f"the certificate of {server} is not trusted: {words}", _NAME_HINT if other else _CA_HINT)
        if isinstance(error, httpcore.ConnectError) and any(each in words for each in _NO_TLS):
            return _final(f"{server} does not answer in TLS", _PLAIN_HINT)
        if isinstance(error, CertificateSettingError):
            return _final(str(error), "Correct it or unset it.")
        if isinstance(error, httpcore.ConnectError):
            # Behind a proxy, only TLS is spoken with the server itself.
            other = f"the proxy {_server(proxy)}" if proxy and "SSL" not in words else server
            return ProviderError("network", f"no connection to {other}: {words}", hint=hint)
        if isinstance(error, EncodingError):
            text = f"the answer of {server} has an encoding swecli did not request: {words}"
            return ProviderError("protocol", text, hint=ENCODING_HINT)
        if isinstance(error, httpcore.RemoteProtocolError) and words.startswith("peer closed connection"):
            return ProviderError("network", f"{server} closed the connection before its answer ended")
        return ProviderError("network", f"the connection to {server} broke: {words}")  # the decoder knows what was kept


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


@lru_cache(maxsize=64)
def _address(url: str) -> tuple[str, str, str]:
    """The URL in ASCII and without its login, the host for its header, and the login for its header, if any."""
    parts = _split(url, AddressError)
    if parts.scheme not in ("http", "https"):
        raise AddressError("it does not start with http:// or https://")
    host, login = _host(parts), ""
    query = f"?{quote(parts.query, safe=_UNQUOTED)}" if parts.query else ""
    if parts.username or parts.password:
        named = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        login = f"Basic {b64encode(named.encode()).decode()}"
    return f"{parts.scheme}://{host}{quote(parts.path or '/', safe=_UNQUOTED)}{query}", host, login


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
    may_name_one = sys.platform in ("darwin", "win32") or any(name.lower().endswith("_proxy") for name in os.environ)
    if is_loopback(base_url) or not may_name_one:
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


def _final(message: str, hint: str) -> ProviderError:
    """A connection that fails until the user changes something."""
    return ProviderError("network", message, hint=hint, should_retry=False)


def _system_words(error: BaseException) -> str:
    """What the system says of a connection that failed, in the words of its first reason; empty where it was not the
    system that failed."""
    seen: BaseException | None = error
    words = ""
    while seen is not None:
        if isinstance(seen, BaseExceptionGroup):
            seen = cast("BaseExceptionGroup[BaseException]", seen).exceptions[0]
            continue
        if isinstance(seen, OSError) and not isinstance(seen, ssl.SSLError) and seen.errno:
            words = os.strerror(seen.errno) if seen.errno > 0 else seen.strerror or ""  # below 0: of looking up a name
        seen = seen.__cause__ or seen.__context__
    return f"{words[:1].lower()}{words[1:]}"


_URL_HINT = "Check the base URL: it looks like http://127.0.0.1:8000/v1."
_HEADER_HINT = "Check the API key and the headers of this provider for stray characters."
_SOCKS_HINT = "Install it where swecli is installed, or use an HTTP proxy in ALL_PROXY, HTTPS_PROXY and HTTP_PROXY."
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "HTTP_REQUEST")
"""Reasons of OpenSSL if the other side speaks something else."""
_PLAIN_HINT = "Its base URL may begin with http://, not https://; a proxy between may answer in its place."
_NAME_HINT = "The certificate belongs to another name: check the base URL and the server behind it."
_SERVER_HINT = "Check the base URL and that the server is running."
_NETWORK_HINT = "Check your network connection and the base URL."
_PROXY_HINT = "Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY in the environment."
_THROUGH_PROXY_HINT = f"The connection uses a proxy. {_PROXY_HINT}"
_CA_HINT = "If your own authority signed it, set SSL_CERT_FILE to that authority's file."
ENCODING_HINT = "A gateway or proxy in between adds it: turn compression off there."


def _server(base_url: str) -> str:
    """Host and port, without any secret in the URL."""
    parts = urlsplit(base_url)
    try:
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        port = ""
    return f"{parts.hostname or base_url}{port}"


SECONDS = 2.0
"""Time limit for a whole answer."""
MAX_BYTES = 8_000_000
"""Largest document; a router describes 3,000 models in about 6 MB."""


NOT_READY = 503


class Fetched(Struct, frozen=True):
    """Result of a fetch. ``value`` is the decoded document if ``problem`` is empty, or what a server that is not ready
    says. ``status`` is 0 without an answer."""

    value: object = None
    problem: str = ""
    status: int = 0


class Fetcher:
    """Fetches from one server. ``headers`` may carry a key: they are sent only to ``base_url``, because redirects are
    not followed."""

    def __init__(self, base_url: str, headers: Mapping[str, str] | None = None, seconds: float = SECONDS) -> None:
        self._base_url = base_url.rstrip("/")
        self._seconds = seconds
        self._headers = {**(headers or {}), "accept": "application/json", "accept-encoding": "identity"}
        self._headers["user-agent"] = "swecli"
        self._transport = Transport(self._base_url, Timeouts(connect=min(seconds, SECONDS), write=seconds))

    async def get(self, path: str) -> Fetched:
        """The document at ``path``, which starts with a slash and follows the base URL."""
        return await self._fetch(path, None)

    async def post(self, path: str, body: object) -> Fetched:
        return await self._fetch(path, compact(body).encode("utf-8", "replace"))

    async def aclose(self) -> None:
        await self._transport.close()

    async def _fetch(self, path: str, body: bytes | None) -> Fetched:
        response: HttpResponse | None = None
        url = self._base_url + path
        try:
            async with asyncio.timeout(self._seconds):
                of_body = {} if body is None else {"content-type": "application/json"}
                response = await self._transport.send(url, {**self._headers, **of_body}, body)
                if response.status != 200:
                    where = response.headers.get("location", "") if 300 <= response.status < 400 else ""
                    elsewhere = f", which redirects to {without_password(where)}" if where else ""
                    answer = (await self._read(path, response)).value if response.status == NOT_READY else None
                    return Fetched(answer, f"status {response.status} for {path}{elsewhere}", response.status)
                return await self._read(path, response)
        except TimeoutError:
            return Fetched(None, f"no answer to {path} within {self._seconds:g} s")
        except ProviderError as error:
            return Fetched(None, error.message)
        finally:
            if response is not None:
                await response.close()

    async def _read(self, path: str, response: HttpResponse) -> Fetched:
        data = bytearray()
        while (chunk := await response.read()) is not None:
            data += chunk
            if len(data) > MAX_BYTES:
                return Fetched(None, f"{path} has more than {MAX_BYTES // 1_000_000} MB", response.status)
        try:
            return Fetched(parse_event(data.decode("utf-8-sig")), "", response.status)
        except ValueError:
            return Fetched(None, f"the answer to {path} is not JSON", response.status)
