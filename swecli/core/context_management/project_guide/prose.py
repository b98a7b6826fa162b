"""What a model writes about a project, and the check that it names nothing that is not there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from swecli.core.context_management.project_facts.collect import ProjectReader
from swecli.core.context_management.project_facts.values import table, text, texts
from swecli.core.context_management.project_guide.mentions import Mentions

_MAX_TEXT = 900
_MAX_LINE = 220


@dataclass(frozen=True, slots=True)
class Prose:
    """The model's part of the guide. ``dropped`` counts statements that named something unknown."""

    project: str = ""
    overview: str = ""
    rules: tuple[str, ...] = ()
    key_files: Mapping[str, str] = field(default_factory=lambda: {})
    patterns: Mapping[str, str] = field(default_factory=lambda: {})
    dependencies: Mapping[str, str] = field(default_factory=lambda: {})
    dropped: int = 0


def parse_prose(answer: str, project: ProjectReader) -> Prose:
    """Read a model's JSON answer. What is invalid, too long or names an unknown path or command is left out;
    an answer that is no JSON object gives empty prose."""
    data = _json_object(answer)
    check = Mentions(project)
    project_line, overview = text(data.get("project")), _paragraphs(data.get("overview"))
    rules = [text(rule).lstrip("-* ") for rule in texts(data.get("rules"))]
    facts = project.facts
    dependencies = {dependency.name.lower() for dependency in facts.dependencies}
    counted = _Counted()
    return Prose(
        project=counted.one(project_line, lambda line: len(line) <= _MAX_TEXT and check.holds(line)),
        overview=counted.one(overview, lambda value: len(value) <= 2 * _MAX_TEXT and check.holds(value)),
        rules=tuple(
            rule for rule in rules if counted.one(rule, lambda line: len(line) <= _MAX_LINE and check.holds(line))
        )[:8],
        key_files=counted.pairs(data.get("key_files"), lambda path, why: facts.has(path) and check.holds(why), 12),
        patterns=counted.pairs(data.get("patterns"), lambda name, where: check.holds(name) and check.shows(where), 6),
        dependencies=counted.pairs(
            data.get("dependencies"), lambda name, why: name.lower() in dependencies and check.holds(why), 8
        ),
        dropped=counted.dropped,
    )


class _Counted:
    """Keeps what passes a test and counts what does not."""

    def __init__(self) -> None:
        self.dropped = 0

    def one(self, value: str, good: Callable[[str], bool]) -> str:
        if not value or good(value):
            return value
        self.dropped += 1
        return ""

    def pairs(self, value: Any, good: Callable[[str, str], bool], limit: int) -> dict[str, str]:
        kept: dict[str, str] = {}
        for name, raw in table(value).items():
            about = text(raw)
            name = name.strip().strip("`")
            if about and len(about) <= _MAX_LINE and len(name) <= 80 and "\n" not in name and good(name, about):
                kept[name] = about
            else:
                self.dropped += 1
        return dict(list(kept.items())[:limit])


def _paragraphs(value: Any) -> str:
    lines = value.split("\n\n") if isinstance(value, str) else texts(value)
    return "\n\n".join(line for line in (text(piece) for piece in lines) if line)


def _json_object(answer: str) -> Mapping[str, Any]:
    """The outermost object of an answer that may have a fence or words around it."""
    start, end = answer.find("{"), answer.rfind("}")
    if start < 0 or end < start:
        return {}
    try:
        return table(json.loads(answer[start : end + 1]))
    except (ValueError, RecursionError):
        return {}
