"""Every setting has a reader: some code outside of the settings asks for the value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import swecli
from swecli.core.config.key_actions import ACTIONS
from swecli.core.config.settings import ApprovalSettings, KeySettings, Section, Settings
from swecli.core.permissions.types import RuleEffect
from swecli.core.validation import fields_by_name
from tests.support.syntax_trees import nodes_of, tree_of, without_collections

PROGRAM = Path(swecli.__file__).parent
ROUNDS = 3
"""A value is passed on so often before it is read, at most: each round finds the names that the one before gave it."""

PASSING_ON = (
    *(ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.AnnAssign, ast.Assign, ast.For, ast.comprehension),
    ast.NamedExpr,
)
READ_ALL = ("fields_of", "asdict", "getattr")
"""Functions that may read all fields of what they are given."""

Kinds = dict[str, set[type[Section]]]


def sections(section: type[Section] = Settings) -> set[type[Section]]:
    """A section and all that are reached from it, also in lists and tables."""
    found = {section}
    for field in fields_by_name(section).values():
        for inner in inner_sections(field.type):
            found |= sections(inner)
    return found


def inner_sections(annotation: object) -> set[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return {annotation}
    return {found for part in get_args(annotation) for found in inner_sections(part)}


class Readers:
    """Follows settings through the program by annotations, assignments, loops and results of functions. A name that
    holds a section somewhere in a file counts as one in all of the file; attributes and functions in all files."""

    def __init__(self, trees: dict[str, ast.Module]) -> None:
        self.trees = trees
        self.known = {section.__name__: section for section in sections()}
        self.read: set[tuple[type[Section], str]] = set()
        self.names: dict[str, Kinds] = {file: {} for file in trees}
        self.attributes: Kinds = {}
        self.functions: Kinds = {}
        self.words: dict[ast.expr, frozenset[str]] = {}
        self.fields = {name for section in self.known.values() for name in fields_by_name(section)}

    def follow(self) -> None:
        nodes = {file: [node for node in nodes_of(tree) if self._tells(node)] for file, tree in self.trees.items()}
        for _ in range(ROUNDS):
            for file, found in nodes.items():
                for node in found:
                    self._node(node, self.names[file])

    def _tells(self, node: ast.AST) -> bool:
        """Whether it may pass on a section or read of one. Most expressions do neither by themselves: the parts of them
        that do are nodes of their own."""
        if isinstance(node, ast.Attribute):
            return node.attr in self.fields
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Name) and node.func.id in READ_ALL
        if isinstance(node, ast.arg):
            return bool(self._annotated(node.annotation))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return bool(self._annotated(node.returns))
        return isinstance(node, PASSING_ON)

    def _node(self, node: ast.AST, names: Kinds) -> None:
        if isinstance(node, ast.arg):
            note(names, node.arg, self._annotated(node.annotation))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            note(self.functions, node.name, self._annotated(node.returns))
            if any(isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list):
                note(self.attributes, node.name, self._annotated(node.returns))
        elif isinstance(node, ast.AnnAssign):
            kinds = self._annotated(node.annotation)
            self._bind(node.target, kinds, names)
            if isinstance(node.target, ast.Name):
                note(self.attributes, node.target.id, kinds)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value, names)
        elif isinstance(node, (ast.For, ast.comprehension)):
            kinds = self._kinds(node.iter, names)
            self._bind(node.target, kinds, names)
        elif isinstance(node, ast.NamedExpr):
            self._bind(node.target, self._kinds(node.value, names), names)
        elif isinstance(node, ast.expr):
            self._kinds(node, names)

    def _assign(self, target: ast.expr, value: ast.expr, names: Kinds) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, other in zip(target.elts, value.elts, strict=False):
                self._assign(one, other, names)
        else:
            self._bind(target, self._kinds(value, names), names)

    def _bind(self, target: ast.expr, kinds: set[type[Section]], names: Kinds) -> None:
        if isinstance(target, ast.Name):
            note(names, target.id, kinds)
        elif isinstance(target, ast.Attribute):
            note(self.attributes, target.attr, kinds)
        elif isinstance(target, ast.Tuple):
            for one in target.elts:
                self._bind(one, kinds, names)

    def _annotated(self, annotation: ast.expr | None) -> set[type[Section]]:
        if annotation is None:
            return set()
        if isinstance(annotation, ast.Name):
            return {self.known[annotation.id]} if annotation.id in self.known else set()
        if annotation not in self.words:
            self.words[annotation] = frozenset(re.findall(r"[\w.]+", ast.unparse(annotation)))
        return {self.known[word] for word in self.words[annotation] if word in self.known}

    def _kinds(self, node: ast.expr, names: Kinds) -> set[type[Section]]:
        """The sections that an expression may be, or hold as a list or table."""
        if isinstance(node, ast.Name):
            return names.get(node.id, set())
        if isinstance(node, ast.Attribute):
            owners = self._kinds(node.value, names)
            fields = [
                (owner, fields_by_name(owner)[node.attr]) for owner in owners if node.attr in fields_by_name(owner)
            ]
            self.read |= {(owner, node.attr) for owner, _ in fields}
            if fields:
                return {inner for _, field in fields for inner in inner_sections(field.type)}
            return owners if node.attr in ("values", "items", "get") else self.attributes.get(node.attr, set())
        if isinstance(node, ast.Call):
            return self._called(node, names)
        if isinstance(node, ast.Subscript):
            return self._kinds(node.value, names)
        if isinstance(node, (ast.BoolOp, ast.IfExp)):
            parts = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
            return {kind for part in parts for kind in self._kinds(part, names)}
        return set()

    def _called(self, node: ast.Call, names: Kinds) -> set[type[Section]]:
        called = node.func
        if isinstance(called, ast.Attribute):
            return self._kinds(called, names) | self.functions.get(called.attr, set())
        name = called.id if isinstance(called, ast.Name) else ""
        if name in self.known:
            return {self.known[name]}
        if name in ("fields_of", "asdict"):
            self._all(self._kinds(node.args[0], names))
            return set()
        if name == "getattr" and not isinstance(node.args[1], ast.Constant):
            self._all(self._kinds(node.args[0], names))
            return set()
        if name in ("enumerate", "sorted", "reversed", "tuple", "list", "next", "iter") and node.args:
            return self._kinds(node.args[0], names)
        return self.functions.get(name, set())

    def _all(self, kinds: set[type[Section]]) -> None:
        self.read |= {(owner, field) for owner in kinds for field in fields_by_name(owner)}


def note(kinds: Kinds, name: str, found: set[type[Section]]) -> None:
    if found:
        kinds.setdefault(name, set()).update(found)


def program() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PROGRAM.rglob("*.py")):
        yield str(path.relative_to(PROGRAM)), tree_of(path)


def test_every_setting_has_a_reader() -> None:
    with without_collections():
        readers = Readers(dict(program()))
        readers.follow()
    fields = {(section, name) for section in sections() for name in fields_by_name(section)}
    # The keys are asked for by the name of the action, the rules by that of their list.
    by_name = {(KeySettings, action.name) for action in ACTIONS} | {
        (ApprovalSettings, effect) for effect in get_args(RuleEffect)
    }
    unread = sorted(f"{section.__name__}.{name}" for section, name in fields - readers.read - by_name)
    assert not unread


def test_every_action_of_the_keys_is_taken_up() -> None:
    missing = {action.name for action in ACTIONS}
    for path in (PROGRAM / "tui").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if any(name in text for name in missing):
            missing -= {node.value for node in nodes_of(tree_of(path)) if isinstance(node, ast.Constant)}
    assert not missing
