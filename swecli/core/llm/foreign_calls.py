"""What other agents call tools and parameters: models that learned those call ours by these names."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, cast

from swecli.core.llm.json_values import parse_object
from swecli.lazy_pattern import lazy_pattern

_TOOLS = {
    "run_command": (
        "bash",
        "shell",
        "execute_command",
        "exec",
        "exec_command",
        "execute_bash",
        "run_bash",
        "run_shell_command",
        "run_terminal_cmd",
        "run_terminal_command",
        "run_in_terminal",
        "shell_command",
        "local_shell",
        "terminal",
    ),
    "read_file": ("read", "view", "cat", "readfile", "view_file", "open_file"),
    "edit_file": ("edit", "str_replace", "replace", "multiedit", "multi_edit", "strreplacefile", "search_replace"),
    "write_file": ("write", "create_file", "writefile", "write_to_file"),
    "search": ("grep", "search_files", "search_file_content", "grep_search", "ripgrep"),
    "list_files": ("glob", "ls", "list", "list_dir", "list_directory", "find_files", "file_search"),
    "update_todos": ("todowrite", "todo_write", "write_todos", "update_plan", "settodolist", "manage_todo_list"),
    "ask_user": ("askuserquestion", "ask_user_question", "ask_followup_question", "request_user_input"),
    "task": ("agent",),
    "web_fetch": ("webfetch", "fetch", "fetch_url"),
}
ALIASES = MappingProxyType({other: own for own, others in _TOOLS.items() for other in others})
"""Keys are lower case."""
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "path": (
        "file_path",
        "filepath",
        "filename",
        "file",
        "absolute_path",
        "target_file",
        "directory",
        "dir",
        "dir_path",
    ),
    "content": ("contents", "file_text", "text"),
    "old_string": ("old_str", "old_text"),
    "new_string": ("new_str", "new_text"),
    "edits": ("edit",),
    "pattern": ("query", "regex"),
    "glob": ("include", "pattern", "file_pattern", "include_pattern"),
    "context": ("-C",),
    "ignore_case": ("-i",),
    "max_results": ("head_limit", "limit"),
    "command": ("cmd",),
    "background": ("run_in_background", "is_background"),
    "input": ("patch", "patch_text"),
    "todos": ("plan", "todo_list"),
    "text": ("content", "step", "title"),
    "multiple": ("multi_select",),
    "agent": ("subagent_type", "agent_type"),
    "name": ("skill",),
    "arguments": ("args",),
}
"""Our parameters, and what others call the same, in snake case; used only when unambiguous."""
_PARAMETERS_OF: Mapping[str, tuple[str, ...]] = {
    "run_command": ("command", "timeout", "background", "outside"),
    "read_file": ("path", "offset", "limit"),
    "edit_file": ("path", "old_string", "new_string", "replace_all", "edits"),
    "write_file": ("path", "content"),
    "apply_patch": ("input",),
    "search": ("pattern", "path", "glob", "ignore_case", "context", "max_results"),
    "list_files": ("path", "glob", "depth"),
}
"""The tools whose calls are read again from the record, and their parameters."""
_IDLE = frozenset(
    (
        "description",
        "explanation",
        "reason",
        "justification",
        "instruction",
        "instructions",
        "purpose",
        "thought",
        "prompt",
        "output_mode",
        "-n",
    )
)
"""Parameters in which other agents let the model explain a call, or choose the form of a result: ours has one form."""
_LABELS = frozenset(("id", "priority", "active_form", "header"))
"""The same in the entries of a list, such as a todo."""
_FOLDERS = ("workdir", "cwd", "working_directory", "directory", "dir_path")
"""Parameters for where a command runs."""
_CAPITAL = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_JOINED = lazy_pattern(r"[;&\n]|\|\|")


def own_name(name: str) -> str:
    """Our name for the tool that a model calls ``name``."""
    name = name.strip()
    return ALIASES.get(name.lower(), name)


def own_arguments(given: Mapping[str, Any], names: Collection[str], *, entry: bool = False) -> dict[str, Any]:
    """What the model means by ``given``, for a tool with the parameters ``names``: other agents' names and units become
    ours, and what only explains a call, or is empty, goes. What has no such meaning stays, to be refused.

    ``entry``: it is an entry of a list, not the whole call.
    """
    arguments = dict(given)
    for name in names:
        if name not in arguments:
            others = (name, *_PARAMETERS.get(name, ()))
            found = [key for key in arguments if key not in names and _snake_case(key) in others]
            if len(found) == 1:
                arguments[name] = arguments.pop(found[0])
    if {"path", "offset", "limit"} <= set(names):
        _take_lines(arguments, names)
    if {"command", "timeout"} <= set(names):
        _take_timeout(arguments, names)
        _take_command(arguments, names)
    idle = _IDLE | _LABELS if entry else _IDLE
    return {
        key: value
        for key, value in arguments.items()
        if key in names or not (_snake_case(key) in idle or value is None or value in ("", [], {}))
    }


def stored_arguments(name: str, text: str) -> dict[str, Any]:
    """The arguments of a call in the record, by our names; empty if they are not a JSON object."""
    given = parse_object(text) or {}
    names = _PARAMETERS_OF.get(own_name(name))
    return own_arguments(given, names) if names else given


def _snake_case(key: str) -> str:
    return key if key.startswith("-") or key.isupper() else _CAPITAL.sub("_", key).lower().replace("-", "_")


def _other(arguments: dict[str, Any], names: Collection[str], *wanted: str) -> str:
    """The key of the one parameter with a wanted name that is none of ``names``; empty if there is not just one."""
    found = [key for key in arguments if key not in names and _snake_case(key) in wanted]
    return found[0] if len(found) == 1 else ""


def _take_lines(arguments: dict[str, Any], names: Collection[str]) -> None:
    """A first and last line become ``offset`` and ``limit``; a last line of -1 is the end of the file."""
    for own, others in (("offset", ("start_line", "line_start", "line_offset")), ("limit", ("n_lines", "line_count"))):
        if own not in arguments and (key := _other(arguments, names, *others)):
            arguments[own] = arguments.pop(key)
    first, last = arguments.get("offset", 1), None
    if key := _other(arguments, names, "end_line", "line_end"):
        last = arguments[key]
    elif key := _other(arguments, names, "view_range"):
        value = arguments[key]
        if isinstance(value, list) and len(cast("list[Any]", value)) == 2 and "offset" not in arguments:
            first, last = cast("list[Any]", value)
    if "limit" not in arguments and type(first) is int and type(last) is int and (last >= first or last == -1):
        del arguments[key]
        arguments["offset"] = first
        if last != -1:
            arguments["limit"] = last - first + 1


def _take_timeout(arguments: dict[str, Any], names: Collection[str]) -> None:
    key = _other(arguments, names, "timeout_ms")
    if key and "timeout" not in arguments and type(arguments[key]) in (int, float):
        arguments["timeout"] = arguments.pop(key) / 1000


def _take_command(arguments: dict[str, Any], names: Collection[str]) -> None:
    """A list of words becomes a command, and a folder to run it in becomes a part of it, for the user to see."""
    command = arguments.get("command")
    if isinstance(command, list) and command and all(isinstance(word, str) for word in cast("list[Any]", command)):
        command = arguments["command"] = _script(cast("list[str]", command))
    key = _other(arguments, names, *_FOLDERS)
    folder = arguments.get(key)
    if not isinstance(folder, str) or not isinstance(command, str) or not folder.strip():
        return
    del arguments[key]
    if folder.strip().rstrip("/") != ".":
        inner = f"{{ {command}\n}}" if _JOINED.search(command) else command
        arguments["command"] = f"cd {shlex.quote(folder)} && {inner}"


def _script(words: list[str]) -> str:
    """``["bash", "-lc", SCRIPT]`` is the script itself; other words are quoted."""
    if len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh") and words[1] in ("-c", "-lc"):
        return words[2]
    return shlex.join(words)
