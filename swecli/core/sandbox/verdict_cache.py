"""The verdict of a probe, kept for the same kernel and the same bubblewrap. Only a full one is kept: what is missing
may have been repaired since."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

_NAME = "sandbox-verdict.json"


class VerdictCache:
    """One remembered verdict; ``folder`` None remembers nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / _NAME

    def holds(self, facts: Sequence[str]) -> bool:
        """Whether a full verdict was reached under exactly these facts."""
        if self._path is None:
            return False
        try:
            known = cast("object", json.loads(self._path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return False
        return known == {"full": _key(facts)}

    def keep(self, facts: Sequence[str]) -> None:
        """Remember a full verdict. Where it can't be written, the next start probes again."""
        if self._path is None:
            return
        temporary = self._path.with_name(f"{_NAME}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary.write_text(json.dumps({"full": _key(facts)}), encoding="utf-8")
            temporary.replace(self._path)
        except OSError:
            temporary.unlink(missing_ok=True)

    def forget(self) -> None:
        """The verdict turned out to be wrong."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _key(facts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(facts).encode("utf-8", "surrogateescape")).hexdigest()
