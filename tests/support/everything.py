"""A project and a user with something of each kind: two servers, five skills, three hooks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from swecli.core.config.trust import write_trust
from tests.core.mcp.support import SERVER

HOOKED = ("UserPromptSubmit", "PreToolUse", "Stop")


def configure(folder: Path, home: Path) -> None:
    """Write all of it. ``folder`` is trusted then; ``home`` is the program's home and must not be there yet."""
    servers = {name: {"command": sys.executable, "args": [str(SERVER)]} for name in ("one", "two")}
    home.mkdir()
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    for number in range(5):
        skill = folder / ".claude" / "skills" / f"skill-{number}"
        skill.mkdir(parents=True)
        text = f"---\nname: skill-{number}\ndescription: Does thing {number}\n---\nDo it.\n"
        (skill / "SKILL.md").write_text(text)
    (home / "config.toml").write_text("".join(f'[[hooks.{event}]]\ncommand = "true"\n' for event in HOOKED))
    write_trust(home / "data", folder, "trusted")
