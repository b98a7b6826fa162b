"""From arguments to a front-end or a subcommand, and from failures to one line and an exit status."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from itertools import takewhile
from types import TracebackType
from typing import TYPE_CHECKING, get_args

from msgspec.structs import replace

from swecli.command_line.arguments import (
    SUBCOMMANDS,
    Parser,
    UsageError,
    launch_options,
    main_parser,
)
from swecli.command_line.habits import WORDS, answer_to, from_habit
from swecli.command_line.standard_streams import (
    input_lines,
    is_terminal,
    joined,
    output_failed,
    print_lines,
    read_piped,
)
from swecli.core.edit_distance import nearest
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, OutputFormat, StartError
from swecli.output import Output, OutputClosed
from swecli.own_files import REPLACED, replaced
from swecli.stopping import Stop, run_until_stopped

if TYPE_CHECKING:
    from swecli.core.answer_schema import AnswerSchema
    from swecli.core.protocol.blocks import DisplayBlock
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


def debug(arguments: Sequence[str]) -> int:
    """``swecli debug decode|tool --batch``: reads JSON lines, and answers each with one JSON line."""
    parser = Parser(
        prog="swecli debug",
        description="For bug reports and external checks, one JSON object per line in and out. decode reads id, "
        "protocol, host, model, status, headers and chunks (base64); tool reads id, name, arguments, cwd, mode and "
        "approve.",
    )
    parser.add_argument("what", choices=("decode", "tool"), help="decode recorded answers, or run single tool calls")
    parser.add_argument("--batch", action="store_true", required=True, help="read lines from standard input")
    what = parser.parse_args(arguments).what
    if what == "decode":
        from swecli.core.llm.debug_decode import decode_batch

        return print_lines(decode_batch(input_lines()))
    import asyncio

    return asyncio.run(_tool_batch())


async def _tool_batch() -> int:
    from swecli.assembly.tool_batch import tool_batch

    out = Output(sys.stdout)
    try:
        async for line in tool_batch(input_lines()):
            out.line(line)
    except OutputClosed as error:
        return output_failed(error)
    return ExitCode.OK


def run_headless(options: LaunchOptions) -> int:
    return run_until_stopped(lambda stop: _headless(options, stop))


async def _headless(options: LaunchOptions, stop: Stop) -> int:
    import asyncio
    import gc

    gc.disable()  # nothing loaded now is garbage, and collections delay the start
    from swecli.app import open_session
    from swecli.commands.registry import parse
    from swecli.headless.printers import never_began, start_failed
    from swecli.headless.run import run

    gc.freeze()
    gc.enable()
    if options.input_format == "text" and parse(options.prompt) is not None:
        options = replace(options, needs_model=False)
    schema = None
    if options.json_schema is not None:
        try:
            schema = answer_schema(options.json_schema)
        except StartError as error:
            start_failed(options.output_format, error)
            raise
        told = "\n\n".join(filter(None, (options.append_system_prompt, schema.instruction)))
        options = replace(options, append_system_prompt=told)
    opening = asyncio.ensure_future(open_session(options))
    try:
        with stop.calling(opening.cancel):
            session = await opening
    except StartError as error:
        start_failed(options.output_format, error)
        raise
    except asyncio.CancelledError:
        if stop.code is None:
            raise
        return never_began(options.output_format, stop.code)
    return await run(
        session,
        options,
        {"settings": _settings_shown, "permissions": _permissions_shown},
        stop,
        schema,
        lambda: _large_message(options),
    )


def _large_message(options: LaunchOptions) -> float:
    from swecli.tui.preferences import read_preferences

    return read_preferences(options).large_message


def answer_schema(text: str) -> AnswerSchema:
    """The schema of ``--json-schema``.

    Raises:
        StartError: it is invalid.
    """
    from swecli.core.answer_schema import AnswerSchema, SchemaProblem

    try:
        return AnswerSchema.read(text)
    except SchemaProblem as error:
        raise StartError(f"--json-schema: {error}", ExitCode.BAD_INPUT) from None


def _settings_shown(options: LaunchOptions, words: str) -> tuple[DisplayBlock, ...]:
    """The settings with all words in name, value or meaning, in place of the screen."""
    from swecli.assembly.settings import SettingsFiles
    from swecli.command_line.config import settings_table
    from swecli.core.protocol.blocks import TextBlock

    wanted = words.casefold().split()
    settings = [
        each
        for each in SettingsFiles(options, dict(os.environ)).described()
        if all(word in f"{each.name} {each.about} {'' if each.secret else each.shown}".casefold() for word in wanted)
    ]
    return (settings_table(settings) if settings else TextBlock(f"No setting matches {words!r}; /config lists all."),)


def _permissions_shown(options: LaunchOptions, _words: str) -> tuple[DisplayBlock, ...]:
    """All rules, in place of the screen."""
    from swecli.assembly.permissions import FolderRules
    from swecli.command_line.permissions import rules_block

    return (rules_block(FolderRules(LaunchOptions(options.cwd), dict(os.environ))),)


NEAR = 0.78
"""Least similarity of a word to a subcommand to count as a typing error; 1 is the same word."""


def dispatch(arguments: Sequence[str], terminal: Terminal | None = None) -> int:
    """Run the arguments. Returns the exit status. ``terminal`` is passed if the interface has already made its first
    paint; output stays hidden until the interface continues or returns the terminal."""
    _one_line_for_defects("--debug" in arguments)
    try:
        return int(_run(arguments, terminal))
    except StartError as error:
        from swecli.command_line.standard_streams import complain

        complain(f"swecli: {error}")
        return int(error.exit_code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except OSError:
        from swecli.output import lost_output

        failure = lost_output()
        if failure is None:
            raise
        from swecli.command_line.standard_streams import output_failed

        return int(output_failed(failure))


def _run(arguments: Sequence[str], terminal: Terminal | None) -> int:
    if arguments and arguments[0] in WORDS:
        raise _elsewhere(arguments[0])
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


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of the form without a subcommand. A single word close to a subcommand is not a message,
    except after ``--`` or with ``-p``.

    Raises:
        UsageError: they are invalid.
    """
    parser = main_parser()
    try:
        namespace = parser.parse_args(arguments)
    except UsageError:
        if answer := answer_to(arguments):
            raise UsageError(answer) from None
        with suppress(UsageError):
            _no_subcommand(parser.parse_known_args(arguments)[0].prompt, arguments)
        if mistyped := _mistyped(parser, arguments):
            raise UsageError(mistyped) from None
        raise
    _no_subcommand(namespace.prompt, arguments)
    return namespace


def _no_subcommand(prompt: str, arguments: Sequence[str]) -> None:
    """Raises ``MeantAsSubcommand`` if the message is a misplaced subcommand, or close to one."""
    if prompt not in WORDS and not (prompt.isascii() and prompt.isidentifier()):
        return
    if "--" in arguments[: arguments.index(prompt)] if prompt in arguments else ():  # marked as a message
        return
    if prompt in WORDS:
        raise _elsewhere(prompt)
    if prompt in SUBCOMMANDS:
        raise MeantAsSubcommand(f"{prompt} is a subcommand; it must be the first argument: swecli {prompt} …", prompt)
    near = [f"--{prompt}"] if prompt in ("help", "version") else []
    near = near or difflib.get_close_matches(prompt.lower(), SUBCOMMANDS, 1, NEAR)
    if near:
        raise MeantAsSubcommand(f"unknown subcommand {prompt}; did you mean swecli {near[0]}?", prompt)


def _mistyped(parser: Parser, arguments: Sequence[str]) -> str:
    """The likely correction of the first unknown long option; empty without a close one."""
    known = [name for action in parser._actions for name in action.option_strings]  # pyright: ignore[reportPrivateUsage]
    typed = [argument.partition("=")[0] for argument in takewhile(lambda argument: argument != "--", arguments)]
    for name in typed:
        if name.startswith("--") and name not in known:
            near = nearest(name.lower().replace("_", "-"), known)
            return f"unknown option {name}; did you mean {near}?" if near else ""
    return ""


class MeantAsSubcommand(StartError):
    """A word that is probably not a message. The text explains how to send it anyway."""

    def __init__(self, message: str, word: str) -> None:
        super().__init__(f"{message} To send the word as a message: swecli -- {word}", ExitCode.USAGE)


def _elsewhere(word: str) -> MeantAsSubcommand:
    return MeantAsSubcommand(f"No such subcommand. {WORDS[word]}", word)


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


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
        from swecli.command_line.standard_streams import complain

        detail = " ".join(str(error).split())[:300]
        complain(
            f"swecli: internal error: {kind.__name__}: {detail}. Stored work is kept; run again with --debug for the "
            "traceback."
        )

    sys.excepthook = show
