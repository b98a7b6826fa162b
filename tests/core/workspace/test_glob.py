"""Globs."""

from __future__ import annotations

import pytest

from swecli.core.workspace.walk import Glob


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/deep/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/b/c/a.py", True),
        ("**/test_*.py", "test_a.py", True),
        ("./src/*", "src/a", True),
        ("src/**", "src/a/b", True),
        ("src/**", "src", False),
        ("*.{ts,tsx}", "web/a.tsx", True),
        ("{src,lib}/**/*.{c,h}", "lib/x/y.h", True),
        ("{src,lib}/**/*.{c,h}", "bin/x/y.h", False),
        ("[ab]?.txt", "b1.txt", True),
        ("!*.md", "a.py", True),
        ("!*.md", "docs/a.md", False),
        ("a{b", "a{b", True),
        ("{a,{b,c}}.md", "docs/c.md", True),
        ("{a,}", "a", True),
    ],
)
def test_matches(pattern: str, path: str, expected: bool) -> None:
    assert Glob(pattern).matches(path) is expected


def test_hostile_patterns_are_quick() -> None:
    assert not Glob("/".join(["**", "a*a*a*a*a*a*a*b"] * 8)).matches("/".join(["a" * 60] * 16))
    assert not Glob("{a,b}" * 40).matches("c")
