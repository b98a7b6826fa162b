"""Tasks that a project names: make, just, tox, nox."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterable

from swecli.core.context_management.project_facts.facts import Findings, KeyFile, ProjectCommand
from swecli.core.context_management.project_facts.purpose import purpose_of, rank
from swecli.core.context_management.project_facts.scan import Scan

_MAKE_TARGET = re.compile(r"^([A-Za-z][\w.-]*(?:[ \t]+[A-Za-z][\w.-]*)*)[ \t]*::?(?!=)", re.MULTILINE)
_JUST_RECIPE = re.compile(r"^@?([A-Za-z][\w-]*)((?:[ \t]+[^:\n]+)?):(?!=)", re.MULTILINE)
_NOX_SESSION = re.compile(r"^@(?:nox\.)?session\b[^\n]*\n(?:@[^\n]*\n)*def[ \t]+(\w+)", re.MULTILINE)


def make_targets(text: str) -> list[str]:
    """Targets with a plain name, in order; pattern rules, variables and special targets are none."""
    names = [name for match in _MAKE_TARGET.finditer(text) for name in match.group(1).split()]
    return list(dict.fromkeys(names))


def read_make(scan: Scan) -> Findings:
    path = scan.first("GNUmakefile", "makefile", "Makefile")
    if path is None:
        return Findings()
    return _findings(path, "make", make_targets(scan.text(path)), "tasks of the project (make)")


def read_just(scan: Scan) -> Findings:
    path = scan.first("justfile", "Justfile", ".justfile")
    if path is None:
        return Findings()
    # A recipe with a parameter that has no default can't be run by its name alone.
    names = [
        match.group(1)
        for match in _JUST_RECIPE.finditer(scan.text(path))
        if all("=" in word or word.startswith("*") for word in match.group(2).split())
    ]
    return _findings(path, "just", names, "tasks of the project (just)")


def read_tox(scan: Scan) -> Findings:
    path = scan.first("tox.ini")
    if path is None:
        return Findings()
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(scan.text(path))
    except configparser.Error:
        return Findings()
    if not any(name == "tox" or name.startswith("testenv") for name in parser.sections()):
        return Findings()
    commands = [ProjectCommand("test", "tox", path)]
    for section in parser.sections():
        name = section.removeprefix("testenv:")
        purpose = purpose_of(name) if name != section else None
        if purpose:
            commands.append(ProjectCommand(purpose, f"tox -e {name}", path, name))
    return Findings(commands=tuple(commands), key_files=(KeyFile(path, "test environments (tox)"),))


def read_nox(scan: Scan) -> Findings:
    path = scan.first("noxfile.py")
    if path is None:
        return Findings()
    return _findings(path, "nox -s", _NOX_SESSION.findall(scan.text(path)), "test sessions (nox)")


def _findings(path: str, runner: str, names: Iterable[str], why: str) -> Findings:
    commands = [
        ProjectCommand(purpose, f"{runner} {name}", path, name)
        for name in sorted(dict.fromkeys(names), key=rank)
        if (purpose := purpose_of(name)) is not None
    ]
    return Findings(commands=tuple(commands), key_files=(KeyFile(path, why),))
