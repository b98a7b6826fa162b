"""Figures of the engine's structure: what a reader has to keep in mind at once.

    python -m scripts.engine_figures           a table
    python -m scripts.engine_figures --names   also what is counted

Arguments count without ``self``; modules are those of ``swecli`` that a file imports anywhere. A feature's outside are
the files that import its modules without being one of them. A Protocol is implemented by a class with all its names.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "swecli"
ENGINE = PACKAGE / "core" / "engine"
MOST_ARGUMENTS = 7
MOST_MODULES = 20
COMPOSITION = (
    "core/engine/session.py",
    "core/engine/building.py",
    "core/engine/turn.py",
    "assembly/services.py",
    "tui/openers.py",
)
FEATURES = ("sentinel", "spending", "mcp", "memory", "playbook", "hooks", "retrieval", "subagents")


def modules_of(tree: ast.AST) -> set[str]:
    """Modules of swecli that this code imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("swecli"):
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if alias.name.startswith("swecli"))
    return found


def constructors(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Classes with a constructor of their own, and the number of its arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    arguments = method.args
                    yield node.name, len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]) - 1


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).split("[")[0].endswith("Protocol") for base in node.bases)


def _names(node: ast.ClassDef) -> set[str]:
    """Public methods, properties and attributes of a class; attributes also where its methods set them."""
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(part.name)
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            found.add(part.target.id)
        elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and ast.unparse(part.value) == "self":
            found.add(part.attr)
    return {name for name in found if not name.startswith("_") or name == "__call__"}


def single_protocols(trees: Iterable[ast.AST]) -> list[str]:
    """Protocols that one class of swecli implements, as ``Protocol: class``."""
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    own = {node.name: _names(node) for node in classes}
    bases = {node.name: [ast.unparse(base).split("[")[0] for base in node.bases] for node in classes}

    def all_names(name: str) -> set[str]:
        return own.get(name, set()).union(*(all_names(base) for base in bases.get(name, ()) if base != name))

    found: list[str] = []
    protocols = [node for node in classes if _is_protocol(node)]
    for protocol in protocols:
        wanted = all_names(protocol.name)
        others = {node.name for node in classes if not _is_protocol(node) and wanted <= all_names(node.name)}
        if len(others) == 1 and wanted:
            found.append(f"{protocol.name}: {others.pop()}")
    return found


def main(arguments: list[str]) -> int:
    paths = sorted(PACKAGE.rglob("*.py"))
    trees = {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    lines = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8").count("\n") for path in paths}
    modules = {name: modules_of(tree) for name, tree in trees.items()}
    engine = [name for name in trees if name.startswith("core/engine/")]
    made = {f"{name}:{kind}": number for name in engine for kind, number in constructors(trees[name])}
    wide = {name: number for name, number in made.items() if number > MOST_ARGUMENTS}
    single = single_protocols(trees.values())
    session = (ENGINE / "session.py").read_text(encoding="utf-8").splitlines()
    nested = sum("outer" in line or "inner" in line for line in session)
    many = {name: len(found) for name, found in modules.items() if len(found) > MOST_MODULES}
    by_class = {name.partition(":")[2]: number for name, number in made.items()}
    rows: list[tuple[str, str]] = [
        ("arguments of Turn; ToolCalls", f"{by_class['Turn']}; {by_class['ToolCalls']}"),
        (f"constructors of the engine over {MOST_ARGUMENTS}; most", f"{len(wide)}; {max(made.values())}"),
        *((f"modules imported by {name}", str(len(modules[name]))) for name in COMPOSITION if name in modules),
        (f"other files with more than {MOST_MODULES}", str(len(many.keys() - set(COMPOSITION)))),
        ("engine: files; lines", f"{len(engine)}; {sum(lines[name] for name in engine):,}"),
        ("lines of session.py naming outer or inner", str(nested)),
        ("Protocols with one implementation", str(len(single))),
        ("lines of swecli/", f"{sum(lines.values()):,}"),
    ]
    outside: dict[str, list[str]] = {}
    for feature in FEATURES:
        users = [name for name, found in modules.items() if any(feature in module for module in found)]
        outside[feature] = [name for name in users if feature not in name]
    rows += [(f"files outside that import {feature}", str(len(names))) for feature, names in outside.items()]
    for what, value in rows:
        print(f"{what:<52} {value}")
    if "--names" in arguments:
        print("\nwide constructors:", *(f"  {name} {number}" for name, number in sorted(wide.items())), sep="\n")
        print("\nmany modules:", *(f"  {name} {number}" for name, number in sorted(many.items())), sep="\n")
        print("\nProtocols:", *(f"  {name}" for name in single), sep="\n")
        for feature, names in outside.items():
            print(f"\noutside {feature}:", *(f"  {name}" for name in names), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
