"""Language servers of a folder that run as programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from swecli.core.engine.services import ExtensionHost
from swecli.core.language_servers.definitions import LanguageServer, Program, Surroundings
from swecli.core.language_servers.project_server import ProjectServer
from swecli.core.language_servers.servers import LanguageServerOptions, LanguageServers
from swecli.core.protocol.events import MAIN
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.workspace.process_tree import owned
from tests.support.waiting import PATIENCE, until

PATIENT = PATIENCE
"""Seconds that edits wait where a test is not about those that come late: far more than the settings allow."""
SERVER = Path(__file__).with_name("unkind_server.py")


def unkind(
    *ways: str, name: str = "unkind", inside: bool = False, settings: Mapping[str, Any] | None = None
) -> Program:
    """A server that works in these ways."""
    command = (sys.executable, "-S", str(SERVER), *ways)
    server = LanguageServer(name, command, {".txt": "text", ".md": "text"}, ("mark.toml",), settings=settings or {})
    server = replace(server, reads_disk="disk" in ways)
    return Program(server, sys.executable, inside)


class Host:
    """Keeps what a session is told."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.notes: list[str] = []
        self.notices: list[str] = []

    def tell_model(self, title: str, text: str) -> None:
        self.titles.append(title)
        self.notes.append(text)

    def notice(self, text: str, level: str = "info", hint: str = "") -> None:
        self.notices.append(text)


class Served:
    """Servers with a workspace and a host."""

    def __init__(
        self, folder: Path, program: Program, options: LanguageServerOptions, logs: Path | None, *others: Program
    ) -> None:
        around = Surroundings(folder, (folder,), {"PATH": os.environ["PATH"]}, Sandbox.none(), logs)
        self.folder = folder
        self.host = Host()
        self.servers = LanguageServers((program, *others), around, options, ())
        self.servers.start(cast("ExtensionHost", self.host))

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    @property
    def server(self) -> ProjectServer:
        return next(iter(self.servers.in_use.values()))

    async def edit(self, name: str, text: str | None, *more: tuple[str, str | None], agent: str = MAIN) -> str:
        """What the model is told of a call that writes these files."""
        changes = {str(self.folder / one): content for one, content in ((name, text), *more)}
        await self.servers.expect(list(changes))
        _write(changes)
        return await self.servers.brought(list(changes), agent)


def _write(changes: Mapping[str, str | None]) -> None:
    for path, content in changes.items():
        if content is None:
            Path(path).unlink()
        else:
            Path(path).write_bytes(content.encode())


@asynccontextmanager
async def served(
    folder: Path,
    *ways: str,
    wait: float = PATIENT,
    most: int = 10,
    idle: float = 600.0,
    logs: Path | None = None,
    **more: Any,
) -> AsyncIterator[Served]:
    options = LanguageServerOptions(wait, most, idle)
    made = Served(folder, unkind(*ways, **more), options, logs)
    try:
        yield made
    finally:
        await made.servers.close()
        await until(lambda: not owned())


def messages(record: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
