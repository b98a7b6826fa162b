"""What a project's own files define, and whether a statement about it names only what exists. Nothing is run.

What is known of languages, task files and file names is in ``ecosystems.toml``.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import msgspec

from swecli.commands.init.scan import Scan, count_files
from swecli.core.git_files import git_facts, head_commit

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


_README = r"(?:README|Readme|readme)(?:\.(?:md|rst|txt))?|docs/README\.md"
_MAX_KEY_FILES = 14
_README_CHARS = 3_000
_NODE = ("npm", "yarn", "pnpm", "bun")
_LOCKS = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun"))

_PACKAGES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("pyproject.toml", ("project",), ("project", "dependencies")),
    ("pyproject.toml", ("tool", "poetry"), ("tool", "poetry", "dependencies")),
    ("package.json", (), ("dependencies",)),
    ("Cargo.toml", ("package",), ("dependencies",)),
    ("composer.json", (), ("require",)),
)
"""File, the table with name and description, dependencies."""

_REQUIREMENT = r"^\s*([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?[ \t]*([<>=!~^][^;#\n]*)?"


@dataclass(frozen=True, slots=True)
class Manifests:
    """``commands`` begins with the tasks that the project itself names; ``tasks`` has all of them for each runner.
    ``key_files``, ``dependencies`` and ``patterns`` lead from a path or name to a reason, version or place."""

    name: str
    description: str
    languages: tuple[str, ...]
    commands: tuple[ProjectCommand, ...]
    tasks: Mapping[str, frozenset[str]]
    key_files: Mapping[str, str]
    dependencies: Mapping[str, str]
    patterns: Mapping[str, str]
    readme: str


def read_manifests(scan: Scan) -> Manifests:
    data = {path: _parsed(scan, path) for path, _, _ in _PACKAGES}
    tasks, key_files, patterns = dict[str, frozenset[str]](), dict[str, str](), dict[str, str]()
    commands, languages = list[ProjectCommand](), list[str]()
    for runner, path, names in _tasks(scan, data):
        tasks["npm" if path == "package.json" else runner.split()[0]] = frozenset(names)
        if not path.endswith(".json"):
            key_files[path] = f"tasks of the project ({runner.split()[0]})"
        usual = sorted((found for name in names if (found := _purpose(runner, name))), key=lambda known: known[0])
        commands.extend(ProjectCommand(purpose, command, path) for _, purpose, command in usual)
    entries = _entries(scan, data)
    commands.extend(
        ProjectCommand("run", name, path) for name, (path, _) in entries.items() if path == "pyproject.toml"
    )
    for language in ecosystems().languages:
        manifest, sources = scan.matching(language.manifest), scan.matching(language.sources)
        if not manifest and not sources:
            continue
        if language.name and (manifest or len(sources) > 2):
            languages.append(language.variant[0] if scan.matching(language.variant[1]) else language.name)
        if manifest:
            key_files.setdefault(manifest[0][0], language.why)
        tests = [match[0] for match in scan.matching(language.tests)]
        if tests:
            patterns[f"Tests ({count_files(len(tests))})"] = f"`{tests[0]}` and its neighbours"
        commands.extend(_ruled(scan, language.rules, tests))
    for name, (_, path) in entries.items():
        key_files.setdefault(path, f"entry point of the command `{name}`")
    for pattern, why in ecosystems().key_files.items():
        for match in scan.matching(pattern)[:2]:
            key_files.setdefault(match[0], why)
    readme = next((scan.text(match[0]) for match in scan.matching(_README)), "")
    title, paragraph = _beginning(readme)
    packages = [table(data[path], *keys) for path, keys, _ in _PACKAGES]
    forms = ecosystems().name_lines.items()
    lines = [match[1] for path, form in forms if (match := re.search(form, scan.text(path), re.MULTILINE))]
    return Manifests(
        name=next(filter(None, [*(one_line(package.get("name")) for package in packages), *lines, title]), ""),
        description=next(filter(None, [*(one_line(p.get("description")) for p in packages), paragraph]), ""),
        languages=tuple(languages),
        commands=tuple(commands),
        tasks=tasks,
        key_files=dict(list(key_files.items())[:_MAX_KEY_FILES]),
        dependencies=_dependencies(scan, data),
        patterns=patterns,
        readme=readme[:_README_CHARS],
    )


def _purpose(runner: str, name: str) -> tuple[int, Purpose, str] | None:
    """How unusual the name of a task is for its purpose, the purpose, and the command; None without a purpose."""
    plain = name.lower().replace("_", "-")
    for purpose, words in ecosystems().tasks.items():
        if plain in (names := words.split()):
            direct = runner in ("yarn", "pnpm", "npm") and name == "test"
            run = " run" if runner in (*_NODE, "composer") and not direct else ""
            return names.index(plain), purpose, f"{runner}{run} {name}"
    return None


def _tasks(scan: Scan, data: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, list[str]]]:
    for one in ecosystems().task_files:
        for match in scan.matching(one.file)[:1]:
            found = re.findall(one.names, scan.text(match[0]), re.MULTILINE)
            yield one.runner, match[0], list(dict.fromkeys(name for names in found for name in names.split()))
    manager = next((name for lock, name in _LOCKS if scan.has(lock)), "npm")
    for runner, path in ((manager, "package.json"), ("composer", "composer.json")):
        scripts = table(data[path], "scripts")
        names = [name for name, script in scripts.items() if "no test specified" not in str(script)]
        if names:
            yield runner, path, names


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


def _entries(scan: Scan, data: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
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


def _dependencies(scan: Scan, data: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Direct dependencies, with the manifest's own text for the version."""
    found: dict[str, str] = {}
    for path, _, keys in _PACKAGES:
        stated = table(data[path], *keys[:-1]).get(keys[-1])
        for line in texts(stated):
            found |= {name: version.strip() for name, version in re.findall(_REQUIREMENT, line)}
        for name, version in table(stated).items():
            found[name] = one_line(version) or one_line(table(version).get("version"))
    for path, form in ecosystems().dependency_lines.items():
        found |= {name: version.strip() for name, version in re.findall(form, scan.text(path), re.MULTILINE)}
    return {name: version for name, version in found.items() if name not in ("python", "php")}


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


def _parsed(scan: Scan, path: str) -> Mapping[str, Any]:
    parse: Callable[[str], Any] = tomllib.loads if path.endswith(".toml") else json.loads
    try:
        return table(parse(scan.text(path)))
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
        return all(word.startswith("-") or self._is_path(word) for word in words)

    def _is_path(self, word: str) -> bool:
        path = word.partition("::")[0].removeprefix("./").rstrip("/")
        return path in ("", ".") or self.has(path)

    def _exists(self, span: str) -> bool:
        words = span.split()
        if words and (words[0] in self._programs or words[0].startswith("./")):
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
