"""Facts about a project, and whether what somebody says of it names only what exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from swecli.commands.init.manifests import Purpose, read_manifests
from swecli.commands.init.scan import Scan
from swecli.core.git_files import git_facts, head_commit

PURPOSES: dict[Purpose, str] = {
    "install": "Install",
    "build": "Build",
    "test": "Test",
    "test_one": "Test one file",
    "lint": "Lint",
    "format": "Format",
    "types": "Check types",
    "run": "Run",
}
"""Each purpose with its name for readers, in reading order."""

_AGENT_FILES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md", ".cursorrules")

_OPERATORS = re.compile(r"[;|<>`$\\{}]|(?<!&)&(?!&)")
_INTERPRETERS = ("python", "python3", "node", "ruby", "php", "sh", "bash", "deno")
_SPAN = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?<![\w/.:@-])((?:\.{0,2}/)?(?:[\w.@-]+/)+[\w.@-]*|[\w-]+\.[A-Za-z]\w{0,5})(?![\w/(])")
_FILE_ENDS = frozenset((
    "py", "pyi", "toml", "cfg", "ini", "md", "rst", "txt", "json", "yml", "yaml", "lock", "js", "jsx", "mjs",
    "cjs", "ts", "tsx", "css", "scss", "html", "go", "mod", "rs", "java", "kt", "gradle", "xml", "sh", "bash",
    "rb", "php", "cs", "c", "h", "cc", "cpp", "hpp", "ex", "exs", "sql", "mk", "cmake", "csproj", "sln", "env",
    "template", "tpl", "proto",
))  # fmt: skip
_TASK = re.compile(
    r"\b((?:npm|yarn|pnpm|bun) (?:run )?[a-z][\w:-]*|make (?!sure|it\b|the\b|an?\b|changes|use\b)[a-z][\w-]*"
    r"|tox -e \w[\w-]*|go (?:test|build|run|vet|generate)|cargo [a-z]+|mix [a-z]+|bundle exec \w+|pytest|tox|nox"
    r"|pre-commit)\b"
)
_PROGRAMS = frozenset((
    "make", "just", "npm", "npx", "yarn", "pnpm", "bun", "node", "deno", "python", "python3", "pip", "pipx",
    "uv", "poetry", "pdm", "hatch", "pipenv", "pytest", "tox", "nox", "ruff", "black", "mypy", "pyright",
    "flake8", "pylint", "isort", "pre-commit", "cargo", "rustc", "go", "gofmt", "mvn", "gradle", "dotnet",
    "bundle", "rake", "rspec", "composer", "phpunit", "php", "ruby", "mix", "cmake", "ctest", "docker",
    "kubectl", "sh", "bash", "git",
))  # fmt: skip


class Project:
    """One project, read once: its files, its manifests and git's. ``commands`` has at most one for each purpose and
    ``others`` the rest; ``agent_files`` are instruction files of other agents."""

    def __init__(self, root: Path) -> None:
        self.scan = Scan(root)
        self.manifests = read_manifests(self.scan)
        self.name = self.manifests.name or root.name
        unique = list({command.command: command for command in reversed(self.manifests.commands)}.values())[::-1]
        first = [next((command for command in unique if command.purpose == purpose), None) for purpose in PURPOSES]
        self.commands = [command for command in first if command]
        self.others = [command for command in unique if command not in first]
        self.agent_files = [name for name in _AGENT_FILES if self.scan.text(name).strip()]
        git = git_facts(root)
        self.branch = (git.branch or "") if git else ""
        self.commit = head_commit(git)[:10] if git else ""
        self._evident = [_words(command.command) for command in unique]

    def has(self, path: str) -> bool:
        """Whether this file or directory exists."""
        plain = path.removeprefix("./").rstrip("/")
        return self.scan.has(plain) or plain in self.scan.directories

    def has_command(self, command: str) -> bool:
        """Whether every part of ``command`` is a task, a file or a command of the project."""
        if _words(command) in self._evident:
            return bool(command)
        if _OPERATORS.search(command):
            return False
        return all(self._has_part(_words(part)) for part in command.split("&&"))

    def names_only_known(self, statement: str) -> bool:
        """Whether every path and command that ``statement`` names exists."""
        if "<!--" in statement or "\n#" in statement:
            return False
        spans = _SPAN.findall(statement)
        return all(self._exists(span) for span in spans) and not any(self._unknown(_SPAN.sub(" ", statement)))

    def shows_where(self, statement: str) -> bool:
        """Like ``names_only_known``, and at least one path is named."""
        words = re.findall(r"[\w./@-]+", statement)
        return self.names_only_known(statement) and any(self.has(word.partition(":")[0].rstrip(".")) for word in words)

    def _has_part(self, words: list[str]) -> bool:
        while words and re.fullmatch(r"[A-Z_][A-Z0-9_]*=\S*", words[0]):
            words = words[1:]
        if not words:
            return False
        program, arguments = words[0], [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        if program in ("make", "just") or (program == "tox" and arguments):
            return bool(arguments) and self.manifests.tasks.get(program, frozenset()).issuperset(arguments)
        if program in ("npm", "yarn", "pnpm", "bun"):
            task = arguments[1] if arguments[:1] == ["run"] and len(arguments) > 1 else "".join(arguments[:1])
            built_in = len(arguments) == 1 and task in ("install", "ci", "i") and self.scan.has("package.json")
            return task in self.manifests.tasks.get("npm", ()) or built_in
        for evident in self._evident:
            if words[: len(evident)] == evident and self._harmless(words[len(evident) :]):
                return True
        script = words[1:] if program in _INTERPRETERS else words if program.startswith("./") else []
        return bool(script) and self._is_path(script[0]) and self._harmless(script[1:])

    def _harmless(self, words: Iterable[str]) -> bool:
        """Options and paths that exist."""
        return all(word.startswith("-") or self._is_path(word) for word in words)

    def _is_path(self, word: str) -> bool:
        path = word.partition("::")[0].removeprefix("./").rstrip("/")
        return path in ("", ".") or self.has(path)

    def _exists(self, span: str) -> bool:
        words = span.split()
        if words and (words[0] in _PROGRAMS or words[0].startswith("./")):
            return self.has_command(span) or (len(words) == 1 and self._is_program(words[0]))
        return not any(self._unknown(span))

    def _is_program(self, word: str) -> bool:
        return any(evident[:1] == [word] for evident in self._evident)

    def _unknown(self, plain: str) -> Iterator[str]:
        """Paths and commands in plain words that the project does not have."""
        for match in _TASK.finditer(plain):
            task = match[1]
            begun = any(words[: len(task.split())] == task.split() for words in self._evident)
            if not (begun or self.has_command(task)):
                yield task
        for match in _PATH.finditer(plain):
            if ("/" in match[1] or match[1].rpartition(".")[2] in _FILE_ENDS) and not self._has_path(match[1]):
                yield match[1]

    def _has_path(self, path: str) -> bool:
        plain = path.removeprefix("./").rstrip("./")
        below = "/" not in plain and any(file.endswith(f"/{plain}") for file in self.scan.files)
        return not plain or self.has(plain) or below


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []
