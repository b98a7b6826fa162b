"""HTTP to a model server: one streamed request, small fetches, addresses, and dumps for debugging."""

from __future__ import annotations

import asyncio
import codecs
import dataclasses
import json
import os
import shutil
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast
from urllib.parse import urlsplit

from msgspec import Struct

from swecli.core.atomic_text import make_private
from swecli.core.llm.addresses import is_local, without_password
from swecli.core.llm.connections import (
    READABLE,
    AddressError,
    CertificateSettingError,
    EncodingError,
    Inflater,
    ProxySettingError,
    encodings,
    failures,
    open_pool,
    proxy_of,
    request_of,
)
from swecli.core.llm.errors import PROXY_LOGIN_HINT
from swecli.core.llm.json_values import compact, parse_event, parse_object
from swecli.core.llm.secrets import Masker, StreamMasker, key_values, masked_headers
from swecli.core.llm.types import ProviderError

if TYPE_CHECKING:
    import httpcore


_Close = Callable[[], Awaitable[None]]

MAX_ERROR_BODY = 1_000_000
"""Bytes of an error body that are read."""


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

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

    async def send(self, url: str, headers: Mapping[str, str], body: bytes | None = None) -> HttpResponse:
        """Send ``body``, or ask for ``url`` where there is none, and give the response as soon as its head is there.
        The caller closes it.

        Raises:
            ProviderError: kind ``network``, ``protocol`` or (no URL) ``bad_request``.
        """
        try:
            async with self._opening:  # requests at once share one pool: another would never be closed
                pool = self._pool = self._pool or await asyncio.to_thread(open_pool, self._base_url)
            response = await pool.handle_async_request(request_of(url, headers, body, self._limits))
        except failures() as error:
            raise self._unreached(self._error(error)) from error
        head: dict[str, str] = {}
        for name, value in response.headers:
            field, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace")
            head[field] = f"{head[field]}, {text}" if field in head else text
        return HttpResponse(response.status, head, self._chunks(response, head), response.aclose)

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
        hint = _THROUGH_PROXY_HINT if proxy_of(self._base_url) else _SERVER_HINT if near else _NETWORK_HINT
        if isinstance(error, httpcore.ConnectTimeout):
            return ProviderError("network", f"no connection to {server} in time", hint=hint)
        if isinstance(error, httpcore.ProxyError) and words.startswith("407"):
            return _final(f"the proxy refused: {words}", PROXY_LOGIN_HINT)
        if isinstance(error, httpcore.ProxyError):
            return ProviderError("network", f"the proxy refused: {words}", hint=_PROXY_HINT)
        if isinstance(error, httpcore.ConnectError) and "CERTIFICATE_VERIFY_FAILED" in words:
            other = "mismatch" in words
            return _final(f"the certificate of {server} is not trusted: {words}", _NAME_HINT if other else _CA_HINT)
        if isinstance(error, CertificateSettingError):
            return _final(str(error), "Correct it or unset it.")
        if isinstance(error, httpcore.ConnectError):
            return ProviderError("network", f"no connection to {server}: {words}", hint=hint)
        if isinstance(error, EncodingError):
            text = f"the answer of {server} has an encoding swecli did not request: {words}"
            return ProviderError("protocol", text, hint=ENCODING_HINT)
        if isinstance(error, httpcore.RemoteProtocolError) and words.startswith("peer closed connection"):
            return ProviderError("network", f"{server} closed the connection before its answer ended")
        return ProviderError("network", f"the connection to {server} broke: {words}")  # the decoder knows what was kept


def _final(message: str, hint: str) -> ProviderError:
    """A connection that fails until the user changes something."""
    return ProviderError("network", message, hint=hint, should_retry=False)


def _system_words(error: BaseException) -> str:
    """What the system says of a connection that failed, in the words of its first reason; empty where it was not the
    system that failed."""
    seen: BaseException | None = error
    found = ""
    while seen is not None:
        if isinstance(seen, BaseExceptionGroup):
            seen = cast("BaseExceptionGroup[BaseException]", seen).exceptions[0]
            continue
        if isinstance(seen, OSError) and not isinstance(seen, ssl.SSLError) and seen.errno:
            found = os.strerror(seen.errno) if seen.errno > 0 else seen.strerror or ""  # below 0: of looking up a name
        seen = seen.__cause__ or seen.__context__
    return f"{found[:1].lower()}{found[1:]}"


_URL_HINT = "Check the base URL: it looks like http://127.0.0.1:8000/v1."
_HEADER_HINT = "Check the API key and the headers of this provider for stray characters."
_SOCKS_HINT = "Install it where swecli is installed, or use an HTTP proxy in ALL_PROXY, HTTPS_PROXY and HTTP_PROXY."
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
MAX_BYTES = 2_000_000


class Fetched(Struct, frozen=True):
    """Result of a fetch. ``value`` is the decoded document if ``problem`` is empty. ``status`` is 0 without an
    answer."""

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

    async def close(self) -> None:
        await self._transport.close()

    async def _fetch(self, path: str, body: bytes | None) -> Fetched:
        response: HttpResponse | None = None
        url = self._base_url + path
        try:
            async with asyncio.timeout(self._seconds):
                of_body = {} if body is None else {"content-type": "application/json"}
                response = await self._transport.send(url, {**self._headers, **of_body}, body)
                if response.status != 200:
                    return Fetched(None, f"status {response.status} for {path}", response.status)
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


FOLDERS = 20
"""Newest runs that are kept."""


class ExchangeDump:
    """Dump of one run in a folder below ``folder``, created with its first exchange. ``secrets`` are masked. If writing
    fails, the dump ends: ``tell`` receives one sentence, and the program continues."""

    def __init__(self, folder: Path, secrets: Iterable[str], tell: Callable[[str], None] = lambda text: None) -> None:
        self._parent = folder
        self._secrets = frozenset(secrets)
        self.tell = tell
        self._folder: Path | None = None
        self._number = 0
        self._broken = False

    def begin(self, url: str, headers: Mapping[str, str], body: bytes) -> Exchange | None:
        """Write a request. None if writing is impossible."""
        if self._broken:
            return None
        masker = Masker({*self._secrets, *key_values(headers)})
        text = body.decode("utf-8", "replace")
        content = {"url": url, "headers": masked_headers(headers), "body": parse_object(text) or text}
        try:
            folder = self._open()
            self._number += 1
            with _private(folder / f"{self._number:04}-request.json") as file:
                file.write(masker.mask(json.dumps(content, ensure_ascii=False, indent=1)) + "\n")
            return Exchange(folder / f"{self._number:04}-response.txt", masker, self._fail)
        except OSError as error:
            self._fail(error)
            return None

    def _open(self) -> Path:
        if self._folder is None:
            make_private(self._parent)
            for old in sorted(path for path in self._parent.iterdir() if path.is_dir())[: -FOLDERS + 1]:
                shutil.rmtree(old, ignore_errors=True)
            self._folder = self._parent / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self.tell(f"Writing requests and answers to {self._folder}: keys are masked, the conversation is not.")
        return self._folder

    def _fail(self, error: OSError) -> None:
        if not self._broken:
            self._broken = True
            self.tell(f"Cannot write requests and answers below {self._parent}: {error.strerror or error}")


class Exchange:
    """Dump of the answer to one request as it arrives. ``close`` must be called."""

    def __init__(self, path: Path, masker: Masker, fail: Callable[[OSError], None]) -> None:
        self._masker = masker
        self._stream = StreamMasker(masker)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._fail = fail
        self._file = _private(path)

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [f"{name}: {'***' if name == 'set-cookie' else value}" for name, value in headers.items()]
        self._write(self._masker.mask("\n".join([f"status: {status}", *lines, "", ""])))

    def body(self, chunk: bytes) -> None:
        self._write(self._stream.feed(self._decoder.decode(chunk)))

    def close(self, error: str = "") -> None:
        """End the dump; ``error`` says why the answer ended early."""
        rest = self._stream.feed(self._decoder.decode(b"", True)) + self._stream.end()
        self._write(rest + (f"\n\n[{self._masker.mask(error)}]\n" if error else ""))
        with suppress(OSError):
            self._file.close()

    def _write(self, text: str) -> None:
        try:
            self._file.write(text)
            self._file.flush()
        except (OSError, ValueError) as error:
            self._fail(error if isinstance(error, OSError) else OSError(str(error)))


def _private(path: Path) -> TextIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8", errors="replace")
