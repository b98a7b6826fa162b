"""A proxy that leads a provider's own address to a server on this machine, so that a key alone can be tried."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.support.waiting import PATIENCE

CERTIFICATE = Path(__file__).parents[1] / "data" / "tls" / "providers.pem"


@dataclass
class ProviderProxy:
    """Answers CONNECT with the TLS of the host that was asked for, and hands what is said to ``port``. ``hosts`` are
    those that were asked for."""

    port: int
    hosts: list[str] = field(default_factory=list, init=False)
    own_port: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="provider proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE), "the proxy did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)

    def environment(self) -> dict[str, str]:
        return {"HTTPS_PROXY": f"http://127.0.0.1:{self.own_port}", "SSL_CERT_FILE": str(CERTIFICATE)}

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.own_port = server.sockets[0].getsockname()[1]
        self._ready.set()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.hosts.append(head.split()[1].decode().partition(":")[0])
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await writer.drain()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            await writer.start_tls(context)
            inner, outer = await asyncio.open_connection("127.0.0.1", self.port)
            await asyncio.gather(_pass_on(reader, outer), _pass_on(inner, writer))


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    with contextlib.suppress(ConnectionError, RuntimeError):
        target.close()
