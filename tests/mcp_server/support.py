"""A client for tests: that of the official SDK, with how it answers questions. The SDK takes most of a second to load,
so only a worker that runs such a test does it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from mcp_types import CallToolResult, ElicitResult

from swecli.app import open_session
from swecli.launch import LaunchOptions
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from mcp import Client

    from swecli.mcp_server.server import TaskServer

EDIT = """
[[step]]
text = "I change it."
[[step.call]]
tool = "write_file"
arguments = { path = "new.txt", content = "hello" }
[[step]]
text = "Done."
"""


@dataclass
class User:
    """Answers each question with the next of ``answers``; without any left the question stays open."""

    answers: list[ElicitResult] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    progress: list[tuple[float, str]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, context: Any, params: Any) -> ElicitResult:
        self.asked.append(params)
        self.changed.set()
        if not self.answers:
            await asyncio.Event().wait()
        return self.answers.pop(0)

    async def moved(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append((progress, message or ""))
        self.changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), PATIENCE)


def decided(decision: str, **more: str) -> ElicitResult:
    return ElicitResult(action="accept", content={"decision": decision, **more})


@dataclass
class Bench:
    """A server and its client, connected in this process."""

    client: Client
    user: User
    server: TaskServer
    folder: Path
    log: list[str]

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        result = await asyncio.wait_for(
            self.client.call_tool(tool, arguments, progress_callback=self.user.moved), PATIENCE
        )
        assert isinstance(result, CallToolResult)
        return result


@asynccontextmanager
async def bench(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    *,
    asks: bool = True,
    mode: Literal["legacy", "auto"] = "legacy",
    **options: Any,
) -> AsyncIterator[Bench]:
    """A connected server with the scripted model, in an empty folder."""
    from mcp import Client
    from mcp.shared.memory import create_client_server_memory_streams

    from swecli.mcp_server.server import TaskServer

    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    file = tmp_path / "script.toml"
    file.write_text(script.replace("{python}", sys.executable))
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    launch = LaunchOptions(cwd=folder, script=file, **options)
    log: list[str] = []
    tasks = TaskServer(launch, open_session, log.append)
    user = User()
    async with create_client_server_memory_streams() as (theirs, ours):

        @asynccontextmanager
        async def transport() -> AsyncIterator[Any]:
            yield theirs

        server = tasks.server()
        serving = asyncio.create_task(server.run(*ours, server.create_initialization_options()))  # pyright: ignore
        try:
            callback = user.answer if asks else None
            async with Client(transport(), mode=mode, cache=None, elicitation_callback=callback) as client:  # pyright: ignore
                yield Bench(client, user, tasks, folder, log)
        finally:
            await tasks.close()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
