"""The permission mode in words, and /mode."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, get_args

from swecli.commands.base import CommandResult, SlashCommand, Word
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import SetMode
from swecli.core.protocol.events import Mode, SandboxChanged
from swecli.core.protocol.modes import MODES

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

YOLO = "everything runs without approval (--yolo)"


def mode_label(mode: Mode, *, yolo: bool) -> str:
    """The displayed mode: with ``--yolo`` all modes but plan look the same."""
    return "yolo" if yolo and mode != "plan" else mode


def modes_of(*, yolo: bool) -> tuple[Mode, ...]:
    """The distinct modes of this session."""
    return ("default", "plan") if yolo else get_args(Mode)


def mode_meaning(mode: Mode, sandbox: SandboxChanged | None, *, yolo: bool = False) -> str:
    """Effect of a mode with this machine's sandbox, if known."""
    if yolo and mode != "plan":
        return YOLO
    if mode == "auto" and sandbox is None:
        return "like accept-edits; commands run unasked if sandboxed"
    if mode != "auto" or sandbox is None or sandbox.level == "full":
        return MODES[mode].meaning
    if sandbox.contains:
        return "like accept-edits; a partial sandbox runs most commands"
    return "file edits are accepted; commands ask (no sandbox)"


async def _run_mode(session: Session, arguments: str) -> CommandResult:
    if not arguments:
        view = session.view
        label, meaning = mode_label(view.mode, yolo=view.yolo), mode_meaning(view.mode, view.sandbox, yolo=view.yolo)
        others = " or ".join(other for other in modes_of(yolo=view.yolo) if other != view.mode)
        text = f"The mode is {label}: {meaning}. /mode {others} selects another."
        return CommandResult(screen="pick_mode", instead=(TextBlock(text),))
    wanted = "".join(char for char in arguments.lower() if char not in "-_ ")
    names = {mode: mode.replace("-", "") for mode in get_args(Mode)}
    matches = [mode for mode, name in names.items() if name == wanted] or [
        mode for mode, name in names.items() if wanted in name
    ]
    if len(matches) != 1:
        return CommandResult.text(f"Unknown mode {arguments}. Modes: {', '.join(get_args(Mode))}.", "error")
    mode: Mode = matches[0]
    session.send(SetMode(mode))
    if session.view.mode_refusal(mode):
        return CommandResult()  # the session says why
    yolo = session.view.yolo
    return CommandResult.text(f"Mode {mode}: {mode_meaning(mode, session.view.sandbox, yolo=yolo)}.")


def _mode_words(session: Session) -> Iterable[Word]:
    view = session.view
    modes: list[Mode] = [mode for mode in modes_of(yolo=view.yolo) if not view.mode_refusal(mode)]
    return (Word(mode, mode_meaning(mode, view.sandbox, yolo=view.yolo)) for mode in modes)


MODE = SlashCommand("mode", "Show or set the permission mode", _run_mode, arguments="[mode]", words=_mode_words)
