"""From arguments to a front-end or subcommand, and from its failures to one line and an exit status."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING

from swecli.command_line.arguments import UsageError, launch_options, main_parser
from swecli.command_line.standard_input import is_terminal, joined, read_piped
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError

if TYPE_CHECKING:
    from swecli.tui.boot import Terminal

NEAR = 0.78
"""How much a word has to look like a subcommand to be taken for a mistyped one; 1 is the same word."""

SUBCOMMANDS = {
    **dict.fromkeys(("demo", "sessions", "debug"), "subcommands"),
    **dict.fromkeys(("doctor", "login", "logout"), "model_commands"),
    "config": "config",
    "permissions": "permissions",
    "context": "looking",
    "completion": "completion",
}
"""Words that are no message when they come first; each is a function of the module."""


def dispatch(arguments: Sequence[str], terminal: Terminal | None = None) -> int:
    """Run what the arguments ask for. Returns the exit status. ``terminal`` is given where the interface's first
    paint has been made already; what is written until the interface goes on is not seen before it is given back."""
    _one_line_for_defects("--debug" in arguments)
    try:
        return int(_run(arguments, terminal))
    except StartError as error:
        from swecli.command_line.printing import complain

        complain(f"swecli: {error}")
        return int(error.exit_code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        from swecli.headless.output import detach_stdout

        detach_stdout()
        return int(ExitCode.FAILURE)


def _run(arguments: Sequence[str], terminal: Terminal | None) -> int:
    if arguments and arguments[0] in SUBCOMMANDS:
        module = import_module(f"swecli.command_line.{SUBCOMMANDS[arguments[0]]}")
        if terminal is not None:  # only the demonstration has a screen
            return module.demo(arguments[1:], terminal)
        return getattr(module, arguments[0])(arguments[1:])
    options = launch_options(parsed(arguments), os.environ, is_root=is_root())
    return launch(options if terminal is not None else with_standard_input(options), terminal)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments of the form without a subcommand. A single word that is most likely meant as a subcommand is no
    message, unless it comes after ``--`` or with ``-p``.

    Raises:
        UsageError: they make no sense.
    """
    parser = main_parser()
    try:
        found = parser.parse_args(arguments)
    except UsageError:
        with suppress(UsageError):
            _no_subcommand(parser.parse_known_args(arguments)[0].prompt, arguments)
        raise
    _no_subcommand(found.prompt, arguments)
    return found


def _no_subcommand(prompt: str, arguments: Sequence[str]) -> None:
    """Raises ``MeantAsSubcommand`` where the message is a subcommand at the wrong place, or nearly one."""
    if "--" in arguments or not prompt.isascii() or not prompt.isidentifier():
        return
    if prompt in SUBCOMMANDS:
        raise MeantAsSubcommand(f"{prompt} is a subcommand only as the first word: swecli {prompt} …", prompt)
    near = [f"--{prompt}"] if prompt in ("help", "version") else []
    near = near or difflib.get_close_matches(prompt.lower(), SUBCOMMANDS, 1, NEAR)
    if near:
        raise MeantAsSubcommand(f"there is no subcommand {prompt}; did you mean swecli {near[0]}?", prompt)


class MeantAsSubcommand(StartError):
    """A word that was hardly meant as a message. Says how to send it all the same."""

    def __init__(self, message: str, word: str) -> None:
        super().__init__(f"{message} To send the word as a message: swecli -- {word}", ExitCode.USAGE)


def is_root() -> bool:
    """Whether this process may do everything."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def with_standard_input(options: LaunchOptions) -> LaunchOptions:
    """Without a terminal there is no screen: then the run is a one-shot, and what is piped in joins the message.

    Raises:
        StartError: there is nothing to do.
    """
    if options.compact_dry_run:
        return options
    if options.plain and not options.headless:
        return options
    person, screen = is_terminal(sys.stdin), is_terminal(sys.stdout)
    dumb = os.environ.get("TERM", "").lower() == "dumb"
    if options.pick_session and (dumb or not person or not screen):
        raise UsageError("-r needs a session's id where there is no terminal to pick in; `swecli sessions` lists them")
    if person and screen and not options.headless and dumb:
        return replace(options, plain=True)
    if not options.headless and not screen:
        sys.stderr.write("swecli: standard output is no terminal: answering as with -p\n")
    options = replace(options, headless=options.headless or not person or not screen)
    if not options.headless or options.input_format != "text":
        return options
    if not person:
        stream = sys.stdin.buffer if sys.stdin is not None else None  # pyright: ignore[reportUnnecessaryComparison]
        options = replace(options, prompt=joined(options.prompt, read_piped(stream, options.prompt)))
    if not options.prompt.strip():
        if person:
            raise UsageError('-p needs a message: swecli -p "what to do"')
        raise StartError("standard input is empty: there is nothing to do", ExitCode.BAD_INPUT)
    return options


def launch(options: LaunchOptions, terminal: Terminal | None = None) -> int:
    """Open the session and run the front-end that the options ask for, in the ``terminal`` if it is taken already."""
    if options.compact_dry_run:
        from swecli.command_line.looking import print_plan

        return print_plan(options)
    if options.dry_run:
        from swecli.command_line.dry_run import print_request

        return print_request(options)
    from swecli.command_line.front_ends import run_headless, run_interactive, run_plain

    if options.headless:
        return run_headless(options)
    if options.plain:
        return run_plain(options)
    return run_interactive(options, terminal)


def _one_line_for_defects(debug: bool) -> None:
    """An unexpected failure is one line, not a traceback, unless asked for."""
    if debug:
        return

    def show(kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
        from swecli.command_line.printing import complain

        detail = " ".join(str(error).split())[:300]
        complain(
            f"swecli: internal failure: {kind.__name__}: {detail}. What was stored is kept; "
            "run again with --debug for the traceback."
        )

    sys.excepthook = show
