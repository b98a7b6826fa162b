"""The plugins that the user added, each pinned to the content that was shown, and the marketplaces to choose from."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from swecli.core.atomic_text import DamagedFile, make_private, one_writer, read_json, write_json
from swecli.core.config.documents import read_document
from swecli.core.extensions.plugins import Plugin, read_plugin
from swecli.core.extensions.sources import as_name
from swecli.core.plugins.sources import Source, obtained, of_entry
from swecli.core.plugins.tree import PluginError, copied, removed, tree_digest

PLUGINS: Final = "plugins"
"""Folder in the data directory."""
FILE: Final = "plugins.json"
MARKETPLACE: Final = ".claude-plugin/marketplace.json"
_VERSION: Final = 1


class Record(Struct, frozen=True):
    """A plugin that was added. ``digest`` is that of the content which the user allowed, ``commit`` that of the
    repository (empty for a folder), ``market`` the marketplace's name, ``entry`` what it adds."""

    name: str
    source: Source
    digest: str
    commit: str = ""
    market: str = ""
    entry: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Market(Struct, frozen=True):
    """A marketplace: its source, and the commit when it was last read."""

    name: str
    source: Source
    commit: str = ""


class Candidate(Struct, frozen=True):
    """A fetched plugin that is not allowed yet. ``root`` is its copy; ``left_out`` are clauses."""

    record: Record
    root: Path
    plugin: Plugin
    left_out: tuple[str, ...] = ()


class PluginStore:
    """The user's plugins in a folder of the data directory."""

    def __init__(self, data: Path) -> None:
        self.folder = data / PLUGINS

    @property
    def _file(self) -> Path:
        return self.folder / FILE

    def records(self) -> dict[str, Record]:
        """All added plugins by name.

        Raises:
            DamagedFile: the list was damaged; it has another name now, and no plugin counts.
            OSError: it can't be read.
        """
        listed: dict[str, Any] = read_json(self._file, "plugins", dict)
        return {name: record for name, entry in listed.items() if (record := _record(name, entry)) is not None}

    def markets(self) -> dict[str, Market]:
        """All marketplaces by name; raises as ``records``."""
        if not os.path.exists(self._file):
            return {}
        listed: dict[str, Any] = read_json(self._file, "marketplaces", dict)
        return {name: market for name, entry in listed.items() if (market := _market(name, entry)) is not None}

    def root_of(self, record: Record) -> Path:
        return self.folder / "copies" / record.digest[:20] / record.name

    def data_of(self, name: str) -> Path:
        """Where programs of the plugin may keep files."""
        return self.folder / "data" / name

    def installed(self) -> tuple[tuple[Plugin, ...], tuple[str, ...]]:
        """The plugins whose copy is as the user allowed it, and a sentence for each other one. Reads all of their
        files."""
        plugins: list[Plugin] = []
        problems: list[str] = []
        try:
            records = self.records()
        except DamagedFile as error:
            return (), (f"{error}, so no plugin is used. Add them again with `swecli plugin add`.",)
        except OSError as error:
            return (), (f"Cannot read {self._file} ({error.strerror or error}), so no plugin is used.",)
        for name, record in sorted(records.items()):
            root = self.root_of(record)
            try:
                same = tree_digest(root, record.entry) == record.digest
            except OSError:
                same = False
            if not same:
                again = f"`swecli plugin update {name}` fetches, shows and allows it anew"
                problems.append(f"The plugin {name} is not what you allowed and is not used; {again}.")
                continue
            plugin = read_plugin(root, name, record.entry)
            plugins.append(replace(plugin, allowed=True, data=self.data_of(name)))
            problems += plugin.problems
        return tuple(plugins), tuple(problems)

    @contextlib.contextmanager
    def candidate(
        self,
        source: Source,
        environment: Mapping[str, str],
        *,
        name: str = "",
        market: str = "",
        entry: Mapping[str, Any] | None = None,
    ) -> Generator[Candidate]:
        """Fetch a plugin without making it count; what was fetched is removed at the end, unless it was allowed.

        Raises:
            PluginError: it can't be had, or is none.
            OSError: it can't be read or stored.
        """
        make_private(self.folder)
        temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=self.folder))
        try:
            scratch = temporary / "git"
            scratch.mkdir(mode=0o700)
            folder, commit = obtained(source, scratch, environment)
            plain = _overlay(entry or {})
            seen = read_plugin(folder, name, plain)
            if not seen.folders and not seen.programs and not seen.unused:
                raise PluginError(f"{source} is no plugin: it has no skill, command, agent, hook or server.")
            root = temporary / "copy" / seen.name
            root.parent.mkdir(mode=0o700)
            left_out = copied(folder, root)
            removed(scratch)
            record = Record(seen.name, source, tree_digest(root, plain), commit, market, plain)
            yield Candidate(record, root, read_plugin(root, seen.name, plain), left_out)
        finally:
            removed(temporary)

    def allow(self, candidate: Candidate) -> None:
        """Make a candidate count, in place of an earlier version.

        Raises:
            PluginError: it changed since it was shown.
            OSError: it can't be stored; an earlier version still counts.
        """
        record = candidate.record
        if tree_digest(candidate.root, record.entry) != record.digest:
            raise PluginError(f"The plugin {record.name} changed while you looked at it; nothing was added.")
        target = self.root_of(record)
        with one_writer(self._file):
            removed(target.parent)
            make_private(target.parent)
            os.chmod(candidate.root, 0o700)  # the owner of a folder may rename it only if it may be written
            os.rename(candidate.root, target)
            os.chmod(target, 0o500)
            known = self.records()
            old = known.get(record.name)
            self._write(known | {record.name: record}, self.markets())
            if old is not None and self.root_of(old) != target:
                removed(self.root_of(old).parent)

    def remove(self, name: str) -> bool:
        """Remove a plugin with its copy and all that its programs kept here. False if there is none.

        Raises:
            DamagedFile, OSError: as ``records``; or something can't be removed.
        """
        with one_writer(self._file):
            known = self.records()
            record = known.pop(name, None)
            if record is None:
                return False
            self._write(known, self.markets())
            if all(self.root_of(other) != self.root_of(record) for other in known.values()):
                removed(self.root_of(record).parent)
            removed(self.data_of(name))
        return True

    # --- marketplaces ------------------------------------------------------------------------------------------------

    def read_market(
        self, source: Source, environment: Mapping[str, str]
    ) -> tuple[Market, tuple[Mapping[str, Any], ...], tuple[str, ...]]:
        """A marketplace as it is now: its entries with usable names, and sentences about the others.

        Raises:
            PluginError: it can't be had, or is none.
            OSError: it can't be read.
        """
        make_private(self.folder)
        temporary = Path(tempfile.mkdtemp(prefix=".market-", dir=self.folder))
        try:
            folder, commit = obtained(source, temporary, environment)
            document = read_document(folder / MARKETPLACE, "json", "it is no marketplace", link=False)
        finally:
            removed(temporary)
        content = document.content if document is not None else None
        if content is None:
            why = document.problems[0] if document is not None and document.problems else f"it has no {MARKETPLACE}."
            raise PluginError(f"{source} is no marketplace: {why}")
        given = content.get("name")
        name = as_name(given) if isinstance(given, str) else ""
        if not name:
            raise PluginError(f"{source} is no marketplace: it has no usable name.")
        entries: dict[str, Mapping[str, Any]] = {}
        problems: list[str] = []
        listed = content.get("plugins")
        for item in cast("list[object]", listed) if isinstance(listed, list) else []:
            entry = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
            called = entry.get("name")
            if not isinstance(called, str) or as_name(called) != called:
                problems.append(f"{name}: ignored an entry whose name {str(called)[:60]!r} is not usable.")
            elif called in entries:
                problems.append(f"{name}: {called} is listed twice; the first one counts.")
            else:
                entries[called] = entry
        return Market(name, source, commit), tuple(entries.values()), tuple(problems)

    def add_market(self, market: Market) -> None:
        """Raises as ``records``."""
        with one_writer(self._file):
            self._write(self.records(), self.markets() | {market.name: market})

    def remove_market(self, name: str) -> bool:
        """False if there is none; raises as ``records``."""
        with one_writer(self._file):
            known = self.markets()
            if known.pop(name, None) is None:
                return False
            self._write(self.records(), known)
        return True

    def _write(self, records: Mapping[str, Record], markets: Mapping[str, Market]) -> None:
        plugins = {name: {**asdict(record), "source": asdict(record.source)} for name, record in records.items()}
        lists = {name: {**asdict(market), "source": asdict(market.source)} for name, market in markets.items()}
        write_json(self._file, {"version": _VERSION, "plugins": plugins, "marketplaces": lists})


def source_in(market: Market, entries: Sequence[Mapping[str, Any]], name: str) -> tuple[Source, Mapping[str, Any]]:
    """The source of a marketplace's plugin, at the commit at which the marketplace was read, and its entry.

    Raises:
        PluginError: there is none of this name, or it has no usable source.
    """
    entry = next((candidate for candidate in entries if candidate["name"] == name), None)
    if entry is None:
        raise PluginError(f"The marketplace {market.name} has no plugin {name!r}.")
    at = replace(market.source, commit=market.commit) if market.source.url else market.source
    return of_entry(entry, at), entry


_COMPONENTS = ("skills", "commands", "agents", "hooks", "mcpServers", "lspServers", "version", "description")


def _overlay(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry says about the plugin's parts."""
    return {key: entry[key] for key in _COMPONENTS if key in entry}


def _record(name: str, given: object) -> Record | None:
    entry = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    source, digest = _source(entry.get("source")), entry.get("digest")
    if source is None or as_name(name) != name or not isinstance(digest, str) or len(digest) != 64:
        return None
    more = entry.get("entry")
    commit, market = (str(entry.get(key) or "") for key in ("commit", "market"))
    added = cast("dict[str, Any]", more) if isinstance(more, dict) else {}
    return Record(name, source, digest, commit, market, added)


def _market(name: str, given: object) -> Market | None:
    entry = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    source = _source(entry.get("source"))
    return (
        Market(name, source, str(entry.get("commit") or "")) if source is not None and as_name(name) == name else None
    )


def _source(given: object) -> Source | None:
    if not isinstance(given, dict):
        return None
    table = cast("dict[str, Any]", given)
    return Source(*(str(table.get(key) or "") for key in ("folder", "url", "ref", "commit")))
