"""``ecosystems.toml`` decoded: facts about languages, manifests, task files and file names."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

Purpose = Literal["install", "build", "test", "test_one", "lint", "format", "types", "run"]


class Rule(Struct, frozen=True):
    """Commands of the first file that matches ``file`` and contains ``text``, if another matches ``beside``."""

    file: str
    commands: dict[Purpose, str]
    text: str = ""
    beside: str = ""


class Language(Struct, frozen=True):
    """Present if a file matches ``manifest`` or ``sources``. ``variant`` is its name if a file matches the pattern.
    ``runners`` are patterns of files with the program that runs others in the project's environment, which has those
    that ``declares`` finds in a manifest."""

    manifest: str
    rules: tuple[Rule, ...]
    name: str = ""
    tests: str = ""
    variant: tuple[str, str] = ("", "")
    sources: str = ""
    runners: tuple[tuple[str, str], ...] = ()
    declares: str = ""


class TaskFile(Struct, frozen=True):
    """``names`` finds the names of tasks in ``file``; without it they are the keys of its ``scripts``. Where
    ``installs_itself`` is found, the task "install" is no preparation."""

    runner: str
    file: str
    names: str = ""
    installs_itself: str = ""
    built_in: frozenset[str] = frozenset()


class Ecosystems(Struct, frozen=True):
    manifests: tuple[tuple[str, str, str], ...]
    commands: tuple[str, ...]
    purposes: dict[Purpose, str]
    tasks: dict[Purpose, tuple[str, ...]]
    vague_tasks: dict[Purpose, tuple[str, ...]]
    task_files: tuple[TaskFile, ...]
    key_files: dict[str, str]
    dependency_lines: dict[str, str]
    name_lines: dict[str, str]
    folders: dict[Literal["generated", "often_generated", "hidden"], frozenset[str]]
    words: dict[
        Literal["file_endings", "programs", "interpreters", "runners", "preparations", "outward"], frozenset[str]
    ]
    ci: str
    written_in: dict[str, str]
    variants: dict[str, str]
    languages: tuple[Language, ...]


@cache
def ecosystems() -> Ecosystems:
    text = Path(__file__).with_name("ecosystems.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=Ecosystems)
