"""Fills the template of OPENCLI.md from facts and prose, within a number of tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from swecli.core.context_management.counter import CountsTokens, PieceEstimator
from swecli.core.context_management.project_facts.collect import ProjectReader
from swecli.core.context_management.project_facts.facts import PURPOSES, ProjectFacts
from swecli.core.context_management.project_guide.document import Section, merge, split
from swecli.core.context_management.project_guide.mentions import Mentions
from swecli.core.context_management.project_guide.prose import Prose

MAX_TOKENS = 3_000
FILE_NAME = "OPENCLI.md"
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
# What is shortened when the guide is too long. The commands are what an agent needs most and come last.
_SHORTEN = ("structure", "dependencies", "patterns", "key_files", "overview", "rules")


@dataclass(frozen=True, slots=True)
class Guide:
    """The whole text of the file. ``kept`` names the sections that a person wrote or changed; ``tokens`` is an
    estimate."""

    text: str
    kept: tuple[str, ...]
    tokens: int


@cache
def template() -> str:
    """The skeleton that ships with the program."""
    return (files(__package__ or "") / f"{FILE_NAME}.template").read_text(encoding="utf-8")


def build_guide(
    project: ProjectReader, prose: Prose, existing: str, today: str, counter: CountsTokens | None = None
) -> Guide:
    """The guide for ``project``. ``existing`` is the text of the present OPENCLI.md (empty without one), ``today``
    a date. Generated sections are shortened until all fits into ``MAX_TOKENS``; hand-written ones never are."""
    counter = counter or PieceEstimator()
    facts = project.facts
    if not Mentions(project).holds(facts.description):
        facts = replace(facts, description="")
    values = _values(facts, prose, today)
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


def fill(skeleton: str, values: Mapping[str, str]) -> list[Section]:
    """Substitute each placeholder; a section whose placeholders are all empty is left out."""
    sections: list[Section] = []
    for section in split(skeleton)[0]:
        names = _PLACEHOLDER.findall(section.text)
        if names and not any(values.get(name) for name in names):
            continue
        text = _PLACEHOLDER.sub(lambda match: values.get(match.group(1), ""), section.text)
        sections.append(Section(section.key, re.sub(r"\n{3,}", "\n\n", text).strip()))
    return sections


def _values(facts: ProjectFacts, prose: Prose, today: str) -> dict[str, list[str]]:
    """Lines for each placeholder."""
    described = prose.project or facts.description
    languages = f"Written in {', '.join(facts.languages)}." if facts.languages else ""
    state = f"Written on {today}" + (f" at commit {facts.commit}" if facts.commit else "")
    return {
        "name": [facts.name],
        "project": [line for line in (_one_line(described), "", languages) if line or described],
        "overview": prose.overview.splitlines(),
        "commands": _commands(facts),
        "rules": [*(f"- {rule}" for rule in prose.rules), *_agent_files(facts)],
        "key_files": _key_files(facts, prose),
        "patterns": [f"- {name}: {where}" for name, where in (prose.patterns or dict(facts.patterns)).items()],
        "dependencies": _dependencies(facts, prose),
        "structure": [f"- {line}" for line in facts.structure],
        "current_state": [state + (f" of branch {facts.branch}." if facts.branch and facts.commit else ".")],
    }


def _commands(facts: ProjectFacts) -> list[str]:
    names = dict(PURPOSES)
    lines = [f"- {names[command.purpose]}: `{command.command}` (from `{command.source}`)" for command in facts.commands]
    more = [f"`{command.command}`" for command in facts.others[:6]]
    return [*lines, *([f"- Also: {', '.join(more)}"] if more else [])]


def _agent_files(facts: ProjectFacts) -> list[str]:
    return [
        f"- `{name}` has further instructions for agents; read it before you change code." for name in facts.agent_files
    ]


def _key_files(facts: ProjectFacts, prose: Prose) -> list[str]:
    told = {**{file.path: file.why for file in facts.key_files}, **prose.key_files}
    return [f"- `{path}`: {why}" for path, why in list(told.items())[:16]]


def _dependencies(facts: ProjectFacts, prose: Prose) -> list[str]:
    if prose.dependencies:
        return [f"- {name}: {why}" for name, why in prose.dependencies.items()]
    listed = [f"{d.name} {d.version}".strip() for d in facts.dependencies[:12]]
    more = len(facts.dependencies) - len(listed)
    return [", ".join(listed) + (f" and {more} more" if more > 0 else "")] if listed else []


def _one_line(text: str) -> str:
    return " ".join(text.split())
