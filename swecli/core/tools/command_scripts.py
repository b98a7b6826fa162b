"""The scripts of the workspace that a command runs: an approval of the command is void once one of them has changed."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Iterator, Sequence
from pathlib import Path

from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.paths import inside, within_text
from swecli.core.permissions.shell.destructive import place_of
from swecli.core.permissions.shell.scan import ScanError
from swecli.core.permissions.shell.started import Started, started
from swecli.core.tools.base import ToolContext
from swecli.core.workspace.text_file import read_bytes

MOST_FILES = 100
MAX_FILE = 20_000_000
"""Bytes. Larger files are compared only by size and modification time."""
_INTERPRETERS = frozenset(
    (
        *(".", "ash", "awk", "bash", "bun", "bunx", "csh", "dash", "deno", "fish", "gawk", "ipython", "julia"),
        *("ksh", "lua", "make", "mawk", "node", "nodejs", "npx", "osascript", "perl", "php", "powershell", "psql"),
        *("pwsh", "py", "pypy", "python", "r", "rscript", "ruby", "sed", "sh", "source", "sqlite3", "tclsh"),
        *("ts-node", "tsx", "uv", "zsh"),
    )
)
_SCRIPTS = frozenset(
    (
        *(".awk", ".bash", ".bat", ".cjs", ".cmd", ".csh", ".fish", ".js", ".jl", ".ksh", ".lua", ".mjs", ".mk"),
        *(".php", ".pl", ".ps1", ".py", ".r", ".rb", ".sed", ".sh", ".sql", ".tcl", ".ts", ".tsx", ".zsh"),
    )
)
_OPERANDS = 2
"""The script is among this many words after an interpreter's options; later words are data for the script."""


def scripts_state(command: str, ctx: ToolContext) -> str:
    """One line per workspace script that the command runs, with the hash of its content. Files that are only data are
    left out because they may change at any time."""
    home = os.path.realpath(Path.home())
    roots = tuple(str(root) for root in ctx.roots)
    try:
        items = started(command, (("PWD", str(ctx.cwd)), ("HOME", home)))
    except ScanError:
        return ""
    bases = place_of(items, OsFacts({}), str(ctx.cwd), roots, home, ()).bases
    paths = dict.fromkeys(path for item in items for path in _named(item, bases, home))
    scripts = sorted(path for path in paths if inside(os.path.realpath(path), roots) or inside(path, roots))
    return "\n".join(f"{path}={_state(path)}" for path in scripts[:MOST_FILES])


def _named(item: Started, bases: Sequence[str], home: str) -> Iterator[str]:
    """Absolute paths, existing or not, that the command may run as a script."""
    words = [word.text for word in item.words]
    candidates = words[:1] if words and "/" in words[0] else []
    if (item.name.rstrip("0123456789.").casefold() or item.name) in _INTERPRETERS:
        candidates += [word for word in words[1:] if not word.startswith("-")][:_OPERANDS]
        candidates += [word.text for word in item.found.reads]
    glued = [word[2:] for word in words[1:] if word.startswith("-")]
    others = [*words[1:], *glued, *(word.partition("=")[2] for word in words[1:])]
    for text in dict.fromkeys((*candidates, *others)):
        if not text or len(text) > 1_000 or "\n" in text or "\0" in text:
            continue
        for base in bases:
            path = within_text(text, base, home)
            if text in candidates or _is_script(path):
                yield path


def _is_script(path: str) -> bool:
    if posixpath.splitext(path)[1].casefold() in _SCRIPTS:
        return True
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _state(path: str) -> str:
    try:
        data, _ = read_bytes(Path(os.path.realpath(path)), MAX_FILE)
    except FileNotFoundError:
        return "absent"
    except OSError:
        return _from_outside(path)
    return hashlib.sha256(data).hexdigest()


def _from_outside(path: str) -> str:
    try:
        state = os.stat(path)
    except OSError:
        return "unknown"
    return f"{state.st_mode}:{state.st_size}:{state.st_mtime_ns}"
