"""Python: pyproject.toml, setup.cfg, setup.py, requirements files, and the layout of tests."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from swecli.core.context_management.project_facts.facts import Dependency, Findings, KeyFile, ProjectCommand, Purpose
from swecli.core.context_management.project_facts.scan import Scan
from swecli.core.context_management.project_facts.values import table, text, texts

_REQUIREMENT = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*([<>=!~^][^;#]*)?")
_SCRIPT = re.compile(r"^if __name__ == ['\"]__main__['\"]:", re.MULTILINE)
_UNITTEST = re.compile(r"^(?:import unittest|from unittest import)", re.MULTILINE)


def read_python(scan: Scan) -> Findings:
    manifest = scan.first("pyproject.toml", "setup.cfg", "setup.py")
    sources = scan.ending(".py")
    if manifest is None and not sources:
        return Findings()
    data = _toml(scan.text("pyproject.toml"))
    config = _ini(scan.text("setup.cfg"))
    project, poetry = table(data, "project"), table(data, "tool", "poetry")
    metadata = table(config, "metadata")
    entries = _entry_points(project, poetry)
    commands, patterns = _tests(scan, data, config)
    return Findings(
        name=text(project.get("name") or poetry.get("name") or metadata.get("name")),
        description=text(project.get("description") or poetry.get("description") or metadata.get("description")),
        languages=("Python",) if manifest or len(sources) > 2 else (),
        commands=(*_install(scan, data, manifest), *commands, *_checks(scan, data, config), *_run(scan, entries)),
        key_files=(
            *([KeyFile(manifest, "package metadata and tool settings")] if manifest else []),
            *_entry_files(scan, entries),
        ),
        dependencies=_dependencies(scan, project, poetry, config),
        patterns=patterns,
    )


def _toml(content: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(content)
    except tomllib.TOMLDecodeError:
        return {}


def _ini(content: str) -> Mapping[str, Mapping[str, str]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(content)
    except configparser.Error:
        return {}
    return {name: dict(parser[name]) for name in parser.sections()}


def _install(scan: Scan, data: Mapping[str, Any], manifest: str | None) -> list[ProjectCommand]:
    for lock, command in (("uv.lock", "uv sync"), ("poetry.lock", "poetry install"), ("pdm.lock", "pdm install")):
        if scan.has(lock):
            return [ProjectCommand("install", command, lock)]
    if scan.has("Pipfile"):
        return [ProjectCommand("install", "pipenv install --dev", "Pipfile")]
    if manifest and (manifest != "pyproject.toml" or table(data, "project") or table(data, "tool", "poetry")):
        extras = table(data, "project", "optional-dependencies")
        extra = next((name for name in ("dev", "test", "tests", "testing") if name in extras), "")
        command = f'pip install -e ".[{extra}]"' if extra else "pip install -e ."
        return [ProjectCommand("install", command, manifest, extra)]
    file = scan.first("requirements-dev.txt", "requirements/dev.txt", "dev-requirements.txt", "requirements.txt")
    return [ProjectCommand("install", f"pip install -r {file}", file)] if file else []


def _tests(
    scan: Scan, data: Mapping[str, Any], config: Mapping[str, Any]
) -> tuple[list[ProjectCommand], tuple[tuple[str, str], ...]]:
    files = [path for path in scan.ending(".py") if re.match(r"test_.*|.*_test\.py$", path.rpartition("/")[2])]
    if not files:
        return [], ()
    example = min(files, key=lambda path: (path.count("/"), path))
    folder = example.rpartition("/")[0]
    patterns = ((f"Tests ({len(files)} file{'' if len(files) == 1 else 's'})", f"`{example}` and its neighbours"),)
    settings = (
        "pyproject.toml" if "pytest" in table(data, "tool") else None,
        scan.first("pytest.ini"),
        "setup.cfg" if "tool:pytest" in config else None,
        next((path for path in ("conftest.py", "tests/conftest.py", "test/conftest.py") if scan.has(path)), None),
    )
    source = next((name for name in settings if name), None)
    if source is None and any("import pytest" in scan.text(path) for path in files[:20]):
        source = example
    if source is not None:
        return [
            ProjectCommand("test", "pytest", source),
            ProjectCommand("test_one", f"pytest {example}", example),
        ], patterns
    content = scan.text(example)
    if _UNITTEST.search(content):
        start = f" discover -s {folder}" if folder else ""
        return [
            ProjectCommand("test", f"python3 -m unittest{start}", example),
            ProjectCommand("test_one", f"python3 -m unittest {example}", example),
        ], patterns
    if _SCRIPT.search(content):
        purpose = "test" if len(files) == 1 else "test_one"
        return [ProjectCommand(purpose, f"python3 {example}", example)], patterns
    return [], patterns


def _checks(scan: Scan, data: Mapping[str, Any], config: Mapping[str, Any]) -> list[ProjectCommand]:
    tools = table(data, "tool")
    found: list[ProjectCommand] = []

    def add(purpose: Purpose, command: str, table_name: str, *files: str) -> None:
        section = "pyproject.toml" if table_name in tools else "setup.cfg" if table_name in config else None
        source = scan.first(*files) or section
        if source:
            found.append(ProjectCommand(purpose, command, source, table_name))

    add("lint", "ruff check .", "ruff", "ruff.toml", ".ruff.toml")
    add("lint", "flake8", "flake8", ".flake8")
    if "ruff" in tools and "format" in table(tools, "ruff"):
        add("format", "ruff format .", "ruff")
    add("format", "black .", "black")
    add("types", "mypy .", "mypy", "mypy.ini")
    add("types", "basedpyright", "basedpyright")
    add("types", "pyright", "pyright", "pyrightconfig.json")
    return found


def _entry_points(project: Mapping[str, Any], poetry: Mapping[str, Any]) -> dict[str, str]:
    """Name of the command -> module."""
    scripts = {**table(poetry, "scripts"), **table(project, "gui-scripts"), **table(project, "scripts")}
    return {name: target.partition(":")[0].strip() for name, target in scripts.items() if isinstance(target, str)}


def _module_file(scan: Scan, module: str) -> str | None:
    base = module.replace(".", "/")
    return scan.first(*(f"{prefix}{base}{end}" for prefix in ("", "src/") for end in (".py", "/__init__.py")))


def _entry_files(scan: Scan, entries: Mapping[str, str]) -> list[KeyFile]:
    found = [
        KeyFile(path, f"entry point of the command `{name}`")
        for name, module in entries.items()
        if (path := _module_file(scan, module))
    ]
    mains = [path for path in scan.ending("/__main__.py", "manage.py") if path.count("/") <= 2]
    found.extend(KeyFile(path, "runs as a program") for path in mains)
    return found[:4]


def _run(scan: Scan, entries: Mapping[str, str]) -> list[ProjectCommand]:
    for name, module in entries.items():
        if _module_file(scan, module):
            return [ProjectCommand("run", name, "pyproject.toml", name)]
    if scan.has("manage.py"):
        return [ProjectCommand("run", "python3 manage.py runserver", "manage.py")]
    for path in scan.ending("__main__.py"):
        package, _, _ = path.removeprefix("src/").rpartition("/")
        if package and "/" not in package:
            return [ProjectCommand("run", f"python3 -m {package}", path)]
    script = scan.first("main.py", "app.py", "run.py")
    return [ProjectCommand("run", f"python3 {script}", script)] if script else []


def _dependencies(
    scan: Scan, project: Mapping[str, Any], poetry: Mapping[str, Any], config: Mapping[str, Any]
) -> tuple[Dependency, ...]:
    if listed := texts(project.get("dependencies")):
        return tuple(_parse(listed, "pyproject.toml"))
    if stated := table(poetry, "dependencies"):
        return tuple(
            Dependency(name, text(version), "pyproject.toml") for name, version in stated.items() if name != "python"
        )
    if required := text_lines(table(config, "options").get("install_requires")):
        return tuple(_parse(required, "setup.cfg"))
    file = scan.first("requirements.txt")
    return tuple(_parse(scan.text(file).splitlines(), file)) if file else ()


def text_lines(value: Any) -> list[str]:
    """The lines of a string; empty for anything else."""
    return value.splitlines() if isinstance(value, str) else []


def _parse(lines: Iterable[str], source: str) -> Iterable[Dependency]:
    for line in lines:
        match = _REQUIREMENT.match(line.strip())
        if match:
            yield Dependency(match.group(1), (match.group(2) or "").strip(), source)
