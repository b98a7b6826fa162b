"""Standard input and output of the command line: piped input, closed pipes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from typing import BinaryIO, TextIO

from swecli.exit_codes import ExitCode
from swecli.launch import StartError
from swecli.output import Output, OutputClosed, safe
from swecli.safe_text import safe_line


def replace_closed() -> None:
    """Replace a closed standard input or standard error with the null device."""
    # Streams are None where they were closed; those opened here live to the end.
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        _open_null(0, os.O_RDONLY)
        sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        _open_null(2, os.O_WRONLY)
        sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115


def _open_null(descriptor: int, flags: int) -> None:
    opened = os.open(os.devnull, flags)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
    os.set_inheritable(descriptor, True)


def refuse_closed_output() -> int:
    """Report that the answer would be lost, and return the exit status."""
    sys.stderr.write(
        "swecli: standard output is closed, so the answer would be lost; nothing was run. Use >/dev/null if you only "
        "want the changes.\n"
    )
    return 1


MAX_BYTES = 10 * 1024 * 1024
HINT_SECONDS = 3.0
"""Seconds to wait silently for data or the end of standard input."""


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal. A closed stream is not."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def take_streams() -> tuple[BinaryIO, TextIO]:
    """Standard input and output for the protocol alone: any other read in the process gets an empty input, and any
    other output goes to standard error."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return open(source, "rb"), open(target, "w", encoding="utf-8", newline="")


def joined(prompt: str, piped: str) -> str:
    """The message: the typed text followed by the piped text."""
    return "\n\n".join(text for text in (prompt, piped.strip("\n")) if text.strip())


def read_piped(stream: BinaryIO | None, prompt: str) -> str:
    """All of standard input as text. With a prompt, a line on standard error explains the wait.

    Raises:
        StartError: it is too large for a message, or can't be read.
    """
    if stream is None:
        return ""
    hint = threading.Timer(
        HINT_SECONDS,
        sys.stderr.write,
        ("swecli: reading standard input to its end (use </dev/null if there is none)\n",),
    )
    hint.daemon = True
    if prompt:
        hint.start()
    try:
        data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise StartError(f"Standard input cannot be read: {error}", ExitCode.BAD_INPUT) from error
    finally:
        hint.cancel()
    if len(data) > MAX_BYTES:
        raise StartError(
            f"Standard input exceeds {MAX_BYTES // 2**20} MiB; save it to a file and name the file instead",
            ExitCode.BAD_INPUT,
        )
    return data.decode("utf-8-sig", "replace")


def input_lines() -> Iterable[str]:
    """Lines of standard input without a byte order mark; invalid UTF-8 becomes U+FFFD."""
    return (line.decode("utf-8" if number else "utf-8-sig", "replace") for number, line in enumerate(sys.stdin.buffer))


def print_lines(lines: Iterable[str]) -> ExitCode:
    """Print lines of JSON, each at once. Returns the exit status."""
    out = Output(sys.stdout)
    try:
        for line in lines:
            out.line(line)
    except OutputClosed as error:
        return output_failed(error)
    return ExitCode.OK


def print_text(text: str) -> ExitCode:
    """Print text for people, always in safe form for a terminal. Returns the exit status."""
    try:
        Output(sys.stdout).text(safe(text))
    except OutputClosed as error:
        return output_failed(error)
    return ExitCode.OK


def print_rows(rows: Iterable[str]) -> ExitCode:
    """Print rows for people, each in safe form on one line. Returns the exit status."""
    return print_text("".join(f"{safe_line(row)}\n" for row in rows))


def complain(text: str) -> None:
    """Write a line for people to standard error, always in safe form for a terminal."""
    from swecli.core.llm.remedies import for_shell

    Output(sys.stderr).note(for_shell(text))


def agrees(question: str) -> bool:
    """Whether the user answers yes in the terminal; no answer is a no."""
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def output_failed(error: OutputClosed) -> ExitCode:
    """Report why an answer could not be written, unless the reader closed the output. Returns the exit status."""
    if str(error):
        complain(f"swecli: {error}")
    return ExitCode.FAILURE
