"""What standard input adds to the first message."""

from __future__ import annotations

import sys
import threading
from typing import BinaryIO, TextIO

from swecli.exit_codes import ExitCode
from swecli.launch import StartError

MAX_BYTES = 10 * 1024 * 1024
HINT_SECONDS = 3.0
"""How long to wait silently for standard input to bring something or end."""


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person is at this end. A closed stream is none."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def joined(prompt: str, piped: str) -> str:
    """The message: what was typed, and below it what was piped in."""
    return "\n\n".join(text for text in (prompt, piped.strip("\n")) if text.strip())


def read_piped(stream: BinaryIO | None, prompt: str) -> str:
    """All of standard input as text. With a prompt, a line on standard error tells what is waited for.

    Raises:
        StartError: it is larger than anybody would want in a message, or can't be read.
    """
    if stream is None:
        return ""
    hint = threading.Timer(
        HINT_SECONDS,
        sys.stderr.write,
        ("swecli: reading standard input until it ends (</dev/null if nothing will come)\n",),
    )
    hint.daemon = True
    if prompt:
        hint.start()
    try:
        data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise StartError(f"standard input can't be read: {error}", ExitCode.BAD_INPUT) from error
    finally:
        hint.cancel()
    if len(data) > MAX_BYTES:
        raise StartError(
            f"standard input is larger than {MAX_BYTES // 2**20} MiB; save it and name the file instead",
            ExitCode.BAD_INPUT,
        )
    return data.decode("utf-8-sig", "replace")
