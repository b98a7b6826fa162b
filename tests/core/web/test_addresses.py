"""Only addresses of the public internet may be asked."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import pytest

from swecli.core.web.fetch import AddressError, checked, is_public, look_up

REFUSED = (
    "127.0.0.1 127.8.9.1 0.0.0.0 0.1.2.3 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 "
    "169.254.0.1 100.64.0.1 100.127.255.255 100.100.100.200 168.63.129.16 192.0.0.192 198.18.0.1 "
    "224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 192.0.2.1 203.0.113.9 ::1 :: ::ffff:127.0.0.1 "
    "::ffff:8.8.8.8 ::127.0.0.1 64:ff9b::7f00:1 64:ff9b:1::1 2002:7f00:1::1 2001::1 2001:db8::1 fe80::1 "
    "fe80::1%eth0 fc00::1 fd00:ec2::254 fec0::1 ff02::1 "
)


@pytest.mark.parametrize("text", REFUSED.split())
def test_refused(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450::1"])
def test_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


async def test_one_private_address_among_others_refuses_the_host() -> None:
    async def find(host: str, port: int) -> Sequence[str]:
        return ("8.8.8.8", "10.0.0.1")

    with pytest.raises(AddressError, match=r"10\.0\.0\.1, which is not on the public internet"):
        await checked("rebind.example", 80, find)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "::1"])
async def test_spellings_of_this_machine_are_refused(host: str) -> None:
    with pytest.raises(AddressError):
        await checked(host, 80, look_up)
