"""The temporary directory that the commands of one session share, and that nobody else looks into."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from swecli.core.workspace.running import is_running

_NAME = re.compile(r"swecli-sandbox-(\d+)-.*")


class PrivateTemporary:
    """Made when first asked for, removed by ``close``; what a killed swecli left is removed then, too."""

    def __init__(self) -> None:
        self._path: str | None = None

    @property
    def path(self) -> str:
        """The directory.

        Raises:
            OSError: it can't be made.
        """
        if self._path is None or not os.path.isdir(self._path):
            made = tempfile.mkdtemp(prefix=f"swecli-sandbox-{os.getpid()}-")
            self._path = os.path.realpath(made)
        return self._path

    def close(self) -> None:
        """Remove the directory and those of processes that are gone."""
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            self._path = None
        for path in Path(tempfile.gettempdir()).glob("swecli-sandbox-*"):
            found = _NAME.fullmatch(path.name)
            if found and not is_running(int(found[1])) and _ours(path):
                shutil.rmtree(path, ignore_errors=True)


def _ours(path: Path) -> bool:
    try:
        return not path.is_symlink() and path.stat().st_uid == os.geteuid()
    except OSError:
        return False
