"""What the README says in its first lines, and the commands in its shell blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from swecli.core.context_management.project_facts.facts import Findings, KeyFile, ProjectCommand
from swecli.core.context_management.project_facts.purpose import purpose_of
from swecli.core.context_management.project_facts.scan import Scan

_NAMES = ("README.md", "README.rst", "README.txt", "README", "Readme.md", "readme.md", "docs/README.md")
_FENCE = re.compile(r"^```(?:sh|bash|shell|console|text)?[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_RUNS_A_FILE = re.compile(r"(?:python3?|node|ruby|sh|bash|\./)\s?(?P<path>[\w./-]+)$")


def readme_path(scan: Scan) -> str | None:
    return scan.first(*_NAMES)


def read_readme(scan: Scan) -> Findings:
    path = readme_path(scan)
    if path is None:
        return Findings()
    content = scan.text(path)
    title, paragraph = _beginning(content)
    return Findings(
        name=title,
        description=paragraph,
        commands=tuple(_commands(path, content)),
        key_files=(KeyFile(path, "introduction"),),
    )


def _beginning(content: str) -> tuple[str, str]:
    """Title and first paragraph of prose, on one line each."""
    title = ""
    paragraph: list[str] = []
    fenced = False
    for line in content.splitlines():
        plain = re.sub(r"<[^>]+>|!?\[!\[.*|!\[[^\]]*\]\([^)]*\)", "", line).strip()
        if line.startswith(("```", "~~~")):
            fenced = not fenced
        if fenced or re.fullmatch(r"[=\-~*#`]{3,}", plain):
            continue
        if not title and plain:
            title = plain.lstrip("# ").strip()
            continue
        if plain.startswith(("#", "```", ".. ", "|", "- ", "* ", "[![")) or not plain:
            if paragraph:
                break
            continue
        paragraph.append(plain.removeprefix("> "))
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(paragraph))
    return title[:80], text[:400]


def _commands(path: str, content: str) -> Iterator[ProjectCommand]:
    for block in _FENCE.findall(content):
        for line in block.splitlines():
            command = re.sub(r"\s+#.*", "", line.strip().removeprefix("$ ")).strip()
            if not command or len(command) > 80 or re.search(r"[|;<>&\\`]", command):
                continue
            words = command.split()
            last = words[-1].rpartition("/")[2].partition(".")[0]
            ran = _RUNS_A_FILE.match(command)
            purpose = purpose_of(last) if len(words) > 1 else None
            if purpose is None and ran and re.match(r"test_|.*_test$", last):
                purpose = "test"
            if purpose is not None:
                yield ProjectCommand(purpose, command, path)
