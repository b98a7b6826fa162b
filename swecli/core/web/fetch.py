"""Fetch one public page, bounded in bytes, time and redirects."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

from msgspec import Struct

from swecli.lazy_pattern import lazy_pattern

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
LookUp = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host and port to its addresses."""

_REFUSED = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "168.63.129.16/32",  # metadata of a cloud, at a public address
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "::/96",  # IPv4 inside IPv6, in its many forms
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2001::/23",
        "2002::/16",
        "fec0::/10",
    )
)


class AddressError(Exception):
    """The host has no permitted address; the message gives the reason."""


def is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id:
        return False
    refused = any(address.version == net.version and address in net for net in _REFUSED)
    return address.is_global and not address.is_multicast and not address.is_reserved and not refused


async def look_up(host: str, port: int) -> Sequence[str]:
    """Resolve a host once.

    Raises:
        AddressError: it has no address.
    """
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise AddressError(f"unknown host {host}: {error}") from error
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in infos))


async def checked(host: str, port: int, find: LookUp = look_up, allowed: Callable[[Address], bool] = is_public) -> str:
    """The address to connect to. If any address of a name is forbidden, the whole name is refused.

    Raises:
        AddressError: there is no permitted address.
    """
    addresses = await find(host, port)
    for text in addresses:
        try:
            address = ipaddress.ip_address(text)
        except ValueError as error:
            raise AddressError(f"{host} has no usable address") from error
        if not allowed(address):
            raise AddressError(f"{host} is at {text}, which is not on the public internet")
    if not addresses:
        raise AddressError(f"{host} has no address")
    return addresses[0]


MAX_BYTES = 5_000_000
MAX_SECONDS = 30.0
MAX_HOPS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = {
    "accept": "text/html, text/*, application/json;q=0.9",
    "accept-encoding": "identity",
    "user-agent": "swecli",
}
_ODD = lazy_pattern(r"[\s\x00-\x1f\x7f\\]")
_PORTS = {"http": 80, "https": 443}
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


class FetchError(Exception):
    """The page can't be fetched; the message gives the reason and the next action."""


class Page(Struct, frozen=True):
    """A server's response. ``moved`` is an address on another host that it redirects to; ``cut`` means that there was
    more."""

    url: str
    status: int
    content_type: str = ""
    body: bytes = b""
    cut: bool = False
    moved: str = ""


class Limits(Struct, frozen=True):
    """``allowed`` and ``find`` check addresses."""

    size: int = MAX_BYTES
    seconds: float = MAX_SECONDS
    hops: int = MAX_HOPS
    allowed: Callable[[Address], bool] = is_public
    find: LookUp = look_up


def parsed(url: str) -> SplitResult:
    """The parts of a permitted URL.

    Raises:
        FetchError: the URL is invalid or forbidden.
    """
    if _ODD.search(url) or len(url) > 4_000:
        raise FetchError("The address contains spaces, control characters or backslashes, or is too long.")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise FetchError(f"{url!r} is not an address: {error}.") from error
    if parts.scheme not in ("http", "https"):
        raise FetchError("Only http:// and https:// addresses can be fetched.")
    if not host:
        raise FetchError("The address has no host.")
    if parts.username is not None or parts.password is not None:
        raise FetchError("swecli does not fetch addresses with a user name or password.")
    return parts


def host_of(parts: SplitResult) -> str:
    """The host as rules name it: lower case, without the final dot, international names in ASCII form.

    Raises:
        FetchError: it is not a host name.
    """
    host = (parts.hostname or "").rstrip(".").lower()
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise FetchError(f"{host!r} is not a host name.") from error


async def fetch(url: str, limits: Limits = Limits(), environment: Mapping[str, str] | None = None) -> Page:  # noqa: B008 - frozen
    """Fetch one page; redirects to the same host are followed.

    Raises:
        FetchError: the page can't be fetched.
    """
    try:
        async with asyncio.timeout(limits.seconds):
            return await _followed(url, limits)
    except TimeoutError as error:
        raise FetchError(f"{url} sent no page within {limits.seconds:g} s.") from error
    except AddressError as error:
        raise FetchError(f"{error}. Nothing was sent to it.") from error
    except FetchError as error:
        if error.__cause__ is not None and any(name.lower() in _PROXIES for name in environment or ()):
            hint = "swecli does not use the proxy in the environment because it cannot check addresses behind it."
            raise FetchError(f"{error} {hint}") from error
        raise


async def _followed(url: str, limits: Limits) -> Page:
    for _ in range(limits.hops + 1):
        page = await _one(url, limits)
        if not page.moved:
            return page
        current, there = parsed(url), parsed(page.moved)
        same = host_of(current) == host_of(there) and _own_port(current) == _own_port(there)
        if not same or (current.scheme, there.scheme) == ("https", "http"):
            return page
        url = page.moved
    raise FetchError(f"{url} redirects more than {limits.hops} times.")


def _own_port(parts: SplitResult) -> int | None:
    """The port, or ``None`` if it is the one its scheme stands for."""
    return None if parts.port == _PORTS[parts.scheme] else parts.port


async def _one(url: str, limits: Limits) -> Page:
    import httpx

    parts = parsed(url)
    host = host_of(parts)
    port = parts.port or _PORTS[parts.scheme]
    address = await checked(host, port, limits.find, limits.allowed)
    literal = f"[{address}]" if ":" in address else address
    target = urlunsplit((parts.scheme, f"{literal}:{port}", parts.path or "/", parts.query, ""))
    named = f"[{host}]" if ":" in host else host
    headers = {**_HEADERS, "host": named if parts.port is None else f"{named}:{port}"}
    try:
        async with (
            httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=limits.seconds) as client,
            client.stream("GET", target, headers=headers, extensions={"sni_hostname": host}) as response,
        ):
            if response.status_code in _REDIRECTS and "location" in response.headers:
                return Page(url, response.status_code, moved=urljoin(url, response.headers["location"]))
            encoding = response.headers.get("content-encoding", "")
            body, cut = await _bounded(response.aiter_raw(), encoding, limits.size)
            return Page(url, response.status_code, response.headers.get("content-type", ""), body, cut)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
        raise FetchError(f"cannot fetch {url}: {str(error) or type(error).__name__}.") from error


async def _bounded(pieces: AsyncIterator[bytes], encoding: str, size: int) -> tuple[bytes, bool]:
    """The body, decompressed to at most ``size`` bytes, and whether there was more."""
    unpack = _unpacker(encoding.strip().lower())
    body = bytearray()
    async for piece in pieces:
        body += unpack(piece, size + 1 - len(body))
        if len(body) > size:
            return bytes(body[:size]), True
    return bytes(body), False


def _unpacker(encoding: str) -> Callable[[bytes, int], bytes]:
    if encoding in ("", "identity"):
        return lambda piece, room: piece[:room]
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise FetchError(f"The page is compressed as {encoding}, although swecli requested it uncompressed.")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def unpack(piece: bytes, room: int) -> bytes:
        try:
            return unpacker.decompress(piece, room)
        except zlib.error as error:
            raise FetchError("Cannot decompress the page.") from error

    return unpack
