"""OPENCLI.md as sections: what was generated is renewed, what a person wrote or changed stays.

The last line of a generated guide is a comment that records, for each generated section, the beginning of the
SHA-256 of its text. A section whose text no longer fits its record was edited by hand and is kept from then on; a
recorded section that is gone was removed on purpose and is not put back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

from swecli.commands.init.project import PURPOSES, Manifests, Project, one_line, table, texts
from swecli.commands.init.scan import FILE_NAME
from swecli.core.context_management.counter import CountsTokens, PieceEstimator

MAX_TOKENS = 3_000
FULL_CHARS = 24_000
LEAN_CHARS = 9_000
_MAX_TEXT = 900
_MAX_LINE = 220

_RECORD = re.compile(r"^<!-- swecli init:([^>]*)-->[ \t]*$", re.MULTILINE)
_HEADING = re.compile(r"^## +(.+?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_TOP = "top"
"""Key of what stands before the first section: title and first paragraph."""
# What is shortened when the guide is too long. The commands are what an agent needs most and come last.
_SHORTEN = ("structure", "dependencies", "patterns", "key_files", "overview", "rules")


class Section(NamedTuple):
    """``key`` is the heading in a form to compare by; ``text`` the whole section with its heading."""

    key: str
    text: str


class Merged(NamedTuple):
    """Sections in their final order, keys of those that are generated, and of those that a person took out."""

    sections: tuple[Section, ...]
    generated: frozenset[str]
    removed: tuple[str, ...]

    def render(self) -> str:
        record = [f"{s.key}={_digest(s.text)}" for s in self.sections if s.key in self.generated]
        record += [f"{key}=removed" for key in self.removed]
        parts = [section.text for section in self.sections]
        return "\n\n".join([*parts, *([f"<!-- swecli init: {' '.join(record)} -->"] if record else [])]) + "\n"


@dataclass(frozen=True, slots=True)
class Guide:
    """The whole text of the file. ``kept`` names the sections that a person wrote or changed; ``tokens`` is an
    estimate."""

    text: str
    kept: tuple[str, ...]
    tokens: int


@cache
def template() -> str:
    return (files(__package__ or "") / f"{FILE_NAME}.template").read_text(encoding="utf-8")


def build_guide(
    project: Project, prose: Prose, existing: str, today: str, counter: CountsTokens | None = None
) -> Guide:
    """The guide for ``project``. ``existing`` is the text of the present OPENCLI.md (empty without one), ``today``
    a date. Generated sections are shortened until all fits into ``MAX_TOKENS``; hand-written ones never are."""
    counter = counter or PieceEstimator()
    values = _values(project, prose, today)
    while True:
        merged = merge(existing, fill(template(), {name: "\n".join(lines) for name, lines in values.items()}))
        text = merged.render()
        tokens = counter.count(text)
        longest = max(_SHORTEN, key=lambda name: sum(map(len, values[name])))
        if not values[longest]:
            longest = "commands"
        if tokens <= MAX_TOKENS or not values[longest]:
            kept = tuple(section.key for section in merged.sections if section.key not in merged.generated)
            return Guide(text, kept, tokens)
        values[longest] = values[longest][: len(values[longest]) // 2]


def split(document: str) -> tuple[list[Section], dict[str, str]]:
    """The sections in order, and the record (key -> digest)."""
    words = [word.partition("=") for match in _RECORD.finditer(document) for word in match[1].split()]
    sections: list[Section] = []
    key, lines, fence = _TOP, list[str](), ""
    for line in _RECORD.sub("", document).splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark[1]
        heading = None if fence or mark else _HEADING.match(line)
        if heading:
            sections.append(Section(key, "\n".join(lines).strip()))
            key, lines = re.sub(r"\W+", "-", heading[1].lower()).strip("-"), []
        lines.append(line)
    sections.append(Section(key, "\n".join(lines).strip()))
    return [section for section in sections if section.text], {key: digest for key, _, digest in words}


def merge(existing: str, generated: Sequence[Section]) -> Merged:
    """Renew the generated sections of ``existing`` and keep all others where they are.

    New sections come after the generated section that precedes them in ``generated``.
    """
    old, record = split(existing)
    fresh = {section.key: section for section in generated}
    present = {section.key for section in old}
    # A generated section for which there are no facts any more is dropped.
    untouched = {section.key for section in old if record.get(section.key) == _digest(section.text)}
    result = [fresh.get(s.key, s) if s.key in untouched else s for s in old if s.key not in untouched - fresh.keys()]
    renewed = untouched & fresh.keys()
    removed = tuple(key for key in record if key not in present)
    before = _TOP
    for section in generated:
        if section.key not in present and section.key not in removed:
            place = next((index + 1 for index, other in enumerate(result) if other.key == before), 0)
            result.insert(place, section)
            renewed.add(section.key)
        if any(other.key == section.key for other in result):
            before = section.key
    return Merged(tuple(result), frozenset(renewed), removed)


def fill(skeleton: str, values: Mapping[str, str]) -> list[Section]:
    """Substitute each placeholder; a section whose placeholders are all empty is left out."""
    sections: list[Section] = []
    for section in split(skeleton)[0]:
        names = _PLACEHOLDER.findall(section.text)
        if not names or any(values.get(name) for name in names):
            text = _PLACEHOLDER.sub(lambda match: values.get(match[1], ""), section.text)
            sections.append(Section(section.key, re.sub(r"\n{3,}", "\n\n", text).strip()))
    return sections


def _digest(text: str) -> str:
    """Eight hex digits of the SHA-256 of the text without white space at line ends."""
    plain = "\n".join(line.rstrip() for line in text.strip().splitlines())
    return sha256(plain.encode("utf-8", "replace")).hexdigest()[:8]


def _values(project: Project, prose: Prose, today: str) -> dict[str, list[str]]:
    found = project.manifests
    described = prose.project or (found.description if project.names_only_known(found.description) else "")
    languages = f"Written in {', '.join(found.languages)}." if found.languages else ""
    state = f"Written on {today}" + (f" at commit {project.commit}" if project.commit else "")
    defined = [f"- {PURPOSES[c.purpose]}: `{c.command}` (from `{c.source}`)" for c in project.commands]
    others = ", ".join(f"`{command.command}`" for command in project.others[:6])
    agents = [
        f"- `{name}` has further instructions for agents; read it before you change code."
        for name in project.agent_files
    ]
    return {
        "name": [project.name],
        "project": [line for line in (" ".join(described.split()), "", languages) if line or described],
        "overview": prose.overview.splitlines(),
        "commands": [*defined, *([f"- Also: {others}"] if others else [])],
        "rules": [*(f"- {rule}" for rule in prose.rules), *agents],
        "key_files": [f"- `{path}`: {why}" for path, why in list({**found.key_files, **prose.key_files}.items())[:16]],
        "patterns": [f"- {name}: {where}" for name, where in (prose.patterns or found.patterns).items()],
        "dependencies": _dependencies(found, prose),
        "structure": [f"- {line}" for line in project.scan.structure()],
        "current_state": [state + (f" of branch {project.branch}." if project.branch and project.commit else ".")],
    }


def _dependencies(found: Manifests, prose: Prose) -> list[str]:
    if prose.dependencies:
        return [f"- {name}: {why}" for name, why in prose.dependencies.items()]
    listed = [f"{name} {version}".strip() for name, version in list(found.dependencies.items())[:12]]
    more = len(found.dependencies) - len(listed)
    return [", ".join(listed) + (f" and {more} more" if more > 0 else "")] if listed else []


@dataclass(frozen=True, slots=True)
class Prose:
    """What a model wrote. ``dropped`` counts statements that named something unknown."""

    project: str = ""
    overview: str = ""
    rules: tuple[str, ...] = ()
    key_files: Mapping[str, str] = field(default_factory=lambda: {})
    patterns: Mapping[str, str] = field(default_factory=lambda: {})
    dependencies: Mapping[str, str] = field(default_factory=lambda: {})
    dropped: int = 0


def question(project: Project, limit: int = FULL_CHARS) -> str:
    """Everything that the model may use, at most ``limit`` characters; what matters most comes first."""
    found = project.manifests
    dependencies = [f"{name} {version}".strip() for name, version in found.dependencies.items()]
    parts = [
        f"Name: {project.name}",
        f"Description: {found.description}" if found.description else "",
        f"Languages: {', '.join(found.languages)}" if found.languages else "",
        _list(
            "Commands", [f"{c.purpose}: {c.command} ({c.source})" for c in (*project.commands, *project.others[:12])]
        ),
        _list("Key files", [f"{path}: {why}" for path, why in found.key_files.items()]),
        _list("Direct dependencies", dependencies[:40]),
        _list("Structure", project.scan.structure()),
        f"Start of the README:\n<readme>\n{found.readme[: limit // 6]}\n</readme>" if found.readme else "",
        _list("Source files: first line of documentation [what they define]", project.scan.outline()),
        _list("All files", sorted(project.scan.files, key=lambda path: (path.count("/"), path))[:300]),
    ]
    text = "\n\n".join(part for part in parts if part)
    return text if len(text) <= limit else text[: text.rfind("\n", 0, limit)]


def _list(title: str, lines: Iterable[str]) -> str:
    listed = [f"- {line}" for line in lines]
    return "\n".join([f"{title}:", *listed]) if listed else ""


def parse_prose(answer: str, project: Project) -> Prose:
    """Read a model's JSON answer. What is invalid, too long or names an unknown path or command is left out;
    an answer that is no JSON object gives empty prose."""
    data = _json_object(answer)
    known = project.names_only_known
    dependencies = {name.lower() for name in project.manifests.dependencies}
    dropped = 0

    def checked(value: str, limit: int) -> str:
        nonlocal dropped
        good = not value or (len(value) <= limit and known(value))
        dropped += not good
        return value if good else ""

    def pairs(key: str, limit: int, good: Callable[[str, str], bool]) -> dict[str, str]:
        nonlocal dropped
        kept: dict[str, str] = {}
        for raw, value in table(data, key).items():
            name, about = raw.strip().strip("`"), one_line(value)
            if about and len(about) <= _MAX_LINE and len(name) <= 80 and "\n" not in name and good(name, about):
                kept[name] = about
            else:
                dropped += 1
        return dict(list(kept.items())[:limit])

    overview = data.get("overview")
    paragraphs = overview.split("\n\n") if isinstance(overview, str) else texts(overview)
    rules = [checked(one_line(rule).lstrip("-* "), _MAX_LINE) for rule in texts(data.get("rules"))]
    return Prose(
        project=checked(one_line(data.get("project")), _MAX_TEXT),
        overview=checked("\n\n".join(filter(None, map(one_line, paragraphs))), 2 * _MAX_TEXT),
        rules=tuple(filter(None, rules))[:8],
        key_files=pairs("key_files", 12, lambda path, why: project.has(path) and known(why)),
        patterns=pairs("patterns", 6, lambda name, where: known(name) and project.shows_where(where)),
        dependencies=pairs("dependencies", 8, lambda name, why: name.lower() in dependencies and known(why)),
        dropped=dropped,
    )


def _json_object(answer: str) -> Mapping[str, Any]:
    """The outermost object of an answer that may have a fence or words around it."""
    try:
        return table(json.loads(answer[answer.find("{") : answer.rfind("}") + 1]))
    except (ValueError, RecursionError):
        return {}
