"""The facts of a project as a question to a model."""

from __future__ import annotations

from collections.abc import Iterable

from swecli.core.context_management.project_facts.facts import ProjectFacts

FULL_CHARS = 24_000
LEAN_CHARS = 9_000


def question(facts: ProjectFacts, limit: int = FULL_CHARS) -> str:
    """Everything that the model may use, at most ``limit`` characters; what matters most comes first."""
    parts = [
        f"Name: {facts.name}",
        f"Description: {facts.description}" if facts.description else "",
        f"Languages: {', '.join(facts.languages)}" if facts.languages else "",
        _list("Commands", (f"{c.purpose}: {c.command} ({c.source})" for c in (*facts.commands, *facts.others[:12]))),
        _list("Key files", (f"{file.path}: {file.why}" for file in facts.key_files)),
        _list("Direct dependencies", (f"{d.name} {d.version}".strip() for d in facts.dependencies[:40])),
        _list("Structure", facts.structure),
        f"Start of the README:\n<readme>\n{facts.readme[: limit // 6]}\n</readme>" if facts.readme else "",
        _list("Source files: first line of documentation [what they define]", facts.outline),
        _list("All files", sorted(facts.files, key=lambda path: (path.count("/"), path))[:300]),
    ]
    text = "\n\n".join(part for part in parts if part)
    return text if len(text) <= limit else text[: text.rfind("\n", 0, limit)]


def _list(title: str, lines: Iterable[str]) -> str:
    found = [f"- {line}" for line in lines]
    return "\n".join([f"{title}:", *found]) if found else ""
