"""Which addresses may be asked: only those of the public internet. Pure besides the one look-up of a name."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
LookUp = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host and a port to its addresses."""

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
    """The host has no address that may be asked; the message says why."""


def is_public(address: Address) -> bool:
    """Whether an address belongs to the public internet."""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id:
        return False
    refused = any(address.version == net.version and address in net for net in _REFUSED)
    return address.is_global and not address.is_multicast and not address.is_reserved and not refused


async def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, looked up once.

    Raises:
        AddressError: it has none.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise AddressError(f"{host} is not known: {error}") from error
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


async def checked(host: str, port: int, find: LookUp = look_up, allowed: Callable[[Address], bool] = is_public) -> str:
    """The address to connect to. A name with only one address that may not be asked is refused as a whole.

    Raises:
        AddressError: there is none.
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
