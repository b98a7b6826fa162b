"""The front-end without a screen, from launch options to exit status."""

from __future__ import annotations

import contextlib
import sys
from typing import BinaryIO

from swecli.core.engine.view import SessionPort
from swecli.core.protocol.codec import to_text
from swecli.exit_codes import ExitCode
from swecli.headless.outcome import Outcome
from swecli.headless.output import Output, OutputClosed
from swecli.headless.printers import JsonPrinter, Printer, StreamJsonPrinter, TextPrinter, result_object
from swecli.headless.run import HeadlessRun, Request
from swecli.headless.transcript import TranscriptPrinter
from swecli.launch import LaunchOptions, StartError


async def run(session: SessionPort, options: LaunchOptions) -> ExitCode:
    """Do what the options ask for with this session, and close it."""
    out, err = Output(sys.stdout), Output(sys.stderr)
    request = Request(
        prompt=options.prompt,
        commands=_standard_input() if options.input_format == "stream-json" else None,
        approve_all=options.approve_all,
    )
    return await HeadlessRun(session, request, printer_for(options, out, err), lambda line: err.note(line)).run()


def start_failed(options: LaunchOptions, error: StartError) -> None:
    """Whoever reads JSON gets a result even if there was no session."""
    if options.output_format in ("json", "stream-json"):
        outcome = Outcome()
        outcome.start_error = error
        with contextlib.suppress(OutputClosed):
            Output(sys.stdout).line(to_text(result_object(outcome)))


def printer_for(options: LaunchOptions, out: Output, err: Output) -> Printer:
    """The printer of the chosen output format."""
    match options.output_format:
        case "json":
            return JsonPrinter(out, err)
        case "stream-json":
            return StreamJsonPrinter(out, err)
        case "transcript":
            return TranscriptPrinter(out, options.banner)
        case "text":
            return TextPrinter(out, err)


def _standard_input() -> BinaryIO | None:
    return sys.stdin.buffer if sys.stdin is not None else None  # pyright: ignore[reportUnnecessaryComparison]
