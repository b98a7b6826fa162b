"""/status: what this session is."""

from __future__ import annotations

from swecli import __version__
from swecli.commands.base import CommandResult, SlashCommand
from swecli.commands.figures import labelled, number, percent
from swecli.commands.mode import MODE_MEANINGS
from swecli.core.engine.view import SessionPort, SessionView
from swecli.core.protocol.events import SandboxChanged


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    return CommandResult.text(status_text(port.view))


STATUS = SlashCommand("status", "Session, model, mode, folder, instructions", _run)


def sandbox_text(state: SandboxChanged | None) -> str:
    """How far commands are contained, on one line."""
    if state is None:
        return "not looked for yet"
    why = f": {state.reason}" if state.reason else ""
    open_ = f"; not covered: {', '.join(state.uncovered)}" if state.uncovered else ""
    return f"off{why}" if state.level == "off" else f"{state.level} ({state.layer}){why}{open_}"


def status_text(view: SessionView) -> str:
    """The report as plain text."""
    model, budget = view.model, view.budget
    window = f", window {number(model.window)} tokens ({model.window_source})" if model and model.window else ""
    return labelled(
        (
            ("swecli", __version__),
            ("Session", view.session_id),
            ("Folder", str(view.cwd)),
            ("Also", ", ".join(str(root) for root in view.roots if root != view.cwd)),
            ("Model", f"{model.ref}{window}" if model else "none; set one with /model provider/name"),
            ("Asked at", model.address if model else ""),
            ("Sandbox", sandbox_text(view.sandbox)),
            ("Mode", f"{view.mode}: {MODE_MEANINGS[view.mode]}"),
            (
                "Context",
                f"{percent(budget.share)} of {number(budget.effective)} tokens" if budget else "not measured yet",
            ),
            ("Instructions", ", ".join(view.instructions) or "none; /init writes OPENCLI.md"),
            ("Waiting messages", number(len(view.queue)) if view.queue else ""),
            ("State", "working" if view.busy else "idle"),
        )
    )
