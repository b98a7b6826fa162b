"""Command line: arguments only; a front-end is imported after it has been chosen.

If the arguments surely lead to the interface, its first paint comes first, even before their parser.
"""

import _signal  # pyright: ignore[reportMissingImports] - signal without its imports: an interrupt may come in one
import sys
from io import TextIOWrapper


def main(argv: list[str] | None = None) -> int:
    """Entry point of the ``swecli`` command. Returns the exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    if argv is None and arguments != ["--version"]:
        _end_by_interrupts()
    if None in (sys.stdin, sys.stdout, sys.stderr):  # they were closed
        from swecli.command_line.standard_streams import refuse_closed_output, replace_closed

        replace_closed()
        if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
            return refuse_closed_output()
    if isinstance(sys.stdout, TextIOWrapper):  # what its encoding lacks becomes an escape, as everywhere in swecli
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _flushed(_run(arguments))
    except SystemExit as ended:  # --help
        if not isinstance(ended.code, int | None):
            raise
        raise SystemExit(_flushed(ended.code or 0)) from None


def _flushed(status: int) -> int:
    """The exit status, after flushing Python's buffered output. Lost output is a failure, but hides no other one, such
    as a signal's when the terminal is gone."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        from swecli.command_line.standard_streams import output_failed
        from swecli.output import lost_output

        failure = lost_output()
        return status if failure is None else status or int(output_failed(failure))
    return status


FLAGS = frozenset(("-c", "--continue", "--no-session", "--safe-mode", "--debug", "--trust"))
"""Options without a value that keep the interface."""
WITH_VALUE = frozenset(("-m", "--model", "-C", "--cwd", "--add-dir", "--effort", "--base-url", "--settings"))
"""Options with a value that keep the interface."""
MAY_HAVE_VALUE = frozenset(("-r", "--resume"))


def surely_interactive(arguments: list[str]) -> bool:
    """Whether these arguments lead to the interface, if they are valid and there is a terminal. In doubt: no."""
    rest = list(arguments)
    if rest == ["demo"]:
        return True
    prompts = 0
    while rest:
        argument = rest.pop(0)
        followed = bool(rest and rest[0]) and not rest[0].startswith("-")
        if argument in WITH_VALUE and not followed:
            return False
        if argument in WITH_VALUE or (argument in MAY_HAVE_VALUE and followed):
            rest.pop(0)
        elif not argument.startswith("-"):
            prompts += 1
            if " " not in argument:  # a single word may be a subcommand, a mistyped one, or a folder
                return False
        elif argument not in FLAGS and argument not in MAY_HAVE_VALUE:
            return False
    return prompts <= 1


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        from swecli import __version__

        sys.stdout.write(f"swecli {__version__}\n")
        return 0
    if not surely_interactive(arguments):
        from swecli.stopping import Stopped, raising

        try:
            with raising():
                from swecli.command_line.dispatch import dispatch

                return dispatch(arguments)
        except Stopped as stopped:
            _let_go_silently()
            from swecli.command_line.dispatch import never_began

            return never_began(arguments, stopped.status)
    import gc
    import os

    from swecli.tui.boot import Terminal

    terminal = Terminal.take_if_usable(os.environ)
    try:
        gc.disable()  # collections cost a tenth of the start; the interface enables them again
        from swecli.command_line.dispatch import dispatch

        return dispatch(arguments, terminal)
    finally:
        if terminal is not None:
            terminal.abandon()


def _let_go_silently() -> None:
    """Print nothing about what a signal left half made, such as an event loop without its parts or a lost task."""
    import logging
    import warnings

    logging.disable()
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None


def _end_by_interrupts() -> None:
    """Let SIGINT end the process silently until somebody handles it, and again when it ends: Python's own handler
    raises an exception, with a traceback, wherever the program is."""
    try:
        if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    except ValueError:  # not the main thread
        return


if __name__ == "__main__":
    sys.exit(main())
