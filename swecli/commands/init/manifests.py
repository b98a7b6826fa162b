"""What a project's own files define, as tables: commands, files worth knowing, names, dependencies.

Nothing is run. Patterns of files fit whole paths; patterns of text are searched for in multi-line mode. Named groups
of both, with ``path`` and ``test`` (the first test file of the language), can be used in commands.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from swecli.commands.init.scan import Scan, count_files

Purpose = Literal["install", "build", "test", "test_one", "lint", "format", "types", "run"]

TASK_NAMES: dict[Purpose, tuple[str, ...]] = {
    "install": ("install", "setup", "bootstrap", "deps", "init", "dev-install", "install-dev", "sync"),
    "test": ("test", "tests", "check-test", "unit", "unittest", "test-unit", "test:unit", "unit-test", "spec"),
    "lint": ("lint", "lint:check", "check", "ruff", "flake8", "eslint", "clippy", "vet", "style", "pre-commit"),
    "format": ("format", "fmt", "black", "prettier", "format:write", "fix"),
    "types": ("typecheck", "type-check", "types", "mypy", "pyright", "tsc", "typing", "check-types", "check:types"),
    "build": ("build", "compile", "all", "dist", "package", "bundle"),
    "run": ("run", "start", "serve", "dev", "server", "demo"),
}
"""Names of tasks for each purpose, the most usual first."""


class ProjectCommand(NamedTuple):
    """``source`` is the file that defines it."""

    purpose: Purpose
    command: str
    source: str


class Rule(NamedTuple):
    """Commands of the first file that fits ``file`` and has ``text`` in it."""

    file: str
    commands: dict[Purpose, str]
    text: str = ""


class Language(NamedTuple):
    """Present where a file fits ``manifest`` or ``sources``. ``variant`` is its name where a file fits the pattern."""

    name: str
    manifest: str
    why: str
    tests: str
    rules: tuple[Rule, ...]
    variant: tuple[str, str] = ("", "")
    sources: str = ""


_PY_TEST = r"(?:test_[^/\n]*|[^/\n]*_test)\.py"
_PY_TESTS = rf"(?:.*/)?{_PY_TEST}"
_PY_SETTINGS = r"pyproject\.toml|setup\.cfg"
_PYTEST: dict[Purpose, str] = {"test": "pytest", "test_one": "pytest {test}"}
_UNITTEST = r"^(?:import unittest|from unittest import)"

LANGUAGES = (
    Language("Python", r"pyproject\.toml|setup\.(?:cfg|py)", "package metadata and tool settings", _PY_TESTS, (
        Rule(r"uv\.lock", {"install": "uv sync"}),
        Rule(r"poetry\.lock", {"install": "poetry install"}),
        Rule(r"pdm\.lock", {"install": "pdm install"}),
        Rule(r"Pipfile", {"install": "pipenv install --dev"}),
        Rule(r"pyproject\.toml", {"install": 'pip install -e ".[{extra}]"'},
             r"optional-dependencies(?:\.|\](?:\n(?!\[).*)*?\n)(?P<extra>dev|tests?|testing)\b"),
        Rule(r"pyproject\.toml", {"install": "pip install -e ."}, r"^\[(?:project|tool\.poetry)\b"),
        Rule(r"setup\.(?:cfg|py)", {"install": "pip install -e ."}),
        Rule(r"(?:dev-)?requirements(?:-dev)?\.txt|requirements/dev\.txt", {"install": "pip install -r {path}"}),
        Rule(_PY_SETTINGS, _PYTEST, r"^\[tool[.:]pytest\b"),
        Rule(r"pytest\.ini|(?:tests?/)?conftest\.py", _PYTEST),
        Rule(_PY_TESTS, _PYTEST, r"^\s*(?:import|from) pytest\b"),
        Rule(_PY_TEST, {"test": "python3 -m unittest", "test_one": "python3 -m unittest {path}"}, _UNITTEST),
        Rule(rf"(?P<folder>.+)/{_PY_TEST}",
             {"test": "python3 -m unittest discover -s {folder}", "test_one": "python3 -m unittest {path}"}, _UNITTEST),
        Rule(_PY_TESTS, {"test_one": "python3 {path}"}, r"^if __name__ == ['\"]__main__['\"]:"),
        Rule(r"\.?ruff\.toml", {"lint": "ruff check ."}),
        Rule(r"pyproject\.toml", {"lint": "ruff check ."}, r"^\[tool\.ruff\b"),
        Rule(r"pyproject\.toml", {"format": "ruff format ."}, r"^\[tool\.ruff\.format\]"),
        Rule(r"\.flake8", {"lint": "flake8"}),
        Rule(_PY_SETTINGS, {"lint": "flake8"}, r"^\[(?:tool\.)?flake8\]"),
        Rule(r"pyproject\.toml", {"format": "black ."}, r"^\[tool\.black\]"),
        Rule(r"mypy\.ini", {"types": "mypy ."}),
        Rule(_PY_SETTINGS, {"types": "mypy ."}, r"^\[(?:tool\.)?mypy\]"),
        Rule(r"pyproject\.toml", {"types": "basedpyright"}, r"^\[tool\.basedpyright\]"),
        Rule(r"pyrightconfig\.json", {"types": "pyright"}),
        Rule(r"pyproject\.toml", {"types": "pyright"}, r"^\[tool\.pyright\]"),
        Rule(r"manage\.py", {"run": "python3 manage.py runserver"}),
        Rule(r"(?:src/)?(?P<package>\w+)/__main__\.py", {"run": "python3 -m {package}"}),
        Rule(r"(?:main|app|run)\.py", {"run": "python3 {path}"}),
    ), sources=r".*\.py"),
    Language("JavaScript", r"package\.json", "package manifest and scripts",
        r".*\.(?:test|spec)\.(?:tsx?|m?jsx?)", (
        Rule(r"pnpm-lock\.yaml", {"install": "pnpm install"}),
        Rule(r"yarn\.lock", {"install": "yarn install"}),
        Rule(r"bun\.lockb?", {"install": "bun install"}),
        Rule(r"package\.json", {"install": "npm install"}),
        Rule(r"package\.json", {"test_one": "npx vitest run {test}"}, r'"vitest"\s*:'),
        Rule(r"package\.json", {"test_one": "npx jest {test}"}, r'"jest"\s*:'),
        Rule(r"package\.json", {"test_one": "npx mocha {test}"}, r'"mocha"\s*:'),
        Rule(r"package\.json", {"test_one": "node --test {test}"}, r"node --test"),
    ), variant=("TypeScript", r"tsconfig\.json|.*\.tsx?")),
    Language("Rust", r"Cargo\.toml", "package manifest", r"tests/[\w-]+\.rs", (
        Rule(r"Cargo\.toml", {"build": "cargo build", "test": "cargo test"}),
        Rule(r"tests/(?P<name>[\w-]+)\.rs", {"test_one": "cargo test --test {name}"}),
        Rule(r"src/main\.rs", {"run": "cargo run"}),
        Rule(r"\.?rustfmt\.toml", {"format": "cargo fmt"}),
    )),
    Language("Go", r"go\.mod", "module manifest", r".*_test\.go", (
        Rule(r"go\.mod", {"build": "go build ./...", "test": "go test ./...", "lint": "go vet ./..."}),
        Rule(r"(?P<folder>.*/|)[^/\n]*_test\.go", {"test_one": "go test ./{folder}"}),
        Rule(r"(?P<folder>.*/|)main\.go", {"run": "go run ./{folder}"}),
    )),
    Language("Java", r"pom\.xml|build\.gradle(?:\.kts)?", "build (Maven or Gradle)", r".*Test\.(?:java|kt)", (
        Rule(r"mvnw", {"build": "./mvnw package", "test": "./mvnw test"}),
        Rule(r"pom\.xml", {"build": "mvn package", "test": "mvn test"}),
        Rule(r"gradlew", {"build": "./gradlew build", "test": "./gradlew test"}),
        Rule(r"build\.gradle(?:\.kts)?", {"build": "gradle build", "test": "gradle test"}),
    ), variant=("Kotlin", r".*\.kt")),
    Language("C#", r"[^/\n]*\.(?:slnx?|[cf]sproj)", "solution or project", "", (
        Rule(r"[^/\n]*\.(?:slnx?|[cf]sproj)", {"build": "dotnet build {path}", "test": "dotnet test {path}"}),
    ), variant=("F#", r".*\.fsproj")),
    Language("Ruby", r"Gemfile", "dependencies", r".*_spec\.rb", (
        Rule(r"Gemfile", {"install": "bundle install"}),
        Rule(r".*_spec\.rb", {"test": "bundle exec rspec", "test_one": "bundle exec rspec {path}"}),
        Rule(r"Rakefile", {"test": "bundle exec rake test"}, r"TestTask|task\s+:?['\"]?test\b"),
        Rule(r"\.rubocop\.yml", {"lint": "bundle exec rubocop"}),
    )),
    Language("PHP", r"composer\.json", "package manifest", r".*Test\.php", (
        Rule(r"composer\.json", {"install": "composer install"}),
    )),
    Language("Elixir", r"mix\.exs", "project manifest", r".*_test\.exs", (
        Rule(r"mix\.exs", {"install": "mix deps.get", "build": "mix compile", "test": "mix test"}),
    )),
    Language("C", r"CMakeLists\.txt", "build (CMake)", "", (
        Rule(r"CMakeLists\.txt", {"build": "cmake -S . -B build && cmake --build build"}),
        Rule(r"CMakeLists\.txt", {"test": "ctest --test-dir build"}, r"\b(?:enable_testing|add_test)\s*\("),
    ), variant=("C++", r".*\.(?:cpp|cc|cxx|hpp)")),
    Language("", r"tox\.ini", "test environments (tox)", "", (Rule(r"tox\.ini", {"test": "tox"}, r"^\[tox\]"),)),
)  # fmt: skip

# Runner, files, what it names. A recipe of just with a parameter that has no default can't be run by its name alone.
_TASK_FILES = (
    ("make", r"(?:GNUm|m|M)akefile", r"^([A-Za-z][\w.-]*(?:[ \t]+[A-Za-z][\w.-]*)*)[ \t]*::?(?!=)"),
    ("just", r"\.?[jJ]ustfile", r"^@?([A-Za-z][\w-]*)(?:[ \t]+(?:\*[\w-]+|[\w-]+=[^:\s]+))*[ \t]*:(?!=)"),
    ("tox -e", r"tox\.ini", r"^\[testenv:([\w.-]+)\]"),
    ("nox -s", r"noxfile\.py", r"^@(?:nox\.)?session\b[^\n]*\n(?:@[^\n]*\n)*def[ \t]+(\w+)"),
)

_README = r"(?:README|Readme|readme)(?:\.(?:md|rst|txt))?|docs/README\.md"
_MAX_KEY_FILES = 14
_README_CHARS = 3_000
_NODE = ("npm", "yarn", "pnpm", "bun")
_LOCKS = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun"))

_KEY_FILES = (
    (r"[^/\n]+/__main__\.py|src/[^/\n]+/__main__\.py|manage\.py", "runs as a program"),
    (r"src/(?:index|main)\.[jt]sx?|index\.js", "entry module"),
    (r"src/(?:main|lib)\.rs", "crate root"),
    (r"(?:.*/)?main\.go", "program"),
    (r"\.github/workflows/[^/\n]*(?:test|check|build|ci|main)[^/\n]*\.ya?ml", "continuous integration"),
    (r"\.gitlab-ci\.yml|\.circleci/config\.yml|Jenkinsfile|\.(?:ci|buildkite)/[^/\n]+", "continuous integration"),
    (_README, "introduction"),
    (r"CONTRIBUTING\.md", "how to contribute"),
    (r"ARCHITECTURE\.md", "architecture"),
    (r"Dockerfile", "container"),
)

_PACKAGES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("pyproject.toml", ("project",), ("project", "dependencies")),
    ("pyproject.toml", ("tool", "poetry"), ("tool", "poetry", "dependencies")),
    ("package.json", (), ("dependencies",)),
    ("Cargo.toml", ("package",), ("dependencies",)),
    ("composer.json", (), ("require",)),
)
"""File, the table with name and description, dependencies."""

_REQUIREMENT = r"^\s*([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?[ \t]*([<>=!~^][^;#\n]*)?"
_DEPENDENCY_LINES = (
    ("requirements.txt", _REQUIREMENT),
    ("go.mod", r"^\s*(?:require\s+)?([\w.-]+\.[\w.-]+/\S+)\s+(v\S+)(?!.*// indirect)"),
    ("Gemfile", r"^\s*gem\s+['\"]([\w-]+)['\"](?:\s*,\s*['\"]([^'\"]+)['\"])?"),
)
_NAME_LINES = (("go.mod", r"^module\s+(\S+)"), ("setup.cfg", r"^name\s*=\s*(\S+)"))


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
    for language in LANGUAGES:
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
    for pattern, why in _KEY_FILES:
        for match in scan.matching(pattern)[:2]:
            key_files.setdefault(match[0], why)
    readme = next((scan.text(match[0]) for match in scan.matching(_README)), "")
    title, paragraph = _beginning(readme)
    packages = [table(data[path], *keys) for path, keys, _ in _PACKAGES]
    lines = [match[1] for path, form in _NAME_LINES if (match := re.search(form, scan.text(path), re.MULTILINE))]
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
    for purpose, names in TASK_NAMES.items():
        if plain in names:
            direct = runner in ("yarn", "pnpm", "npm") and name == "test"
            run = " run" if runner in (*_NODE, "composer") and not direct else ""
            return names.index(plain), purpose, f"{runner}{run} {name}"
    return None


def _tasks(scan: Scan, data: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, list[str]]]:
    """Runner, file and names of its tasks."""
    for runner, file, form in _TASK_FILES:
        for match in scan.matching(file)[:1]:
            found = re.findall(form, scan.text(match[0]), re.MULTILINE)
            yield runner, match[0], list(dict.fromkeys(name for names in found for name in names.split()))
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
    for path, form in _DEPENDENCY_LINES:
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
