"""Arguments of the main form and their validation. The result is a ``LaunchOptions``."""

from __future__ import annotations

import argparse
import difflib
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from itertools import takewhile
from pathlib import Path
from typing import NoReturn, get_args

from msgspec import Struct

from swecli import __version__
from swecli.command_line.habits import WORDS, answer_to
from swecli.core.edit_distance import nearest
from swecli.core.protocol.modes import MODES
from swecli.core.workspace.text_file import is_folder, usable_folder
from swecli.exit_codes import ExitCode
from swecli.launch import InputFormat, LaunchOptions, OutputFormat, StartError


class Subcommand(Struct, frozen=True):
    """A first word that is a subcommand rather than a message: a function of this name in
    ``swecli.command_line.MODULE``, or in a module of this whole name. ``usage`` and ``summary`` are its line of the
    help, empty if another line covers it; ``words`` are the ones that may follow it."""

    module: str
    usage: str = ""
    summary: str = ""
    words: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The whole name of the module."""
        return self.module if "." in self.module else f"swecli.command_line.{self.module}"


SUBCOMMANDS: Mapping[str, Subcommand] = {
    "demo": Subcommand(
        "dispatch", "demo", "try the program on a sample project with a scripted model: no key, no network"
    ),
    "sessions": Subcommand(
        "sessions",
        "sessions",
        "stored sessions: list, show, search, export, import, rename, delete, purge, relink",
        ("list", "show", "search", "export", "import", "rename", "delete", "purge", "relink"),
    ),
    "logs": Subcommand(
        "logs",
        "logs",
        "logs of this folder's sessions: list, show, path, export",
        ("list", "show", "path", "export"),
    ),
    "context": Subcommand("inspect", "context", "show what fills a session's context; --json for scripts"),
    "retrieve": Subcommand("retrieve", "retrieve TEXT", "find the files that match a text; --batch"),
    "config": Subcommand(
        "config",
        "config",
        "show every setting, its value and origin; get, set, unset",
        ("list", "get", "set", "unset", "path", "schema"),
    ),
    "permissions": Subcommand(
        "permissions",
        "permissions",
        "show and change rules; swecli permissions check -- COMMAND",
        ("check", "trust", "decline", "forget", "accept", "list", "test", "grant", "revoke", "import"),
    ),
    "mcp": Subcommand(
        "mcp",
        "mcp",
        "MCP servers: add, list, remove, test, import, approve; serve",
        ("add", "approve", "import", "list", "remove", "serve", "test"),
    ),
    "plugin": Subcommand(
        "plugins",
        "plugin",
        "plugins as for Claude Code: add, list, show, update, remove, market",
        ("add", "list", "show", "update", "remove", "market"),
    ),
    "web": Subcommand("web", "web", "the interface in a browser of this machine"),
    "lab": Subcommand(
        "lab",
        "lab replay|tune",
        "replay a session with other context settings, or propose better ones",
        ("replay", "tune"),
    ),
    "fleet": Subcommand(
        "swecli.fleet.command",
        "fleet run TASKS",
        "run many tasks at once, each isolated and verified; check, report, apply, open",
        ("run", "check", "report", "apply", "open"),
    ),
    "models": Subcommand(
        "models", "models [WORDS]", "list the models your keys and servers offer, with windows and prices"
    ),
    "doctor": Subcommand("models", "doctor", "check providers, keys, sandbox, stored sessions, terminal"),
    "login": Subcommand("models", "login PROVIDER", "store a key; swecli logout deletes it"),
    "logout": Subcommand("models"),
    "completion": Subcommand(
        "completion",
        "completion SHELL",
        "print a completion script for bash, zsh or fish",
        ("bash", "zsh", "fish"),
    ),
    "update": Subcommand("update", "update", "print the command that upgrades this installation"),
    "acp": Subcommand("acp", "acp", "serve an editor on stdin and stdout (Agent Client Protocol); see docs/acp.md"),
    "debug": Subcommand(
        "debug",
        "debug decode|tool --batch ",
        "for bug reports: decode recorded answers, run single tool calls",
        ("decode", "tool"),
    ),
}

_LINES = "\n".join(f"  swecli {each.usage:<16}  {each.summary}" for each in SUBCOMMANDS.values() if each.usage)
_EPILOG = f"""subcommands:
{_LINES}

Keys and addresses come from the usual variables: OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY,
ANTHROPIC_BASE_URL. Exit status: 0 ok, 1 failure, 2 usage, 41 key rejected, 42 bad input, 44 no full sandbox,
52 configuration, 53 turn limit, 55 folder not trusted, 60 cap on tokens or price, 61 context full, 62 approval
needed without a user, 63 refused or filtered, 65 answer does not match --json-schema, 75 try again later, 130 and 143
stopped by a signal."""


class UsageError(StartError):
    """Invalid arguments. One line, exit status 2. ``program`` is the (sub)command whose help describes them."""

    def __init__(self, message: str, program: str = "") -> None:
        super().__init__(f"{message} ({program or 'swecli'} --help lists the options)", ExitCode.USAGE)
        self.said, self._program = message, program

    def of(self, program: str) -> UsageError:
        """The error as one of this program, unless it names its own."""
        return self if self._program else UsageError(self.said, program)


class Parser(argparse.ArgumentParser):
    """A parser with one-line errors, and with help that is never silently lost."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message[:1].upper() + message[1:], self.prog)

    def _print_message(self, message: str, file: object = None) -> None:
        try:
            sys.stdout.write(message)
            sys.stdout.flush()
        except OSError as error:
            from swecli.command_line.standard_streams import output_failed
            from swecli.output import closed, lost_output

            lost_output()
            self.exit(output_failed(closed(error)))


def folder_parser(program: str, about: str, where: str = "in this folder") -> Parser:
    """A parser with ``-C``; ``where`` says what the folder is for."""
    parser = Parser(prog=program, description=about)
    parser.add_argument("-C", "--cwd", metavar="DIR", help=where)
    return parser


def run_word(
    program: str, about: str, runs: Mapping[str, Callable[[Sequence[str]], int]], arguments: Sequence[str], default: str
) -> int:
    """Run the word of a subcommand that comes first, or the ``default`` if none does; ``about`` is the help, printed
    also if there is no default.

    Raises:
        UsageError: there is no such word.
    """
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help") or not (first or default):
        sys.stdout.write(about)
        return ExitCode.OK if first else ExitCode.USAGE
    if default and (not first or first.startswith("-")):
        return runs[default](arguments)
    if first not in runs:
        raise UsageError(f"{program} has no {first!r}; available: {', '.join(runs)}")
    return runs[first](arguments[1:])


def main_parser() -> Parser:
    parser = Parser(
        prog="swecli",
        description="A terminal coding agent with visible context, permissions and undo.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("prompt", nargs="?", default="", help="first message (use -- if it is also a subcommand name)")
    parser.add_argument("--version", action="version", version=f"swecli {__version__}")
    _output_options(parser.add_argument_group("headless"))
    _session_options(parser.add_argument_group("sessions"))
    _model_options(parser.add_argument_group("model"))
    _scope_options(parser.add_argument_group("permissions and scope"))
    _prompt_options(parser.add_argument_group("instructions"))
    parser.add_argument("--plain", action="store_true", help="line mode, for screen readers, dumb terminals and pipes")
    _more_options(parser)
    return parser


def editor_parser() -> Parser:
    """Options of a session with messages from an editor. Missing options of the main form have their defaults."""
    parser = _serving(
        "swecli acp",
        "Serve an editor over the Agent Client Protocol on standard input and output. The editor starts this "
        "command; docs/acp.md shows the settings.",
    )
    parser.add_argument("--login", action="store_true", help="ask for a provider and store its key, then exit")
    return parser


def server_parser() -> Parser:
    """Options of a server that takes tasks from other agents."""
    return _serving(
        "swecli mcp serve",
        "Serve other agents as an MCP server on standard input and output. They start this command; docs/mcp.md "
        "shows the settings. Tasks work in the start folder and below, within its settings and these options.",
    )


def _serving(program: str, about: str) -> Parser:
    parser = Parser(prog=program, description=about, allow_abbrev=False)
    limits = parser.add_argument_group("limits")
    _limit_options(limits)
    limits.add_argument("--no-session", action="store_true", help="do not store sessions")
    _model_options(parser.add_argument_group("model"))
    _scope_options(parser.add_argument_group("permissions and scope"))
    _prompt_options(parser.add_argument_group("instructions"))
    _more_options(parser)
    parser.set_defaults(**vars(main_parser().parse_args([])))
    return parser


def _more_options(parser: Parser) -> None:
    parser.add_argument("--settings", metavar="FILE", help="settings for this run; override other files, not flags")
    parser.add_argument(
        "--safe-mode",
        action="store_true",
        help="ignore the project's settings, instructions and memories, the playbook, and your own keys, themes, hooks "
        "and status line",
    )
    parser.add_argument(
        "--debug",
        action="store_true",
        help="show tracebacks of internal errors and log requests and responses",
    )


Group = argparse._ArgumentGroup  # pyright: ignore[reportPrivateUsage] - argparse has no public name for it


def _output_options(group: Group) -> None:
    group.add_argument(
        "-p", "--print", nargs="?", const="", default=None, metavar="TEXT", help="print the answer and exit"
    )
    formats = [name for name in get_args(OutputFormat) if name != "transcript"]  # which belongs to the demonstration
    group.add_argument("--output-format", choices=formats, default="text")
    group.add_argument("--input-format", choices=get_args(InputFormat), default="text", help="format of standard input")
    group.add_argument(
        "--compact-dry-run",
        action="store_true",
        help="with -c or -r: print the compaction plan as JSON; changes nothing",
    )
    group.add_argument("--dry-run", action="store_true", help="print the request as JSON instead of sending it")
    group.add_argument(
        "--json-schema", metavar="FILE|JSON", help="the answer must match this JSON Schema; see structured_output"
    )
    _limit_options(group)


def _limit_options(group: Group) -> None:
    group.add_argument("--max-turns", type=count, metavar="N", help="stop after N model steps")
    group.add_argument("--max-tokens", type=count, metavar="N", help="stop after N tokens (input + output)")
    group.add_argument(
        "--max-price", type=price, metavar="USD", help="stop at this cost; refuses models without a known price"
    )


def _session_options(group: Group) -> None:
    group.add_argument(
        "-c", "--continue", dest="continue_newest", action="store_true", help="continue the newest session"
    )
    group.add_argument(
        "-r",
        "--resume",
        nargs="?",
        const="",
        metavar="ID",
        help="resume a session by (the start of) its id or name; without ID, pick from a list",
    )
    group.add_argument(
        "--from",
        dest="bundle",
        metavar="FILE",
        help="start a new session from a handoff bundle written by /handoff",
    )
    group.add_argument(
        "--fork", action="store_true", help=("with -c or -r: continue a copy; the original session is unchanged")
    )
    group.add_argument("--all", dest="all_folders", action="store_true", help="with -r: list sessions of all folders")
    group.add_argument("--no-session", action="store_true", help="do not store this session")
    group.add_argument(
        "-w",
        "--worktree",
        nargs="?",
        const="",
        metavar="NAME",
        help="work in a git worktree of its own, on branch swecli/NAME; kept if it has changes",
    )


def _model_options(group: Group) -> None:
    group.add_argument(
        "-m",
        "--model",
        metavar="PROVIDER/NAME",
        help=("model; swecli looks up a bare name among the connected providers"),
    )
    group.add_argument("--base-url", metavar="URL", help="address of the provider's API")
    group.add_argument("--effort", metavar="WORD", help="reasoning effort, such as low or high")


def _scope_options(group: Group) -> None:
    group.add_argument("--permission-mode", choices=tuple(MODES))
    group.add_argument("--trust", action="store_true", help="trust this folder's settings for this run")
    group.add_argument("--yolo", action="store_true", help="run everything without approval; for containers")
    group.add_argument(
        "--allowed-tools",
        action="append",
        default=[],
        metavar="RULES",
        help="allow without asking, for example 'edit_file,run_command(git *)'",
    )
    group.add_argument("--disallowed-tools", action="append", default=[], metavar="RULES")
    group.add_argument("-C", "--cwd", metavar="DIR", help="work in this folder")
    group.add_argument("--add-dir", action="append", default=[], metavar="DIR", help="additional folder to work in")


def _prompt_options(group: Group) -> None:
    for name, what in (("system-prompt", "replace the system prompt"), ("append-system-prompt", "append to it")):
        either = group.add_mutually_exclusive_group()
        either.add_argument(f"--{name}", metavar="TEXT", help=what)
        either.add_argument(f"--{name}-file", metavar="FILE")


_DIGITS = 18
"""Digits of the largest number as an argument, which fits every place of use."""


def count(text: str) -> int:
    """A number of things as an argument."""
    text = text.replace("_", "")
    if len(text) > _DIGITS and text.isdecimal():
        raise argparse.ArgumentTypeError(f"a number of {len(text):,} digits is too large")
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number ≥ 1, not {text!r}")
    return int(text)


def price(text: str) -> Decimal:
    """US dollars as an argument."""
    try:
        amount = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        amount = Decimal(0)
    if not amount.is_finite() or amount <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount of dollars above 0")
    return amount


def launch_options(arguments: argparse.Namespace, environment: Mapping[str, str], *, is_root: bool) -> LaunchOptions:
    """Validate the parsed arguments. The prompt is unchanged; standard input is added later.

    Raises:
        UsageError: they contradict each other, or name something that does not exist.
    """
    _check(arguments)
    if arguments.yolo and is_root and not in_container(environment):
        raise UsageError(
            "--yolo as root would let the model change the whole machine; use another account or a container, or set "
            "IS_SANDBOX=1 if this machine is a container"
        )
    worktree = arguments.worktree
    prompts = [text for text in (arguments.print, arguments.prompt) if text]
    if worktree is not None and " " in worktree.strip() and not prompts:  # a message rather than a name
        worktree, prompts = "", [worktree]
    cwd = working_directory(arguments.cwd)
    if len(prompts) == 1 and is_folder(prompts[0], cwd):  # most likely meant as the working directory
        raise UsageError(f"{prompts[0]} is a directory; to work there: swecli -C {shlex.quote(prompts[0])}")
    return LaunchOptions(
        cwd=cwd,
        add_dirs=tuple(_directory(name, cwd, "--add-dir") for name in arguments.add_dir),
        prompt="\n\n".join(clean(text) for text in prompts),
        headless=_one_shot(arguments),
        plain=arguments.plain,
        compact_dry_run=arguments.compact_dry_run,
        dry_run=arguments.dry_run,
        output_format=arguments.output_format,
        input_format=arguments.input_format,
        model=arguments.model,
        base_url=arguments.base_url,
        effort=arguments.effort,
        mode=arguments.permission_mode,
        yolo=arguments.yolo,
        trust="session" if arguments.trust else None,
        allowed_tools=rules(arguments.allowed_tools),
        disallowed_tools=rules(arguments.disallowed_tools),
        worktree=worktree,
        continue_newest=arguments.continue_newest,
        resume=arguments.resume or None,
        bundle=None if arguments.bundle is None else _file(arguments.bundle, "--from"),
        pick_session=arguments.resume == "",
        fork=arguments.fork,
        all_folders=arguments.all_folders,
        store=not arguments.no_session,
        max_steps=arguments.max_turns,
        max_tokens=arguments.max_tokens,
        max_price=arguments.max_price,
        system_prompt=_text_or_file(arguments.system_prompt, arguments.system_prompt_file, "--system-prompt-file"),
        append_system_prompt=_text_or_file(
            arguments.append_system_prompt, arguments.append_system_prompt_file, "--append-system-prompt-file"
        ),
        settings=None if arguments.settings is None else _file(arguments.settings, "--settings"),
        safe_mode=arguments.safe_mode,
        json_schema=None if arguments.json_schema is None else _schema(arguments.json_schema),
        debug=arguments.debug,
    )


def _check(arguments: argparse.Namespace) -> None:
    if arguments.resume == "" and (arguments.plain or _one_shot(arguments)):
        raise UsageError("-r needs a session id here; `swecli sessions` lists them, -c continues the newest")
    if arguments.resume == "" and arguments.no_session:
        raise UsageError("--no-session stores nothing, so -r has no session to pick")
    if arguments.continue_newest and arguments.resume == "":
        raise UsageError("-c continues the newest session, -r lets you pick one: use only one")
    if arguments.continue_newest and arguments.resume:
        raise UsageError("-c continues the newest session, -r a specific one: use only one")
    if arguments.bundle is not None and (arguments.continue_newest or arguments.resume is not None):
        raise UsageError("--from starts a new session, -c and -r continue one: use only one")
    if arguments.fork and not arguments.continue_newest and arguments.resume is None:
        raise UsageError("--fork copies a session: use it with -c (newest) or -r (a specific one)")
    if arguments.all_folders and arguments.resume != "":
        raise UsageError("--all lists the sessions of all folders: use it with -r and no ID")
    if arguments.compact_dry_run and not (arguments.continue_newest or arguments.resume):
        raise UsageError("--compact-dry-run needs a session: -c for the newest, -r ID for a specific one")
    if arguments.dry_run and (arguments.input_format != "text" or arguments.compact_dry_run):
        raise UsageError("--dry-run shows the request for one message: use -p with text")
    if arguments.worktree is not None and (arguments.dry_run or arguments.compact_dry_run):
        raise UsageError("A dry run changes nothing and makes no worktree: leave out -w")
    if arguments.worktree == "" and arguments.continue_newest:
        raise UsageError("-w without a name makes a new worktree, which has no session to continue: use -w NAME -c")
    if arguments.no_session and (arguments.continue_newest or arguments.resume):
        raise UsageError("--no-session stores nothing, so it cannot continue a session")
    if arguments.json_schema is not None and not _one_shot(arguments):
        raise UsageError("--json-schema shapes the answer of a headless run: use it with -p")
    if arguments.yolo and arguments.permission_mode == "plan":
        raise UsageError("Use --yolo or plan mode, not both: one runs everything, the other is read-only")
    model = arguments.model
    if model is not None and not (model and all(model.split("/", 1)) and model.isprintable()):
        raise UsageError(f"-m {model!r} must be PROVIDER/NAME, for example openai/NAME, or an alias from the settings")


def _one_shot(arguments: argparse.Namespace) -> bool:
    forms = arguments.output_format != "text" or arguments.input_format != "text"
    return arguments.print is not None or forms or arguments.compact_dry_run or arguments.dry_run


def working_directory(name: str | None) -> Path:
    """The working directory: as given, or the program's own. Links are followed.

    Raises:
        StartError: it is not a directory, or no longer exists.
    """
    try:
        current = Path(os.getcwd())
    except OSError as error:
        if name is None or not os.path.isabs(name):
            raise StartError(
                f"The current directory no longer exists ({error.strerror}); change to another", ExitCode.BAD_INPUT
            ) from error
        current = Path("/")
    return _directory(name, current, "-C") if name is not None else current.resolve()


def _directory(name: str, base: Path, option: str) -> Path:
    try:
        return usable_folder(name, base)
    except ValueError as error:
        raise UsageError(f"{option} {name}: {error}") from None


def _file(name: str, option: str) -> Path:
    """Absolute path, independent of the working directory; errors in the file are reported when it is read."""
    if not name or "\0" in name:
        raise UsageError(f"{option} needs a file name")
    return Path(os.path.abspath(os.path.expanduser(name)))


def _text_or_file(text: str | None, file: str | None, option: str) -> str | None:
    if file is None:
        return None if text is None else clean(text)
    try:
        return Path(os.path.expanduser(file)).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{option} {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{option} {file}: not UTF-8 text") from error


def _schema(given: str) -> str:
    """The text of a schema, given directly or as a file."""
    if given.lstrip().startswith("{"):
        return given
    return _text_or_file(None, given, "--json-schema") or ""


def rules(values: Sequence[str]) -> tuple[str, ...]:
    """Split lists of permission rules at commas or blanks, except within parentheses."""
    texts: list[str] = []
    for value in values:
        depth, rule = 0, ""
        for character in clean(value):
            depth += (character == "(") - (character == ")")
            if character in ", " and depth <= 0:
                texts.append(rule)
                rule = ""
            else:
                rule += character
        texts.append(rule)
    return tuple(rule.strip() for rule in texts if rule.strip())


def clean(text: str) -> str:
    """An argument as text: invalid UTF-8 becomes U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def in_container(environment: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Whether this runs in a container or in a sandbox declared by the user."""
    marks = (root / ".dockerenv", root / "run" / ".containerenv")
    return environment.get("IS_SANDBOX", "") not in ("", "0") or any(mark.exists() for mark in marks)


NEAR = 0.78
"""Least similarity of a word to a subcommand to count as a typing error; 1 is the same word."""


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
        raise elsewhere(prompt)
    if prompt in SUBCOMMANDS:
        raise MeantAsSubcommand(f"{prompt} is a subcommand; it must be the first argument: swecli {prompt} …", prompt)
    near = [f"--{prompt}"] if prompt in ("help", "version") else []
    near = near or difflib.get_close_matches(prompt.lower(), SUBCOMMANDS, 1, NEAR)
    if near:
        raise MeantAsSubcommand(f"Subcommand {prompt} is unknown; did you mean swecli {near[0]}?", prompt)


def _mistyped(parser: Parser, arguments: Sequence[str]) -> str:
    """The likely correction of the first unknown long option; empty without a close one."""
    known = [name for action in parser._actions for name in action.option_strings]  # pyright: ignore[reportPrivateUsage]
    typed = [argument.partition("=")[0] for argument in takewhile(lambda argument: argument != "--", arguments)]
    for name in typed:
        if name.startswith("--") and name not in known:
            near = nearest(name.lower().replace("_", "-"), known)
            return f"Option {name} is unknown; did you mean {near}?" if near else ""
    return ""


class MeantAsSubcommand(StartError):
    """A word that is probably not a message. The text explains how to send it anyway."""

    def __init__(self, message: str, word: str) -> None:
        super().__init__(f"{message} To send the word as a message: swecli -- {word}", ExitCode.USAGE)


def elsewhere(word: str) -> MeantAsSubcommand:
    return MeantAsSubcommand(f"No such subcommand. {WORDS[word]}", word)


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
