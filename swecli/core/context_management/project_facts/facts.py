"""What is known of a project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Purpose = Literal["install", "build", "test", "test_one", "lint", "format", "types", "run"]

PURPOSES: tuple[tuple[Purpose, str], ...] = (
    ("install", "Install"),
    ("build", "Build"),
    ("test", "Test"),
    ("test_one", "Test one file"),
    ("lint", "Lint"),
    ("format", "Format"),
    ("types", "Check types"),
    ("run", "Run"),
)
"""Each purpose with its name for readers, in reading order."""


@dataclass(frozen=True, slots=True)
class ProjectCommand:
    """A command that the project's files define. ``source`` is the file, ``target`` the name in it (a make
    target, a script) where there is one."""

    purpose: Purpose
    command: str
    source: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A file worth knowing. ``why`` is a short phrase."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Dependency:
    """A direct dependency as a manifest states it. ``version`` is the manifest's own text, often empty."""

    name: str
    version: str
    source: str


@dataclass(frozen=True, slots=True)
class Findings:
    """What one kind of file says. The pieces of all kinds are put together in order."""

    name: str = ""
    description: str = ""
    languages: tuple[str, ...] = ()
    commands: tuple[ProjectCommand, ...] = ()
    key_files: tuple[KeyFile, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    patterns: tuple[tuple[str, str], ...] = ()
    """Name of the pattern, and where it is seen."""


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """Everything together. ``commands`` has at most one for each purpose and ``others`` the rest; paths are
    relative to the project with forward slashes; ``complete`` is False when a bound cut the reading short."""

    name: str
    description: str
    languages: tuple[str, ...]
    commands: tuple[ProjectCommand, ...]
    others: tuple[ProjectCommand, ...]
    key_files: tuple[KeyFile, ...]
    dependencies: tuple[Dependency, ...]
    patterns: tuple[tuple[str, str], ...]
    structure: tuple[str, ...]
    outline: tuple[str, ...]
    readme: str
    agent_files: tuple[str, ...]
    """Instruction files of other agents that are there."""
    branch: str
    commit: str
    files: frozenset[str]
    directories: frozenset[str]
    complete: bool = True

    @property
    def empty(self) -> bool:
        return not self.files

    def has(self, path: str) -> bool:
        """Whether the project has this file or directory."""
        plain = path.removeprefix("./").rstrip("/")
        return plain in self.files or plain in self.directories
