"""Plugins: folders with ``.claude-plugin/plugin.json`` in Claude Code's format, and what they hold.

Those that the user installed in Claude Code give their commands, agents and skills. Programs of a plugin (hooks,
servers) run only from a copy that the user allowed (``swecli/core/plugins``).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from msgspec import Struct, field

from swecli.core.config.documents import Document, read_document
from swecli.core.config.trust import EXTENSION_FOLDERS, INSTALLED_PLUGINS
from swecli.core.extensions.sources import SKILL_FILE, Kind, as_name
from swecli.core.llm.json_values import as_object

MANIFEST = ".claude-plugin/plugin.json"
_SETTINGS = ".claude/settings.json"
MOST_PLUGINS = 100

_PROGRAMS = (
    ("hooks", "hooks", "hooks/hooks.json"),
    ("MCP servers", "mcpServers", ".mcp.json"),
    ("language servers", "lspServers", ".lsp.json"),
)
"""What it is called, its key in the manifest, its usual file."""
_WITHOUT_EFFECT = (
    *(("output styles", "outputStyles", "output-styles"), ("monitors", "monitors", "monitors/monitors.json")),
    *(("themes", "themes", "themes"), ("settings", "settings", "settings.json"), ("programs in bin", "", "bin")),
    *(("workflows", "workflows", "workflows"), ("channels", "channels", "")),
)


class PluginFolder(NamedTuple):
    """``shown`` is its name inside the plugin. ``only`` is the single file or folder in it that counts; empty: all."""

    kind: Kind
    path: Path
    shown: str
    only: str = ""


class Plugin(Struct, frozen=True):
    """``programs`` names its hooks and servers in plain words, ``unused`` what has no effect in swecli."""

    name: str
    root: Path
    folders: tuple[PluginFolder, ...]
    programs: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Sentences about its manifest."""
    manifest: Document | None = None
    entry: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What a marketplace says about it, beside the manifest."""
    allowed: bool = False
    """Whether its programs may run: the user allowed exactly this content."""
    data: Path | None = None
    """The folder in which its programs may keep files."""

    @property
    def notes(self) -> Iterator[str]:
        """Sentences about parts that do nothing, without their end."""
        if self.unused:
            yield f"plugin {self.name}: its {' and '.join(self.unused)} have no effect in swecli"
        if self.programs and not self.allowed:
            shown = f"`swecli plugin add {shlex.quote(str(self.root))}` shows and allows them"
            yield f"plugin {self.name}: its {' and '.join(self.programs)} do not run yet; {shown}"


class InstalledPlugins(NamedTuple):
    """The enabled plugins by name, and sentences about unusable files, each with its line."""

    plugins: tuple[Plugin, ...] = ()
    problems: tuple[str, ...] = ()


def installed_plugins(home: Path, cwd: Path) -> InstalledPlugins:
    """The plugins of Claude Code for work in ``cwd``."""
    problems: list[str] = []
    enabled = _object(home / _SETTINGS, "enabledPlugins", "no plugin of Claude Code is used", problems)
    listed = _object(home / INSTALLED_PLUGINS, "plugins", "the plugins in it are ignored", problems)
    plugins: dict[str, Plugin] = {}
    for key, value in listed.items():
        if enabled.get(key) is not True:
            continue
        entries = cast("list[object]", value) if isinstance(value, list) else [value]
        for entry in map(as_object, entries):
            root, project = entry.get("installPath"), entry.get("projectPath")
            if not isinstance(root, str) or not os.path.isabs(root):
                problems.append(f"{home / INSTALLED_PLUGINS}: ignored plugin {key!r}: it has no absolute installPath.")
                continue
            if isinstance(project, str) and not cwd.is_relative_to(project):
                continue
            plugin = read_plugin(Path(root), key.partition("@")[0])
            if plugins.setdefault(plugin.name, plugin) is plugin:
                problems += plugin.problems
    return InstalledPlugins(tuple(plugins[name] for name in sorted(plugins))[:MOST_PLUGINS], tuple(problems))


def read_plugin(root: Path, name: str = "", entry: Mapping[str, Any] | None = None) -> Plugin:
    """The plugin in a folder, called ``name``, or what its manifest or folder says. Manifest and marketplace ``entry``
    may name further places inside the folder; others are reported and ignored."""
    entry = entry or {}
    document = read_document(root / MANIFEST, "json", "only its usual folders are used", link=False)
    manifest = (document.content if document is not None else None) or {}
    problems = list(document.problems) if document is not None else []
    given = manifest.get("name") or entry.get("name")
    name = as_name(name or (given if isinstance(given, str) else "") or root.name) or "plugin"
    folders: list[PluginFolder] = []
    for kind in EXTENSION_FOLDERS:
        for named in (manifest.get(kind), entry.get(kind)):
            folders += _named_folders(root, cast("Kind", kind), named, problems)
        if os.path.isdir(root / kind):
            folders.append(PluginFolder(cast("Kind", kind), root / kind, kind))
    if os.path.isfile(root / SKILL_FILE) and not any(folder.kind == "skills" for folder in folders):
        folders.append(PluginFolder("skills", root.parent, SKILL_FILE, root.name))
    return Plugin(
        name,
        root,
        tuple(dict.fromkeys(folders)),
        tuple(what for what, key, file in _PROGRAMS if os.path.isfile(root / file) or key in manifest or key in entry),
        tuple(what for what, key, path in _WITHOUT_EFFECT if (path and os.path.exists(root / path)) or key in manifest),
        tuple(problems),
        document,
        entry,
    )


def _named_folders(root: Path, kind: Kind, value: object, problems: list[str]) -> Iterator[PluginFolder]:
    """The places that a manifest names for a kind: folders with extensions, or single ones."""
    given = cast("list[object]", value) if isinstance(value, list) else [] if value is None else [value]
    for name in given:
        path = inside(root, name)
        if path is None:
            problems.append(f"{root / MANIFEST}: {kind}: {str(name)[:80]!r} is not a place inside the plugin; ignored.")
        elif kind == "skills" and os.path.isfile(path / SKILL_FILE):
            yield PluginFolder(kind, path.parent, os.path.relpath(path, root), path.name)
        elif os.path.isdir(path) and path != root:
            yield PluginFolder(kind, path, os.path.relpath(path, root))
        elif os.path.isfile(path):
            yield PluginFolder(kind, path.parent, os.path.relpath(path, root), path.name)


def inside(root: Path, name: object) -> Path | None:
    """The path of a name relative to the plugin; None if it leads out, also by a link, or is no plain text."""
    if not isinstance(name, str) or not name.isprintable() or os.path.isabs(name) or ".." in name.split("/"):
        return None
    path = Path(os.path.normpath(root / name))
    real = Path(os.path.realpath(path))
    return path if real == Path(os.path.realpath(root)) or real.is_relative_to(os.path.realpath(root)) else None


class Part(NamedTuple):
    """A table of a plugin and where it stands: ``keys`` lead to it in the document."""

    document: Document
    keys: tuple[str, ...]
    table: Mapping[str, Any]


def parts(plugin: Plugin, key: str, usual: str, ignored: str) -> tuple[list[Part], list[str]]:
    """The tables of one kind: of the usual file, of files that the manifest or a marketplace names, and those written
    there. With sentences about what is unusable; ``ignored`` ends them."""
    tables: list[Part] = []
    problems: list[str] = []
    files: dict[Path, None] = {}
    if os.path.lexists(plugin.root / usual) and inside(plugin.root, usual) is not None:
        files[plugin.root / usual] = None
    manifest = plugin.manifest
    market = Document(Path("marketplace.json"), plugin.entry)
    for document in filter(None, (manifest, market if plugin.entry else None)):
        value = (document.content or {}).get(key)
        for item in cast("list[object]", value) if isinstance(value, list) else [] if value is None else [value]:
            if isinstance(item, dict):
                tables.append(Part(document, (key,), cast("dict[str, Any]", item)))
            elif (path := inside(plugin.root, item)) is not None and os.path.isfile(path):
                files[path] = None
            else:
                problems.append(f"{document.at(key)}: {key}: {str(item)[:80]!r} is no file of the plugin; {ignored}.")
    for file in files:
        document = read_document(file, "jsonc", ignored)
        if document is not None:
            problems += document.problems
            tables.append(Part(document, (), document.content or {}))
    return tables, problems


def _object(path: Path, key: str, ignored: str, problems: list[str]) -> Mapping[str, Any]:
    """The object in a field of a file; empty if there is none, with a sentence if something else is there."""
    document = read_document(path, "json", ignored)
    if document is None:
        return {}
    problems += document.problems
    value = (document.content or {}).get(key)
    if value is not None and not isinstance(value, Mapping):
        problems.append(f"{document.at(key)}: {key} is not an object; {ignored}.")
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
