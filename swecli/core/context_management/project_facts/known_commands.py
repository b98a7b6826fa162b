"""Whether a command is one that the project really has."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from swecli.core.context_management.project_facts.facts import ProjectCommand
from swecli.core.context_management.project_facts.scan import Scan
from swecli.core.context_management.project_facts.task_runners import make_targets, read_just, read_tox
from swecli.core.context_management.project_facts.values import table

_OPERATORS = re.compile(r"[;|<>`$\\{}]|(?<!&)&(?!&)")
_INTERPRETERS = ("python", "python3", "node", "ruby", "php", "sh", "bash", "deno")
_NODE = ("npm", "yarn", "pnpm", "bun")
_BUILT_IN = ("install", "ci", "i")


class KnownCommands:
    """The commands of one project. ``evident`` are those that a manifest itself defines."""

    def __init__(self, scan: Scan, evident: Iterable[ProjectCommand]) -> None:
        self._scan = scan
        self._evident = [_words(command.command) for command in evident]
        make = scan.first("GNUmakefile", "makefile", "Makefile")
        self._tasks: Mapping[str, frozenset[str]] = {
            "make": frozenset(make_targets(scan.text(make)) if make else ()),
            "just": frozenset(command.target for command in read_just(scan).commands),
            "tox": frozenset(command.target for command in read_tox(scan).commands),
            "npm": frozenset(_scripts(scan)),
        }

    def programs(self) -> frozenset[str]:
        """First words of the evident commands."""
        return frozenset(words[0] for words in self._evident if words)

    def has(self, command: str) -> bool:
        """Whether every part of ``command`` is a task, a file or a command of the project."""
        if _OPERATORS.search(command) and not any(_words(command) == words for words in self._evident):
            return False
        parts = [part.strip() for part in command.split("&&")]
        return all(self._has_part(_words(part)) for part in parts)

    def _has_part(self, words: list[str]) -> bool:
        while words and re.fullmatch(r"[A-Z_][A-Z0-9_]*=\S*", words[0]):
            words = words[1:]
        if not words:
            return False
        named = self._named_task(words)
        if named is not None:
            return named
        if self._extends_evident(words):
            return True
        if words[0] in _INTERPRETERS and len(words) > 1:
            return self._is_path(words[1]) and self._all_harmless(words[2:])
        return words[0].startswith("./") and self._is_path(words[0]) and self._all_harmless(words[1:])

    def _named_task(self, words: list[str]) -> bool | None:
        """For runners of named tasks whether the task exists; None for other programs."""
        program, rest = words[0], [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        if program in ("make", "just"):
            return bool(rest) and all(word in self._tasks[program] for word in rest)
        if program in _NODE:
            if not rest or not self._scan.has("package.json"):
                return False
            task = rest[1] if rest[0] == "run" and len(rest) > 1 else rest[0]
            return task in self._tasks["npm"] or (task in _BUILT_IN and len(rest) == 1)
        if program == "tox" and rest:
            return all(word in self._tasks["tox"] for word in rest)
        return None

    def _extends_evident(self, words: list[str]) -> bool:
        return any(
            words[: len(evident)] == evident and self._all_harmless(words[len(evident) :])
            for evident in self._evident
            if evident
        )

    def _all_harmless(self, words: Iterable[str]) -> bool:
        """Options and paths that exist."""
        return all(word.startswith("-") or self._is_path(word) for word in words)

    def _is_path(self, word: str) -> bool:
        path = word.partition("::")[0].removeprefix("./").rstrip("/")
        return path in ("", ".") or self._scan.has(path) or path in self._scan.directories


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _scripts(scan: Scan) -> Iterable[str]:
    try:
        data: Any = json.loads(scan.text("package.json") or "{}")
    except (ValueError, RecursionError):
        return ()
    return table(data, "scripts").keys()
