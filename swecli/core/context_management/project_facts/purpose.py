"""What a named task is for."""

from __future__ import annotations

from swecli.core.context_management.project_facts.facts import Purpose

_NAMES: tuple[tuple[Purpose, tuple[str, ...]], ...] = (
    ("install", ("install", "setup", "bootstrap", "deps", "init", "dev-install", "install-dev", "sync")),
    ("test", ("test", "tests", "check-test", "unit", "unittest", "test-unit", "test:unit", "unit-test", "spec")),
    ("lint", ("lint", "lint:check", "check", "ruff", "flake8", "eslint", "clippy", "vet", "style", "pre-commit")),
    ("format", ("format", "fmt", "black", "prettier", "format:write", "fix")),
    ("types", ("typecheck", "type-check", "types", "mypy", "pyright", "tsc", "typing", "check-types", "check:types")),
    ("build", ("build", "compile", "all", "dist", "package", "bundle")),
    ("run", ("run", "start", "serve", "dev", "server", "demo")),
)


def purpose_of(name: str) -> Purpose | None:
    """The purpose that a task's name states, or None when it is of another kind."""
    plain = name.lower().replace("_", "-")
    return next((purpose for purpose, names in _NAMES if plain in names), None)


def rank(name: str) -> int:
    """How usual a name is for its purpose: 0 is the most usual. For names without a purpose a high number."""
    plain = name.lower().replace("_", "-")
    return next((names.index(plain) for _, names in _NAMES if plain in names), 99)
