"""Model servers of this machine, which no test may reach: a connection to a port that they usually have is refused, as
if nothing listened there."""

from __future__ import annotations

import errno
import sys

PORTS = (11434, 1234, 8080, 8000, 30000, 5001, 5000, 1337, 12434, 13305)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event != "socket.connect":
        return
    address = arguments[1]
    if isinstance(address, tuple) and address[1] in PORTS:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")


def close() -> None:
    """For this process and its forks, to the end."""
    sys.addaudithook(_refuse)
