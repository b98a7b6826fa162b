"""The interface on a prepared session, for tests in a real terminal. The first argument says what it does."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from swecli.commands.registry import COMMANDS
from swecli.core.engine.view import SessionPort
from swecli.tui.launch import run
from swecli.tui.options import Options


async def open_session() -> SessionPort:
    from tests.support.fake_session import WAIT_FOR_INTERRUPT, FakeSession

    kind = sys.argv[1] if len(sys.argv) > 1 else ""
    if kind == "slow":
        await asyncio.sleep(1.0)
    if kind == "broken":
        raise ZeroDivisionError("a defect on purpose")
    if kind == "noisy":
        os.write(1, b"STRAY native write\n")
        os.write(2, b"STRAY native write\n")
    return FakeSession((WAIT_FOR_INTERRUPT,), (WAIT_FOR_INTERRUPT,))


if __name__ == "__main__":
    sys.exit(run(Options(open_session, commands=lambda: COMMANDS, state=Path(os.environ["SWECLI_HOME"]) / "prompt")))
