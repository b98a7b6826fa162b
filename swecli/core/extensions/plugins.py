"""Plugins of Claude Code that the user installed there: their commands, agents and skills.

A plugin is a folder with ``.claude-plugin/plugin.json``. Its hooks and servers start nothing here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from msgspec import Struct

from swecli.core.config.documents import read_document
from swecli.core.config.trust import EXTENSION_FOLDERS, INSTALLED_PLUGINS
from swecli.core.extensions.sources import Kind, as_name

MANIFEST = ".claude-plugin/plugin.json"
_SETTINGS = ".claude/settings.json"
MOST_PLUGINS = 100


class Plugin(Struct, frozen=True):
    """``folders`` are kind, folder and its name inside the plugin. ``unused`` names parts that have no effect."""

    name: str
    root: Path
    folders: tuple[tuple[Kind, Path, str], ...]
    unused: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Sentences about its manifest."""

    @property
    def remedy(self) -> str:
        """How to use its servers nevertheless, as the end of a sentence."""
        servers = self.root / ".mcp.json"
        return f"; `swecli mcp import {servers}` offers its servers" if servers.is_file() else ""


class InstalledPlugins(NamedTuple):
    """The enabled plugins by name, and sentences about unusable files, each with its line."""

    plugins: tuple[Plugin, ...] = ()
    problems: tuple[str, ...] = ()


def installed_plugins(home: Path, cwd: Path) -> InstalledPlugins:
    """The plugins for work in ``cwd``."""
    problems: list[str] = []
    enabled = _object(home / _SETTINGS, "enabledPlugins", "no plugin of Claude Code is used", problems)
    listed = _object(home / INSTALLED_PLUGINS, "plugins", "the plugins in it are ignored", problems)
    found: dict[str, Plugin] = {}
    for key, value in listed.items():
        if enabled.get(key) is not True:
            continue
        entries = cast("list[object]", value) if isinstance(value, list) else [value]
        for entry in map(_table, entries):
            root, project = entry.get("installPath"), entry.get("projectPath")
            if not isinstance(root, str) or not os.path.isabs(root):
                problems.append(f"{home / INSTALLED_PLUGINS}: ignored plugin {key!r}: it has no absolute installPath.")
                continue
            if isinstance(project, str) and not cwd.is_relative_to(project):
                continue
            plugin = read_plugin(Path(root), key.partition("@")[0])
            if found.setdefault(plugin.name, plugin) is plugin:
                problems += plugin.problems
    return InstalledPlugins(tuple(found[name] for name in sorted(found))[:MOST_PLUGINS], tuple(problems))


def read_plugin(root: Path, name: str) -> Plugin:
    """The plugin in a folder. Its manifest may name further folders inside it."""
    problems: list[str] = []
    manifest = _object(root / MANIFEST, "", "only its usual folders are used", problems)
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
        tuple(problems),
    )


def _inside(paths: Sequence[object]) -> Iterator[str]:
    for path in paths:
        if isinstance(path, str) and path.startswith("./") and ".." not in path.split("/"):
            folder = os.path.normpath(path)
            if folder != ".":
                yield folder


def _object(path: Path, key: str, ignored: str, problems: list[str]) -> Mapping[str, Any]:
    """The object in a field of a file, or without ``key`` the whole file; empty if there is none, with a sentence if
    something else is there."""
    document = read_document(path, "json", ignored)
    if document is None:
        return {}
    problems += document.problems
    content = document.content or {}
    value = content.get(key) if key else content
    if value is not None and not isinstance(value, Mapping):
        problems.append(f"{document.at(key)}: {key} is not an object; {ignored}.")
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
