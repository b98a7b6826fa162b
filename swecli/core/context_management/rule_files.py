"""Rule files: instructions in folders of other agents, each with a condition in its front matter.

A rule applies always, when a file that its globs match is read or changed, when the model finds that its description
fits, or only when the user mentions its file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from msgspec import Struct

from swecli.core.braces import without_braces
from swecli.core.config.trust import RULE_FOLDERS
from swecli.core.extensions.front_matter import FrontMatter, Problem, read_front_matter
from swecli.core.permissions.rules import glob_spec
from swecli.core.workspace.command_output import as_read
from swecli.core.workspace.walk import is_simple
from swecli.figures import cut

When = Literal["always", "matching", "described", "mentioned"]

MOST_RULES = 200
"""Files read from one folder of rules."""
MOST_OFFERED = 40
"""Rules that the prompt names with their descriptions."""
_DEEPEST = 4
_LONGEST = 200
"""Characters of a description in the prompt, and of a glob."""
_MOST_GLOBS = 100
_SUFFIXES = {
    ".github/instructions": (".instructions.md",),
    ".cursor/rules": (".mdc", ".md"),
    ".clinerules": (".md", ".txt"),
}
_NO_RULES = frozenset(("workflows", "skills", "hooks"))
"""Folders inside those of Cline that hold other things."""
_UNCONDITIONAL = frozenset((".claude/rules", ".clinerules"))
"""Folders in which a file without a condition applies always, as their agents have it."""
_GLOB_FIELDS = ("globs", "paths", "applyTo")
_EVERYTHING = frozenset(("*", "**", "**/*", "/**", "./**"))
_TRIGGERS: dict[str, When] = {"always_on": "always", "model_decision": "described", "manual": "mentioned"}
"""Values of Windsurf's field ``trigger``; the remaining one, ``glob``, says what ``globs`` says."""


class RuleFile(Struct, frozen=True):
    """``name`` is the path relative to the project's root, ``base`` the folder to which ``globs`` are relative."""

    path: Path
    name: str
    base: Path
    when: When
    globs: tuple[str, ...] = ()
    description: str = ""

    def matches(self, path: Path) -> bool:
        """Whether the globs match this absolute path. They follow gitignore: without a slash, in every folder. Those
        with too many wildcards match nothing, as in a repository's ignore files."""
        if not path.is_relative_to(self.base):
            return False
        relative = path.relative_to(self.base).as_posix()
        for glob in self.globs:
            bare = glob.removeprefix("./")
            try:
                if all(map(is_simple, without_braces(bare))) and glob_spec(bare).match_file(relative):
                    return True
            except ValueError:  # not a pattern, so it matches nothing
                continue
        return False


def rule_paths(directory: Path) -> Iterator[tuple[str, list[Path]]]:
    """The folders of rules in this directory, each with its files in order."""
    for folder in RULE_FOLDERS:
        rules_folder = directory / folder
        if os.path.isdir(rules_folder):
            files = (path for path in _walk(rules_folder, 0) if path.name.endswith(_SUFFIXES.get(folder, (".md",))))
            yield folder, list(islice(files, MOST_RULES + 1))


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                (entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name[0] != "."
            )
    except OSError:
        return
    for name, is_folder in names:
        if not is_folder:
            yield folder / name
        elif depth < _DEEPEST and name not in _NO_RULES:
            yield from _walk(folder / name, depth + 1)


def read_rule(text: str, path: Path, name: str, base: Path, folder: str) -> tuple[RuleFile, str, Sequence[Problem]]:
    """The rule in a file of ``base / folder``, its text without the front matter, and problems with that."""
    front = read_front_matter(text)
    globs, description = _globs(front), front.text("description")
    when: When = "always" if folder in _UNCONDITIONAL else "described" if description else "mentioned"
    trigger = _TRIGGERS.get(front.text("trigger"))
    if "coding-agent" in (front.words("excludeAgent") or ()):
        when = "mentioned"
    elif front.flag("alwaysApply") or any(glob in _EVERYTHING for glob in globs):
        when = "always"
    elif trigger is not None:
        when = trigger
    elif globs:
        when = "matching"
    rule = RuleFile(path, name, base, when, globs if when == "matching" else (), description)
    return rule, front.body, front.problems


def _globs(front: FrontMatter) -> tuple[str, ...]:
    """The globs of the first field that has some; both YAML lists and texts with commas are in use."""
    for field in _GLOB_FIELDS:
        if words := front.words(field):
            bare = (word.strip("\"'") for word in words)
            return tuple(word for word in bare if len(word) <= _LONGEST)[:_MOST_GLOBS]
    return ()


def offered_lines(rules: list[RuleFile]) -> list[str]:
    """A line for each rule that the model chooses by its description."""
    lines = [
        f"- {rule.name}: {cut(as_read(rule.description or rule.path.stem), _LONGEST)}" for rule in rules[:MOST_OFFERED]
    ]
    more = len(rules) - MOST_OFFERED
    return [*lines, f"- and {more} more in the same folders"] if more > 0 else lines
