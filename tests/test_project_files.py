"""The repository keeps its own rules: sizes, stubs, addresses, paths."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAX_FUNCTION = 80
ABSTRACT = ("swecli/tui/status_bar.py",)
"""Base classes of widgets: the framework's metaclass leaves no room for abstract methods."""


@cache
def repository_files() -> tuple[Path, ...]:
    """What git tracks, or everything but caches where the source came without git."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listing.returncode == 0 and listing.stdout:
        paths = (ROOT / name for name in listing.stdout.decode("utf-8", "surrogateescape").split("\0") if name)
    else:
        paths = (path for path in ROOT.rglob("*") if not any(part.startswith(".") for part in path.parts[1:]))
    return tuple(path for path in paths if path.is_file())


def python_files(*folders: str) -> list[Path]:
    return [path for path in repository_files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders]


def text_files() -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for path in repository_files():
        data = path.read_bytes()
        if b"\0" not in data[:4096]:
            found.append((path.relative_to(ROOT), data.decode("utf-8", "replace")))
    return found


def test_no_function_is_longer_than_a_screen() -> None:
    long: dict[str, int] = {}
    for path in python_files("swecli"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION:
                    long[f"{path.relative_to(ROOT)}:{node.name}"] = lines
    assert not long


def test_the_core_imports_no_user_interface() -> None:
    guilty = [
        str(path.relative_to(ROOT))
        for path in python_files("swecli")
        if path.is_relative_to(ROOT / "swecli" / "core")
        and re.search(r"^\s*(?:from|import)\s+(?:textual|rich)\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert not guilty


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("a stub", r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b|raise NotImplemented" r"Error|coming" r" soon"),
        ("a swallowed failure", r"except(?: \(?(?:Base)?Exception\)?)?:\s*(?:\n\s*)?pass\b"),
    ],
)
def test_the_program_has_no(what: str, pattern: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match.group(0)!r}"
        for path in python_files("swecli")
        if path.relative_to(ROOT).as_posix() not in ABSTRACT
        and (match := re.search(pattern, path.read_text(encoding="utf-8")))
    ]
    assert not found, what


def test_no_file_names_a_package_index_or_a_path_of_a_developer_machine() -> None:
    pattern = re.compile(
        r"--(?:extra-)?index"
        r"-url|--find"
        r"-links|--trusted"
        r"-host|file:///(?:opt|home|root|work)"
        r"|/(?:home|Users)/(?!user\b|me\b|you\b|alice\b|someone\b|name\b)[a-z]\w+/|/work"
        r"/main|/tmp/"
        r"bash_jobs"
    )
    found = [
        f"{path}: {match.group(0)}"
        for path, text in text_files()
        if path.name not in ("test_project_files.py", "lock.sh") and (match := pattern.search(text))
    ]
    assert not found


def test_the_development_tree_is_pinned_with_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned_text = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    pinned = {name.lower(): version for name, version in re.findall(r"^([\w.-]+)==([\w.]+)", pinned_text, re.MULTILINE)}
    for requirement in [*project["dependencies"], *project["optional-dependencies"]["dev"]]:
        name = re.match(r"[\w.-]+", requirement)
        assert name is not None
        assert name.group(0).lower() in pinned, f"{requirement} is not pinned; run make lock"
        assert "<" in requirement, f"{requirement} has no upper bound"
    for block in re.split(r"\n(?=\S)", pinned_text):
        assert block.startswith("#") or "--hash=sha256:" in block, block


def test_make_has_the_promised_targets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test", "run", "bench", "soak", "test-live"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
