"""What continuous integration runs. Only lines of the usual form are understood; no YAML is interpreted."""

from __future__ import annotations

import re
from collections.abc import Iterator

from swecli.core.context_management.project_facts.facts import Findings, KeyFile, ProjectCommand, Purpose
from swecli.core.context_management.project_facts.scan import Scan

_SINGLE_FILES = (".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml", ".circleci/config.yml", "Jenkinsfile")
_STEP = re.compile(r"^(?P<indent>\s*)(?:-\s+)?(?P<key>run|script|command|test|install|build):\s*(?P<rest>.*)$")
_BLOCK = ("|", "|-", "|+", ">", ">-", "")
_PURPOSES: tuple[tuple[Purpose, re.Pattern[str]], ...] = (
    ("test", re.compile(r"(?:python3? -m |(?:uv|poetry|pipenv|hatch) run (?:-m )?)?pytest\b|python3? -m unittest\b")),
    ("test", re.compile(r"(?:make|just|npm|yarn|pnpm) (?:run )?tests?$|tox$|nox$|cargo test\b|go test\b|mvn .*test\b")),
    ("lint", re.compile(r"ruff check\b|flake8\b|pylint\b|cargo clippy\b|golangci-lint\b|(?:make|just|npm run) lint$")),
    ("lint", re.compile(r"pre-commit run\b")),
    ("types", re.compile(r"mypy\b|pyright\b|(?:npx )?tsc\b|(?:make|npm run) type-?check$")),
    ("format", re.compile(r"(?:ruff format|black|cargo fmt|npx prettier)\b")),
    ("build", re.compile(r"(?:make|just|npm run|yarn|pnpm) build$|cargo build\b|go build\b|python3? -m build\b")),
    ("install", re.compile(r"npm ci$|npm install$|uv sync\b|poetry install\b|pip install (?:-r|-e|\.)")),
)  # fmt: skip


def read_ci(scan: Scan) -> Findings:
    files = [path for path in scan.files if re.fullmatch(r"\.github/workflows/[^/]+\.ya?ml", path)]
    files.extend(path for path in _SINGLE_FILES if scan.has(path))
    scripts = [path for path in scan.files if re.fullmatch(r"\.(?:ci|buildkite)/[^/]+", path)]
    commands: list[ProjectCommand] = []
    for path in files[:10]:
        for line in _steps(scan.text(path)):
            commands.extend(ProjectCommand(purpose, line, path) for purpose, form in _PURPOSES if form.match(line))
    named = [*sorted(files, key=_is_minor)[:2], *scripts[:1]]
    return Findings(
        commands=tuple(commands), key_files=tuple(KeyFile(path, "continuous integration") for path in named)
    )


def _steps(content: str) -> Iterator[str]:
    """Single commands without variables, substitutions or pipes."""
    block: int | None = None
    for line in content.splitlines():
        indent = len(line) - len(line.lstrip())
        if block is not None:
            if line.strip() and indent <= block:
                block = None
            else:
                yield from _simple(line.strip().removeprefix("- "))
                continue
        match = _STEP.match(line)
        if match is None:
            continue
        if match["rest"].strip() in _BLOCK:
            block = len(match["indent"])
        else:
            yield from _simple(match["rest"])


def _simple(line: str) -> Iterator[str]:
    plain = line.strip().strip("'\"").strip()
    if plain and len(plain) <= 100 and not re.search(r"[$`|;<>&\\{}]", plain):
        yield plain


def _is_minor(path: str) -> bool:
    """Whether a workflow, by its name, is not the one that tests."""
    return not re.search(r"test|check|build|\bci\b|main|python|node|rust|go\b", path.rpartition("/")[2])
