"""Every test of the interface sees the same terminal, whatever the one is that it was started in."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from tests.tui.settled import Threads


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORFGBG", "SSH_CONNECTION", "SSH_TTY", "TMUX", "VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pilot waits until nothing is left to do, not until the process looks idle."""
    threads = Threads()
    threads.watch(monkeypatch)
    monkeypatch.setattr("textual.app.wait_for_idle", threads.settled)
    monkeypatch.setattr(Pilot, "resize_terminal", lambda *given: threads.resize(*given))
    monkeypatch.setattr("textual.pilot.wait_for_idle", threads.settled)
