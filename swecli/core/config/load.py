"""Layered loading: flags, a file passed to the run, environment, the project's local and shared files, the user's file,
defaults.

Files of the project count only in a trusted workspace and can only tighten: their settings of programs, addresses,
environment, modes and allow rules are ignored with a notice.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, cast, get_args

from msgspec import Struct, field

from swecli.core.config.consistency import contradictions, unknown_references
from swecli.core.config.paths import Paths, project_folder
from swecli.core.config.settings import (
    NAMED,
    ROLES,
    SECTIONS,
    DialectSettings,
    Section,
    Settings,
    canonical,
    other_names,
)
from swecli.core.config.trust import Consent, PendingItem, without_links
from swecli.core.validation import InvalidError, changed, default_of, fields_of, validated, yes_or_no
from swecli.lazy_pattern import lazy_pattern

MAX_BYTES = 1_000_000


class ConfigProblem(Struct, frozen=True):
    """One error. ``line`` counts from 1; None if it concerns the whole file."""

    source: str
    line: int | None
    message: str
    unreadable: bool = False
    """The file, or the folder ``source`` that holds it, may not be opened."""

    def __str__(self) -> str:
        location = f"{self.source}:{self.line}" if self.line else self.source
        return f"{location}: {self.message}"


class ConfigError(Exception):
    """The settings can't be used. The text is ready to be shown; one line for each problem."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def read_toml(path: Path, *, required: str = "") -> tuple[dict[str, Any], str] | None:
    """The file's content and its text; None without a file. ``required`` is the source of the name of a file that must
    exist.

    Raises:
        ConfigError: it can't be read, is too large, is not UTF-8 or not TOML.
    """
    source = str(path)

    def problem(message: str, line: int | None = None) -> ConfigError:
        return ConfigError([ConfigProblem(source, line, message)])

    try:
        raw = _bytes(path)
    except FileNotFoundError:
        if required:
            raise problem(f"no such file; {required} names it") from None
        return None
    except NotADirectoryError:
        if required:
            raise problem(f"no such file; {required} names it") from None
        return None
    except PermissionError as error:
        closed = source if _may_enter(path.parent) else str(path.parent)
        why = f"cannot read it: {error.strerror or error}"
        raise ConfigError([ConfigProblem(closed, None, why, unreadable=True)]) from None
    except OSError as error:
        raise problem(f"cannot read it: {error.strerror or error}") from None
    if raw is None:
        raise problem(f"must be a regular file of at most {MAX_BYTES} bytes")
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise problem("is not UTF-8 text here", raw.count(b"\n", 0, error.start) + 1) from None
    try:
        return tomllib.loads(text), text
    except tomllib.TOMLDecodeError as error:
        line, message = _place(str(error), text)
        raise problem(f"invalid TOML: {message}", line) from None
    except (RecursionError, ValueError):
        raise problem("invalid TOML: nested too deeply, or a number that is too long") from None


def _may_enter(folder: Path) -> bool:
    return os.access(folder, os.X_OK, effective_ids=os.access in os.supports_effective_ids)


def _bytes(path: Path) -> bytes | None:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_size > MAX_BYTES:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    return data if len(data) <= MAX_BYTES else None


def _place(message: str, text: str) -> tuple[int | None, str]:
    match = re.search(r" \(at line (\d+), column \d+\)$", message)
    if match:
        return int(match.group(1)), message[: match.start()]
    if message.endswith("(at end of document)"):
        return text.rstrip("\n").count("\n") + 1, message.removesuffix(" (at end of document)")
    return None, message


def toml_text(value: object) -> str:
    """A value on one line, as it would follow a key."""
    if isinstance(value, Section):
        return toml_text(changed(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return "{" + ", ".join(f"{toml_key(name)} = {toml_text(item)}" for name, item in items) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(toml_text(item) for item in cast("Sequence[object]", value)) + "]"
    return str(value)


def toml_key(name: str) -> str:
    return name if name and all(c.isascii() and (c.isalnum() or c in "_-") for c in name) else toml_text(name)


def typed_value(text: str, *, words: bool, many: bool, switch: bool = False) -> Any:
    """Parse a person's input. It is TOML; for texts (``words``) quotes may be left out, and for lists (``many``) also
    the brackets around a single entry. For a ``switch``, words such as "on" and "no" count too.

    Raises:
        ValueError: it is not a value; one sentence.
    """
    stripped = text.strip()
    if not stripped:
        raise ValueError("is empty; a value is missing")
    if switch and (answer := yes_or_no(stripped)) is not None:
        return answer
    if words and stripped[0] not in "\"'[{":
        return [stripped] if many else stripped
    try:
        value = tomllib.loads(f"value = {stripped}\n")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        if words and stripped[0] not in "[{":
            return [stripped] if many else stripped
        answer = str(error).partition(" (at ")[0]
        raise ValueError(f"is not a TOML value: {answer}") from None
    if set(value) != {"value"}:
        raise ValueError("must be one value on one line")
    parsed: object = value["value"]
    return [parsed] if many and not isinstance(parsed, list) else cast("Any", parsed)


def key_parts(text: str) -> tuple[str, ...]:
    """The parts of a dotted key, some possibly in quotes; empty if it is invalid. A model's name needs no quotes:
    ``models.window.openai/gpt-5.5``."""
    section, table, model = ([*text.strip().split(".", 2), "", ""])[:3]
    if section == "models" and table and model and model[0] not in "\"'":
        return section, table, model
    try:
        tree: Any = tomllib.loads(f"{text.strip()} = 0\n")
    except (tomllib.TOMLDecodeError, RecursionError):
        return ()
    parts: list[str] = []
    while isinstance(tree, dict) and len(cast("dict[str, Any]", tree)) == 1:
        name, tree = next(iter(cast("dict[str, Any]", tree).items()))
        parts.append(name)
    return tuple(parts) if tree == 0 else ()


_HEADER = lazy_pattern(r"\s*\[\[?(?P<name>[^\[\]]+)\]\]?\s*(?:#.*)?$")
_KEY = lazy_pattern(
    r"""\s*(?P<name>(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*="""
)
_PART = lazy_pattern(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""")
_TOKEN = lazy_pattern(r"""\"{3}|'{3}|"(?:\\.|[^"\\])*"|'[^']*'|#.*|[\[\]{}]""")


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """Line (from 1) of every key and table of valid TOML text, by its path; the tables of a list have their number
    (from 0) in it. Keys inside inline tables have the line of their table's key or none."""
    lines: dict[tuple[str, ...], int] = {}
    lists: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    depth, quote = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        if not depth and not quote:
            header = _HEADER.match(line)
            if header:
                table = _parts(header["name"])
                for end in range(1, len(table) + 1):  # a table around it may have no line of its own
                    lines.setdefault(table[:end], number)
                if line.lstrip().startswith("[["):
                    lists[table] = lists.get(table, -1) + 1
                    table = (*table, str(lists[table]))
                    lines[table] = number
                continue
            key = _KEY.match(line)
            if key:
                lines.setdefault(table + _parts(key["name"]), number)
                line = line[key.end() :]
        depth, quote = _scan(line, depth, quote)
    return lines


def line_of(lines: dict[tuple[str, ...], int], path: tuple[str, ...]) -> int | None:
    """The line of a key, or of the nearest table around it."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


def _parts(name: str) -> tuple[str, ...]:
    return tuple(double or single or bare for double, single, bare in _PART.findall(name))


def _scan(line: str, depth: int, quote: str) -> tuple[int, str]:
    """Bracket depth and open triple quote after a line."""
    position = 0
    while position < len(line):
        if quote:
            end = line.find(quote, position)
            if end < 0:
                return depth, quote
            position, quote = end + 3, ""
            continue
        token = _TOKEN.search(line, position)
        if token is None:
            break
        symbol, position = token.group(), token.end()
        if symbol in ('"""', "'''"):
            quote = symbol
        elif symbol in ("[", "{"):
            depth += 1
        elif symbol in ("]", "}"):
            depth -= 1
    return depth, quote


Scope = Literal["user", "project", "flag"]
RuleList = Literal["allow", "ask", "deny"]

_ENVIRONMENT = {"SWECLI_MODEL": ("model", "name")}
_NESTED = (*NAMED, "models")
"""Sections with tables as values."""
PLAIN = (("models", "warm"),)
"""Settings of these sections that are values themselves."""
_RULE_LISTS: tuple[RuleList, ...] = get_args(RuleList)
_SCOPES: dict[str, Scope] = {"flag": "flag", "environment": "flag", "settings": "flag", "user": "user"}
_USER_OF_ADDRESS = lazy_pattern(r"(?<=://)[^/@\s]+@")
_SECRET_SHAPED = ("api_key", "apikey", "key", "token", "secret", "password")

SAFE = (
    "Safe mode: this run ignores the project's settings, instructions and memories, the playbook, and your own "
    "keys, themes, hooks and status line command."
)

Path_ = tuple[str, ...]


class Origin(Struct, frozen=True):
    """Origin of a value. ``line`` counts from 1 and is set for files only."""

    layer: Literal["default", "user", "project", "local", "environment", "settings", "flag"]
    source: str = ""
    line: int | None = None

    def __str__(self) -> str:
        location = f"{self.source}:{self.line}" if self.line else self.source
        return location or self.layer


class ConfiguredRule(Struct, frozen=True):
    """A permission rule from the settings, with its list and origin."""

    effect: RuleList
    text: str
    scope: Scope
    origin: str


class Loaded(Struct, frozen=True):
    """The settings in force, the origin of each value, and notices for the user."""

    settings: Settings
    origins: Mapping[Path_, Origin]
    rules: tuple[ConfiguredRule, ...]
    notices: tuple[str, ...]
    pending: tuple[PendingItem, ...] = ()
    """Settings of the project that are ignored until the user consents to each."""


class _Value(Struct, frozen=True):
    """``parts`` are the origins of values inside a table or a list of tables, by the whole path."""

    value: Any
    origin: Origin
    parts: Mapping[Path_, Origin] = field(default_factory=dict[Path_, Origin])


def load(
    paths: Paths,
    workspace: Path,
    *,
    environment: Mapping[str, str],
    trusted: bool = False,
    accepted: frozenset[str] = frozenset(),
    flags: Mapping[str, object] | None = None,
    tried: Mapping[Path_, object] | None = None,
    more: Path | None = None,
    safe: bool = False,
) -> Loaded:
    """Read and merge all layers. ``flags`` are dotted keys such as ``model.name``, ``accepted`` the hashes of single
    settings of the project that the user consented to. ``tried`` precedes everything: values to validate only. ``more``
    is a file of the user for this run; with ``safe`` the project's settings and the user's keys and status line are
    ignored.

    Raises:
        ConfigError: a file can't be read, is not TOML, or has an invalid value. Nothing is loaded then; the message
            names every error.
    """
    notices: list[str] = []
    problems: list[ConfigProblem] = []
    layers: list[dict[Path_, _Value]] = []
    named = environment.get("SWECLI_CONFIG", "")
    user = Path(os.path.expanduser(named)).absolute() if named else paths.config / "config.toml"
    files: list[tuple[Literal["user", "project", "local"], Path]] = [("user", user)]
    folder = project_folder(workspace)
    project_files: list[tuple[Literal["project", "local"], Path]] = [
        ("project", folder / "config.toml"),
        ("local", folder / "config.local.toml"),
    ]
    if safe:
        notices.append(SAFE)
    elif trusted:
        files.extend(without_links(project_files, notices))
    else:
        ignored = [str(path) for _, path in project_files if os.path.isfile(path)]
        if ignored:
            notices.append(f"{' and '.join(ignored)} ignored: this workspace is not trusted (--trust for one run).")
    consent = Consent(accepted)
    for layer, path in files:
        try:
            required = "SWECLI_CONFIG" if named and layer == "user" else ""
            layers.append(_file(layer, path, notices, consent, required=required, below=layers))
        except ConfigError as error:
            problems.extend(error.problems)
    layers.append(
        {
            key: _Value(environment[name], Origin("environment", name))
            for name, key in _ENVIRONMENT.items()
            if environment.get(name)
        }
    )
    if more is not None:
        try:
            layers.append(_file("settings", more, notices, consent, required="--settings", below=layers))
        except ConfigError as error:
            problems.extend(error.problems)
    if safe:
        layers = [{key: value for key, value in layer.items() if not _own(key)} for layer in layers]
    given = {canonical(tuple(key.split("."))): value for key, value in (flags or {}).items()}
    layers.append({key: _Value(value, Origin("flag")) for key, value in given.items()})
    layers.append({canonical(key): _Value(value, Origin("flag")) for key, value in (tried or {}).items()})
    if problems:
        raise ConfigError(problems)
    merged = _merge(layers, notices, tried or {})
    return Loaded(merged.settings, merged.origins, merged.rules, merged.notices, tuple(consent.pending))


def _own(key: Path_) -> bool:
    """Whether safe mode ignores a setting: it changes the meaning of a key, or runs a program."""
    return key[0] in ("keys", "hooks") or key == ("ui", "status_line")


def _is_hook(key: Path_) -> bool:
    """Whether a setting is a list of hooks: those of all files count, and each needs its own consent."""
    return key[0] == "hooks" and len(key) == 2 and key[1][:1].isupper()


def origins(loaded: Loaded) -> list[tuple[str, str, str]]:
    """Key, value and origin of every setting as text. Values of headers, of variables and of request bodies may be
    keys, so only their names are shown, and credentials in an address are left out."""
    rows: list[tuple[str, str, str]] = []
    for section, content in fields_of(loaded.settings):
        if isinstance(content, Section):
            rows.extend(_rows(loaded, (section,), content))
        else:
            for name, named in cast("dict[str, Section]", content).items():
                rows.extend(_rows(loaded, (section, name), named))
    return rows


def _rows(loaded: Loaded, path: Path_, section: Section) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    for name, value in fields_of(section):
        key = (*path, name)
        if path == ("models",) and key not in PLAIN:
            named = cast("dict[str, object]", value)
            rows.extend(_row(loaded, (*key, model_name), item) for model_name, item in named.items())
        else:
            rows.append(_row(loaded, key, value))
    return rows


def _row(loaded: Loaded, key: Path_, value: object) -> tuple[str, str, str]:
    return ".".join(key), shown_value(value), str(loaded.origins.get(key, Origin("default")))


def shown_value(value: object) -> str:
    """A value for people, without possibly secret parts."""
    if value is None:
        return "(unset)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return ", ".join(f"{key}: …" for key in cast("dict[str, object]", value))
    if isinstance(value, DialectSettings):
        return ", ".join(f"{key}: {shown_value(item)}" for key, item in value.given.items())
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        return ", ".join(toml_text(item) if isinstance(item, Section) else str(item) for item in items)
    return f"{value:g}" if isinstance(value, float) else _USER_OF_ADDRESS.sub("…@", str(value))


# --- one file ------------------------------------------------------------------------------------------------------


def _file(
    layer: Literal["user", "project", "local", "settings"],
    path: Path,
    notices: list[str],
    consent: Consent,
    *,
    required: str,
    below: Sequence[Mapping[Path_, _Value]],
) -> dict[Path_, _Value]:
    """The values of a file. ``below`` are the layers that it precedes."""
    read = read_toml(path, required=required)
    if read is None:
        return {}
    data, text = read
    lines = key_lines(text)
    values: dict[Path_, _Value] = {}
    problems: list[ConfigProblem] = []
    for written, value in _leaves(data, path, lines):
        origin, key = Origin(layer, str(path), line_of(lines, written)), canonical(written)
        if not _known(key):
            notices.append(f"{origin}: {_unknown(key)}")
        elif layer in ("project", "local") and _is_refused(consent, key, value, str(origin), below):
            notices.append(
                f"{origin}: {'.'.join(key)} is ignored here: project files can only tighten. Set it in your own "
                "settings, or see `swecli permissions accept`."
            )
        elif key in values:
            same = f"{'.'.join(written)} is already set in line {values[key].origin.line} under another name"
            problems.append(ConfigProblem(str(path), origin.line, f"{same}: use only one"))
        else:
            inside = {
                (*key, *part[len(written) :]): Origin(layer, str(path), line)
                for part, line in lines.items()
                if part[: len(written)] == written and len(part) > len(written)
            }
            values[key] = _Value(value, origin, inside if isinstance(value, list | dict) else {})
    if problems:
        raise ConfigError(problems)
    return values


def _is_refused(
    consent: Consent, key: Path_, value: object, origin: str, below: Sequence[Mapping[Path_, _Value]]
) -> bool:
    """Whether a project's setting waits for the user's consent. Hooks have their own; the value already in force needs
    none."""
    if _is_hook(key):
        return False
    given = next((layer[key].value for layer in reversed(below) if key in layer), _default(key))
    return value != given and consent.refuses(key, value, origin, given)


def _default(key: Path_) -> object:
    """The default of a setting, as a file would give it; None for one of a named table."""
    default: object = None if key[0] in NAMED else default_of(SECTIONS[key[0]], key[-1])
    return [*cast("tuple[object, ...]", default)] if isinstance(default, tuple) else default


def _leaves(data: Mapping[str, Any], path: Path, lines: dict[Path_, int]) -> list[tuple[Path_, Any]]:
    leaves: list[tuple[Path_, Any]] = []
    problems: list[ConfigProblem] = []
    for section, content in data.items():
        if not _known((section,)):
            leaves.append(((section,), content))
            continue
        tables = [((section,), content)]
        if section in _NESTED and isinstance(content, dict):
            named = cast("dict[str, Any]", content)
            tables = [((section, name), table) for name, table in named.items() if _known((section, name))]
            leaves.extend(((section, name), table) for name, table in named.items() if not _known((section, name)))
        for table_path, table in tables:
            if table_path in PLAIN and not isinstance(table, dict):
                leaves.append((table_path, table))
                continue
            if not isinstance(table, dict):
                line = line_of(lines, table_path)
                text = f"{'.'.join(table_path)} must be a table: {_form(table_path)}"
                problems.append(ConfigProblem(str(path), line, text))
                continue
            items = cast("dict[str, Any]", table).items()
            leaves.extend(((*table_path, key), value) for key, value in items)
            if not items:
                leaves.extend([(table_path, {})] if section in NAMED else [])
    if problems:
        raise ConfigError(problems)
    return leaves


def _form(key: Path_) -> str:
    """How a table begins in a file."""
    if key == ("hooks",):
        return "[[hooks.EVENT]], for example [[hooks.PreToolUse]]"
    return f"[{key[0]}.NAME]" if key[0] in NAMED else f"[{'.'.join(key)}]"


def _fields(section: str) -> tuple[str, ...]:
    return SECTIONS[section].__struct_encode_fields__


def _known(key: Path_) -> bool:
    if key[0] not in SECTIONS:
        return False
    if key[0] in NAMED:
        return len(key) <= 2 or key[2] in _fields(key[0])
    return len(key) == 1 or key[1] in _fields(key[0])


_MOST_NAMED = 25
"""Known names that a notice about an unknown one lists."""


def _unknown(key: Path_) -> str:
    name = ".".join(key)
    if key[-1].lower() in _SECRET_SHAPED:
        return f"{name} is not a setting. Settings never hold keys: name the variable with api_key_env."
    if len(key) == 1 and key[0].lower().replace("_", "") == "mcpservers":  # Codex's and Claude Code's word
        return f"{name} is not a setting; ignored. A server begins with [mcp.NAME]."
    choices = list(SECTIONS) if len(key) == 1 else [*_fields(key[0]), *other_names(key[0])]
    near = get_close_matches(key[-1], choices, 1)
    many = " /keys lists the actions." if key[0] == "keys" else " `swecli config` lists all."
    known = f" Known here: {', '.join(choices)}." if len(choices) <= _MOST_NAMED else many
    hint = f" Did you mean {near[0]}?" if near else known
    return f"{name} is not a setting; ignored.{hint}"


# --- merging -------------------------------------------------------------------------------------------------------


def _merge(layers: list[dict[Path_, _Value]], notices: list[str], tried: Collection[Path_] = ()) -> Loaded:
    tree: dict[str, Any] = {}
    origin_of: dict[Path_, Origin] = {}
    rules: list[ConfiguredRule] = []
    problems: list[ConfigProblem] = []
    for layer in layers:
        for key, entry in layer.items():
            value = tuple(cast("list[Any]", entry.value)) if isinstance(entry.value, list) else entry.value
            if key[0] == "approval" and key[1] in _RULE_LISTS:
                problem = _add_rules(rules, key[1], value, entry.origin)
                if problem:
                    problems.append(problem)
                    continue
                value = tuple(rule.text for rule in rules if rule.effect == key[1])
            if key[0] in NAMED and len(key) == 2:
                tree.setdefault(key[0], {}).setdefault(key[1], {})
                continue
            if _is_hook(key) and isinstance(value, tuple):
                _add_hooks(tree, origin_of, key, entry)
                continue
            _put(tree, key, value)
            for old in [path for path in origin_of if path[: len(key)] == key]:
                del origin_of[old]
            origin_of.update({key: entry.origin, **entry.parts})
    if problems:
        raise ConfigError(problems)
    settings = _checked(tree, origin_of)
    for key, name, message in unknown_references(settings):
        origin = origin_of.get(key, Origin("default"))
        once = origin.layer in ("flag", "environment")
        if (once or name not in ROLES) and key != ("model", "fallback") and key not in tried:
            continue  # looked up among the usable models when it is first needed
        problems.append(ConfigProblem(origin.source or origin.layer, origin.line, f"{'.'.join(key)} {message}"))
    for keys, message in contradictions(settings):
        key = next((candidate for candidate in keys if candidate in origin_of), keys[0])
        origin = next((entry for path, entry in origin_of.items() if path[: len(key)] == key), Origin("default"))
        named = message if key == keys[0] else f"(with {'.'.join(keys[0])}) {message}"
        problems.append(ConfigProblem(origin.source or origin.layer, origin.line, f"{'.'.join(key)} {named}"))
    if problems:
        raise ConfigError(problems)
    return Loaded(settings, origin_of, tuple(rules), tuple(notices))


def _checked(tree: Mapping[str, Any], origin_of: Mapping[Path_, Origin]) -> Settings:
    """Validate the settings, only the sections with values: validation of all would take a twentieth of a start.

    Raises:
        ConfigError: a value is not allowed.
    """
    sections: dict[str, Any] = {}
    problems: list[ConfigProblem] = []
    for section, given in tree.items():
        if section not in NAMED:
            sections[section] = _section(SECTIONS[section], (section,), given, origin_of, problems)
            continue
        named = cast("dict[str, Any]", given).items()
        sections[section] = {
            name: _section(NAMED[section], (section, name), table, origin_of, problems) for name, table in named
        }
    if problems:
        raise ConfigError(problems)
    return Settings(**sections)


def _section(
    kind: type[Section],
    path: Path_,
    given: object,
    origin_of: Mapping[Path_, Origin],
    problems: list[ConfigProblem],
) -> Section | None:
    try:
        return validated(kind, given)
    except InvalidError as error:
        problems.extend(_problems(error, path, origin_of))
        return None


def _add_rules(rules: list[ConfiguredRule], effect: RuleList, value: object, origin: Origin) -> ConfigProblem | None:
    items = cast("tuple[object, ...]", value) if isinstance(value, tuple) else None
    if items is None or not all(isinstance(item, str) for item in items):
        return ConfigProblem(origin.source or origin.layer, origin.line, f"approval.{effect} must be a list of strings")
    scope = _SCOPES.get(origin.layer, "project")
    rules.extend(ConfiguredRule(effect, str(item), scope, str(origin)) for item in items)
    return None


def _add_hooks(tree: dict[str, Any], origin_of: dict[Path_, Origin], key: Path_, entry: _Value) -> None:
    """Append the hooks of one file to those of the files before it."""
    earlier = cast("tuple[object, ...]", tree.get("hooks", {}).get(key[1], ()))
    _put(tree, key, (*earlier, *cast("list[object]", entry.value)))
    origin_of[key] = entry.origin
    for number in range(len(cast("list[object]", entry.value))):
        origin_of[(*key, str(len(earlier) + number))] = entry.parts.get((*key, str(number)), entry.origin)
    for path, origin in entry.parts.items():
        if len(path) > len(key) + 1:
            index = len(earlier) + int(path[len(key)]) if path[len(key)].isdecimal() else 0
            origin_of[(*key, str(index), *path[len(key) + 1 :])] = origin


def _put(tree: dict[str, Any], key: Path_, value: object) -> None:
    for part in key[:-1]:
        tree = tree.setdefault(part, {})
    tree[key[-1]] = value


def _problems(error: InvalidError, section: Path_, origin_of: Mapping[Path_, Origin]) -> list[ConfigProblem]:
    problems: list[ConfigProblem] = []
    for problem in error.problems:
        key = section + problem.place
        origin = next((origin_of[key[:end]] for end in range(len(key), 0, -1) if key[:end] in origin_of), None)
        if origin is None:
            # An error of a whole section: any of its keys may be the cause.
            origin = next(
                (candidate for path, candidate in origin_of.items() if path[:1] == key[:1]), Origin("default")
            )
        message = problem.message
        if problem.kind == "list" and _is_hook(key):
            message = f"must be a list of tables: [[{'.'.join(key)}]]"
        problems.append(ConfigProblem(origin.source or origin.layer, origin.line, f"{'.'.join(key)} {message}"))
    return problems
