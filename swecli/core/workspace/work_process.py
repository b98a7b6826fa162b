"""Starting the worker process."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import swecli
from swecli.core.workspace.capture import Captured, capture

_BOOT = "import sys;sys.path[:0]={paths!r};from swecli.core.workspace.worker import main;sys.exit(main())"
_GRACE = 1.0
"""Seconds that the worker gets beyond its own deadline, which it looks at between two files only."""


async def run_worker(
    request: Mapping[str, object], *, environment: Mapping[str, str], seconds: float, limit: int
) -> Captured:
    """Send ``request`` to a new worker and wait for its result, ``seconds`` at most.

    The interpreter runs isolated: neither the directory it starts in nor the environment adds modules.
    """
    boot = _BOOT.format(paths=_module_folders())
    data = json.dumps({**request, "seconds": seconds}).encode()
    argv = [sys.executable, "-I", "-S", "-X", "utf8", "-c", boot]
    return await capture(
        argv,
        cwd=Path("/") if sys.platform != "win32" else Path.cwd(),
        environment=environment,
        timeout=seconds + _GRACE,
        limit=limit,
        stdin=data,
    )


def _module_folders() -> list[str]:
    """Where swecli and what the worker needs of other packages are installed."""
    spec = find_spec("pathspec")
    origins = (swecli.__file__, spec.origin if spec else None)
    return list(dict.fromkeys(str(Path(origin).resolve().parent.parent) for origin in origins if origin))
