"""/lsp: the language servers of the session."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand, Word, absent, end_of
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.core.language_servers.project_server import ProjectServer
    from swecli.core.language_servers.servers import LanguageServers

NONE = (
    "No language server is running. swecli uses those on PATH (such as basedpyright, typescript-language-server, "
    "gopls, rust-analyzer, clangd) in folders you trust, unless diagnostics.enabled is false."
)
UNTRUSTED = (
    "No language server is running: this folder is not trusted, and servers run programs a project names. To "
    "trust it: /permissions trust."
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
        files = session.view.extension_files
        none = NONE if files is None or files.trusted else UNTRUSTED
        return CommandResult.text(absent(session, "language servers", none), "dim")
    match arguments.split():
        case []:
            return CommandResult(tuple(_overview(session, servers)))
        case [word, name] if word in ("restart", "stop", "log"):
            in_use = [server for server in servers.in_use.values() if server.name == name]
            if not in_use:
                known = ", ".join(dict.fromkeys(server.name for server in servers.in_use.values())) or "none"
                return CommandResult.text(f"No language server {name!r} is running. Servers: {known}. {_USE}", "error")
            return await _changed(word, in_use)
        case _:
            return CommandResult.text(_USE, "error")


async def _changed(word: str, in_use: list[ProjectServer]) -> CommandResult:
    name = in_use[0].name
    if word == "log":
        return end_of(in_use[0].log)
    for server in in_use:
        await (server.restart() if word == "restart" else server.stop())
    if word == "stop":
        return CommandResult.text(f"{name} is stopped for this session; /lsp restart {name} starts it again.")
    return CommandResult.text(f"Starting {name}; /lsp shows its state.")


def _overview(session: Session, servers: LanguageServers) -> list[DisplayBlock]:
    cwd = session.view.cwd
    rows = [
        (
            server.name,
            f"{server.state}: {server.doing}" if server.doing else server.state,
            str(server.pid or ""),
            str(server.open_files or ""),
            os.path.relpath(server.root, cwd) if server.root.is_relative_to(cwd) else str(server.root),
            server.error,
        )
        for server in servers.in_use.values()
    ]
    blocks: list[DisplayBlock] = []
    if rows:
        columns = ("Server", "State", "PID", "Files", "Root", "Last error")
        blocks.append(TableBlock(columns, tuple(rows), "Language servers"))
    used = {server.name for server in servers.in_use.values()}
    others = [program.server.name for program in servers.programs if program.server.name not in used]
    if others:
        blocks.append(TextBlock(f"Installed, not started: {', '.join(others)}. Editing their files starts them."))
    open_ = [server.name for server in servers.in_use.values() if server.pid is not None and not server.contained]
    if open_:
        blocks.append(TextBlock(f"Not sandboxed: {', '.join(open_)}", "warning"))
    if servers.left_out:
        shown = [f"{path} ({reason})" for path, reason in list(servers.left_out.items())[:5]]
        blocks.append(TextBlock(f"Not checked: {', '.join(shown)}", "dim"))
    blocks.append(TextBlock("/lsp restart, stop and log take a name.", "dim"))
    return blocks


def _words(session: Session) -> Iterable[Word]:
    servers = _servers(session)
    for server in servers.in_use.values() if servers is not None else ():
        for verb in ("restart", "stop", "log"):
            yield Word(f"{verb} {server.name}", server.state)


LSP = SlashCommand(
    "lsp",
    "Show language servers: state, files, last error; restart, stop",
    _run,
    arguments="[restart|stop|log NAME]",
    words=_words,
)
