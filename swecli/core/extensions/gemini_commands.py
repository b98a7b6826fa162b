"""Commands of Gemini CLI: TOML files with ``prompt`` and ``description``, rewritten as the text of a Markdown command.

``{{args}}`` stands for the arguments, quoted inside a shell command; ``!{command}`` for a command's output; ``@{path}``
attaches a file.
"""

from __future__ import annotations

import tomllib
from typing import Any

from swecli.core.extensions.front_matter import FrontMatter, Problem
from swecli.core.workspace.command_output import as_read
from swecli.lazy_pattern import lazy_pattern

_KNOWN = frozenset(("prompt", "description"))
_MARK = lazy_pattern(r"[!@]\{")


def read_gemini_command(text: str) -> FrontMatter:
    """The fields and body that a Markdown file with the same meaning has."""
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return FrontMatter({}, "", problems=(Problem(0, f"is not valid TOML: {error}", broken=True),))
    prompt, description = table.get("prompt"), table.get("description")
    problems = [Problem(0, f"{name} has no effect in swecli") for name in table if name not in _KNOWN]
    if not isinstance(prompt, str):
        return FrontMatter({}, "", problems=(*problems, Problem(0, "has no text named prompt", broken=True)))
    # The text of the file was made visible before; its escapes may stand for more.
    fields = {"description": as_read(description)} if isinstance(description, str) else {}
    return FrontMatter(fields, _body(as_read(prompt)), problems=tuple(problems))


def _body(prompt: str) -> str:
    """The prompt with our marks. A mark without its closing brace is plain text."""
    parts: list[str] = []
    at = 0
    while (mark := _MARK.search(prompt, at)) is not None:
        end = _closing(prompt, mark.end())
        if end < 0:
            break
        inner = prompt[mark.end() : end].strip()
        parts.append(prompt[at : mark.start()])
        parts.append(_command(inner) if prompt[mark.start()] == "!" else f"@{inner}")
        at = end + 1
    return "".join([*parts, prompt[at:]])


def _command(command: str) -> str:
    """A shell command; a block of its own if it has backticks or several lines."""
    return f"\n```!\n{command}\n```\n" if "`" in command or "\n" in command else f" !`{command}`"


def _closing(text: str, at: int) -> int:
    """The index of the brace that closes one before ``at``; -1 without one."""
    depth = 1
    for index in range(at, len(text)):
        depth += (text[index] == "{") - (text[index] == "}")
        if depth == 0:
            return index
    return -1
