"""An editor for tests: the client of the official SDK, with what it was told and how it answers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError, connect_to_agent
from acp._transport import memory_transport_pair
from acp.agent.connection import AgentSideConnection
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    PermissionOption,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallUpdate,
)

from swecli.acp.agent import SwecliAgent
from swecli.app import open_session
from swecli.launch import LaunchOptions
from tests.support.waiting import PATIENCE


def text(words: str) -> list[Any]:
    return [TextContentBlock(type="text", text=words)]


@dataclass
class Editor:
    """Answers a permission request with the first option of the kind in ``answers``, one after the other; without any
    left it leaves the question open. ``buffers`` are files that it has open."""

    answers: list[str] = field(default_factory=list)
    updates: list[Any] = field(default_factory=list)
    asked: list[tuple[ToolCallUpdate, list[PermissionOption]]] = field(default_factory=list)
    elicited: list[Any] = field(default_factory=list)
    form: Any = None
    buffers: dict[str, str] = field(default_factory=dict)
    saves: bool = True
    hangs: bool = False
    reads: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def on_connect(self, conn: Any) -> None:
        """Nothing to keep."""

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self.changed.set()
        if not self.answers:
            await asyncio.Event().wait()
        wanted = self.answers.pop(0)
        if wanted == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        chosen = next(option for option in options if wanted in (option.kind, option.option_id))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self.changed.set()

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.elicited.append(mode)
        return self.form

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> ReadTextFileResponse:
        self.reads.append(path)
        if self.hangs:
            await asyncio.Event().wait()
        if path in self.buffers:
            return ReadTextFileResponse(content=self.buffers[path])
        try:
            return ReadTextFileResponse(content=Path(path).read_text())  # noqa: ASYNC240
        except (OSError, ValueError) as error:
            raise RequestError.resource_not_found(path) from error

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> None:
        self.buffers[path] = content
        if self.saves:
            Path(path).write_text(content)  # noqa: ASYNC240

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Nothing is known of any."""

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until what was told so far fulfils the condition."""
        while not condition():
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), PATIENCE)

    def of(self, kind: str) -> list[Any]:
        return [update for update in self.updates if update.session_update == kind]

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update.content.text for update in self.of(kind))

    def calls(self, id: str) -> list[Any]:
        return [update for update in self.updates if getattr(update, "tool_call_id", "") == id]


@dataclass
class Bench:
    """An agent and its editor, connected in this process."""

    editor: Editor
    connection: ClientSideConnection
    agent: SwecliAgent
    folder: Path
    session: str = ""

    async def prompt(self, words: str) -> Any:
        return await asyncio.wait_for(self.connection.prompt(session_id=self.session, prompt=text(words)), PATIENCE)


@asynccontextmanager
async def bench(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    *,
    capabilities: ClientCapabilities | None = None,
    begin: bool = True,
    **options: Any,
) -> AsyncIterator[Bench]:
    """A connected agent with the scripted model, in an empty folder; with a session, if ``begin``."""
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    file = tmp_path / "script.toml"
    file.write_text(script.replace("{python}", sys.executable))
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    ours, theirs = memory_transport_pair()
    editor = Editor()
    launch = LaunchOptions(cwd=folder, script=file, **options)
    agent = SwecliAgent(
        launch,
        lambda wanted, files: open_session(wanted, editor=files),
        editor.log.append,
        lambda: None,
    )
    serving = AgentSideConnection(agent, theirs, use_unstable_protocol=True)
    connection = connect_to_agent(editor, ours, use_unstable_protocol=True)  # pyright: ignore[reportArgumentType]
    try:
        await connection.initialize(protocol_version=1, client_capabilities=capabilities or ClientCapabilities())
        made = Bench(editor, connection, agent, folder)
        if begin:
            made.session = (await connection.new_session(cwd=str(folder), mcp_servers=[])).session_id
        yield made
    finally:
        await agent.close()
        await serving.close()
        await connection.close()
