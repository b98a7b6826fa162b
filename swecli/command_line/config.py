"""``swecli config``: every setting with its origin, a single setting, and changes."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Sequence

from swecli.assembly.settings import FileName, SettingsFiles
from swecli.assembly.startup import read_startup
from swecli.block_text import block_lines
from swecli.command_line.arguments import Parser, UsageError, folder_parser, run_word, working_directory
from swecli.command_line.standard_streams import print_rows
from swecli.core.config.change import Described, instead_of, own_name
from swecli.core.config.paths import project_folder
from swecli.core.protocol.blocks import TableBlock
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError
from swecli.safe_text import safe_line

_DESCRIPTION = """Show and change settings.

  swecli config [--json]            list all settings; --set-only omits defaults
  swecli config get KEY [--json]    print one setting's value as TOML
  swecli config set KEY VALUE       write it to your own file; --local: to the project's unshared file
  swecli config unset KEY           remove it from the file
  swecli config path                print the settings files
  swecli config schema              print a JSON Schema of the files, for editors
"""


def config(arguments: Sequence[str]) -> int:
    return run_word("swecli config", _DESCRIPTION, _COMMANDS, arguments, "list")


def _list(arguments: Sequence[str]) -> int:
    parser = _parser("list", "Every setting with its value and origin.")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--set-only", action="store_true", help="only settings changed from their default")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    for notice in read_startup(folder, os.environ, {}).notices:
        sys.stderr.write(f"warning: {safe_line(notice)}\n")
    rows = [each for each in _described(chosen.cwd) if not chosen.set_only or each.origin.layer != "default"]
    if chosen.json:
        return print_rows(_data(each) for each in rows)
    return print_rows(block_lines(settings_table(rows)))


def settings_table(rows: Sequence[Described]) -> TableBlock:
    cells = (
        (each.name, "(not shown)" if each.secret and each.shown else each.shown, str(each.origin)) for each in rows
    )
    return TableBlock(("Setting", "Value", "From"), tuple(cells))


def _get(arguments: Sequence[str]) -> int:
    parser = _parser("get", "One setting.")
    parser.add_argument("key", help="for example agent.max_steps")
    parser.add_argument("--json", action="store_true", help="with its origin, as one line of JSON")
    chosen = parser.parse_args(arguments)
    name = own_name(chosen.key)
    known = _described(chosen.cwd)
    settings = [each for each in known if each.name == name or each.name.startswith(f"{name}.")]
    if not settings:
        raise UsageError(f"Setting {chosen.key} is unknown; {instead_of(chosen.key, (each.name for each in known))}")
    if chosen.json:
        return print_rows(_data(each) for each in settings)
    if len(settings) == 1 and settings[0].name == name:
        return print_rows(["(not shown)" if settings[0].secret else settings[0].text or "(unset)"])
    return print_rows(f"{each.name} = {each.text or '(unset)'}" for each in settings if not each.secret)


def _set(arguments: Sequence[str]) -> int:
    parser = _parser("set", "Check and write a setting. Comments and order in the file are kept.")
    parser.add_argument("key", help="for example agent.max_steps")
    parser.add_argument("value", help="as in TOML; quotes around a string are optional")
    parser.add_argument("--local", action="store_true", help="in .swecli/config.local.toml of the project")
    chosen = parser.parse_args(arguments)
    file: FileName = "local" if chosen.local else "user"
    return _changed(lambda: _files(chosen.cwd).write(chosen.key, chosen.value, file).message, chosen.key)


def _unset(arguments: Sequence[str]) -> int:
    parser = _parser("unset", "Remove a setting from the file.")
    parser.add_argument("key", help="for example agent.max_steps")
    parser.add_argument("--local", action="store_true", help="from .swecli/config.local.toml of the project")
    chosen = parser.parse_args(arguments)
    file: FileName = "local" if chosen.local else "user"
    return _changed(lambda: _files(chosen.cwd).unset(chosen.key, file).message, "")


def _path(arguments: Sequence[str]) -> int:
    chosen = _parser("path", "The settings files.").parse_args(arguments)
    own, local = _files(chosen.cwd).files.values()
    shared = project_folder(working_directory(chosen.cwd)) / "config.toml"
    return print_rows([f"user: {own}", f"project: {shared}", f"local: {local}"])


def _schema(arguments: Sequence[str]) -> int:
    _parser("schema", "A JSON Schema of the settings files.").parse_args(arguments)
    from swecli.core.config.schema import settings_schema

    return print_rows(json.dumps(settings_schema(), indent=1, ensure_ascii=False).split("\n"))


def _changed(change: Callable[[], str], name: str) -> int:
    try:
        notice = change()
    except ValueError as error:
        text = str(error)
        named = not name or name in re.split(r"[^\w.-]+", text)  # theme is not named in "did you mean ui.theme?"
        raise StartError(text if named else f"{name} {text}", ExitCode.BAD_INPUT) from None
    return print_rows([notice])


def _parser(name: str, description: str) -> Parser:
    return folder_parser(f"swecli config {name}", description, "check in this folder")


def _files(cwd: str | None) -> SettingsFiles:
    return SettingsFiles(LaunchOptions(cwd=working_directory(cwd)), dict(os.environ))


def _described(cwd: str | None) -> Sequence[Described]:
    try:
        return _files(cwd).described()
    except ValueError as error:
        raise StartError(str(error), ExitCode.CONFIG) from None


def _data(each: Described) -> str:
    """A setting as JSON: ``value`` is TOML, null if it is unset or may not be shown."""
    return json.dumps(
        {
            "key": each.name,
            "value": each.text or None,
            "default": each.default if each.default != "(unset)" else None,
            "layer": each.origin.layer,
            "origin": str(each.origin),
            "line": each.origin.line,
            "secret": each.secret,
            "about": each.about,
            "takes": each.takes,
        },
        ensure_ascii=False,
    )


_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "list": _list,
    "get": _get,
    "set": _set,
    "unset": _unset,
    "path": _path,
    "schema": _schema,
}
