"""From arguments to a front-end or a subcommand, and from failures to one line and an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, get_args

from msgspec.structs import replace

from swecli.command_line.arguments import (
    SUBCOMMANDS,
    Parser,
    UsageError,
    elsewhere,
    is_root,
    launch_options,
    main_parser,
    parsed,
)
from swecli.command_line.habits import WORDS, from_habit
from swecli.command_line.standard_streams import complain, is_terminal, joined, output_failed, read_piped
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, OutputFormat, StartError
from swecli.output import Output, lost_output
from swecli.own_files import REPLACED, replaced

if TYPE_CHECKING:
    from swecli.tui.boot import Terminal


def never_began(arguments: Sequence[str], code: ExitCode) -> int:
    """Report a failed start as JSON if the arguments select JSON. Returns the exit status."""
    from swecli.headless.printers import never_began as tell

    return int(tell(_wanted(arguments), code))


def _wanted(arguments: Sequence[str]) -> OutputFormat:
    try:
        chosen = main_parser().parse_known_args(arguments)[0].output_format
    except StartError:
        return "text"
    return chosen if chosen in get_args(OutputFormat) else "text"


def demo(arguments: Sequence[str], terminal: Terminal | None = None) -> int:
    """``swecli demo``: the real program on the sample project, with the scripted model. ``terminal`` is passed if the
    interface already uses it."""
    parser = Parser(
        prog="swecli demo", description="The program on a sample project with a scripted model: no key, no network."
    )
    parser.add_argument("-p", "--print", action="store_true", help="as text, as if without a terminal")
    parser.add_argument("--plain", action="store_true", help="line mode; you answer its questions")
    chosen = parser.parse_args(arguments)

    from swecli.assembly.succession import demo_options

    options = demo_options()
    if chosen.plain or os.environ.get("TERM", "").lower() == "dumb":
        options = replace(options, plain=True)
    elif terminal is None and (chosen.print or not (is_terminal(sys.stdin) and is_terminal(sys.stdout))):
        options = replace(options, headless=True, output_format="transcript", approve_all=True)
    return launch(options, terminal)


def dispatch(arguments: Sequence[str], terminal: Terminal | None = None) -> int:
    """Run the arguments. Returns the exit status. ``terminal`` is passed if the interface has already made its first
    paint; output stays hidden until the interface continues or returns the terminal."""
    _one_line_for_defects("--debug" in arguments)
    try:
        return int(_run(arguments, terminal))
    except StartError as error:
        complain(f"swecli: {error}")
        return int(error.exit_code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except OSError:
        failure = lost_output()
        if failure is None:
            raise
        return int(output_failed(failure))


def _run(arguments: Sequence[str], terminal: Terminal | None) -> int:
    if arguments and arguments[0] in WORDS:
        raise elsewhere(arguments[0])
    if arguments and arguments[0] in SUBCOMMANDS:
        module = import_module(SUBCOMMANDS[arguments[0]].place)
        if terminal is not None:  # only the demonstration has a screen
            return module.demo(arguments[1:], terminal)
        try:
            return getattr(module, arguments[0])(arguments[1:])
        except UsageError as error:
            raise error.of(f"swecli {arguments[0]}") from None
    arguments = from_habit(arguments)
    options = launch_options(parsed(arguments), os.environ, is_root=is_root())
    return launch(options if terminal is not None else with_standard_input(options), terminal)


def with_standard_input(options: LaunchOptions) -> LaunchOptions:
    """Without a terminal there is no screen: the run is then a one-shot, and piped input is appended to the message.

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
        raise UsageError("-r needs a session id without a terminal; `swecli sessions` lists them")
    if person and screen and not options.headless and dumb:
        return replace(options, plain=True)
    if not options.headless and not screen:
        sys.stderr.write("swecli: stdout is not a terminal; running as -p\n")
    options = replace(options, headless=options.headless or not person or not screen)
    if not options.headless or options.input_format != "text":
        return options
    if not person:
        from swecli.core.workspace.mentions import mentioned_by_hand

        stream = sys.stdin.buffer if sys.stdin is not None else None  # pyright: ignore[reportUnnecessaryComparison]
        typed = options.prompt
        text = joined(typed, read_piped(stream, typed))
        options = replace(options, prompt=text, mentions=mentioned_by_hand(text, typed))
    if not options.prompt.strip():
        if person:
            raise UsageError('-p needs a message: swecli -p "what to do"')
        from swecli.headless.printers import start_failed

        error = StartError("Nothing to send: pass a message or pipe text.", ExitCode.BAD_INPUT)
        start_failed(options.output_format, error)
        raise error
    return options


def launch(options: LaunchOptions, terminal: Terminal | None = None) -> int:
    """Open the session and run the requested front-end, in the ``terminal`` if one is passed."""
    if options.compact_dry_run:
        from swecli.command_line.inspect import print_plan

        return print_plan(options)
    if options.dry_run:
        from swecli.command_line.inspect import print_request

        return print_request(options)

    if options.worktree is not None or options.resume is not None:
        from swecli.command_line.worktree import in_worktree

        return in_worktree(options, lambda inner: _launched(inner, terminal))
    return _launched(options, terminal)


def _launched(options: LaunchOptions, terminal: Terminal | None) -> int:
    if options.headless:
        from swecli.command_line.headless import run_headless

        return run_headless(options)
    from swecli.command_line.interactive import run_interactive, run_plain

    if options.plain:
        return run_plain(options)
    return run_interactive(options, terminal)


def _one_line_for_defects(debug: bool) -> None:
    """Report an unexpected failure in one line, without a traceback except in debug mode."""
    if debug:
        return

    def show(kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
        if replaced():  # nothing more can be loaded
            Output(sys.stderr).note(f"swecli: {REPLACED}, so it ended. Stored work is kept; run the command again.")
            return
        detail = " ".join(str(error).split())[:300]
        complain(
            f"swecli: internal error: {kind.__name__}: {detail}. Stored work is kept; run again with --debug for the "
            "traceback."
        )

    sys.excepthook = show
