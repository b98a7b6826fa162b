"""Standard input and output of the subcommands: a closed pipe is an exit status, no traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress

from swecli.exit_codes import ExitCode
from swecli.headless.output import Output, OutputClosed, detach_stdout, safe


def input_lines() -> Iterable[str]:
    """Lines of standard input; bytes that are no UTF-8 become U+FFFD."""
    return (line.decode("utf-8", "replace") for line in sys.stdin.buffer)


def print_lines(lines: Iterable[str]) -> ExitCode:
    """Print lines of JSON, each at once. Returns the exit status."""
    out = Output(sys.stdout)
    try:
        for line in lines:
            out.line(line)
    except OutputClosed:
        detach_stdout()
        return ExitCode.FAILURE
    return ExitCode.OK


def print_text(text: str) -> ExitCode:
    """Print text for people, made safe for a terminal wherever it goes. Returns the exit status."""
    try:
        Output(sys.stdout).text(safe(text))
    except OutputClosed:
        detach_stdout()
        return ExitCode.FAILURE
    return ExitCode.OK


def complain(text: str) -> None:
    """Write a line for people to standard error, made safe for a terminal wherever it goes."""
    with suppress(OutputClosed):
        Output(sys.stderr).note(text)
