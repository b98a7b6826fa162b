"""Unsent text that survives a kill: one small file per process, taken over when that process is gone."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


class Drafts:
    """Drafts of one workspace in ``folder``; None keeps nothing."""

    def __init__(self, folder: Path | None, pid: int | None = None) -> None:
        self._folder = folder
        self._pid = os.getpid() if pid is None else pid
        self._saved = ""

    def save(self, text: str) -> None:
        """Replace this process's draft; empty text removes it. A disk that refuses is no reason to stop
        typing, so errors are ignored here."""
        if self._folder is None or text == self._saved:
            return
        path = self._folder / f"draft-{self._pid}.txt"
        with contextlib.suppress(OSError):
            if text.strip():
                self._folder.mkdir(parents=True, exist_ok=True)
                temporary = path.with_suffix(".new")
                temporary.write_bytes(text.encode("utf-8", "replace"))
                temporary.chmod(0o600)
                temporary.replace(path)
            else:
                path.unlink(missing_ok=True)
            self._saved = text

    def adopt(self) -> str:
        """The newest draft of a process that no longer runs, which is then removed; empty if there is none."""
        if self._folder is None:
            return ""
        from swecli.core.workspace.running import is_running

        found: list[tuple[float, Path]] = []
        with contextlib.suppress(OSError):
            for path in self._folder.glob("draft-*.txt"):
                pid = path.stem.removeprefix("draft-")
                if pid.isdecimal() and int(pid) != self._pid and not is_running(int(pid)):
                    found.append((path.stat().st_mtime, path))
        text = ""
        for _, path in sorted(found)[-1:]:
            with contextlib.suppress(OSError):
                text = path.read_bytes().decode("utf-8", "replace")
                path.unlink()
        return text
