"""The repository keeps its own rules: sizes, stubs, addresses, paths."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.syntax_trees import nodes_of, parts_of, statements_of, tree_of

ROOT = Path(__file__).resolve().parent.parent
MAX_FUNCTION = 80
SHORT, FEW_SHORT, MEAN = 40, 0.06, 185
"""Lines of a file that needs a reason, the share of such files, and the lines that a file has on average at least."""
CHECKS = {"raises", "fail"}
"""Calls that check something, beside ``assert``."""
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


@dataclass(frozen=True, slots=True)
class Outline:
    """What is asked of a file of the program, which is parsed once: its functions that are too long and how many lines
    they have, and the modules of the program that it imports."""

    long: list[tuple[str, int]]
    imports: set[str]


@cache
def _outlines() -> dict[str, Outline]:
    """By the module's name."""
    found: dict[str, Outline] = {}
    for name, path in _modules().items():
        tree = tree_of(path)
        found[name] = Outline(_long(tree), _imports(name, tree))
    return found


def _long(tree: ast.Module) -> list[tuple[str, int]]:
    functions = [node for node in statements_of(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    lines = [(node.name, (node.end_lineno or node.lineno) - node.lineno + 1) for node in functions]
    return [(name, count) for name, count in lines if count > MAX_FUNCTION]


def test_no_function_is_longer_than_a_screen() -> None:
    assert len(_outlines()) > 100
    assert not {name: one.long for name, one in _outlines().items() if one.long}


def test_files_are_not_cut_into_pieces() -> None:
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in python_files("swecli")}
    sample = ROOT / "swecli" / "demo" / "project"
    # Python asks for the file of a package, and the sample project is what a user of the demonstration sees.
    short = [path for path in lines if path.name != "__init__.py" and not path.is_relative_to(sample)]
    short = [str(path.relative_to(ROOT)) for path in short if lines[path] < SHORT]
    assert len(short) <= FEW_SHORT * len(lines), short
    assert sum(lines.values()) >= MEAN * len(lines)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a test file: where it is, whether it checks something itself, and if not, what it calls."""

    place: str
    name: str
    asserts: bool
    calls: frozenset[str]


def _functions(path: Path) -> Iterator[Function]:
    for node in statements_of(tree_of(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            asserts = any(isinstance(part, ast.Assert) for part in statements_of(node))
            called = [] if asserts else [part.func for part in nodes_of(node) if isinstance(part, ast.Call)]
            calls = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in called}
            yield Function(f"{path.relative_to(ROOT)}:{node.name}", node.name, asserts, frozenset(calls))


def test_every_test_checks_something() -> None:
    functions = [function for path in python_files("tests") for function in _functions(path)]
    checking = {function.name for function in functions if function.asserts} | CHECKS
    for _ in range(3):  # a function that calls one that checks, and so on
        checking |= {function.name for function in functions if function.calls & checking}
    assert not [
        each.place
        for each in functions
        if each.name.startswith("test_") and not (each.asserts or each.calls & checking)
    ]


def test_no_imports_go_in_a_circle() -> None:
    imports = {name: one.imports for name, one in _outlines().items()}
    assert len(imports) > 100
    order = TopologicalSorter(imports)
    try:
        order.prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@cache
def _modules() -> dict[str, Path]:
    """Files of the program by their module's name."""
    files = {path.relative_to(ROOT).with_suffix(""): path for path in python_files("swecli")}
    return {".".join(name.parts).removesuffix(".__init__"): path for name, path in files.items()}


def _imports(module: str, tree: ast.Module) -> set[str]:
    """Modules of the program that one imports, those in its functions included; not those for type checkers only."""
    found: set[str] = set()
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            nodes += node.orelse
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in _modules() else str(node.module) for name in names}
        else:
            nodes += parts_of(node)
    return (found & _modules().keys()) - {module}


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
        ("a possessive group, which Python before 3.11.5 matches wrongly (gh-106052)", r"[^(]\)[*+?}]\+|\(\?>"),
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
