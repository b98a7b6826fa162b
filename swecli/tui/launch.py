"""Start and end of the interface. No slow import happens before the first paint."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from swecli.themes.scheme import colour_system, depth
from swecli.tui import boot

if TYPE_CHECKING:
    from swecli.core.protocol.result import Kept
    from swecli.tui.app import SwecliApp
    from swecli.tui.program import Program


@contextlib.contextmanager
def textual_settings() -> Iterator[None]:
    """Set the environment variables that Textual reads at import. They are removed afterwards, so that no child process
    inherits them; NO_COLOR, which Textual removes, is restored."""
    wanted = {
        "TEXTUAL_ANIMATIONS": "none",
        "TEXTUAL_SMOOTH_SCROLL": "0",
        "TEXTUAL_COLOR_SYSTEM": colour_system(depth(os.environ)),
        "TEXTUAL_THEME": None,
        "TEXTUAL_PRESS": None,
        "TEXTUAL_SCREENSHOT": None,
        "TEXTUAL_ALLOW_SIGNALS": None,
        "ESCDELAY": os.environ.get("ESCDELAY", "50"),
    }
    before = {name: os.environ.get(name) for name in (*wanted, "NO_COLOR")}
    _set(wanted)
    try:
        yield
    finally:
        _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


LAST_LINES = 12
"""Lines of the last answer left on the normal screen."""

LAST_FILES = 12
"""Changed files listed there."""

SWITCH, SWITCH_EARLY = 0.005, 0.0005
"""Thread switch interval in seconds; shorter while modules load, so that keys stay responsive."""

COLLECT = (2_000, 10, 50)
"""Garbage collection thresholds: a full pass takes several frames, and with the defaults happens every other second of
a fast answer."""

SETTLED = 2.0
"""Seconds from an open session to one at rest."""

UNUSABLE = 2
"""Exit code without a usable terminal."""


def run(program: Program, terminal: boot.Terminal | None = None) -> int:
    """Run the interface until the user leaves or a signal ends it. Returns the exit code. ``terminal`` is given if the
    first paint is already made.

    Every exit restores the terminal and leaves the end of the last answer and the command to continue the session on
    the normal screen.
    """
    if terminal is None:
        try:
            boot.require_terminal(os.environ)
        except boot.TerminalUnusable as error:
            sys.stderr.write(f"swecli: {_safe(str(error))}\n")
            return UNUSABLE
        terminal = boot.Terminal.take()
    gc.disable()  # a collection costs a tenth of the start
    sys.setswitchinterval(SWITCH_EARLY)
    try:
        terminal.ask_background()

        with textual_settings():
            from swecli.steady_clock import SteadyClock
            from swecli.tui.app import SwecliApp
            from swecli.tui.terminal import handled, keep_timers_steady, prepare
        prepare(terminal.attributes, terminal.typed())
        keep_timers_steady()
        app = SwecliApp(program, clock=SteadyClock(), opened=settle)

        def restore() -> None:
            terminal.restore(app.terminal.farewell())

        # From the end of this block on: only the farewell follows, and a Ctrl+C held down must not cut it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with handled(app.way_out.end_soon, app.way_out.cancel_soon, restore):
            try:
                app.run()
            finally:
                restore()
    finally:
        terminal.restore()
        gc.enable()
    code = app.return_code or 0
    with contextlib.suppress(OSError) if code > SIGNALLED else contextlib.nullcontext():  # the terminal may be gone
        _take_leave(app, program, terminal)
    return code


def _take_leave(app: SwecliApp, program: Program, terminal: boot.Terminal) -> None:
    """Write to the normal screen what remains of the run."""
    if app.defect is not None:
        sys.stderr.write(f"swecli: {_safe(defect_report(app.defect, program.state, program.open.resume_hint))}\n")
    elif app.failure is not None:
        sys.stderr.write(f"swecli: {_safe(str(app.failure))}\n")
    elif app.loaded and app.session.spoke:
        from swecli.tui.session_state import changed_in_run

        state = app.session.state
        changed = changed_in_run(state, None)
        hint, kept = program.open.resume_hint, program.open.kept
        sys.stdout.write(_safe(farewell(state.last_answer, hint, changed, kept, state.parting)))
    if stray := terminal.stray_output():
        sys.stderr.write(f"Output captured while the interface ran:\n{_safe(stray)}\n")


SIGNALLED = 128
"""The exit status of a program that a signal ended is above this."""


def settle() -> None:
    """End the start phase: exempt the objects that exist now from collection and enable it. What the first screen
    leaves behind after that is collected once, because nothing would do it while the program is idle."""
    from asyncio import get_running_loop

    from swecli.steady_clock import keep_steady

    sys.setswitchinterval(SWITCH)
    gc.set_threshold(*COLLECT)
    gc.freeze()
    gc.enable()
    keep_steady(get_running_loop())
    get_running_loop().call_later(SETTLED, gc.collect)


def defect_report(error: BaseException, state: Path | None, resume: str) -> str:
    """A sentence or two about a defect of the program, or the loss of its files; its traceback goes to a file below
    ``state``."""
    from swecli.own_files import REPLACED, replaced

    gone = replaced()
    text = f"{REPLACED}, so it ended." if gone else f"internal error ({type(error).__name__}: {_safe(str(error))})."
    text += f" The conversation is stored; `{resume}` continues it." if resume else f" {NOT_STORED}"
    from swecli.defect_log import append_defect, trace_of

    log = append_defect(trace_of(error), state) if state is not None else None
    return text if gone or log is None else f"{text} Details: {log}"


NOT_STORED = "This conversation was not stored."


def way_back(resume: str, kept: Kept = "all") -> str:
    """How to continue: ``resume`` is the command, empty if the session is not stored."""
    from swecli.core.protocol.result import LOSSES

    if not resume:
        return NOT_STORED
    loss = LOSSES.get(kept)
    return "\n".join(filter(None, (loss, f"Continue with: {resume}")))


def farewell(
    answer: str,
    resume: str,
    changed: Mapping[str, bool] = MappingProxyType({}),
    kept: Kept = "all",
    parting: Sequence[str] = (),
) -> str:
    """Text for the normal screen: the answer's last lines, the changed files (absolute paths, newest last, and whether
    each existed before), the ``parting`` notices, and how to continue what is ``kept``."""
    columns = shutil.get_terminal_size().columns
    lines = [part for line in _safe(answer).strip().splitlines() for part in _wrapped(line, columns)]
    shown = lines[-LAST_LINES:]
    if len(lines) > len(shown):
        shown.insert(0, "…")
    body = "\n".join(shown)
    files = _changed(changed)
    below = _wrapped(f"Changed: {files}", columns) if files else []
    below += [line for notice in parting[-LAST_FILES:] for line in _wrapped(notice, columns)]
    return "\n".join([*([body, ""] if body else []), *below, way_back(resume, kept)]) + "\n"


def _changed(paths: Mapping[str, bool]) -> str:
    """The newest changed files; one that came and went is no change."""
    from swecli.core.workspace.text_file import shown_path
    from swecli.safe_text import safe_line

    cwd = Path.cwd()
    names: list[str] = []
    for path, existed in paths.items():
        there = os.path.lexists(path)
        if there or existed:
            names.append(safe_line(shown_path(path, cwd)) + ("" if there else " (deleted)"))
    more = f"{len(names) - LAST_FILES} more, " if len(names) > LAST_FILES else ""
    return more + ", ".join(names[-LAST_FILES:])


def _wrapped(line: str, columns: int) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, max(20, columns - 1), subsequent_indent=indent, break_on_hyphens=False) or [""]


def _safe(text: str) -> str:
    from swecli.safe_text import sanitise

    return sanitise(text)
