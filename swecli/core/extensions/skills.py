"""Skills: instructions for one kind of task. The model knows their names and requests their text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from swecli.core.extensions.front_matter import FrontMatter, Problem, read_front_matter
from swecli.core.extensions.sources import FoundFile, Origin, as_name, is_name
from swecli.core.permissions.rules import RuleError, rule_pattern
from swecli.core.permissions.types import Rule
from swecli.figures import cut

SHARE = 0.02
"""Share of the context window for names and descriptions of all skills."""
LEAST_TOKENS = 300
CHARS = 4
"""Characters per token, for this budget."""
LONGEST = 1_024
"""Maximum characters of a description."""
_LEAST = 60
"""Characters that a shortened description keeps before any is left out."""
_FILES = 40
"""Maximum number of listed files beside a skill."""

KNOWN = frozenset(
    (
        *("name", "description", "license", "compatibility", "metadata", "allowed-tools"),
        *("argument-hint", "disable-model-invocation", "user-invocable", "model", "when_to_use", "when-to-use"),
        *("version", "author", "tags", "color"),
    )
)
"""Fields with an effect here, and fields that need none."""


class Skill(Struct, frozen=True):
    """``hint`` names its arguments. ``for_model`` and ``for_user`` tell who may use it. ``allow`` are rules for a turn
    that the user begins with it; ``model`` answers in that turn, empty for the usual one."""

    name: str
    description: str
    body: str
    origin: Origin
    hint: str = ""
    for_model: bool = True
    for_user: bool = True
    allow: tuple[str, ...] = ()
    model: str = ""
    compatibility: str = ""
    problems: tuple[Problem, ...] = ()


def read_skill(file: FoundFile) -> Skill:
    """The skill in a file, with its problems."""
    front = read_front_matter(file.text)
    problems = [*file.problems, *front.problems, *unknown_fields(front, KNOWN)]
    folder = file.stem[-1] if file.stem else ""
    name = front.text("name")
    if not is_name(name):
        if name:
            line = front.lines.get("name", 1)
            problems.append(Problem(line, f"{name!r} is not a skill's name; its folder's name is used"))
        name = as_name(folder) or "skill"
    description = described(front)
    if not front.text("description"):
        problems.append(Problem(1, "has no description; its first line is used"))
    when = front.text("when_to_use") or front.text("when-to-use")
    allow, bad = allowed_rules(front)
    problems += bad
    return Skill(
        name,
        f"{description} {when}".strip()[:LONGEST],
        front.body.strip("\n"),
        file.origin,
        hint_of(front),
        for_model=not front.flag("disable-model-invocation"),
        for_user=front.flag("user-invocable", True),
        allow=allow,
        model=model_of(front),
        compatibility=front.text("compatibility"),
        problems=tuple(problems),
    )


def described(front: FrontMatter) -> str:
    """The description, otherwise the first words of the body."""
    description = front.text("description")
    first = next((line.strip("# ") for line in front.body.split("\n") if line.strip("# ")), "")
    return (description or first)[:LONGEST]


def hint_of(front: FrontMatter) -> str:
    """The argument hint; YAML reads a bracketed hint as a list."""
    value = front.fields.get("argument-hint")
    if isinstance(value, list):
        return f"[{', '.join(word for word in value if isinstance(word, str))}]"
    return front.text("argument-hint")[:80]


def model_of(front: FrontMatter) -> str:
    model = front.text("model")
    return "" if model in ("inherit", "default") else model


def allowed_rules(front: FrontMatter) -> tuple[tuple[str, ...], list[Problem]]:
    """The permission rules in ``allowed-tools``, and problems with its other entries."""
    rules: list[str] = []
    problems: list[Problem] = []
    for text in front.words("allowed-tools") or ():
        try:
            rule_pattern(Rule("allow", text, "session"))
        except RuleError as error:
            problems.append(Problem(front.lines.get("allowed-tools", 1), f"allowed-tools: {text}: {error}"))
        else:
            rules.append(text)
    return tuple(rules), problems


def unknown_fields(front: FrontMatter, known: Iterable[str]) -> list[Problem]:
    """One sentence about fields without effect."""
    names = [name for name in front.fields if name not in known]
    if not names:
        return []
    line = min(front.lines.get(name, 1) for name in names)
    return [Problem(line, f"{', '.join(names[:8])} {'has' if len(names) == 1 else 'have'} no effect in swecli")]


# --- in the prompt ---

HEADING = (
    "# Skills\n\nSkills are instructions for certain tasks, from the user or this project. When a task fits a "
    "description below, call `skill` with its name before you start, and follow it."
)


def listing(skills: Sequence[Skill], window: int) -> str:
    """Names and descriptions for the system prompt, given the context window in tokens; empty without skills. Equal
    skills give equal bytes. If space is short, the longest descriptions are cut first, then skills at the end of the
    list keep only their names, and the last are left out with a note."""
    shown = sorted((skill for skill in skills if skill.for_model), key=lambda skill: skill.name)
    if not shown:
        return ""
    room = max(LEAST_TOKENS, int(window * SHARE)) * CHARS - len(HEADING) - 2
    names = sum(len(skill.name) + 5 for skill in shown)
    longest = longest_that_fit([len(skill.description) for skill in shown], room - names)
    lines = [f"- {skill.name}: {cut(skill.description, longest)}" for skill in shown]
    if longest == _LEAST:
        lines = _fitting(shown, lines, room)
    return "\n".join([HEADING, "", *lines])


def longest_that_fit(lengths: Sequence[int], room: int) -> int:
    """Length to which texts must be cut to fit together; shorter texts stay complete. At least ``_LEAST``."""
    left = room
    ordered = sorted(lengths)
    for at, length in enumerate(ordered):
        share = left // (len(ordered) - at)
        if length > share:
            return max(_LEAST, share)
        left -= length
    return LONGEST


def _fitting(skills: Sequence[Skill], lines: list[str], room: int) -> list[str]:
    shown: list[str] = []
    for number, (skill, line) in enumerate(zip(skills, lines, strict=True)):
        name = f"- {skill.name}"
        rest = len(skills) - number - 1
        if len(line) + 1 + 10 * min(rest, 20) <= room:
            shown.append(line)
        elif len(name) + 1 <= room - 80:
            shown.append(name)
        else:
            shown.append(f"- and {rest + 1} more: call `skill` with a word to find them")
            break
        room -= len(shown[-1]) + 1
    return shown


# --- when it is used ---


def instructions(skill: Skill, body: str) -> str:
    """The text of a used skill for the model. ``body`` has the arguments inserted."""
    files = beside(skill.origin.folder)
    listed = f"\nFiles in it: {', '.join(files)}" if files else ""
    needs = f"\nIt needs: {skill.compatibility}" if skill.compatibility else ""
    about = f"Relative paths in this skill are relative to its folder, {skill.origin.folder}.{listed}{needs}"
    return f'<skill name="{skill.name}">\n{about}\n\n{body.strip()}\n</skill>'


def beside(folder: Path) -> list[str]:
    """Names of other files in a skill's folder, up to the limit."""
    result: list[str] = []
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        relative = os.path.relpath(directory, folder)
        prefix = "" if relative == "." else f"{relative}/"
        result += (
            f"{prefix}{name}" for name in sorted(names) if not name.startswith(".") and prefix + name != "SKILL.md"
        )
        if len(result) > _FILES:
            return [*result[:_FILES], "…"]
    return result


def near(skills: Iterable[Skill], words: str) -> list[Skill]:
    """Skills whose name or description contains some of the words, best match first; at most 10."""
    wanted = {word for word in words.lower().replace("-", " ").split() if len(word) > 1}

    def hits(skill: Skill) -> int:
        text = f"{skill.name} {skill.description}".lower()
        return sum(word in text for word in wanted)

    ranked = sorted(((hits(skill), skill) for skill in skills), key=lambda pair: (-pair[0], pair[1].name))
    return [skill for count, skill in ranked if count][:10]
