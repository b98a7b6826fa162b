"""Which paths and commands a text names, and whether they exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

from swecli.core.context_management.project_facts.collect import ProjectReader

_SPAN = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?<![\w/.:@-])((?:\.{0,2}/)?(?:[\w.@-]+/)+[\w.@-]*|[\w-]+\.[A-Za-z]\w{0,5})(?![\w/(])")
_FILE_ENDS = frozenset(
    (
        "py", "pyi", "toml", "cfg", "ini", "md", "rst", "txt", "json", "yml", "yaml", "lock", "js", "jsx",
        "mjs", "cjs", "ts", "tsx", "css", "scss", "html", "go", "mod", "rs", "java", "kt", "gradle", "xml",
        "sh", "bash", "rb", "php", "cs", "c", "h", "cc", "cpp", "hpp", "ex", "exs", "sql", "mk", "cmake",
        "csproj", "sln", "env", "template", "tpl", "proto",
    )
)  # fmt: skip
_TASK = re.compile(
    r"\b((?:npm|yarn|pnpm|bun) (?:run )?[a-z][\w:-]*|make (?!sure|it\b|the\b|an?\b|changes|use\b)[a-z][\w-]*"
    r"|tox -e \w[\w-]*|go (?:test|build|run|vet|generate)|cargo [a-z]+|mix [a-z]+|bundle exec \w+|pytest|tox|nox"
    r"|pre-commit)\b"
)
_PROGRAMS = frozenset(
    (
        "make", "just", "npm", "npx", "yarn", "pnpm", "bun", "node", "deno", "python", "python3", "pip",
        "pipx", "uv", "poetry", "pdm", "hatch", "pipenv", "pytest", "tox", "nox", "ruff", "black", "mypy",
        "pyright", "flake8", "pylint", "isort", "pre-commit", "cargo", "rustc", "go", "gofmt", "mvn",
        "gradle", "dotnet", "bundle", "rake", "rspec", "composer", "phpunit", "php", "ruby", "mix", "cmake",
        "ctest", "docker", "kubectl", "sh", "bash", "git",
    )
)  # fmt: skip


class Mentions:
    """Which paths and commands a text names, and whether the project has them."""

    def __init__(self, project: ProjectReader) -> None:
        self._project = project

    def holds(self, statement: str) -> bool:
        """Whether everything that ``statement`` names exists."""
        if "<!--" in statement or "\n#" in statement:
            return False
        plain = _SPAN.sub(" ", statement)
        return all(self._exists(span) for span in _SPAN.findall(statement)) and not any(self._unknown(plain))

    def shows(self, statement: str) -> bool:
        """Like ``holds``, and at least one path is named."""
        words = re.findall(r"[\w./@-]+", statement)
        return self.holds(statement) and any(
            self._project.facts.has(word.partition(":")[0].rstrip(".")) for word in words
        )

    def _exists(self, span: str) -> bool:
        words = span.split()
        if not words:
            return True
        if words[0] in _PROGRAMS or words[0].startswith("./"):
            commands = self._project.commands
            return commands.has(span) or (len(words) == 1 and words[0] in commands.programs())
        return not any(self._unknown(span))

    def _unknown(self, plain: str) -> Iterator[str]:
        """Paths and commands in plain words that the project does not have."""
        for match in _TASK.finditer(plain):
            known = self._project.commands
            if not (known.has(match.group(1)) or match.group(1) in known.programs() or self._begins(match.group(1))):
                yield match.group(1)
        for match in _PATH.finditer(plain):
            path = match.group(1)
            if "/" not in path and path.rpartition(".")[2] not in _FILE_ENDS:
                continue
            if not self._has_path(path):
                yield path

    def _begins(self, words: str) -> bool:
        """Whether a command of the project begins with these words."""
        facts = self._project.facts
        return any(command.command.startswith(words) for command in (*facts.commands, *facts.others))

    def _has_path(self, path: str) -> bool:
        facts = self._project.facts
        plain = path.removeprefix("./").rstrip("./")
        return (
            plain == "" or facts.has(plain) or ("/" not in plain and any(f.endswith(f"/{plain}") for f in facts.files))
        )
