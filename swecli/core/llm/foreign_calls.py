"""What other agents call tools and parameters: models that learned those call ours by these names."""

from __future__ import annotations

import json
import re
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
    "read_file": ("read", "view", "cat", "view_file", "open_file", "view_image"),
    "edit_file": (
        "edit",
        "str_replace",
        "replace",
        "multi_edit",
        "multiedit",
        "strreplacefile",
        "search_replace",
        "replace_in_file",
        "replace_string_in_file",
        "apply_diff",
    ),
    "write_file": ("write", "create_file", "create_new_file", "write_to_file"),
    "search": ("grep", "search_files", "search_file_content", "grep_search", "ripgrep"),
    "list_files": ("glob", "ls", "list", "list_dir", "list_directory", "find_files", "file_search"),
    "update_todos": ("todowrite", "todo_write", "write_todos", "update_plan", "settodolist", "manage_todo_list"),
    "ask_user": ("askuserquestion", "ask_user_question", "ask_followup_question", "request_user_input"),
    "task": ("agent",),
    "web_fetch": ("webfetch", "fetch", "fetch_url"),
}
ALIASES = MappingProxyType({other: own for own, others in _TOOLS.items() for other in others})
"""Keys are lower case."""
_OWN = frozenset((*_TOOLS, "apply_patch", "job", "locate", "memory", "read_result", "recall", "scratchpad", "skill"))
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
    "old_string": ("old_str", "old_text", "old", "search", "find"),
    "new_string": ("new_str", "new_text", "new", "replace", "replacement"),
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
    "read_file": ("path", "offset", "limit", "pages"),
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
        "requires_approval",
        "-n",
    )
)
"""Parameters in which other agents let the model explain a call, or choose the form of a result: ours has one form."""
_LABELS = frozenset(("id", "priority", "active_form", "header"))
"""The same in the entries of a list, such as a todo."""
_STATUSES: Mapping[str, str] = {
    "in_progress": "in_progress",
    "not_started": "pending",
    "todo": "pending",
    "done": "completed",
    "complete": "completed",
}
"""Other words for the states of a todo."""
_FOLDERS = ("workdir", "cwd", "working_directory", "directory", "dir_path")
"""Parameters for where a command runs."""
_CAPITAL = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_CALLED = lazy_pattern(r"\A(?:functions|default_api|tools?|container)[.:](?=\w)|(?<=\w):\d+\Z")
"""What some models write around a tool's name."""
_BLOCK = lazy_pattern(
    r"^[<-]{5,9} ?SEARCH>?\n(?::start_line: ?\d+\n)?(?:-{5,9}\n)?(.*?\n)??={5,9}\n(.*?\n)??[>+]{5,9} ?REPLACE(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""Of Aider, Cline and Roo."""
_JOINED = lazy_pattern(r"[;&\n]|\|\|")


def own_name(name: str) -> str:
    """Our name for the tool that a model calls ``name``."""
    name = name.strip()
    bare = _CALLED.sub("", name.partition("<|")[0].strip()).replace(" ", "_")
    word = bare.lower()
    if word not in ALIASES and word not in _OWN:
        word = _snake_case(bare)
    return ALIASES.get(word, word if word in _OWN else name)


def own_arguments(given: Mapping[str, Any], names: Collection[str], *, entry: bool = False) -> dict[str, Any]:
    """What the model means by ``given``, for a tool with the parameters ``names``: other agents' names and units become
    ours, and what only explains a call, or is empty, goes. What has no such meaning stays, to be refused.

    ``entry``: it is an entry of a list, not the whole call.
    """
    arguments = dict(given)
    if any(key not in names for key in arguments):
        _rename(arguments, names)
    if {"command", "timeout"} <= set(names):
        _take_timeout(arguments, names)
        _take_command(arguments, names)
    if "questions" in names:
        _take_question(arguments, names)
    if entry and "status" in names and isinstance(arguments.get("status"), str):
        arguments["status"] = _STATUSES.get(arguments["status"].lower().replace("-", "_"), arguments["status"])
    idle = _IDLE | _LABELS if entry else _IDLE
    return {
        key: value
        for key, value in arguments.items()
        if key in names or not (_snake_case(key) in idle or value is None or value in ("", [], {}))
    }


def _rename(arguments: dict[str, Any], names: Collection[str]) -> None:
    """Names of other agents become ours, as do their ways to give lines and changes."""
    for name in names:
        if name not in arguments:
            others = (name, *_PARAMETERS.get(name, ()))
            keys = [key for key in arguments if key not in names and _snake_case(key) in others]
            if len(keys) == 1:
                arguments[name] = arguments.pop(keys[0])
    if {"path", "offset", "limit"} <= set(names):
        _take_lines(arguments, names)
    if {"old_string", "edits"} <= set(names):
        _take_blocks(arguments, names)


_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "To end, answer with text and without a call.": (
        *("finish", "attempt_completion", "submit", "final_answer", "task_done", "complete_task", "done", "respond"),
        *("mark_task_complete", "task_complete", "exit_loop"),
    ),
    "Think in your answer or reasoning; no call is needed.": ("think", "sequentialthinking", "reflect"),
    "Write the plan as your answer, without a call.": ("submit_plan", "exit_plan_mode", "exitplanmode", "plan"),
    "Call each tool itself: one answer may have several calls.": ("multi_tool_use.parallel", "parallel", "batch"),
    "Call read_file for each file: one answer may have several calls.": ("read_many_files", "read_files"),
    "Background commands are jobs: job(id=…) reads the output of one, stop=true ends it.": (
        *("bashoutput", "bash_output", "killshell", "kill_shell", "killbash", "get_terminal_output", "write_stdin"),
    ),
    "Use run_command, for example with rm, mv or mkdir -p.": (
        *("delete_file", "remove_file", "rename_file", "move_file", "copy_file", "create_directory", "mkdir"),
    ),
    "Use run_command, for example python3 - <<'EOF'.": ("python", "code_interpreter", "execute_python"),
    "Use edit_file: one call for each file, its changes as edits.": (
        *("multi_replace_string_in_file", "insert_edit_into_file", "insert_content", "notebook_edit", "notebookedit"),
        *("str_replace_editor", "str_replace_based_edit_tool"),
    ),
    "There is none for the web at large; web_fetch gets a known address.": ("web_search", "websearch", "google_search"),
}
"""What to do instead of calling tools of other agents that have no counterpart."""


def advice_for(name: str) -> str:
    """A sentence for a model that calls a tool which only other agents have; empty for other names."""
    word = _CALLED.sub("", name.strip()).lower()
    return next((text for text, names in _ELSEWHERE.items() if word in names or _snake_case(name) in names), "")


def stored_arguments(name: str, text: str) -> dict[str, Any]:
    """The arguments of a call in the record, by our names; empty if they are not a JSON object."""
    given = parse_object(text) or {}
    names = _PARAMETERS_OF.get(own_name(name))
    return own_arguments(given, names) if names else given


def _snake_case(key: str) -> str:
    return key if key.startswith("-") or key.isupper() else _CAPITAL.sub("_", key).lower().replace("-", "_")


def _other(arguments: dict[str, Any], names: Collection[str], *wanted: str) -> str:
    """The key of the one parameter with a wanted name that is none of ``names``; empty if there is not just one."""
    keys = [key for key in arguments if key not in names and _snake_case(key) in wanted]
    return keys[0] if len(keys) == 1 else ""


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


def _take_blocks(arguments: dict[str, Any], names: Collection[str]) -> None:
    """Blocks of text to search and its replacement become ``edits``, if there is nothing else around them."""
    key = _other(arguments, names, "diff", "content", "blocks")
    text = arguments.get(key)
    if not isinstance(text, str) or not {"old_string", "new_string", "edits"}.isdisjoint(arguments):
        return
    text = text.replace("\r\n", "\n")
    blocks = [(match[1] or "", match[2] or "") for match in _BLOCK.finditer(text)]
    if blocks and not _BLOCK.sub("", text).strip():
        del arguments[key]
        arguments["edits"] = [
            {"old_string": old.removesuffix("\n") if new else old, "new_string": new.removesuffix("\n")}
            for old, new in blocks
        ]


def _take_question(arguments: dict[str, Any], names: Collection[str]) -> None:
    """A single question, with its answers as texts, becomes the only entry of ``questions``."""
    if "questions" in arguments or not isinstance(arguments.get("question"), str):
        return
    key = _other(arguments, names, "options", "follow_up", "suggestions")
    options = arguments.get(key, [])
    if isinstance(options, list) and all(isinstance(option, str) for option in cast("list[Any]", options)):
        arguments.pop(key, None)
        labels = [{"label": option} for option in cast("list[str]", options)]
        arguments["questions"] = [{"question": arguments.pop("question"), "options": labels}]


def _take_timeout(arguments: dict[str, Any], names: Collection[str]) -> None:
    key = _other(arguments, names, "timeout_ms")
    if key and "timeout" not in arguments and type(arguments[key]) in (int, float):
        arguments["timeout"] = arguments.pop(key) / 1000


def _take_command(arguments: dict[str, Any], names: Collection[str]) -> None:
    """A list of words becomes a command, and a folder to run it in becomes a part of it, for the user to see."""
    command = arguments.get("command")
    words = _listed(command) if isinstance(command, str) else command
    if isinstance(words, list) and words and all(isinstance(word, str) for word in cast("list[Any]", words)):
        command = arguments["command"] = _script(cast("list[str]", words))
    key = _other(arguments, names, *_FOLDERS)
    folder = arguments.get(key)
    if not isinstance(folder, str) or not isinstance(command, str) or not folder.strip():
        return
    del arguments[key]
    if folder.strip().rstrip("/") != ".":
        inner = f"{{ {command}\n}}" if _JOINED.search(command) else command
        arguments["command"] = f"cd {shlex.quote(folder)} && {inner}"


def _listed(command: str) -> object:
    """The value of a JSON list that a model wrote as text; None for any other text."""
    text = command.strip()
    if not (text.startswith('["') and text.endswith('"]')):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _script(words: list[str]) -> str:
    """``["bash", "-lc", SCRIPT]`` is the script itself; other words are quoted."""
    if len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh") and words[1] in ("-c", "-lc"):
        return words[2]
    return shlex.join(words)
