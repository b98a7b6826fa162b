"""Log of swecli's own failures: a file in the state directory, keys masked."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterable
from pathlib import Path

from swecli.core.atomic_text import make_private
from swecli.core.llm.secrets import Masker
from swecli.core.workspace.process import secret_values

NAME = "errors.log"


def trace_of(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """The traceback without ``secrets``, the keys of the environment and anything that looks like a key."""
    masker = Masker(secret_values(os.environ) | frozenset(secrets))
    return masker.mask("".join(traceback.format_exception(error)))


def append_defect(trace: str, state: Path) -> Path | None:
    """Append a traceback to the log below ``state``; None if it can't be written."""
    path = state / NAME
    try:
        make_private(state)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with open(descriptor, "a", encoding="utf-8", errors="replace") as log:
            log.write(trace + "\n")
    except OSError:
        return None
    return path


def report_defect(error: BaseException, state: Path, secrets: Iterable[str], *, debug: bool) -> None:
    """Log a failure with its traceback; with ``debug``, or if it can't be logged, write it to stderr, too."""
    text = trace_of(error, secrets)
    if append_defect(text, state) is None or debug:
        os.write(2, text.encode("utf-8", "replace"))
