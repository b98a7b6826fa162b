"""What a guide to a project says, whoever wrote it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swecli.core.context_management.codebase import read_guide

BY_HAND = """# Project: test_swecli

## Overview
A web application using FastAPI for authentication and user management.

## Structure
```
test_swecli/
├── api/
│   ├── auth.py (JWT token generation)
│   ├── users.py (User CRUD endpoints)
│   └── middleware/
│       └── auth.py (Authentication middleware)
├── models/
│   └── user.py (User data model)
├── tests/
│   └── test_auth.py (Authentication tests)
└── main.py (Application entry)
```

## Key Files
- `api/auth.py` - Core authentication logic
- `models/user.py` - User model with validation
- `main.py` - FastAPI app initialization

## Patterns
- Authentication: `api/middleware/auth.py:auth_required()`
- Tokens: made by `api/auth.py`, checked by `api/middleware/auth.py`
"""


def test_a_guide_with_a_drawn_tree() -> None:
    facts = read_guide(BY_HAND)
    assert facts.summary == "A web application using FastAPI for authentication and user management."
    assert facts.structure == {
        "api": ["auth.py", "users.py"],
        "api/middleware": ["auth.py"],
        "models": ["user.py"],
        "tests": ["test_auth.py"],
        ".": ["main.py"],
    }
    assert facts.key_files == ["api/auth.py", "models/user.py", "main.py"]
    assert facts.patterns == {
        "Authentication": "api/middleware/auth.py:auth_required()",
        "Tokens": "made by `api/auth.py`, checked by `api/middleware/auth.py`",
    }


@pytest.mark.parametrize(
    "tree",
    [
        "shop\n|-- api\n|   |-- a.py\n|   `-- b.py\n`-- main.py",
        "shop\n├── api\n│\u00a0\u00a0 ├── a.py\n│\u00a0\u00a0 └── b.py\n└── main.py",  # as tree(1) draws it
        "shop/\n+-- api/\n|   +-- a.py\n|   +-- b.py\n+-- main.py",
    ],
)
def test_trees_of_every_form(tree: str) -> None:
    assert read_guide(f"## Layout\n\n```text\n{tree}\n```\n").structure == {"api": ["a.py", "b.py"], ".": ["main.py"]}


def test_lines_that_are_no_tree_are_no_files() -> None:
    text = "## Structure\n\n- `src/`: 9 files (.py)\n\n| folder | what |\n|---|---|\n| src | code |\n"
    assert read_guide(text).structure == {"src": []}


def test_a_long_line_of_blanks_takes_no_time() -> None:
    blanks = " " * 100_000  # a pattern with a choice at each blank would never end
    assert read_guide(f"## Structure\n{blanks}|\n{blanks}├── a.py\n").structure == {".": ["a.py"]}


@given(st.text(alphabet="│├└─|-+` \u00a0\tab/.\n#"))
def test_any_drawing_is_read(text: str) -> None:
    structure = read_guide(f"## Structure\n{text}").structure
    assert all(folder and "/" not in file for folder, files in structure.items() for file in files)
