"""Translation of tool calls into the vocabulary of Claude Code, whose hook scripts expect its tool names and inputs,
and back. Pure."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from msgspec import Struct

from swecli.core.hooks.hook import HookEvent
from swecli.core.permissions.types import Effects
from swecli.core.protocol.modes import MODES, Mode

Values = Mapping[str, Any]
COMPACT = (",", ":")
"""Separators of JSON for hooks: no blanks, as Claude Code writes it, because scripts search it with grep."""


class ToolUse(Struct, frozen=True):
    """A call as it would run. ``writes`` are the absolute paths that it changes; ``cwd`` is the base of relative
    paths."""

    call_id: str
    tool: str
    arguments: Values
    cwd: str
    writes: tuple[str, ...] = ()
    effects: Effects = Effects()


class ToolView(Struct, frozen=True):
    """A call as a hook sees it: ``name`` and ``given`` in Claude Code's words, ``subjects`` all names for a matcher.
    Each hook runs once per view of a call."""

    name: str
    given: Values
    subjects: tuple[str, ...]


_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "run_command": ("Bash",),
        "read_file": ("Read",),
        "write_file": ("Write",),
        "edit_file": ("Edit", "MultiEdit"),
        "apply_patch": ("Edit", "MultiEdit", "Write"),
        "search": ("Grep",),
        "list_files": ("Glob", "LS"),
        "web_fetch": ("WebFetch",),
        "web_search": ("WebSearch",),
        "update_todos": ("TodoWrite",),
        "ask_user": ("AskUserQuestion",),
        "job": ("BashOutput", "TaskOutput", "KillShell"),
        "task": ("Task", "Agent"),
        "skill": ("Skill",),
        "tool_search": ("ToolSearch",),
    }
)
"""Our tools -> Claude Code's, the name shown to hooks first. MCP tools have the same names in both."""


def claude_name(tool: str) -> str:
    return _NAMES.get(tool, (tool,))[0]


def views(use: ToolUse) -> tuple[ToolView, ...]:
    """The views of a call. A patch has one view per file, because hook scripts expect edits of one file."""
    names = _NAMES.get(use.tool, ())
    subjects = (*names, use.tool)
    name = names[0] if names else use.tool
    if use.tool == "apply_patch" and use.writes:
        patch = use.arguments.get("input", "")
        given = ({"file_path": path, "old_string": "", "new_string": patch, "patch": patch} for path in use.writes)
        return tuple(ToolView(name, fields, subjects) for fields in given)
    if use.tool == "job" and use.arguments.get("stop"):
        return (ToolView("KillShell", {"shell_id": use.arguments.get("id", "")}, subjects),)
    to_claude = _TO_CLAUDE.get(use.tool)
    return (ToolView(name, to_claude(use) if to_claude else use.arguments, subjects),)


def arguments_of(use: ToolUse, given: Values) -> dict[str, Any]:
    """Our arguments for a hook's replacement input, in either vocabulary. Arguments that the input does not mention
    stay, unless the input says the same in its own words."""
    from_claude = _FROM_CLAUDE.get(use.tool)
    return from_claude(use.arguments, given) if from_claude else dict(given)


def response_of(view: ToolView, text: str, *, failed: bool, exit_status: int | None) -> dict[str, Any]:
    """The result of a call as ``tool_response``."""
    path = str(view.given.get("file_path", ""))
    match view.name:
        case "Bash":
            response: dict[str, Any] = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
            response |= {"exitCode": exit_status} if exit_status is not None else {}
        case "Write":
            response = {"filePath": path, "content": view.given.get("content", ""), "type": "update"}
        case "Edit":
            old, new = view.given.get("old_string", ""), view.given.get("new_string", "")
            response = {"filePath": path, "oldString": old, "newString": new}
        case "Read":
            response = {"type": "text", "file": {"filePath": path, "content": text}}
        case _:
            response = {"content": text}
    return {**response, "success": not failed}


# --- the table ----------------------------------------------------------------------------------------------------


def _path(use: ToolUse) -> str:
    path = str(use.arguments.get("path", "."))
    return os.path.normpath(os.path.join(use.cwd, os.path.expanduser(path)))


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _bash(use: ToolUse) -> Values:
    given = use.arguments
    seconds = given.get("timeout")
    background = True if given.get("background") else None
    return _said(
        {
            "command": given.get("command", ""),
            "timeout": None if seconds is None else round(float(seconds) * 1000),
            "run_in_background": background,
        }
    )


def _from_bash(ours: Values, given: Values) -> dict[str, Any]:
    changed = {**ours, "command": given.get("command", ours.get("command", ""))}
    if isinstance(given.get("timeout"), int | float):
        changed["timeout"] = given["timeout"] / 1000
    if "run_in_background" in given or "background" in given:
        changed["background"] = bool(given.get("run_in_background", given.get("background")))
    return changed


def _read(use: ToolUse) -> Values:
    return _said({"file_path": _path(use), "offset": use.arguments.get("offset"), "limit": use.arguments.get("limit")})


def _write(use: ToolUse) -> Values:
    return {"file_path": _path(use), "content": use.arguments.get("content", "")}


def _edits(value: object) -> list[Values]:
    items = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    return [cast("Values", item) for item in items if isinstance(item, Mapping)]


def _edit(use: ToolUse) -> Values:
    """Several edits are also joined into the two texts, for scripts that read only those."""
    given = use.arguments
    several = _edits(given.get("edits"))
    if not several:
        every = bool(given.get("replace_all", False))
        old, new = given.get("old_string") or "", given.get("new_string") or ""
        return {"file_path": _path(use), "old_string": old, "new_string": new, "replace_all": every}
    old, new = ("\n".join(str(edit.get(key, "")) for edit in several) for key in ("old_string", "new_string"))
    edits = [dict(edit) for edit in several]
    return {"file_path": _path(use), "old_string": old, "new_string": new, "edits": edits}


_EDIT_KEYS = ("old_string", "new_string", "replace_all", "edits")


def _from_edit(ours: Values, given: Values) -> dict[str, Any]:
    fields = {key: given[key] for key in _EDIT_KEYS if key in given}
    if not fields:
        fields = {key: ours[key] for key in _EDIT_KEYS if key in ours}
    if _edits(fields.get("edits")):
        fields = {"edits": fields["edits"]}
    else:
        fields.pop("edits", None)
    return {"path": _given_path(ours, given), **fields}


def _given_path(ours: Values, given: Values) -> Any:
    return given.get("file_path", given.get("path", ours.get("path", "")))


def _from_read(ours: Values, given: Values) -> dict[str, Any]:
    fields = {key: given[key] for key in ("offset", "limit") if key in given}
    return {**ours, "path": _given_path(ours, given), **fields}


def _from_write(ours: Values, given: Values) -> dict[str, Any]:
    return {"path": _given_path(ours, given), "content": given.get("content", ours.get("content", ""))}


def _grep(use: ToolUse) -> Values:
    given = use.arguments
    return _said(
        {
            "pattern": given.get("pattern", ""),
            "path": _path(use),
            "glob": given.get("glob"),
            "output_mode": "content",
            "-i": True if given.get("ignore_case") else None,
            "-C": given.get("context") or None,
            "head_limit": given.get("max_results"),
        }
    )


_GREP = (
    ("pattern", "pattern"),
    ("path", "path"),
    ("glob", "glob"),
    ("-i", "ignore_case"),
    ("-C", "context"),
    ("head_limit", "max_results"),
)


def _from_glob(ours: Values, given: Values) -> dict[str, Any]:
    changed = {**ours, "path": given.get("path", ours.get("path", "."))}
    pattern = given.get("pattern", "*")
    return {**changed, "glob": pattern} if pattern != "*" else changed


def _todos(use: ToolUse) -> Values:
    items = _edits(use.arguments.get("todos"))
    todos = [
        {"content": item.get("text", ""), "status": item.get("status", "pending"), "activeForm": item.get("text", "")}
        for item in items
    ]
    return {"todos": todos}


def _from_todos(ours: Values, given: Values) -> dict[str, Any]:
    items = _edits(given.get("todos"))
    todos = [
        {"text": item.get("content", item.get("text", "")), "status": item.get("status", "pending")} for item in items
    ]
    return {"todos": todos}


def _question(use: ToolUse) -> Values:
    questions = [
        {
            "question": question.get("question", ""),
            "header": "",
            "options": [dict(option) for option in _edits(question.get("options"))],
            "multiSelect": bool(question.get("multiple", False)),
        }
        for question in _edits(use.arguments.get("questions"))
    ]
    return {"questions": questions}


def _from_question(ours: Values, given: Values) -> dict[str, Any]:
    questions = [
        {
            "question": question.get("question", ""),
            "options": [
                {key: option[key] for key in ("label", "description") if key in option}
                for option in _edits(question.get("options"))
            ],
            "multiple": bool(question.get("multiSelect", question.get("multiple", False))),
        }
        for question in _edits(given.get("questions"))
    ]
    return {"questions": questions}


_TO_CLAUDE: Mapping[str, Callable[[ToolUse], Values]] = MappingProxyType(
    {
        "run_command": _bash,
        "read_file": _read,
        "write_file": _write,
        "edit_file": _edit,
        "search": _grep,
        "list_files": lambda use: {"pattern": use.arguments.get("glob") or "*", "path": _path(use)},
        "web_fetch": lambda use: {"url": use.arguments.get("url", ""), "prompt": ""},
        "update_todos": _todos,
        "ask_user": _question,
        "job": lambda use: {"bash_id": use.arguments.get("id", "")},
    }
)

_FROM_CLAUDE: Mapping[str, Callable[[Values, Values], dict[str, Any]]] = MappingProxyType(
    {
        "run_command": _from_bash,
        "read_file": _from_read,
        "write_file": _from_write,
        "edit_file": _from_edit,
        "apply_patch": lambda ours, given: dict(ours),
        "search": lambda ours, given: {**ours, **{mine: given[theirs] for theirs, mine in _GREP if theirs in given}},
        "list_files": _from_glob,
        "web_fetch": lambda ours, given: {"url": given.get("url", ours.get("url", ""))},
        "update_todos": _from_todos,
        "ask_user": _from_question,
        "job": lambda ours, given: dict(ours),
    }
)


def claude_mode(mode: Mode, *, yolo: bool) -> str:
    return "bypassPermissions" if yolo else MODES[mode].claude


def subjects_of(event: HookEvent, payload: Values) -> tuple[str, ...]:
    """Names that the matcher of a hook is compared with, for events that do not concern a tool."""
    key = {
        "SessionStart": "source",
        "SessionEnd": "reason",
        "PreCompact": "trigger",
        "PostCompact": "trigger",
        "Notification": "notification_type",
        "SubagentStart": "agent_type",
        "SubagentStop": "agent_type",
    }.get(event)
    return (str(payload.get(key, "")),) if key else ()
