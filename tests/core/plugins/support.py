"""Plugins in folders and repositories of a test."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    **{
        f"GIT_{who}_{what}": f"t{'@t' * (what == 'EMAIL')}"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    },
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


def make_plugin(root: Path, files: Mapping[str, Any], name: str = "tools") -> Path:
    """A plugin's folder; a value that is no text is written as JSON."""
    for path, content in {".claude-plugin/plugin.json": {"name": name}, **files}.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content if isinstance(content, str) else json.dumps(content))
    return root


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], env=ENVIRONMENT, capture_output=True, check=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, tag: str) -> str:
    """Commit everything and move the tag there. Returns the commit."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "more")
    git(folder, "tag", "-f", tag)
    return git(folder, "rev-parse", "HEAD")
