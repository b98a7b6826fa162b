"""The model's part of the guide: the facts as a question, and the answer without what names nothing that exists."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from swecli.commands.init.manifests import one_line, table, texts
from swecli.commands.init.project import Project

FULL_CHARS = 24_000
LEAN_CHARS = 9_000
_MAX_TEXT = 900
_MAX_LINE = 220


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
