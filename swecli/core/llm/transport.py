"""HTTP to a model server: one streamed request, small fetches, addresses, and dumps for debugging."""

from __future__ import annotations

import asyncio
import codecs
import dataclasses
import importlib
import importlib.util
import json
import os
import shutil
import ssl
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TextIO, cast
from urllib.parse import urlsplit

from msgspec import Struct

from swecli.core.atomic_text import make_private
from swecli.core.llm.addresses import is_local, is_loopback, without_password
from swecli.core.llm.errors import PROXY_LOGIN_HINT
from swecli.core.llm.json_values import compact, parse_event, parse_object
from swecli.core.llm.secrets import Masker, StreamMasker, key_values, masked_headers
from swecli.core.llm.types import ProviderError

if TYPE_CHECKING:
    import httpx


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
        names = [name.strip().lower() for name in self.headers.get("content-encoding", "").split(",")]
        unknown = [name for name in names if name and not _can_decode(name)]
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
        self._timeouts = timeouts
        self._through_proxy = not is_loopback(base_url)
        self._client: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()
        self._httpx: ModuleType | None = None

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def send(self, url: str, headers: Mapping[str, str], body: bytes | None = None) -> HttpResponse:
        """Send ``body``, or ask for ``url`` where there is none, and give the response as soon as its head is there.
        The caller closes it.

        Raises:
            ProviderError: kind ``network``, ``protocol`` or (no URL) ``bad_request``.
        """
        method = "GET" if body is None else "POST"
        library = self._httpx
        if library is None:
            library = self._httpx = await asyncio.to_thread(_http_library)
        try:
            async with self._opening:  # requests at once share one client: another would never be closed
                client = self._client = self._client or await self._open(library)
            request = client.build_request(method, url, headers=dict(headers), content=body)
            response = await client.send(request, stream=True)
        except (library.HTTPError, library.InvalidURL, ImportError, ValueError, OSError, ExceptionGroup) as error:
            raise self._unreached(self._error(error, library)) from error
        head = {name.lower(): value for name, value in response.headers.items()}
        return HttpResponse(response.status_code, head, self._chunks(response, library), response.aclose)

    async def _chunks(self, response: httpx.Response, library: ModuleType) -> AsyncGenerator[bytes, None]:
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except (library.HTTPError, library.StreamError, OSError) as error:
            raise self._error(error, library) from error

    async def _open(self, library: ModuleType) -> httpx.AsyncClient:
        context = await asyncio.to_thread(_tls_context, self._base_url)
        limits = self._timeouts
        return library.AsyncClient(
            http1=True,
            http2=False,
            verify=context,
            follow_redirects=False,
            trust_env=self._through_proxy,
            timeout=library.Timeout(None, connect=limits.connect, write=limits.write, pool=limits.connect),
        )

    def _unreached(self, error: ProviderError) -> ProviderError:
        """The error with the server that a later attempt may reach."""
        if error.kind != "network" or not error.retryable:
            return error
        return dataclasses.replace(error, unreached=_server(self._base_url))

    def _error(self, error: Exception, library: ModuleType) -> ProviderError:
        server = _server(self._base_url)
        words = _system_words(error) or str(error) or type(error).__name__
        if isinstance(error, library.InvalidURL | library.UnsupportedProtocol | ExceptionGroup):
            shown = without_password(self._base_url)
            return ProviderError("bad_request", f"{shown!r} is not a base URL: {words}", hint=_URL_HINT)
        if isinstance(error, library.LocalProtocolError | UnicodeError):
            return ProviderError(
                "bad_request", "a header contains characters that HTTP does not allow", hint=_HEADER_HINT
            )
        if isinstance(error, ImportError):
            return _final("SOCKS proxies need the Python package socksio", _SOCKS_HINT)
        if isinstance(error, ValueError) and not isinstance(error, OSError):
            return _final(f"cannot use the proxy settings: {words}", _PROXY_HINT)
        near = is_local(self._base_url)
        hint = _THROUGH_PROXY_HINT if _has_proxy(self._base_url) else _SERVER_HINT if near else _NETWORK_HINT
        if isinstance(error, library.ConnectTimeout):
            return ProviderError("network", f"no connection to {server} in time", hint=hint)
        if isinstance(error, library.ProxyError) and words.startswith("407"):
            return _final(f"the proxy refused: {words}", PROXY_LOGIN_HINT)
        if isinstance(error, library.ProxyError):
            return ProviderError("network", f"the proxy refused: {words}", hint=_PROXY_HINT)
        if isinstance(error, library.ConnectError) and "CERTIFICATE_VERIFY_FAILED" in words:
            other = "mismatch" in words
            return _final(f"the certificate of {server} is not trusted: {words}", _NAME_HINT if other else _CA_HINT)
        if isinstance(error, CertificateSettingError):
            return _final(str(error), "Correct it or unset it.")
        if isinstance(error, library.ConnectError):
            return ProviderError("network", f"no connection to {server}: {words}", hint=hint)
        if isinstance(error, library.DecodingError):
            text = f"the answer of {server} has an encoding swecli did not request: {words}"
            return ProviderError("protocol", text, hint=ENCODING_HINT)
        if isinstance(error, library.RemoteProtocolError) and words.startswith("peer closed connection"):
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


class CertificateSettingError(OSError):
    """The environment names unreadable certificates; the message says which."""


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


_DECODERS = {
    "identity": (),
    "gzip": (),
    "x-gzip": (),
    "deflate": (),
    "br": ("brotli", "brotlicffi"),
    "zstd": ("zstandard",),
}
"""Encodings that the HTTP library decodes, by itself or with one of these packages."""


def _can_decode(encoding: str) -> bool:
    packages = _DECODERS.get(encoding)
    return packages is not None and (not packages or any(importlib.util.find_spec(name) for name in packages))


def _http_library() -> ModuleType:
    """httpx without its command line, whose imports (click, rich, pygments) take as long as all the rest."""
    command_line = "httpx._main"
    if "httpx" not in sys.modules:
        sys.modules[command_line] = cast("ModuleType", None)  # for httpx it is not installed
    try:
        return importlib.import_module("httpx")
    finally:
        sys.modules.pop(command_line, None)


def _server(base_url: str) -> str:
    """Host and port, without any secret in the URL."""
    parts = urlsplit(base_url)
    try:
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        port = ""
    return f"{parts.hostname or base_url}{port}"


def _has_proxy(base_url: str) -> bool:
    from urllib.request import getproxies, proxy_bypass

    parts, proxies = urlsplit(base_url), getproxies()
    used = parts.scheme in proxies or "all" in proxies
    return used and not is_loopback(base_url) and not proxy_bypass(parts.hostname or "")


def _tls_context(base_url: str) -> ssl.SSLContext | bool:
    """Certificates from ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, else the system's and certifi's. Not loaded (it takes a
    moment) for plain HTTP."""
    if urlsplit(base_url).scheme == "http":
        return False
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
