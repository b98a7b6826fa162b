"""From a directory to facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from swecli.core.context_management.project_facts.ci_files import read_ci
from swecli.core.context_management.project_facts.facts import (
    PURPOSES,
    Findings,
    KeyFile,
    ProjectCommand,
    ProjectFacts,
)
from swecli.core.context_management.project_facts.git_head import head_commit
from swecli.core.context_management.project_facts.known_commands import KnownCommands
from swecli.core.context_management.project_facts.node_project import read_node
from swecli.core.context_management.project_facts.other_ecosystems import (
    read_cmake,
    read_dotnet,
    read_elixir,
    read_go,
    read_jvm,
    read_php,
    read_ruby,
    read_rust,
)
from swecli.core.context_management.project_facts.outline import outline
from swecli.core.context_management.project_facts.python_project import read_python
from swecli.core.context_management.project_facts.readme import read_readme, readme_path
from swecli.core.context_management.project_facts.scan import Scan
from swecli.core.context_management.project_facts.structure import structure
from swecli.core.context_management.project_facts.task_runners import read_just, read_make, read_nox, read_tox
from swecli.core.workspace.git_facts import git_facts

Reader = Callable[[Scan], Findings]

# Tasks that the project itself names come before what follows from its manifests.
_TASKS: tuple[Reader, ...] = (read_make, read_just)
_MANIFESTS: tuple[Reader, ...] = (
    read_python,
    read_node,
    read_rust,
    read_go,
    read_jvm,
    read_dotnet,
    read_ruby,
    read_php,
    read_elixir,
    read_cmake,
    read_tox,
    read_nox,
)
_MENTIONS: tuple[Reader, ...] = (read_ci, read_readme)

_AGENT_FILES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md", ".cursorrules")
_GUIDES = (("CONTRIBUTING.md", "how to contribute"), ("ARCHITECTURE.md", "architecture"), ("Dockerfile", "container"))
_README_CHARS = 3_000
_MAX_KEY_FILES = 14


class ProjectReader:
    """Facts of one project, and the check of what somebody claims about it."""

    def __init__(self, root: Path) -> None:
        self._scan = Scan(root)
        evident = [reader(self._scan) for reader in (*_TASKS, *_MANIFESTS)]
        mentioned = [reader(self._scan) for reader in _MENTIONS]
        own = [command for findings in evident for command in findings.commands]
        self.commands = KnownCommands(self._scan, own)
        claimed = [command for findings in mentioned for command in findings.commands]
        verified = [command for command in claimed if self.commands.has(command.command)]
        self.facts = self._put_together(root, [*evident, *mentioned], [*own, *verified])

    def _put_together(self, root: Path, all_findings: list[Findings], commands: list[ProjectCommand]) -> ProjectFacts:
        scan = self._scan
        best, others = _by_purpose(commands)
        git = git_facts(root)
        path = readme_path(scan)
        guides = tuple(KeyFile(name, why) for name, why in _GUIDES if scan.has(name))
        return ProjectFacts(
            name=_first(findings.name for findings in all_findings) or root.name,
            description=_first(findings.description for findings in all_findings),
            languages=tuple(dict.fromkeys(name for findings in all_findings for name in findings.languages)),
            commands=best,
            others=others,
            key_files=_key_files(all_findings, guides),
            dependencies=tuple({d.name: d for findings in all_findings for d in findings.dependencies}.values()),
            patterns=tuple(pattern for findings in all_findings for pattern in findings.patterns),
            structure=structure(scan),
            outline=outline(scan),
            readme=scan.text(path)[:_README_CHARS] if path else "",
            agent_files=tuple(name for name in _AGENT_FILES if scan.text(name).strip()),
            branch=(git.branch or "") if git else "",
            commit=head_commit(git)[:10] if git else "",
            files=frozenset(scan.files),
            directories=frozenset(scan.directories),
            complete=scan.complete,
        )


def _first(values: Iterable[str]) -> str:
    return next((value for value in values if value), "")


def _by_purpose(
    commands: list[ProjectCommand],
) -> tuple[tuple[ProjectCommand, ...], tuple[ProjectCommand, ...]]:
    """The first command of each purpose in reading order, and the rest without repetitions."""
    unique = list({command.command: command for command in reversed(commands)}.values())[::-1]
    best = [found for purpose, _ in PURPOSES if (found := next((c for c in unique if c.purpose == purpose), None))]
    return tuple(best), tuple(command for command in unique if command not in best)


def _key_files(all_findings: list[Findings], guides: tuple[KeyFile, ...]) -> tuple[KeyFile, ...]:
    every = [file for findings in all_findings for file in findings.key_files]
    unique: dict[str, KeyFile] = {}
    for file in (*every, *guides):
        unique.setdefault(file.path, file)
    return tuple(unique.values())[:_MAX_KEY_FILES]
