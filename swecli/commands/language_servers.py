"""/lsp: the language servers of the session."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand, absent, end_of
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.core.language_servers.servers import LanguageServers
    from swecli.core.language_servers.slot import ServerSlot

NONE = (
    "No language server is in use. swecli uses those on PATH (such as basedpyright, typescript-language-server, gopls, "
    "rust-analyzer, clangd) in folders that you trust, unless diagnostics.enabled is false."
)
_USE = "Use /lsp, or /lsp restart, stop or log NAME."


def _servers(session: Session) -> LanguageServers | None:
    if not session.extended:
        return None
    from swecli.core.language_servers.servers import LanguageServers  # not imported where there is no server

    return session.extension(LanguageServers)


async def _run(session: Session, arguments: str) -> CommandResult:
    servers = _servers(session)
    if servers is None:
        return CommandResult.text(absent(session, "language servers", NONE), "dim")
    match arguments.split():
        case []:
            return CommandResult(tuple(_overview(session, servers)))
        case [word, name] if word in ("restart", "stop", "log"):
            slots = [slot for slot in servers.slots.values() if slot.name == name]
            if not slots:
                known = ", ".join(dict.fromkeys(slot.name for slot in servers.slots.values())) or "none"
                return CommandResult.text(f"No language server {name!r} was used. There are: {known}. {_USE}", "error")
            return await _changed(word, slots)
        case _:
            return CommandResult.text(_USE, "error")


async def _changed(word: str, slots: list[ServerSlot]) -> CommandResult:
    name = slots[0].name
    if word == "log":
        return end_of(slots[0].log)
    for slot in slots:
        await (slot.restart() if word == "restart" else slot.stop())
    if word == "stop":
        return CommandResult.text(f"{name} is stopped for this session; /lsp restart {name} starts it again.")
    return CommandResult.text(f"Starting {name}; /lsp shows its state.")


def _overview(session: Session, servers: LanguageServers) -> list[DisplayBlock]:
    cwd = session.view.cwd
    rows = [
        (
            slot.name,
            f"{slot.state}: {slot.doing}" if slot.doing else slot.state,
            str(slot.pid or ""),
            str(slot.open_files or ""),
            os.path.relpath(slot.root, cwd) if slot.root.is_relative_to(cwd) else str(slot.root),
            slot.error,
        )
        for slot in servers.slots.values()
    ]
    blocks: list[DisplayBlock] = []
    if rows:
        columns = ("Server", "State", "PID", "Files", "Root", "Last error")
        blocks.append(TableBlock(columns, tuple(rows), "Language servers"))
    used = {slot.name for slot in servers.slots.values()}
    others = [program.server.name for program in servers.programs if program.server.name not in used]
    if others:
        blocks.append(TextBlock(f"Installed and not started: {', '.join(others)}. An edit of their files starts them."))
    open_ = [slot.name for slot in servers.slots.values() if slot.pid is not None and not slot.contained]
    if open_:
        blocks.append(TextBlock(f"Not in the sandbox: {', '.join(open_)}", "warning"))
    if servers.left_out:
        shown = [f"{path} ({reason})" for path, reason in list(servers.left_out.items())[:5]]
        blocks.append(TextBlock(f"Not checked: {', '.join(shown)}", "dim"))
    blocks.append(TextBlock("/lsp restart, stop and log take a name.", "dim"))
    return blocks


LSP = SlashCommand(
    "lsp",
    "Show language servers: state, files, last error; restart, stop",
    _run,
    arguments="[restart|stop|log NAME]",
)
