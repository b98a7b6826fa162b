"""``ecosystems.toml`` decoded: facts about languages, manifests, task files and file names."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

Purpose = Literal["install", "build", "test", "test_one", "lint", "format", "types", "run"]


class Rule(Struct, frozen=True):
    """Commands of the first file that matches ``file`` and contains ``text`` (with ``is_class``, the language's
    ``test_class``), if another matches ``beside``."""

    file: str
    commands: dict[Purpose, str]
    text: str = ""
    beside: str = ""
    is_class: bool = False


class Language(Struct, frozen=True):
    """Present if a file matches ``manifest``, or ``sources`` in a project mostly written in it. ``variant`` is its name
    if a file matches the pattern. ``tests_else`` finds tests if ``tests`` finds none; ``test_class`` finds the class of
    a test that can be run by its name.
    ``runners`` are patterns of files with the program that runs others in the project's environment, which has those
    that ``declares`` finds in a manifest."""

    manifest: str
    rules: tuple[Rule, ...]
    name: str = ""
    tests: str = ""
    tests_else: str = ""
    test_class: str = ""
    variant: tuple[str, str] = ("", "")
    sources: str = ""
    runners: tuple[tuple[str, str], ...] = ()
    declares: str = ""


class TaskFile(Struct, frozen=True):
    """``names`` finds the names of tasks in ``file``; without it they are those of its table ``keys``. ``not_meant``
    maps a task to a pattern; where it is found, the task has another purpose than its name says. ``languages`` are
    those whose projects the runner is for (all, if empty)."""

    runner: str
    file: str
    names: str = ""
    keys: str = "scripts"
    languages: frozenset[str] = frozenset()
    not_meant: dict[str, str] = {}
    built_in: frozenset[str] = frozenset()


class Ecosystems(Struct, frozen=True):
    manifests: tuple[tuple[str, str, str], ...]
    commands: tuple[str, ...]
    purposes: dict[Purpose, str]
    tasks: dict[Purpose, tuple[str, ...]]
    vague_tasks: dict[Purpose, tuple[str, ...]]
    task_files: tuple[TaskFile, ...]
    key_files: dict[str, str]
    part_files: dict[str, str]
    package_runners: dict[str, str]
    dependency_lines: dict[str, str]
    name_lines: dict[str, str]
    folders: dict[Literal["generated", "often_generated", "hidden"], frozenset[str]]
    words: dict[
        Literal["file_endings", "programs", "interpreters", "runners", "preparations", "outward", "nameless"],
        frozenset[str],
    ]
    ci: str
    ci_first: str
    written_in: dict[str, str]
    variants: dict[str, str]
    languages: tuple[Language, ...]


@cache
def ecosystems() -> Ecosystems:
    text = Path(__file__).with_name("ecosystems.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=Ecosystems)
