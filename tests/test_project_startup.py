"""Start-up is a feature: what is imported, counted rather than timed."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("textual", "rich", "httpx", "pydantic", "tiktoken", "pygments", "sqlite3", "asyncio", "argparse")


def imported(code: str) -> set[str]:
    """Names of all modules after ``code`` ran in a fresh interpreter."""
    script = f"{code}\nimport sys\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert run.returncode == 0, run.stderr
    return set(run.stderr.split())


def top(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


def test_the_version_costs_next_to_nothing() -> None:
    bare = imported("import io")
    asked = imported("from swecli.cli import main\nmain(['--version'])")
    assert not top(asked) & set(HEAVY)
    assert asked - bare <= {"swecli", "swecli.cli"}


needs_acp = pytest.mark.skipif(find_spec("acp") is None, reason="the SDK has no release for this Python")


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("swecli.core.engine.session", ("textual", "rich", "httpx")),
        ("swecli.core.engine", ("textual", "rich", "httpx", "tiktoken")),
        ("swecli.commands.registry", ("textual", "rich", "httpx", "tiktoken", "sqlite3")),
        ("swecli.core.workspace.worker", ("msgspec", "pathspec", "pydantic", "asyncio")),
        ("swecli.core.protocol.codec", ("textual", "rich", "httpx", "pydantic")),
        ("swecli.app", ("textual", "rich", "acp")),
        ("swecli.headless.run", ("textual", "rich", "httpx", "acp")),
        ("swecli.assembly.services", ("textual", "rich", "httpx", "pydantic")),
        ("swecli.command_line.acp", ("textual", "httpx", "acp", "asyncio")),
        ("swecli.command_line.mcp", ("textual", "httpx", "mcp", "asyncio")),
        pytest.param("swecli.acp.agent", ("textual", "rich", "httpx"), marks=needs_acp),
        ("swecli.tui.app", ("httpx", "tiktoken", "sqlite3", "pydantic")),
    ],
)
def test_a_part_loads_only_what_it_is_for(module: str, absent: tuple[str, ...]) -> None:
    assert not top(imported(f"import {module}")) & set(absent)


@pytest.mark.parametrize("protocol", ["openai_chat", "anthropic", "openai_responses", "gemini", "ollama"])
def test_a_protocol_loads_no_other(protocol: str) -> None:
    package = "swecli.core.llm.protocols."
    loaded = imported(f"import {package}{protocol}")
    assert {name for name in loaded if name.startswith(package)} <= {
        f"{package}{name}" for name in ("arguments", "base", protocol)
    }


def test_the_first_frame_waits_for_values_only_not_for_the_engine() -> None:
    packages = ("context_management", "permissions", "sessions", "tools", "workspace", "config")
    keys = {"swecli.core.config", "swecli.core.config.key_actions"}  # plain data
    early = imported("import swecli.tui.app") - keys
    assert not [module for module in early if module.startswith(tuple(f"swecli.core.{name}" for name in packages))]
