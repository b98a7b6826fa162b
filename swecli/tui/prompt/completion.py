"""What the prompt offers to complete: slash commands at its start, files after ``@``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from swecli.tui.prompt.fuzzy import best, score

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand

LIMIT = 8
"""Suggestions shown at once."""

_SLASH = re.compile(r"/([A-Za-z_?-]*)\Z")
_MENTION = re.compile(r"(?:^|(?<=\s))@([^\s@]*)\Z")


@dataclass(frozen=True, slots=True)
class Token:
    """The part before the cursor that is being completed; ``start`` is its column in the line."""

    kind: Literal["command", "file"]
    query: str
    start: int


@dataclass(frozen=True, slots=True)
class Suggestion:
    """``insert`` replaces the token; ``label`` and ``detail`` are shown. ``runs`` marks a command that needs
    no argument, so that Enter may run it at once; ``begins`` one that begins with what was typed."""

    label: str
    insert: str
    detail: str = ""
    runs: bool = False
    begins: bool = False


def token_before(text: str, row: int, column: int) -> Token | None:
    """The token that ends at the cursor (``text`` is the cursor's line), or None."""
    before = text[:column]
    if row == 0 and (match := _SLASH.fullmatch(before)):
        return Token("command", match.group(1), 0)
    if match := _MENTION.search(before):
        return Token("file", match.group(1), match.start())
    return None


def commands(query: str, known: Sequence[SlashCommand]) -> list[Suggestion]:
    """Slash commands for ``query``: by name, then by alias, prefix first; all as they are listed for none."""
    ranked: list[tuple[tuple[int, int, str], SlashCommand]] = []
    for command in known:
        ranks = [score(query, command.name)]
        for alias in command.aliases:
            rank = score(query, alias)
            ranks.append(None if rank is None else (rank[0] + 1, rank[1], rank[2]))
        found = [rank for rank in ranks if rank is not None]
        if found:
            ranked.append((min(found), command))
    if query:
        ranked.sort(key=lambda entry: entry[0])
    return [
        Suggestion(
            f"/{command.name}{' ' + command.arguments if command.arguments else ''}",
            f"/{command.name} " if command.arguments else f"/{command.name}",
            command.summary,
            runs=not command.arguments or command.arguments.startswith("["),
            begins=any(name.startswith(query.lower()) for name in (command.name, *command.aliases)),
        )
        for _, command in ranked[:LIMIT]
    ]


def files(query: str, paths: Sequence[str]) -> list[Suggestion]:
    """Files and directories (a trailing slash) for ``query``."""
    return [
        Suggestion(path, f"@{_quoted(path)}{'' if path.endswith('/') else ' '}") for path in best(query, paths, LIMIT)
    ]


def _quoted(path: str) -> str:
    return f'"{path}"' if any(char.isspace() for char in path) else path
