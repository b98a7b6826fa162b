"""The commands that a project names: in its manifests, task files, CI and docs. A command that worked once is a way of
this project only if the project says so, or if it is run again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

from swecli.core.playbook.commands import RUN_TARGETS, parsed, shown

_FILES: Final = (
    *("Makefile", "GNUmakefile", "makefile", "justfile", "Justfile", "Taskfile.yml", "Taskfile.yaml", "package.json"),
    *("pyproject.toml", "tox.ini", "noxfile.py", "setup.cfg", "tasks.py", "Rakefile", "Cargo.toml", "composer.json"),
    *("deno.json", "build.gradle", "build.gradle.kts", "pom.xml", "CMakeLists.txt", "mix.exs", "docker-compose.yml"),
    *("compose.yaml", ".gitlab-ci.yml", "azure-pipelines.yml", "Jenkinsfile", ".travis.yml", ".pre-commit-config.yaml"),
    *("AGENTS.md", "CLAUDE.md", "OPENCLI.md", "GEMINI.md", "CONTRIBUTING.md", "DEVELOPMENT.md", "HACKING.md"),
)
_PATTERNS: Final = ("README*", ".github/workflows/*.y*ml", ".circleci/*.yml", "docs/*.md", "docs/*.rst", "scripts/*")
_MOST_FILES: Final = 80
_MOST_BYTES: Final = 200_000
"""Read of one file."""
_NOT_A_TARGET: Final = frozenset(("run", "test", "exec", "task", "-e", "-s", "-C", "-r"))


class ProjectCommands:
    """Reads the files at the first question. Blocking: not for the event loop."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def name(self, command: str) -> bool:
        """Whether a file of the project has this command, or declares the target that it runs, or is what it runs."""
        words = parsed(command).words
        program, plain = next(iter(words), ""), " ".join(words)
        if not program:
            return False
        forms = (plain, shown(command)) if len(words) > 1 else (f"`{plain}`", f'"{plain}"')  # one word may be prose
        if any(form in text for text in self._texts for form in forms):
            return True
        if program in RUN_TARGETS:
            targets = [word for word in words[1:] if not word.startswith("-") and word not in _NOT_A_TARGET]
            return any(_declares(text, target) for target in targets for text in self._texts)
        return program.startswith("./") and os.path.isfile(self._root / program)

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        texts: list[str] = []
        for path in self._paths():
            try:
                with path.open("rb") as file:
                    texts.append(" ".join(file.read(_MOST_BYTES).decode("utf-8", "replace").split()))
            except OSError:
                continue
        return tuple(texts)

    def _paths(self) -> Iterator[Path]:
        paths = [path for name in _FILES if os.path.isfile(path := self._root / name)]
        for pattern in _PATTERNS:
            paths += (path for path in sorted(self._root.glob(pattern)) if os.path.isfile(path))
        yield from paths[:_MOST_FILES]


def _declares(text: str, target: str) -> bool:
    """Whether a file, its blanks joined, declares a target: as a rule, a script or an environment."""
    name = re.escape(target)
    return re.search(rf'(?<![\w-]){name}(?: [\w*+-]+)?:|"{name}":|testenv:{name}\b|\bdef {name}\(', text) is not None
