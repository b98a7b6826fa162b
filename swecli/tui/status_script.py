"""The status line of the user: a command of theirs that gets the state as JSON and prints one line."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swecli.core.engine.view import SessionView
    from swecli.tui.status import Facts

PAUSE = 0.3
"""Seconds between two runs at least, from the end of one to the start of the next."""
LIMIT = 8_192
"""Bytes of output that are read."""
GIVE_UP = 3
"""Failures in a row after which the command is not run again in this session."""


def document(facts: Facts, view: SessionView | None, columns: int) -> dict[str, object]:
    """What the command gets on its standard input. Values that are not known are null."""
    budget = facts.budget
    context = None
    if budget is not None and budget.source != "unknown":
        context = {
            "used": budget.used,
            "effective": budget.effective,
            "share": round(budget.share, 4),
            "level": budget.level,
            "estimated": budget.source == "estimated",
        }
    return {
        "session_id": None if view is None else view.session_id,
        "cwd": None if view is None else str(view.cwd),
        "model": facts.model,
        "mode": facts.mode,
        "busy": False if view is None else view.busy,
        "context": context,
        "cache_share": facts.cache_share,
        "cost_usd": None if facts.cost is None else float(facts.cost),
        "branch": facts.branch or None,
        "sandbox": None if facts.sandbox is None else facts.sandbox.level,
        "columns": columns,
    }


class StatusScript:
    """Runs the command when the state has changed, one run at a time, never in the way of anything.

    ``show`` gets the output's first line, raw, or None where the usual bar is to be shown; ``complain`` a sentence
    about the first failure.
    """

    def __init__(
        self,
        command: str,
        timeout: float,
        show: Callable[[str | None], None],
        complain: Callable[[str], None],
        *,
        environ: Mapping[str, str] | None = None,
        pause: float = PAUSE,
    ) -> None:
        self._command = command
        self._timeout = timeout
        self._show = show
        self._complain = complain
        self._environ = environ
        self._pause = pause
        self._wanted: tuple[dict[str, object], Path] | None = None
        self._last: dict[str, object] | None = None
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._told = False

    def update(self, state: dict[str, object], cwd: Path) -> None:
        """The state is this now. Returns at once."""
        if self._failures >= GIVE_UP or state == self._last:
            return
        self._last, self._wanted = state, (state, cwd)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    def stop(self) -> None:
        """Begin no run any more, and end the one that is going on."""
        self._failures, self._wanted = GIVE_UP, None
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """As ``stop``, and wait for its end."""
        self.stop()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        while self._wanted is not None and self._failures < GIVE_UP:
            (state, cwd), self._wanted = self._wanted, None
            began = time.monotonic()
            await self._run(state, cwd)
            await asyncio.sleep(max(0.0, self._pause - (time.monotonic() - began)))

    async def _run(self, state: dict[str, object], cwd: Path) -> None:
        from swecli.core.workspace.capture import capture
        from swecli.core.workspace.environment import scrubbed_environment

        environment = scrubbed_environment(os.environ if self._environ is None else self._environ)
        environment["COLUMNS"] = str(state.get("columns", 80))
        text = json.dumps(state, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            ran = await capture(
                ["/bin/sh", "-c", self._command],
                cwd=cwd,
                environment=environment,
                timeout=self._timeout,
                limit=LIMIT,
                stdin=text,
            )
        except OSError as error:
            self._failed(f"can't be started: {error.strerror or error}")
            return
        if ran.timed_out:
            self._failed(f"took longer than {self._timeout:g} s and was stopped")
        elif ran.status not in (0, None):
            said = ran.errors.decode("utf-8", "replace").strip().partition("\n")[0][:200]
            self._failed(f"ended with status {ran.status}{f': {said}' if said else ''}")
        else:
            self._failures = 0
            lines = ran.output.decode("utf-8", "replace").strip("\n").splitlines()
            self._show(lines[0] if lines else "")

    def _failed(self, how: str) -> None:
        self._failures += 1
        self._show(None)
        if not self._told:
            self._told = True
            self._complain(f"The command of ui.status_line {how}. The usual bar is shown.")
