"""Plugins of Claude Code that the user installed there: their commands, agents and skills.

A plugin is a folder with ``.claude-plugin/plugin.json``. Its hooks and servers start nothing here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from swecli.core.config.trust import EXTENSION_FOLDERS, INSTALLED_PLUGINS
from swecli.core.extensions.sources import Kind, as_name
from swecli.core.workspace.text_file import read_bytes

MANIFEST = ".claude-plugin/plugin.json"
_SETTINGS = ".claude/settings.json"
_MOST_BYTES = 1_000_000
MOST_PLUGINS = 100


class Plugin(Struct, frozen=True):
    """``folders`` are kind, folder and its name inside the plugin. ``unused`` names parts that have no effect."""

    name: str
    root: Path
    folders: tuple[tuple[Kind, Path, str], ...]
    unused: tuple[str, ...] = ()

    @property
    def remedy(self) -> str:
        """How to use its servers nevertheless, as the end of a sentence."""
        servers = self.root / ".mcp.json"
        return f"; `swecli mcp import {servers}` offers its servers" if servers.is_file() else ""


def installed_plugins(home: Path, cwd: Path) -> tuple[Plugin, ...]:
    """The enabled plugins for work in ``cwd``, by name. Damaged files count as empty: they are another program's."""
    enabled = _table(_json(home / _SETTINGS).get("enabledPlugins"))
    found: dict[str, Plugin] = {}
    for key, value in _table(_json(home / INSTALLED_PLUGINS).get("plugins")).items():
        if enabled.get(key) is not True:
            continue
        entries = cast("list[object]", value) if isinstance(value, list) else [value]
        for entry in map(_table, entries):
            root, project = entry.get("installPath"), entry.get("projectPath")
            if not isinstance(root, str) or not os.path.isabs(root):
                continue
            if isinstance(project, str) and not cwd.is_relative_to(project):
                continue
            plugin = read_plugin(Path(root), key.partition("@")[0])
            found.setdefault(plugin.name, plugin)
    return tuple(found[name] for name in sorted(found))[:MOST_PLUGINS]


def read_plugin(root: Path, name: str) -> Plugin:
    """The plugin in a folder. Its manifest may name further folders inside it."""
    manifest = _json(root / MANIFEST)
    folders: list[tuple[Kind, Path, str]] = []
    for kind in EXTENSION_FOLDERS:
        said = manifest.get(kind)
        named = cast("list[object]", said) if isinstance(said, list) else [said]
        for folder in dict.fromkeys([kind, *_inside(named)]):
            if (root / folder).is_dir():
                folders.append((cast("Kind", kind), root / folder, folder))
    unused = (("hooks", "hooks/hooks.json"), ("MCP servers", ".mcp.json"), ("language servers", ".lsp.json"))
    keys = {"hooks": "hooks", "MCP servers": "mcpServers", "language servers": "lspServers"}
    return Plugin(
        as_name(name) or "plugin",
        root,
        tuple(folders),
        tuple(what for what, file in unused if (root / file).is_file() or keys[what] in manifest),
    )


def _inside(paths: Sequence[object]) -> Iterator[str]:
    for path in paths:
        if isinstance(path, str) and path.startswith("./") and ".." not in path.split("/"):
            folder = os.path.normpath(path)
            if folder != ".":
                yield folder


def _json(path: Path) -> dict[str, Any]:
    try:
        return _table(json.loads(read_bytes(Path(os.path.realpath(path)), _MOST_BYTES)[0]))
    except (OSError, ValueError, RecursionError):
        return {}


def _table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
