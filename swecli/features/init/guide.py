"""OPENCLI.md as sections: generated ones are renewed, hand-written or edited ones stay.

The last line of a generated guide is a comment that records, for each generated section, the beginning of the SHA-256
of its text. A section that no longer matches its record was edited by hand and is kept from then on; a missing recorded
section was removed on purpose and is not restored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field

from swecli.core.context_management.codebase import TOP, Section, sections
from swecli.core.context_management.counter import PieceEstimator
from swecli.core.llm.json_values import as_object
from swecli.features.init.ecosystems import ecosystems
from swecli.features.init.project import Project, one_line, parsed, texts
from swecli.features.init.scan import FILE_NAME
from swecli.lazy_pattern import lazy_pattern

MAX_TOKENS = 3_000
FULL_CHARS = 24_000
LEAN_CHARS = 9_000
_MAX_TEXT = 900
_MAX_LINE = 220

_RECORD = lazy_pattern(r"^<!-- swecli init:([^>]*)-->[ \t]*$", re.MULTILINE)
_SPAN = lazy_pattern(r"`([^`]+)`")
_PLACEHOLDER = lazy_pattern(r"\{\{(\w+)\}\}")
# Order of shortening when the guide is too long. Commands come last because an agent needs them most.
_SHORTEN = ("structure", "dependencies", "patterns", "key_files", "overview", "rules")


class Merged(NamedTuple):
    """Sections in their final order, keys of the generated ones, and keys of those that a person removed."""

    sections: tuple[Section, ...]
    generated: frozenset[str]
    removed: tuple[str, ...]

    def render(self) -> str:
        record = [f"{s.key}={_digest(s.text)}" for s in self.sections if s.key in self.generated]
        record += [f"{key}=removed" for key in self.removed]
        parts = [section.text for section in self.sections]
        return "\n\n".join([*parts, *([f"<!-- swecli init: {' '.join(record)} -->"] if record else [])]) + "\n"


class Guide(Struct, frozen=True):
    """The whole text of the file. ``kept`` names the sections that a person wrote or changed, or the sections added to
    a person's own file; ``tokens`` is an estimate."""

    text: str
    kept: tuple[str, ...]
    tokens: int


@cache
def template() -> str:
    return Path(__file__).with_name(f"{FILE_NAME}.template").read_text(encoding="utf-8")


def build_guide(project: Project, prose: Prose, existing: str, today: str) -> Guide:
    """The guide for ``project``. ``existing`` is the text of the present OPENCLI.md (empty without one), ``today`` a
    date. Generated sections are shortened until everything fits into ``MAX_TOKENS``; hand-written ones never are."""
    counter = PieceEstimator()
    values = _values(project, prose, today)
    while True:
        merged = merge(existing, _wanted(values, prose))
        text = merged.render()
        tokens = counter.count(text)
        longest = max(_SHORTEN, key=lambda name: sum(map(len, values[name])))
        if not values[longest]:
            longest = "commands"
        if tokens <= MAX_TOKENS or not values[longest]:
            preserved = tuple(section.key for section in merged.sections if section.key not in merged.generated)
            return Guide(text, preserved, tokens)
        values[longest] = values[longest][: len(values[longest]) // 2]


def improve_guide(project: Project, prose: Prose, existing: str, today: str, target: str = "") -> Guide:
    """A person's instructions, from the file ``target``, with additions: commands, patterns, rules and other agents'
    files that they lack. The existing text stays word for word."""
    old, record = split(existing)
    by_hand = "\n".join(section.text for section in old if record.get(section.key) != _digest(section.text))
    # An import or a mention leads an agent to what another file says.
    by_hand += "\n".join(project.scan.text(path) for path in project.agent_files if path != target and path in by_hand)
    values = _values(project, prose, today)
    missing = {
        name: [line for line in values[name] if (span := _SPAN.search(line)) and span[1] not in by_hand]
        for name in ("commands", "patterns")
    }
    missing["rules"] = [f"- {rule}" for rule in prose.rules if rule not in by_hand]
    missing["rules"] += _pointers(path for path in project.agent_files if path != target and path not in by_hand)
    merged = merge(existing, _wanted(missing, prose))
    text = merged.render() if merged.generated or record else existing
    return Guide(text, tuple(merged.generated), PieceEstimator().count(text))


def split(document: str) -> tuple[list[Section], dict[str, str]]:
    """The sections in order, and the record (key -> digest)."""
    words = [word.partition("=") for match in _RECORD.finditer(document) for word in match[1].split()]
    return sections(_RECORD.sub("", document)), {key: digest for key, _, digest in words}


def merge(existing: str, generated: Sequence[Section]) -> Merged:
    """Renew the generated sections of ``existing`` and keep all others in place.

    New sections follow the generated section that precedes them in ``generated``.
    """
    old, record = split(existing)
    fresh = {section.key: section for section in generated}
    present = {section.key for section in old}
    # Drops a generated section without facts.
    untouched = {section.key for section in old if record.get(section.key) == _digest(section.text)}
    result = [fresh.get(s.key, s) if s.key in untouched else s for s in old if s.key not in untouched - fresh.keys()]
    renewed = untouched & fresh.keys()
    removed = tuple(key for key in record if key not in present)
    before = TOP
    for section in generated:
        if section.key not in present and section.key not in removed:
            position = next((index + 1 for index, other in enumerate(result) if other.key == before), 0)
            result.insert(position, section)
            renewed.add(section.key)
        if any(other.key == section.key for other in result):
            before = section.key
    return Merged(tuple(result), frozenset(renewed), removed)


def fill(skeleton: str, values: Mapping[str, str]) -> list[Section]:
    """Substitute each placeholder; omits sections with only empty placeholders."""
    sections: list[Section] = []
    for section in split(skeleton)[0]:
        names = _PLACEHOLDER.findall(section.text)
        if not names or any(values.get(name) for name in names):
            text = _PLACEHOLDER.sub(lambda match: values.get(match[1], ""), section.text)
            sections.append(Section(section.key, re.sub(r"\n{3,}", "\n\n", text).strip()))
    return sections


def _wanted(values: Mapping[str, Sequence[str]], prose: Prose) -> list[Section]:
    """The generated sections without those that the user does not want."""
    filled = fill(template(), {name: "\n".join(lines) for name, lines in values.items()})
    return [section for section in filled if section.key == TOP or section.key not in prose.leave_out]


def _digest(text: str) -> str:
    """Eight hex digits of the SHA-256 of the text without white space at line ends."""
    plain = "\n".join(line.rstrip() for line in text.strip().splitlines())
    return sha256(plain.encode("utf-8", "replace")).hexdigest()[:8]


def _values(project: Project, prose: Prose, today: str) -> dict[str, list[str]]:
    described = prose.project or (project.description if project.names_only_known(project.description) else "")
    languages = f"Written in {', '.join(project.languages)}." if project.languages else ""
    state = f"Written on {today}" + (f" at commit {project.commit}" if project.commit else "")
    defined = [f"- {ecosystems().purposes[c.purpose]}: `{c.command}` (from `{c.source}`)" for c in project.commands]
    others = ", ".join(f"`{command.command}`" for command in project.others[:6])
    uses = [f"- {name}: {why}" for name, why in prose.dependencies.items()]
    return {
        "name": [project.name],
        "project": [line for line in (" ".join(described.split()), "", languages) if line or described],
        "overview": prose.overview.splitlines(),
        "commands": [*defined, *([f"- Also: {others}"] if others else []), *_of_ci(project)],
        "rules": [*(f"- {rule}" for rule in prose.rules), *_pointers(project.agent_files)],
        "key_files": [f"- `{path}`: {why}" for path, why in [*{**project.key_files, **prose.key_files}.items()][:16]],
        "patterns": [f"- {name}: {where}" for name, where in (prose.patterns or project.patterns).items()],
        "dependencies": uses or _dependencies(project, 12),
        "structure": [f"- {line}" for line in project.scan.structure()],
        "current_state": [state + (f" of branch {project.branch}." if project.branch and project.commit else ".")],
    }


def _of_ci(project: Project) -> Iterator[str]:
    """A line for each file of continuous integration with commands that no line above has."""
    for source in dict.fromkeys(command.source for command in project.ci):
        run = ", ".join(f"`{command.command}`" for command in project.ci if command.source == source)
        yield f"- CI also runs: {run} (from `{source}`)"


def _pointers(agent_files: Iterable[str]) -> Iterator[str]:
    for name in agent_files:
        yield f"- `{name}` has further instructions for agents; read it before you change code."


def _dependencies(project: Project, most: int) -> list[str]:
    """One line; no line without a dependency."""
    listed = [f"{name} {version}".strip() for name, version in project.dependencies.items()]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return [", ".join(listed[:most]) + more] if listed else []


class Prose(Struct, frozen=True):
    """Text from a model. ``leave_out`` are keys of unwanted sections; ``dropped`` counts statements that named
    something unknown."""

    project: str = ""
    overview: str = ""
    rules: tuple[str, ...] = ()
    key_files: Mapping[str, str] = field(default_factory=lambda: {})
    patterns: Mapping[str, str] = field(default_factory=lambda: {})
    dependencies: Mapping[str, str] = field(default_factory=lambda: {})
    leave_out: tuple[str, ...] = ()
    dropped: int = 0


def question(project: Project, limit: int = FULL_CHARS) -> str:
    """All facts for the model, at most ``limit`` characters, the most important first: the guide without its prose,
    then sources for the prose."""
    known = {**_values(project, Prose(), ""), "dependencies": _dependencies(project, 40), "current_state": []}
    files = sorted(project.scan.files, key=lambda path: (path.count("/"), path))[:300]
    outline = project.scan.outline()
    parts = [
        *(section.text for section in fill(template(), {name: "\n".join(lines) for name, lines in known.items()})),
        f"Start of the README:\n<readme>\n{project.readme[: limit // 6]}\n</readme>" if project.readme else "",
        "\n".join(["Source files: first line of documentation [what they define]", *outline]) if outline else "",
        "\n".join(["All files:", *files]),
    ]
    text = "\n\n".join(part for part in parts if part)
    return text if len(text) <= limit else text[: text.rfind("\n", 0, limit)]


def parse_prose(answer: str, project: Project) -> Prose:
    """Parse a model's JSON answer. Drops statements that are invalid, too long or name an unknown path or command; an
    answer that is not a JSON object gives empty prose."""
    # The object may be surrounded by a fence or text.
    data = parsed(json.loads, answer[answer.find("{") : answer.rfind("}") + 1])
    known = project.names_only_known
    dependencies = {name.lower() for name in project.dependencies}
    dropped = 0

    def checked(value: str, limit: int) -> str:
        nonlocal dropped
        good = not value or (len(value) <= limit and known(value))
        dropped += not good
        return value if good else ""

    def pairs(key: str, limit: int, good: Callable[[str, str], bool]) -> dict[str, str]:
        nonlocal dropped
        accepted: dict[str, str] = {}
        for raw, value in as_object(data.get(key)).items():
            name, about = raw.strip().strip("`"), one_line(value)
            if about and len(about) <= _MAX_LINE and len(name) <= 80 and "\n" not in name and good(name, about):
                accepted[name] = about
            else:
                dropped += 1
        return dict(list(accepted.items())[:limit])

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
        leave_out=tuple(section.key for title in texts(data.get("leave_out")) for section in sections(f"## {title}")),
        dropped=dropped,
    )
