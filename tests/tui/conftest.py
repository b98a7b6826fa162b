"""Every test of the interface sees the same terminal, whatever the one is that it was started in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from swecli.tui.status_bar import ActivityLine
from tests.support.thorough import THOROUGH
from tests.support.waiting import PATIENCE
from tests.tui.frames import FRAMES
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
    monkeypatch.setattr(Pilot, "_wait_for_screen", lambda *given, **named: threads.worked_off(*given, **named))


@pytest.fixture(autouse=True)
def frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no test looks, several frames are drawn as one."""
    FRAMES.watch(monkeypatch, every=THOROUGH)


@pytest.fixture(autouse=True)
def read_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short messages stay until something else ends them: a busy machine may take seconds to look at one."""
    flash = ActivityLine.flash

    def stays(line: ActivityLine, text: str, seconds: float = 0.0, holds: Callable[[], bool] | None = None) -> None:
        flash(line, text, max(seconds, 2 * PATIENCE), holds)

    monkeypatch.setattr(ActivityLine, "flash", stays)


@pytest.fixture(autouse=True, scope="session")
def parsed() -> Iterator[None]:
    """Each application reads the same style sheets with the same variables; they are parsed for the first one only."""
    parse = Stylesheet._parse_rules
    by_variables: dict[tuple[Any, ...], dict[tuple[Any, ...], Any]] = {}
    variables: dict[str, str] = {}
    known: dict[tuple[Any, ...], Any] = {}

    def parse_once(sheet: Stylesheet, css: str, *given: Any, **named: Any) -> Any:
        nonlocal variables, known
        if sheet._variables is not variables:
            variables = sheet._variables
            known = by_variables.setdefault(tuple(variables.items()), {})
        key = (css, given, tuple(named.items()))
        if key not in known:
            known[key] = parse(sheet, css, *given, **named)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield
