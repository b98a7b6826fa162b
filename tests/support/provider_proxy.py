"""A proxy that leads a provider's own address to a server on this machine, so that a key alone can be tried."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path

from tests.support.server_thread import ServerThread

CERTIFICATE = Path(__file__).parents[1] / "data" / "tls" / "providers.pem"


class ProviderProxy(ServerThread):
    """Answers CONNECT with the TLS of the host that was asked for, and hands what is said to the port ``target``.
    ``hosts`` are those that were asked for."""

    def __init__(self, target: int) -> None:
        super().__init__()
        self.hosts: list[str] = []
        self._target = target

    def environment(self) -> dict[str, str]:
        return {"HTTPS_PROXY": f"http://127.0.0.1:{self.port}", "SSL_CERT_FILE": str(CERTIFICATE)}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.hosts.append(head.split()[1].decode().partition(":")[0])
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await writer.drain()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            await writer.start_tls(context)
            inner, outer = await asyncio.open_connection("127.0.0.1", self._target)
            await asyncio.gather(_pass_on(reader, outer), _pass_on(inner, writer))


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    with contextlib.suppress(ConnectionError, RuntimeError):
        target.close()
