"""/add-dir: one more folder to work in."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import TextBlock
from swecli.core.workspace.named_folder import usable_folder


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    view = port.view
    name = arguments.strip()
    if not name:
        return CommandResult.text(f"Folders of this session: {', '.join(map(str, view.roots))}.")
    try:
        path = usable_folder(name, view.cwd)
    except ValueError as error:
        return CommandResult.text(f"{name}: {error}; nothing was added", "error")
    if any(path.is_relative_to(root) for root in view.roots):
        return CommandResult.text(f"{path} belongs to this session already.")
    if any(job.status == "running" for job in view.jobs):
        return CommandResult.text(
            "Background jobs run, and the session is opened again to work in one more folder, which would end them; "
            "/jobs lists and stops them.",
            "error",
        )
    instead = TextBlock(f"Folders are given at the start here: --add-dir {path}", "warning")
    return CommandResult(screen="add_folder", argument=str(path), instead=(instead,))


ADD_DIR = SlashCommand(
    "add-dir", "Work in one more folder, until the end of this run", _run, arguments="[folder]", while_busy=False
)
