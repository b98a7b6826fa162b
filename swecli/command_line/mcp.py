"""`swecli mcp`: add, test and remove the MCP servers of the user and of this folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from swecli.command_line.arguments import Parser, UsageError, folder_parser, run_word, working_directory
from swecli.command_line.mcp_serve import serve
from swecli.command_line.standard_streams import complain, print_lines, print_rows
from swecli.exit_codes import ExitCode
from swecli.figures import plural
from swecli.launch import LaunchOptions, StartError

if TYPE_CHECKING:
    from swecli.assembly.startup import Startup
    from swecli.core.mcp.definitions import ServerDefinition
    from swecli.core.mcp.servers import McpServers


def _startup(folder: Path) -> Startup:
    from swecli.assembly.startup import startup_of

    return startup_of(LaunchOptions(cwd=folder), dict(os.environ))


def _parser(word: str, about: str) -> Parser:
    return folder_parser(f"swecli mcp {word}", about)


def list_servers(arguments: Sequence[str]) -> int:
    parser = _parser("list", "List the servers available in this folder without starting them.")
    parser.add_argument("--json", action="store_true", help="one JSON line per server")
    chosen = parser.parse_args(arguments)
    from swecli.core.mcp.configured import decisions_of, definitions_of, importable

    folder = working_directory(chosen.cwd)
    startup = _startup(folder)
    servers, problems = definitions_of(startup, folder)
    others, other_problems = importable(startup, folder)
    decisions = decisions_of(startup.paths, folder)
    for problem in (*problems, *other_problems):
        complain(f"swecli: {problem}")
    lines: list[str] = []
    for one in servers:
        state = decisions.state(one)
        if chosen.json:
            entry = {"name": one.name, "state": state, "transport": one.transport, "runs": one.line}
            lines.append(json.dumps(entry | {"scope": one.scope, "origin": one.origin}, ensure_ascii=False))
        else:
            lines.append(f"{one.name}  {state}  {one.line}  ({one.origin})")
    if not lines and not chosen.json:
        lines = ["No MCP servers. Add one with: swecli mcp add NAME -- COMMAND [ARGUMENT …]"]
    new = sum(one.name not in {server.name for server in servers} for one in others)
    if new and not chosen.json:
        lines.append(f"{plural(new, 'server')} of other agents can be imported: swecli mcp import")
    if (folder / ".mcp.json").exists() and not startup.trust.trusts:
        complain(f"swecli: {folder} is not trusted, so its .mcp.json is ignored. Trust it: swecli permissions trust")
    return print_lines(lines) if chosen.json else print_rows(lines)


def add(arguments: Sequence[str]) -> int:
    parser = _parser("add", "Add a server: a program after --, or an address.")
    parser.add_argument("name")
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="the program and its arguments, after --")
    parser.add_argument("--url", metavar="ADDRESS", help="the address of a running server")
    parser.add_argument("--transport", choices=("stdio", "http", "sse"))
    parser.add_argument(
        "-e", "--env", action="append", default=[], metavar="NAME=VALUE", help=("an environment variable for it")
    )
    parser.add_argument(
        "-H", "--header", action="append", default=[], metavar="NAME: VALUE", help=("a header sent to its address")
    )
    parser.add_argument(
        "-s", "--scope", choices=("user", "project"), default="user", help=("your own file, or .mcp.json")
    )
    end = arguments.index("--") if "--" in arguments else len(arguments)
    try:
        chosen = parser.parse_args(arguments[:end])
    except UsageError as error:
        if end < len(arguments):
            raise
        raise UsageError(f"{error.said}. Put -- before the program: swecli mcp add NAME -- PROGRAM …") from None
    from swecli.core.mcp.definitions import DefinitionError, ServerDefinition, as_json, checked_name, whole

    words = [*cast("list[str]", chosen.words), *arguments[end + 1 :]]
    url = chosen.url or (words.pop(0) if words and "://" in words[0] else "")
    if bool(url) == bool(words):
        raise UsageError("Give a command after --, or --url ADDRESS")
    try:
        definition = whole(
            ServerDefinition(
                checked_name(chosen.name),
                chosen.transport or ("http" if url else "stdio"),
                command=words[0] if words else "",
                args=tuple(words[1:]),
                url=url,
                env=_pairs(chosen.env, "=", "--env"),
                headers=_pairs(chosen.header, ":", "--header"),
            )
        )
    except DefinitionError as error:
        raise UsageError(f"{chosen.name}: {error}") from error
    folder = working_directory(chosen.cwd)
    file = _file(chosen.scope, folder)
    with _one_change():
        known = _read(file)
        if definition.name in known:
            raise UsageError(
                f"{file} already has a server {definition.name!r}; swecli mcp remove {definition.name} first"
            )
        _write(file, {**known, definition.name: as_json(definition)})
    told = [f"Added {definition.name} to {file}."]
    told.append(
        f"It starts with the next session; try it now with: swecli mcp test {definition.name}"
        if chosen.scope == "user"
        else "Each user of the project approves it before it starts."
    )
    return print_rows(told)


def _pairs(given: Sequence[str], sign: str, option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in given:
        name, there, value = text.partition(sign)
        if not there or not name.strip():
            raise UsageError(f"{option} wants NAME{sign}VALUE, not {text!r}")
        pairs[name.strip()] = value if sign == "=" else value.strip()  # blanks belong to a variable, not to a header
    return pairs


def _file(scope: str, folder: Path) -> Path:
    from swecli.core.config.paths import OWN_SERVERS, PROJECT_SERVERS, user_paths

    return folder / PROJECT_SERVERS if scope == "project" else user_paths(os.environ).config / OWN_SERVERS


def _read(file: Path) -> dict[str, Any]:
    """The servers of a file, unparsed."""
    try:
        content = json.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StartError(f"{file} cannot be read: {error}. Nothing was changed.") from error
    from swecli.core.mcp.definitions import table_of

    if not isinstance(content, dict) or not isinstance(content.get("mcpServers", {}), dict):  # pyright: ignore[reportUnknownMemberType]
        raise StartError(f"{file} has no object mcpServers. Nothing was changed.")
    return table_of(cast("dict[str, Any]", content)).table


@contextmanager
def _one_change() -> Generator[None]:
    """Keep other processes from changing servers between the reading and the writing of a file."""
    from swecli.core.atomic_text import one_writer
    from swecli.core.config.paths import OWN_SERVERS, user_paths

    with ExitStack() as stack:
        lock = user_paths(os.environ).state / OWN_SERVERS
        try:
            stack.enter_context(one_writer(lock))
        except OSError as error:
            raise StartError(f"{lock} cannot be written: {error.strerror or error}. Nothing was changed.") from error
        yield


def _write(file: Path, servers: Mapping[str, Any]) -> None:
    """Replace the servers of a file; a link stays one, and its target keeps its rights."""
    from swecli.core.atomic_text import make_private, write_whole
    from swecli.core.mcp.definitions import table_of

    try:
        target, mode = file.resolve(), 0o600
        content: dict[str, Any] = {}
        if target.exists():
            content = cast("dict[str, Any]", json.loads(target.read_text(encoding="utf-8-sig")))
            mode = target.stat().st_mode & 0o777
        if not target.parent.exists():
            make_private(target.parent)
        key, known, _ = table_of(content)
        rest = content if key else {name: value for name, value in content.items() if name not in known}
        inner: dict[str, Any] = dict(servers)
        if len(key) == 2:  # a table in a table, as in the settings of VS Code
            inner = {**cast("dict[str, Any]", content[key[0]]), key[1]: inner}
        content = {**rest, key[0] if key else "mcpServers": inner}
        write_whole(target, json.dumps(content, indent=2, ensure_ascii=False) + "\n", mode)
    except OSError as error:
        raise StartError(f"{file} cannot be written: {error.strerror or error}. Nothing was changed.") from error


def remove(arguments: Sequence[str]) -> int:
    parser = _parser("remove", "Remove a server added with swecli mcp add.")
    parser.add_argument("name")
    parser.add_argument("-s", "--scope", choices=("user", "project"), help="from this file; default: both")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    from swecli.core.mcp.definitions import usable_name

    removed: list[str] = []
    for scope in (chosen.scope,) if chosen.scope else ("user", "project"):
        file = _file(scope, folder)
        with _one_change():
            known = _read(file)
            rest = {name: entry for name, entry in known.items() if chosen.name not in (name, usable_name(name))}
            if rest != known:
                _write(file, rest)
                removed.append(f"Removed {chosen.name} from {file}.")
    if not removed:
        raise UsageError(
            f"No server {chosen.name!r} is in mcp.json or .mcp.json; swecli mcp list shows where each comes from"
        )
    return print_rows(removed)


def import_servers(arguments: Sequence[str]) -> int:
    parser = _parser("import", "Import servers configured for another agent or editor.")
    parser.add_argument("file", nargs="?", help="a file of servers; default: those found in this folder")
    parser.add_argument("--all", action="store_true", help="import all; without it, only list them")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="import this one")
    chosen = parser.parse_args(arguments)
    from swecli.core.config.paths import IMPORTED_SERVERS
    from swecli.core.mcp.configured import servers_in
    from swecli.core.mcp.definitions import as_json

    folder = working_directory(chosen.cwd)
    files = [Path(chosen.file).absolute()] if chosen.file else [folder / name for name in IMPORTED_SERVERS]
    servers, problems = servers_in(files)
    by_name = {server.name: server for server in servers}
    for problem in problems:
        complain(f"swecli: {problem}")
    if not by_name:
        raise UsageError(f"No servers are in {', '.join(map(str, files))}")
    unknown = [name for name in chosen.only if name not in by_name]
    if unknown:
        raise UsageError(f"There is no server {', '.join(unknown)}; there are: {', '.join(by_name)}")
    wanted = list(by_name) if chosen.all else list(chosen.only)
    if not wanted:
        lines = [
            f"{server.name}  {'; '.join((server.line, *server.given))}  ({server.origin})"
            for server in by_name.values()
        ]
        return print_rows([*lines, "Import them with --all."])
    own = _file("user", folder)
    with _one_change():
        known = _read(own)
        existing = [name for name in wanted if name in known]
        new = {name: as_json(by_name[name]) for name in wanted if name not in known}
        _write(own, {**known, **new})
    lines = [f"Added {name} to {own}{'' if by_name[name].enabled else ', switched off as it was'}." for name in new]
    for name in new:
        if missing := [variable for variable in by_name[name].variables if variable not in os.environ]:
            lines.append(f"{name} needs {', '.join(missing)} in your environment.")
    return print_rows(lines + [f"{name} already exists." for name in existing])


def approve(arguments: Sequence[str]) -> int:
    parser = _parser("approve", "Approve a project server and its current tools.")
    parser.add_argument("name")
    chosen = parser.parse_args(arguments)
    from swecli.core.mcp.configured import decisions_of

    folder = working_directory(chosen.cwd)
    startup = _startup(folder)
    definition = _named(startup, folder, chosen.name)
    trouble = decisions_of(startup.paths, folder).change(
        definition.name, definition=definition.fingerprint, verdict="approved", off=None, tools=None
    )
    if trouble:
        raise StartError(trouble)
    return print_rows([f"Approved {definition.name}: {definition.line}", *definition.given])


def _named(startup: Startup, folder: Path, name: str) -> ServerDefinition:
    from swecli.core.mcp.configured import definitions_of

    servers, problems = definitions_of(startup, folder)
    for problem in problems:
        complain(f"swecli: {problem}")
    definition = next((server for server in servers if server.name == name), None)
    if definition is None:
        if not startup.trust.trusts and os.path.exists(folder / ".mcp.json"):
            why = "this folder is not trusted, so its .mcp.json is ignored"
            raise UsageError(f"There is no server {name!r}: {why}. Trust it first: swecli permissions trust")
        raise UsageError(
            f"There is no server {name!r}; there are: {', '.join(server.name for server in servers) or 'none'}"
        )
    return definition


def test(arguments: Sequence[str]) -> int:
    parser = _parser("test", "Start a server, show what it offers, and stop it.")
    parser.add_argument("name")
    chosen = parser.parse_args(arguments)
    from swecli.assembly.services import launch_of
    from swecli.core.mcp.servers import McpServers
    from swecli.features.mcp.wiring import setup_of

    folder = working_directory(chosen.cwd)
    startup = _startup(folder)
    definition = replace(_named(startup, folder, chosen.name), enabled=True)
    options = LaunchOptions(cwd=folder, store=False, approve_all=True)
    servers = McpServers(setup_of(launch_of(options, startup), (definition,)))
    import asyncio

    return asyncio.run(_tried(servers, definition.name))


async def _tried(servers: McpServers, name: str) -> int:
    from swecli.features.mcp.alone import Alone

    host = Alone()
    servers.start(host)
    connection = servers.connections[name]
    try:
        await servers.settled(name)
        if connection.state != "ready":
            complain(f"swecli: {name}: {connection.state}: {connection.reason}")
            return ExitCode.FAILURE
        offered = connection.offered
        lines = [f"{name} works{f' ({offered.title})' if offered.title else ''}: {plural(len(offered.tools), 'tool')}"]
        for tool in offered.tools:
            first_line = (tool.description or "").strip().partition("\n")[0]
            lines.append(f"  {tool.name}  {shorten(first_line, width=100, placeholder='…')}".rstrip())
        lines += [f"  prompt {prompt.name}" for prompt in offered.prompts]
        lines += [f"  resource {resource.uri}" for resource in offered.resources[:20]]
        return print_rows(lines)
    finally:
        await servers.close()


_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "add": add,
    "approve": approve,
    "import": import_servers,
    "list": list_servers,
    "remove": remove,
    "serve": serve,
    "test": test,
}


_DESCRIPTION = """Manage MCP servers. Each word has --help.

  swecli mcp [list]                       list the servers of this folder
  swecli mcp add NAME -- COMMAND ...      add a program
  swecli mcp add NAME https://ADDRESS     add a server by its address
  swecli mcp remove NAME                  remove one
  swecli mcp test NAME                    start one and list its tools
  swecli mcp import                       take over servers of another agent or editor
  swecli mcp approve NAME                 approve a server of the project
  swecli mcp serve                        be an MCP server for other agents
"""


def mcp(arguments: Sequence[str]) -> int:
    """`swecli mcp [add|list|remove|test|import|approve|serve]`; without a word: list."""
    return run_word("swecli mcp", _DESCRIPTION, _COMMANDS, arguments, "list")
