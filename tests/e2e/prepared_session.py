"""The interface on a prepared session, for tests in a real terminal. The first argument says what it does."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.assembly.succession import Succession
from swecli.commands.registry import COMMANDS
from swecli.core.engine.session import Session
from swecli.launch import LaunchOptions
from swecli.tui import way_out
from swecli.tui.launch import run
from swecli.tui.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from swecli.core.protocol.commands import Command
    from swecli.core.protocol.events import Body
    from tests.support.fake_session import WaitForInterrupt

LINES = 120
"""Of the answer that a working session gives."""


async def open_session() -> Session:
    from tests.support.fake_session import WAIT_FOR_INTERRUPT, FakeSession

    kind = sys.argv[1] if len(sys.argv) > 1 else ""
    if kind == "slow":
        await asyncio.sleep(1.0)
    if kind == "broken":
        raise ZeroDivisionError("a defect on purpose")
    if kind == "noisy":
        os.write(1, b"STRAY native write\n")
        os.write(2, b"STRAY native write\n")
    if kind == "keys":
        return session_for_keys()
    if kind == "asks":
        return FakeSession((asking("edit a.py"), WAIT_FOR_INTERRUPT))
    return FakeSession((WAIT_FOR_INTERRUPT,), (WAIT_FOR_INTERRUPT,))


def asking(title: str) -> Body:
    """A command that waits for consent."""
    from swecli.core.protocol.blocks import TerminalBlock
    from swecli.core.protocol.events import PermissionRequested

    return PermissionRequested("p", "t", "run_command", title, (TerminalBlock(title, ""),), "It asks.", "hash", "Bash")


def working() -> Sequence[Body | WaitForInterrupt]:
    """A plan, a long answer, and a command that goes on."""
    from swecli.core.protocol.blocks import Todo
    from swecli.core.protocol.events import ItemCheckpointed, ItemCompleted, ItemStarted, TodosChanged
    from swecli.core.protocol.messages import TextPart, ToolCallPart
    from tests.support.fake_session import WAIT_FOR_INTERRUPT

    text = "\n".join(f"answer line {number}" for number in range(1, LINES + 1))
    return (
        TodosChanged((Todo("find it", "completed"), Todo("mend it", "in_progress"))),
        ItemStarted("a", "text"),
        ItemCompleted("a", "ok", (TextPart(text),)),
        ItemStarted("t", "tool", "run_command"),
        ItemCheckpointed("t", ToolCallPart("c", "run_command", "{}"), "sleep 100", running=True),
        WAIT_FOR_INTERRUPT,
    )


def session_for_keys() -> Session:
    """A session whose turns work until they are interrupted; a message "ask" makes it ask for consent."""
    from swecli.core.protocol.commands import Background, EditQueue, Submit
    from swecli.core.protocol.events import ItemCompleted, JobChanged
    from tests.tui.support import Session

    class Keys(Session):
        def send(self, command: Command) -> None:
            if isinstance(command, Submit) and not self.view.busy:
                self._turns = [(asking("make test"),) if command.text == "ask" else working()]
            super().send(command)
            if isinstance(command, EditQueue) and command.text is None:
                self._queue.clear()
            if isinstance(command, Background):
                self.emit(ItemCompleted(command.item, "ok", detail="job j1"))
                self.emit(JobChanged("j1", "sleep 100", "running"))

    return Keys()


def prepared() -> Program:
    return Program(
        open=Succession(LaunchOptions(Path.cwd()), lambda _: open_session()),
        state=Path(os.environ["SWECLI_HOME"]) / "prompt",
        commands=lambda: COMMANDS,
        files=lambda: ("docs/guide.md", "src/shop.py"),
    )


def fail_to_read_keys(patience: float, wait: float, is_bound: Callable[[str], bool]) -> None:
    raise ZeroDivisionError("a defect on purpose")


if __name__ == "__main__":
    if sys.argv[1:] == ["deaf"]:
        from swecli.tui import terminal

        terminal.__dict__["InputFilter"] = fail_to_read_keys
    # A busy machine may take longer than a second from one Ctrl+C to the next.
    way_out.QUIT_WINDOW = 3_600.0
    sys.exit(run(prepared()))
