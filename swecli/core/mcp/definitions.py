"""Definitions of servers, read from settings and from other agents' files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.config.documents import read_document
from swecli.core.config.settings import McpSettings
from swecli.core.validation import fields_of
from swecli.lazy_pattern import lazy_pattern

Transport = Literal["stdio", "http", "sse"]
Scope = Literal["user", "project"]

_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VARIABLE = lazy_pattern(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_FOREIGN = lazy_pattern(r"\$\{(?:(workspaceFolder|workspaceRoot)|(userHome)|(?:env|input):([^}]+))\}|\{env:([^}]+)\}")
"""Variables of Cursor and VS Code, and of OpenCode."""


class DefinitionError(ValueError):
    """A definition, or a file of them, is invalid; the message gives the reason."""


class ServerDefinition(Struct, frozen=True):
    """One server as written, with variables not expanded. ``origin`` is the file; ``scope`` tells whether the user or
    the project defines it. Times are seconds."""

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: {})
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: {})
    enabled: bool = True
    trust: bool = False
    start_timeout: float = 30.0
    call_timeout: float = 300.0
    origin: str = ""
    scope: Scope = "user"
    programs: tuple[tuple[str, str], ...] = ()
    """Files of the workspace that it runs, each with its SHA-256; see ``bound``."""

    @property
    def asks(self) -> bool:
        """Whether the user must approve it: the project decides what it does."""
        return self.scope == "project" or bool(self.programs)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that decides which program or address is used and what it receives."""
        shown = [self.name, self.transport, self.command, list(self.args), dict(self.env), self.cwd, self.url]
        files = [list(program) for program in self.programs]
        text = json.dumps([*shown, dict(self.headers), *([files] if files else [])], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def line(self) -> str:
        """The command or address on one line, without values that may be secret."""
        if self.transport != "stdio":
            return re.sub(r"(?<=://)[^/@\s]+@", "…@", self.url)
        return " ".join(json.dumps(word) if not word or re.search(r"\s", word) else word for word in self.words)

    @property
    def words(self) -> tuple[str, ...]:
        return (self.command, *self.args)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the environment that it must have."""
        texts = (self.command, *self.args, *self.env.values(), self.cwd, self.url, *self.headers.values())
        matches = (match for text in texts for match in _VARIABLE.finditer(text))
        return tuple(dict.fromkeys(match[1] for match in matches if match[2] is None))

    @property
    def given(self) -> tuple[str, ...]:
        """What a person should know about it besides ``line``, as clauses: names, but no values that may be secret."""
        clauses = (
            ("in the folder ", [self.cwd] if self.cwd else []),
            ("with the variables ", sources(self.env)),
            ("with the headers ", sources(self.headers)),
            ("running this folder's ", [name for name, _ in self.programs]),
        )
        return tuple(f"{before}{', '.join(names)}" for before, names in clauses if names)

    def expanded(self, environment: Mapping[str, str]) -> ServerDefinition:
        """The definition with ``${NAME}`` and ``${NAME:-default}`` expanded.

        Raises:
            DefinitionError: a variable is not set and has no default.
        """
        missing: list[str] = []

        def expand(text: str) -> str:
            def value(match: re.Match[str]) -> str:
                known = environment.get(match[1])
                if known is None and match[2] is None:
                    missing.append(match[1])
                return known if known is not None else match[2] or ""

            return _VARIABLE.sub(value, text)

        changed = replace(
            self,
            command=expand(self.command),
            args=tuple(map(expand, self.args)),
            env={name: expand(value) for name, value in self.env.items()},
            cwd=expand(self.cwd),
            url=expand(self.url),
            headers={name: expand(value) for name, value in self.headers.items()},
        )
        if missing:
            names = ", ".join(dict.fromkeys(missing))
            raise DefinitionError(f"{names} is not set in the environment and has no default (${{NAME:-default}})")
        return changed


def of_settings(name: str, settings: McpSettings, origin: str, scope: Scope = "user") -> ServerDefinition:
    """The server of a section ``[mcp.NAME]``.

    Raises:
        DefinitionError: it has neither a program nor an address, or an invalid name.
    """
    given = {key: value for key, value in fields_of(settings) if key not in ("transport", "command", "url", "cwd")}
    definition = ServerDefinition(
        checked_name(name),
        settings.transport or ("stdio" if settings.command else "http"),
        command=settings.command or "",
        url=settings.url or "",
        cwd=settings.cwd or "",
        origin=origin,
        scope=scope,
        **given,
    )
    return whole(definition)


def read_file(
    path: Path, scope: Scope, *, held: Callable[[Path], bool] = lambda path: False
) -> tuple[tuple[ServerDefinition, ...], tuple[str, ...]]:
    """The servers of a file in the format of Claude Code or of another program, and a sentence with its line for each
    part that is ignored. Empty without a file. ``held``: whether a folder only stands in for the file while a sandboxed
    command runs."""
    document = read_document(path, "toml" if path.suffix == ".toml" else "jsonc", "its servers are ignored")
    if document is None or (document.content is None and os.path.isdir(path) and held(path)):
        return (), ()
    problems = list(document.problems)
    if document.content is None:
        return (), tuple(problems)
    definitions: list[ServerDefinition] = []
    key, table, wrong = table_of(document.content)
    problems += (f"{document.at(name)}: {name} is not an object; the servers in it are ignored." for name in wrong)
    if not table and not wrong and document.content and path.name.endswith("mcp.json") and not key:
        problems.append(f"{path}: has no mcpServers; nothing in it is used.")
    for name, entry in table.items():
        usable, location = usable_name(name), document.at(*key, name)
        try:
            definitions.append(_of_json(usable, _of_plugin(entry, path.parent), str(path), scope))
        except DefinitionError as error:
            problems.append(f"{location}: ignored server {name!r}: {error}.")
            continue
        problems += (
            f"{location}: server {usable}: {problem}." for problem in _without_effect(cast("dict[str, Any]", entry))
        )
        if usable != name:
            problems.append(f"{location}: the server {name!r} is called {usable} here.")
    return tuple(definitions), tuple(problems)


_PLUGIN_ROOT, _PLUGIN_DATA = "${CLAUDE_PLUGIN_ROOT}", "${CLAUDE_PLUGIN_DATA}"


def _of_plugin(entry: Any, folder: Path) -> Any:
    """The entry, in a plugin's file with the path of the plugin for its variable."""
    return _filled(entry, {_PLUGIN_ROOT: str(folder)}) if os.path.isdir(folder / ".claude-plugin") else entry


def _filled(entry: Any, values: Mapping[str, str]) -> Any:
    if isinstance(entry, str):
        for variable, value in values.items():
            entry = entry.replace(variable, value)
        return entry
    if isinstance(entry, dict):
        return {name: _filled(value, values) for name, value in cast("dict[str, Any]", entry).items()}
    return [_filled(item, values) for item in cast("list[Any]", entry)] if isinstance(entry, list) else entry


def plugin_servers(
    plugin: str, root: Path, data: Path, table: Mapping[str, Any], origin: str
) -> tuple[tuple[ServerDefinition, ...], tuple[str, ...]]:
    """The servers of a plugin the user allowed, and a sentence for each ignored one. Their names begin with the
    plugin's, so that they replace no other server."""
    servers: list[ServerDefinition] = []
    problems: list[str] = []
    values = {_PLUGIN_ROOT: str(root), _PLUGIN_DATA: str(data)}
    for name, given in table_of(table).table.items():
        entry = _filled(given, values)
        try:
            if "${user_config." in json.dumps(entry):
                raise DefinitionError("it needs settings that its plugin asks for, and swecli does not ask for them")
            server = _of_json(usable_name(f"plugin_{plugin}_{name}"), entry, origin, "user")
            variables = {"CLAUDE_PLUGIN_ROOT": str(root), "CLAUDE_PLUGIN_DATA": str(data), **server.env}
            servers.append(replace(server, env=variables) if server.transport == "stdio" else server)
        except DefinitionError as error:
            problems.append(f"{origin}: ignored server {name!r} of the plugin {plugin}: {error}.")
            continue
        problems += (
            f"{origin}: server {name}: {problem}." for problem in _without_effect(cast("dict[str, Any]", entry))
        )
    return tuple(servers), tuple(problems)


def _without_effect(entry: Mapping[str, Any]) -> Iterator[str]:
    """Fields of a server that are ignored although it counts, as clauses."""
    if "headersHelper" in entry:
        yield "headersHelper is not run; put the headers into headers"
    for key in ("startupTimeout", "timeout"):
        if entry.get(key) is not None and _milliseconds(entry, key, 0) == 0:
            yield f"{key} is not a number of milliseconds up to a day, so the usual limit applies"
    for key in ("disabled", "enabled"):
        if entry.get(key) not in (None, True, False):
            yield f"{key} is neither true nor false and has no effect"


class Servers(NamedTuple):
    """The servers of a file, unparsed, and the keys that lead to them: ``mcpServers`` (Claude Code, Cursor),
    ``servers`` (VS Code), ``mcp`` (OpenCode; VS Code's settings have ``servers`` in it), ``mcp_servers`` (Codex), or
    none, if the file itself is the table. ``wrong`` are such keys that hold something else than an object."""

    key: tuple[str, ...]
    table: dict[str, Any]
    wrong: tuple[str, ...] = ()


_TABLES = ("mcpServers", "servers", "mcp", "mcp_servers")


def table_of(content: Mapping[str, Any]) -> Servers:
    """Where a file has its servers."""
    wrong = tuple(word for word in _TABLES if content.get(word) is not None and not isinstance(content[word], dict))
    for word in _TABLES:
        table = content.get(word)
        if isinstance(table, dict) and not _is_server(cast("dict[str, Any]", table)):
            inner = cast("dict[str, Any]", table)
            if word != "mcp":
                return Servers((word,), inner, wrong)
            deeper = table_of(inner)
            servers = deeper.table if deeper.key else _objects(inner)
            return Servers((word, *deeper.key), servers, (*wrong, *deeper.wrong))
    return Servers((), {name: entry for name, entry in content.items() if _looks_like(entry)}, wrong)


def _objects(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in table.items() if isinstance(entry, dict)}


def _looks_like(entry: Any) -> bool:
    return isinstance(entry, dict) and ("command" in entry or any(key in entry for key in _ADDRESSES))


def _is_server(table: Mapping[str, Any]) -> bool:
    """Whether it is one server, not a table with a server of such a name."""
    return any(isinstance(table.get(key), (str, list)) for key in ("command", *_ADDRESSES))


_ADDRESSES = ("url", "serverUrl", "httpUrl")
"""Keys of an address: of most programs, of Windsurf, of Gemini CLI."""


def _of_json(name: str, entry: Any, origin: str, scope: Scope) -> ServerDefinition:
    if not isinstance(entry, dict):
        raise DefinitionError("it must be an object")
    table = cast("dict[str, Any]", entry)
    url = next((text for key in _ADDRESSES if (text := _text(table, key))), "")
    kind = next((text for key in ("type", "transport", "transportType") if (text := _text(table, key))), "")
    transports: dict[str, Transport] = {"": "http" if url else "stdio", "stdio": "stdio", "local": "stdio"}
    transports |= {"http": "http", "streamablehttp": "http", "remote": "http", "sse": "sse"}
    transport = transports.get(re.sub("[-_]", "", kind.lower()))
    if transport is None:
        raise DefinitionError(f"its type must be stdio, http or sse, not {kind!r}")
    words = _texts(table, "command") if isinstance(table.get("command"), list) else (_text(table, "command"),)
    return whole(
        ServerDefinition(
            checked_name(name),
            transport,
            command=words[0] if words else "",
            args=(*words[1:], *_texts(table, "args")),
            env=_named(table, "env") or _named(table, "environment"),
            cwd=_text(table, "cwd"),
            url=url,
            headers=_headers(table),
            enabled=table.get("disabled") is not True and table.get("enabled") is not False,
            start_timeout=_milliseconds(table, "startupTimeout", 30.0),
            call_timeout=_milliseconds(table, "timeout", 300.0),
            origin=origin,
            scope=scope,
        )
    )


def whole(found: ServerDefinition) -> ServerDefinition:
    """The definition, if it can be used; raises ``DefinitionError`` otherwise."""
    if found.transport == "stdio":
        if not found.command:
            raise DefinitionError("it has no command")
        if any("\0" in word for word in (*found.words, found.cwd, *found.env, *found.env.values())):
            raise DefinitionError("its command contains a NUL character")
        if bad := next((name for name in found.env if not name or "=" in name), None):
            raise DefinitionError(f"{bad!r} is not a variable's name")
    elif not found.url:
        raise DefinitionError("it has no url")
    elif not found.url.startswith(("http://", "https://", "${")):
        raise DefinitionError(f"its url must begin with http:// or https://, not {found.url[:60]!r}")
    return found


def usable_name(name: str) -> str:
    """The name with an underscore for what names of tools can't have; unchanged if nothing is left."""
    return re.sub(r"_*[^A-Za-z0-9_.-]+_*|__+", "_", name).strip("_.-")[:64] or name


def checked_name(name: str) -> str:
    """The name, if valid for a server; raises ``DefinitionError`` otherwise."""
    if not _NAME.fullmatch(name) or "__" in name:
        raise DefinitionError("its name must use letters, digits, dots, single underscores and hyphens, 64 at most")
    return name


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise DefinitionError(f"{key} must be a string")
    return _ours(value or "")


def _ours(text: str) -> str:
    """The text with other programs' variables as ours. A server's working directory is the folder of the
    session; a value that VS Code asks for is a variable of its name."""

    def translated(match: re.Match[str]) -> str:
        if match[1]:
            return "."
        return f"${{{'HOME' if match[2] else re.sub(r'[^A-Za-z0-9_]', '_', match[3] or match[4])}}}"

    return _FOREIGN.sub(translated, text)


def _texts(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, (str, int, float)) for item in cast("list[Any]", value)):
        raise DefinitionError(f"{key} must be a list of strings")
    return tuple(_ours(str(item)) for item in cast("list[Any]", value))


def _named(table: Mapping[str, Any], key: str) -> dict[str, str]:
    value = table.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DefinitionError(f"{key} must be an object of strings")
    named = {name: item for name, item in cast("dict[str, Any]", value).items() if item is not None}
    if not all(isinstance(item, (str, int, float)) for item in named.values()):
        raise DefinitionError(f"{key} must be an object of strings")
    return {name: _ours(str(item)) for name, item in named.items()}


def _headers(table: Mapping[str, Any]) -> dict[str, str]:
    """The headers; Codex names the variable that holds a token."""
    headers = _named(table, "headers") or _named(table, "http_headers")
    token = _text(table, "bearer_token_env_var")
    return {**headers, "Authorization": f"Bearer ${{{token}}}"} if token else headers


def _milliseconds(table: Mapping[str, Any], key: str, default: float) -> float:
    value = table.get(key)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 86_400_000:
        return value / 1_000
    return default


_SUFFIXES = frozenset(
    (
        *(".py", ".pyz", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".sh", ".bash", ".rb", ".pl"),
        *(".php", ".lua", ".jar", ".go", ".rs", ".exs", ".ps1"),
    )
)
"""Of files that are run."""


def bound(definition: ServerDefinition, workspace: Path) -> ServerDefinition:
    """The definition with the present content of the workspace's programs that it names: its command, and arguments
    that are scripts or executable. Other files, such as a database, may change. Reads files."""
    if definition.transport != "stdio":
        return definition
    from swecli.core.permissions.workspace_scripts import workspace_scripts

    line = shlex.join(definition.words)
    scripts = workspace_scripts(f"cd {shlex.quote(definition.cwd)} && {line}" if definition.cwd else line, workspace)
    programs = tuple(
        script
        for script in scripts
        if Path(script[0]).suffix.lower() in _SUFFIXES
        or os.path.basename(script[0]) == os.path.basename(definition.command)
        or os.access(workspace / script[0], os.X_OK)
    )
    return replace(definition, programs=programs)


def sources(values: Mapping[str, str]) -> list[str]:
    """Names, each with the variables of the user's environment that its value contains: a value is not shown, but to
    whom the user's own values go is theirs to know."""
    names: list[str] = []
    for name, value in values.items():
        yours = dict.fromkeys(match[1] for match in _VARIABLE.finditer(value))
        names.append(f"{name} (your {', '.join(yours)})" if yours else name)
    return names


def merged(*groups: Sequence[ServerDefinition]) -> tuple[tuple[ServerDefinition, ...], tuple[str, ...]]:
    """One definition per name, the first one, and a sentence for each unused one."""
    chosen: dict[str, ServerDefinition] = {}
    told: list[str] = []
    for definition in (definition for group in groups for definition in group):
        known = chosen.setdefault(definition.name, definition)
        if known is not definition and known.fingerprint != definition.fingerprint:
            told.append(f"MCP server {definition.name}: using {known.origin}, not {definition.origin}.")
    return tuple(chosen.values()), tuple(told)


def as_json(found: ServerDefinition) -> dict[str, Any]:
    """The server's entry for ``.mcp.json``."""
    usual = ServerDefinition(found.name, found.transport)
    limits = {"startupTimeout": (found.start_timeout, usual.start_timeout)}
    limits["timeout"] = (found.call_timeout, usual.call_timeout)
    more: dict[str, Any] = {key: round(seconds * 1_000) for key, (seconds, known) in limits.items() if seconds != known}
    if not found.enabled:
        more["disabled"] = True
    if found.transport == "stdio":
        entry: dict[str, Any] = {"command": found.command, "args": list(found.args)}
        entry |= ({"env": dict(found.env)} if found.env else {}) | ({"cwd": found.cwd} if found.cwd else {})
        return entry | more
    headers = {"headers": dict(found.headers)} if found.headers else {}
    return {"type": found.transport, "url": found.url} | headers | more
