"""Python files as syntax trees, and all nodes of one: tests look at the whole program and all tests."""

from __future__ import annotations

import ast
import contextlib
import gc
from collections.abc import Iterator
from pathlib import Path

_HOLDING = frozenset(("body", "orelse", "handlers", "finalbody", "cases"))


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Trees have no cycles, but arise in so many objects that Python would search them all for garbage again and again:
    more than half of the time where many trees are kept."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def tree_of(path: Path) -> ast.Module:
    """The tree of a file."""
    with without_collections():
        return ast.parse(path.read_text(encoding="utf-8"))


def statements_of(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements below one, those of functions and classes included, without a look into expressions."""
    rest = [tree]
    while rest:
        parts = parts_of(rest.pop())
        rest += parts
        yield from parts


def parts_of(node: ast.AST) -> list[ast.AST]:
    """The statements in a statement, and what holds some: handlers of exceptions and cases."""
    found: list[ast.AST] = []
    for name in node._fields:
        if name in _HOLDING and isinstance(part := getattr(node, name, None), list):
            found += part
    return found


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """The tree and all nodes below it, breadth first as ``ast.walk`` does it, in half of the time: without those that
    have no parts, which are operators and whether a name is read or set."""
    found = [tree]
    add = found.append
    for node in found:
        for name in node._fields:
            part = getattr(node, name, None)
            if isinstance(part, list):
                for one in part:
                    if isinstance(one, ast.AST):
                        add(one)
            elif isinstance(part, ast.AST) and part._fields:
                add(part)
    return found
