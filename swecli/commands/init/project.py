"""What a project's own files define, and whether a statement about it names only what exists. Nothing is run.

What is known of languages, task files and file names is in ``ecosystems.toml``.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import msgspec
from msgspec import Struct

from swecli.commands.init.scan import Scan, count_files
from swecli.core.git import git_facts, head_commit

Purpose = Literal["install", "build", "test", "test_one", "lint", "format", "types", "run"]

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


class ProjectCommand(NamedTuple):
    """``source`` is the file that defines it."""

    purpose: Purpose
    command: str
    source: str


class Rule(msgspec.Struct, frozen=True):
    """Commands of the first file that fits ``file`` and has ``text`` in it."""

    file: str
    commands: dict[Purpose, str]
    text: str = ""


class Language(msgspec.Struct, frozen=True):
    """Present where a file fits ``manifest`` or ``sources``. ``variant`` is its name where a file fits the pattern."""

    manifest: str
    why: str
    rules: tuple[Rule, ...]
    name: str = ""
    tests: str = ""
    variant: tuple[str, str] = ("", "")
    sources: str = ""


class TaskFile(msgspec.Struct, frozen=True):
    """``names`` finds the names of tasks in ``file``."""

    runner: str
    file: str
    names: str


class Ecosystems(msgspec.Struct, frozen=True):
    """``ecosystems.toml``."""

    tasks: dict[Purpose, str]
    task_files: tuple[TaskFile, ...]
    key_files: dict[str, str]
    dependency_lines: dict[str, str]
    name_lines: dict[str, str]
    words: dict[Literal["file_endings", "programs"], str]
    languages: tuple[Language, ...]


@cache
def ecosystems() -> Ecosystems:
    text = (files(__package__ or "") / "ecosystems.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=Ecosystems)


_MAX_KEY_FILES = 14
_README_CHARS = 3_000
_NODE = ("npm", "yarn", "pnpm", "bun")

_PACKAGES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("pyproject.toml", ("project",), ("project", "dependencies")),
    ("pyproject.toml", ("tool", "poetry"), ("tool", "poetry", "dependencies")),
    ("package.json", (), ("dependencies",)),
    ("Cargo.toml", ("package",), ("dependencies",)),
    ("composer.json", (), ("require",)),
)
"""File, the table with name and description, dependencies."""
_FILES = tuple(dict.fromkeys(path for path, _, _ in _PACKAGES))
_Data = Mapping[str, Mapping[str, Any]]
"""What the files of ``_PACKAGES`` have in them."""

_AGENT_FILES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md", ".cursorrules")

_OPERATORS = re.compile(r"[;|<>`$\\{}]|(?<!&)&(?!&)")
_INTERPRETERS = ("python", "python3", "node", "ruby", "php", "sh", "bash", "deno")
_SPAN = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?<![\w/.:@-])((?:\.{0,2}/)?(?:[\w.@-]+/)+[\w.@-]*|[\w-]+\.[A-Za-z]\w{0,5})(?![\w/(])")
_TASK = re.compile(
    r"\b((?:npm|yarn|pnpm|bun) (?:run )?[a-z][\w:-]*|make (?!sure|it\b|the\b|an?\b|changes|use\b)[a-z][\w-]*"
    r"|tox -e \w[\w-]*|go (?:test|build|run|vet|generate)|cargo [a-z]+|mix [a-z]+|bundle exec \w+|pytest|tox|nox"
    r"|pre-commit)\b"
)


class Project:
    """One project, read once: its files, its manifests and git's.

    ``commands`` has at most one for each purpose, the project's own tasks first, and ``others`` the rest; ``tasks`` has
    all tasks of each runner. ``key_files``, ``dependencies`` and ``patterns`` lead from a path or name to a reason,
    version or place; ``agent_files`` are instruction files of other agents.
    """

    def __init__(self, root: Path) -> None:
        scan = self.scan = Scan(root)
        data = {path: parsed(tomllib.loads if path[-5:] == ".toml" else json.loads, scan.text(path)) for path in _FILES}
        present = [
            (language, [match[0] for match in scan.matching(language.tests)])
            for language in ecosystems().languages
            if scan.matching(language.manifest) or scan.matching(language.sources)
        ]
        implied = [command for language, tests in present for command in _ruled(scan, language.rules, tests)]
        named = list(_tasks(scan, data, implied))
        entries = _entries(scan, data)
        own = [ProjectCommand("run", name, path) for name, (path, _) in entries.items() if path == "pyproject.toml"]
        commands = [*(command for task in named for command in task.commands), *own, *implied]
        unique = list({command.command: command for command in reversed(commands)}.values())[::-1]
        first = [next((command for command in unique if command.purpose == purpose), None) for purpose in PURPOSES]
        self.commands = [command for command in first if command]
        self.others = [command for command in unique if command not in first]
        self.tasks = {task.runner: task.names for task in named}
        self.languages = [name for language, _ in present if (name := _language_name(scan, language))]
        self.patterns = {
            f"Tests ({count_files(len(tests))})": f"`{tests[0]}` and its neighbours" for _, tests in present if tests
        }
        self.dependencies = _dependencies(scan, data)
        key_files = _key_files(scan, named, entries)
        self.key_files = dict(list(key_files.items())[:_MAX_KEY_FILES])
        readme = scan.text(next((path for path, why in key_files.items() if why == "introduction"), ""))
        self.readme = readme[:_README_CHARS]
        name, self.description = _described(scan, data, readme)
        self.name = name or root.name
        self.agent_files = [name for name in _AGENT_FILES if scan.text(name).strip()]
        git = git_facts(root)
        self.branch = (git.branch or "") if git else ""
        self.commit = head_commit(git)[:10] if git else ""
        self._evident = [_words(command.command) for command in unique]
        self._programs = frozenset(ecosystems().words["programs"].split())
        self._endings = frozenset(ecosystems().words["file_endings"].split())

    def has(self, path: str) -> bool:
        plain = path.removeprefix("./").rstrip("/")
        return self.scan.has(plain) or plain in self.scan.directories

    def has_command(self, command: str) -> bool:
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

    def misnamed(self, document: str) -> list[str]:
        """Paths and commands that a document names in code spans and that the project does not have."""
        spans = dict.fromkeys(_SPAN.findall(document))
        return [span for span in spans if ("/" in span or span.split()[0] in self._programs) and not self._exists(span)]

    def shows_where(self, statement: str) -> bool:
        """Like ``names_only_known``, and at least one path is named."""
        words = re.findall(r"[\w./@-]+", statement)
        return self.names_only_known(statement) and any(self.has(word.partition(":")[0].rstrip(".")) for word in words)

    def _has_part(self, words: list[str]) -> bool:
        while words and re.fullmatch(r"[A-Z_][A-Z0-9_]*=\S*", words[0]):
            words = words[1:]
        if not words:
            return False
        program = words[0]
        names = {word for word in words[1:] if not word.startswith("-") and "=" not in word and word != "run"}
        if names and names <= self.tasks.get("npm" if program in _NODE else program, frozenset()):
            return True
        for evident in self._evident:
            if words[: len(evident)] == evident and self._harmless(words[len(evident) :]):
                return True
        script = words[1:] if program in _INTERPRETERS else words if program.startswith("./") else []
        return bool(script) and self._is_path(script[0]) and self._harmless(script[1:])

    def _harmless(self, words: Iterable[str]) -> bool:
        return all(word.startswith("-") or self._is_path(word) for word in words)

    def _is_path(self, word: str) -> bool:
        path = word.partition("::")[0].removeprefix("./").rstrip("/")
        return path in ("", ".") or self.has(path)

    def _exists(self, span: str) -> bool:
        words = span.split()
        if words and (words[0] in self._programs or words[0].startswith("./")):
            return self._begins(span) or self.has_command(span)
        return not any(self._unknown(span))

    def _begins(self, command: str) -> bool:
        """Whether a command of the project is this one, or begins with it."""
        words = command.split()
        return any(evident[: len(words)] == words for evident in self._evident)

    def _unknown(self, plain: str) -> Iterator[str]:
        """Paths and commands in plain words that the project does not have."""
        for match in _TASK.finditer(plain):
            if not self._begins(match[1]) and not self.has_command(match[1]):
                yield match[1]
        for match in _PATH.finditer(plain):
            if ("/" in match[1] or match[1].rpartition(".")[2] in self._endings) and not self._has_path(match[1]):
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


class _Tasks(Struct, frozen=True):
    """Of one file: all ``names`` that ``runner`` takes, and ``commands`` for those whose purpose is known, the most
    usual first."""

    runner: str
    path: str
    names: frozenset[str]
    commands: list[ProjectCommand]


def _tasks(scan: Scan, data: _Data, implied: Iterable[ProjectCommand]) -> Iterator[_Tasks]:
    """``implied`` tells with which of its managers a package of Node is installed."""
    for one in ecosystems().task_files:
        for match in scan.matching(one.file)[:1]:
            found = re.findall(one.names, scan.text(match[0]), re.MULTILINE)
            names = list(dict.fromkeys(name for names in found for name in names.split()))
            yield _Tasks(one.runner.split()[0], match[0], frozenset(names), _usual(one.runner, match[0], names))
    installers = (command.command.split()[0] for command in implied if command.purpose == "install")
    manager = next((installer for installer in installers if installer in _NODE), "npm")
    for runner, path, built_in in (("npm", "package.json", ("install", "ci", "i")), ("composer", "composer.json", ())):
        scripts = table(data[path], "scripts")
        names = [name for name, script in scripts.items() if "no test specified" not in str(script)]
        if scan.has(path):
            command = f"{manager if runner == 'npm' else runner} run"
            yield _Tasks(runner, path, frozenset((*names, *built_in)), _usual(command, path, names))


def _usual(runner: str, path: str, names: Iterable[str]) -> list[ProjectCommand]:
    """Commands for the tasks that have a purpose by their name, the most usual name first."""
    found: list[tuple[int, ProjectCommand]] = []
    for name in names:
        plain = name.lower().replace("_", "-")
        for purpose, words in ecosystems().tasks.items():
            if plain in (known := words.split()):
                short = name == "test" and runner in ("npm run", "yarn run", "pnpm run")
                command = f"{runner.removesuffix(' run') if short else runner} {name}"
                found.append((known.index(plain), ProjectCommand(purpose, command, path)))
                break
    return [command for _, command in sorted(found, key=lambda known: known[0])]


def _ruled(scan: Scan, rules: tuple[Rule, ...], tests: list[str]) -> Iterator[ProjectCommand]:
    """Commands of one language: the first of each purpose, and every way to lint, format and check types."""
    seen: set[Purpose] = set()
    for rule in rules:
        for match in scan.matching(rule.file)[:20]:
            found = re.search(rule.text, scan.text(match[0]), re.MULTILINE)
            if found is None:
                continue
            words = {**match.groupdict(), **found.groupdict(), "path": match[0], "test": tests[0] if tests else ""}
            for purpose, form in rule.commands.items():
                needs_test = "{test}" in form
                if (purpose in seen and purpose not in ("lint", "format", "types")) or (needs_test and not tests):
                    continue
                if purpose == "test_one" and "test" not in seen and tests == [match[0]]:
                    purpose = "test"  # The only file of tests is all of them.
                seen.add(purpose)
                yield ProjectCommand(purpose, form.format(**words), tests[0] if needs_test else match[0])
            break


def _language_name(scan: Scan, language: Language) -> str:
    """Its name, or that of its variant; empty where a file or two in it are all there is."""
    if not scan.matching(language.manifest) and len(scan.matching(language.sources)) <= 2:
        return ""
    return language.variant[0] if scan.matching(language.variant[1]) else language.name


def _key_files(scan: Scan, named: Iterable[_Tasks], entries: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    known, found = ecosystems(), dict[str, str]()
    for task in named:
        if not task.path.endswith(".json"):  # that is a manifest before all
            found[task.path] = f"tasks of the project ({task.runner})"
    for language in known.languages:
        found |= {match[0]: language.why for match in scan.matching(language.manifest)[:1] if match[0] not in found}
    for name, (_, path) in entries.items():
        found.setdefault(path, f"entry point of the command `{name}`")
    for pattern, why in known.key_files.items():
        found |= {match[0]: why for match in scan.matching(pattern)[:2] if match[0] not in found}
    return found


def _entries(scan: Scan, data: _Data) -> dict[str, tuple[str, str]]:
    """Commands that a package installs: the manifest and the file where each begins."""
    entries: dict[str, tuple[str, str]] = {}
    python, node = data["pyproject.toml"], data["package.json"]
    scripts = table(python, "project", "scripts") or table(python, "tool", "poetry", "scripts")
    for name, target in scripts.items():
        base = one_line(target).partition(":")[0].strip().replace(".", "/")
        module = scan.first(*(f"{root}{base}{end}" for root in ("", "src/") for end in (".py", "/__init__.py")))
        if module:
            entries[name] = ("pyproject.toml", module)
    binaries = node.get("bin")
    for name, target in (table(binaries) or {one_line(node.get("name")): binaries}).items():
        if scan.has(path := one_line(target).removeprefix("./")):
            entries[name] = ("package.json", path)
    return entries


def _dependencies(scan: Scan, data: _Data) -> dict[str, str]:
    """Direct dependencies, with the manifest's own text for the version."""
    found: dict[str, str] = {}
    requirement = ecosystems().dependency_lines["requirements.txt"]
    for path, _, keys in _PACKAGES:
        stated = table(data[path], *keys[:-1]).get(keys[-1])
        for line in texts(stated):
            found |= {name: version.strip() for name, version in re.findall(requirement, line)}
        for name, version in table(stated).items():
            found[name] = one_line(version) or one_line(table(version).get("version"))
    for path, form in ecosystems().dependency_lines.items():
        found |= {name: version.strip() for name, version in re.findall(form, scan.text(path), re.MULTILINE)}
    return {name: version for name, version in found.items() if name not in ("python", "php")}


def _described(scan: Scan, data: _Data, readme: str) -> tuple[str, str]:
    """Name and description, the manifest's before those of the README; empty where there is none."""
    title, paragraph = _beginning(readme)
    packages = [table(data[path], *keys) for path, keys, _ in _PACKAGES]
    forms = ecosystems().name_lines.items()
    lines = [match[1] for path, form in forms if (match := re.search(form, scan.text(path), re.MULTILINE))]
    names = [*(one_line(package.get("name")) for package in packages), *lines, title]
    texts = [*(one_line(package.get("description")) for package in packages), paragraph]
    return next(filter(None, names), ""), next(filter(None, texts), "")


def _beginning(readme: str) -> tuple[str, str]:
    """Title and first paragraph of prose, on one line each."""
    title, paragraph = "", list[str]()
    for line in re.sub(r"^(```|~~~).*?^\1|^[=\-~*`#]{3,}$", "", readme, flags=re.MULTILINE | re.DOTALL).splitlines():
        plain = re.sub(r"<[^>]+>|!?\[!\[.*|!\[[^\]]*\]\([^)]*\)", "", line).strip()
        if not title:
            title = plain.lstrip("# ")
        elif plain and not plain.startswith(("#", ".. ", "|", "- ", "* ")):
            paragraph.append(plain.removeprefix("> "))
        elif paragraph:
            break
    return title[:80], re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(paragraph))[:400]


def parsed(parse: Callable[[str], Any], text: str) -> Mapping[str, Any]:
    """The table that a text is; an empty one where it is none."""
    try:
        return table(parse(text))
    except (ValueError, RecursionError):
        return {}


def table(value: Any, *keys: str) -> Mapping[str, Any]:
    """The table at ``keys``; an empty one where there is none."""
    for key in keys:
        value = cast("Mapping[str, Any]", value).get(key) if isinstance(value, Mapping) else None
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def one_line(value: Any) -> str:
    """A string on one line; empty for anything else."""
    return " ".join(value.split()) if isinstance(value, str) else ""


def texts(value: Any) -> list[str]:
    """The strings of a list; empty for anything else."""
    return [item for item in cast("list[Any]", value) if isinstance(item, str)] if isinstance(value, list) else []
