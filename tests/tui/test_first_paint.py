"""What is loaded before the first paint: counted in modules, so that the machine's speed does not matter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import json, sys
import swecli.tui.launch as launch
from swecli.command_line.interactive import run_interactive
from swecli.launch import LaunchOptions
from pathlib import Path
launch.run = lambda options, terminal: print(json.dumps(sorted(sys.modules))) or 0
run_interactive(LaunchOptions(cwd=Path.cwd()))
"""
HEAVY = ("pydantic", "textual", "rich", "httpx", "tomlkit", "tomllib", "sqlite3", "pygments", "tiktoken", "mcp")


def test_nothing_heavy_is_loaded_before_the_first_paint(tmp_path: Path) -> None:
    environment = {**os.environ, "SWECLI_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    loaded: list[str] = json.loads(done.stdout)
    assert [name for name in loaded if name.partition(".")[0] in HEAVY] == []
    ours = [name for name in loaded if name.startswith("swecli")]
    assert not any(name.startswith(("swecli.core.engine", "swecli.core.llm", "swecli.commands")) for name in ours)
    assert len(ours) <= 30, ours
