"""`swecli plugin`: plugins in Claude Code's format, each pinned to the content that the user was shown."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swecli.command_line.arguments import Parser, UsageError, run_word, working_directory
from swecli.command_line.standard_streams import agrees, complain, is_terminal, print_lines, print_rows, print_text
from swecli.core.config.paths import user_paths
from swecli.exit_codes import ExitCode
from swecli.launch import StartError
from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.core.plugins.sources import Source
    from swecli.core.plugins.store import Candidate, Market, PluginStore, Record

_DESCRIPTION = """Plugins in Claude Code's format (.claude-plugin/plugin.json), as they are.

  swecli plugin add SOURCE          a folder, GIT-URL@REF, OWNER/NAME@REF (each with #FOLDER), NAME@MARKETPLACE
  swecli plugin list [--json]       the plugins, their source and content
  swecli plugin show NAME           all that a plugin brings
  swecli plugin update [NAME]       fetch again, show what changed, ask
  swecli plugin remove NAME         with everything that it kept here
  swecli plugin market add SOURCE   a marketplace, as a list to choose from; list [NAME], remove NAME

A plugin counts from the next session on, exactly as it was shown. swecli asks before it adds or updates one; without a
terminal, --allow HASH is the answer.
"""
_SHOWN_HASH = 16


def plugin(arguments: Sequence[str]) -> int:
    from swecli.core.atomic_text import DamagedFile
    from swecli.core.plugins.tree import PluginError

    try:
        return run_word("swecli plugin", _DESCRIPTION, _COMMANDS, arguments, "")
    except (PluginError, DamagedFile) as error:
        raise StartError(safe_line(str(error)), ExitCode.BAD_INPUT) from None
    except OSError as error:
        raise StartError(f"Nothing was changed: {safe_line(str(error))}.", ExitCode.FAILURE) from None


def _store() -> PluginStore:
    from swecli.core.plugins.store import PluginStore

    return PluginStore(user_paths(os.environ).data)


def _parser(word: str, about: str) -> Parser:
    return Parser(prog=f"swecli plugin {word}", description=about)


def add(arguments: Sequence[str]) -> int:
    parser = _parser("add", "Show a plugin, and add it once you allow all that it brings.")
    parser.add_argument("source", help="a folder, GIT-URL@REF, OWNER/NAME@REF, each with #FOLDER; NAME@MARKETPLACE")
    parser.add_argument("--allow", metavar="HASH", help="allow the content with this hash without being asked")
    parser.add_argument("-C", "--cwd", metavar="DIR", help="a folder is relative to this one")
    chosen = parser.parse_args(arguments)
    from swecli.core.plugins.sources import parsed_source
    from swecli.core.plugins.tree import PluginError

    store = _store()
    name, _, market = chosen.source.partition("@")
    if market in (markets := store.markets()):
        source, entry = _of_market(store, markets[market], name)
    else:
        source, entry, market = parsed_source(chosen.source, working_directory(chosen.cwd)), {}, ""
    with store.candidate(source, os.environ, name=name if market else "", market=market, entry=entry) as candidate:
        record = candidate.record
        known = store.records().get(record.name)
        if known is not None and known.digest == record.digest:
            return print_text(f"{record.name} is added already, with the same content.\n")
        if known is not None and known.source != source:
            raise PluginError(
                f"There is another plugin {record.name}, from {known.source}; swecli plugin remove {record.name} first."
            )
        lines = [*_about(candidate), "It brings:", *(f"  {line}" for line in _brought(candidate))]
        return _settled(store, candidate, lines, chosen.allow, f"swecli plugin add {chosen.source}", "added")


def _of_market(store: PluginStore, market: Market, name: str) -> tuple[Source, Mapping[str, Any]]:
    from swecli.core.plugins.store import source_in

    now, entries, problems = store.read_market(market.source, os.environ)
    for problem in problems:
        complain(f"swecli: {problem}")
    return source_in(now, entries, name)


def _about(candidate: Candidate) -> Iterator[str]:
    record, manifest = candidate.record, candidate.plugin.manifest
    content = {**record.entry, **((manifest.content or {}) if manifest is not None else {})}
    version, about = content.get("version"), content.get("description")
    yield f"Plugin {record.name}{f' {version}' if isinstance(version, str) else ''}"
    if isinstance(about, str):
        yield about[:400]
    yield f"From {record.source}{f', commit {record.commit[:12]}' if record.commit else ''}"
    if candidate.left_out:
        yield "Left out:"
        yield from (f"  {note}" for note in candidate.left_out)


def _brought(candidate: Candidate) -> Iterator[str]:
    from swecli.assembly.plugin_listing import brought

    return brought(candidate.plugin)


def _settled(
    store: PluginStore, candidate: Candidate, lines: Sequence[str], allowed: str | None, command: str, done: str
) -> int:
    """Show the lines, and let the candidate count if the user allows it."""
    digest = candidate.record.digest
    shown = [*lines, f"Content: {digest[:_SHOWN_HASH]}"]
    if candidate.plugin.programs:
        shown.append("Its hooks and servers run with your rights, outside the sandbox.")
    print_rows(shown)
    if allowed is not None:
        if len(allowed) < _SHOWN_HASH or not digest.startswith(allowed.lower()):
            raise StartError(
                f"--allow {safe_line(allowed)} is not the hash of this content; nothing was {done}.",
                ExitCode.APPROVAL_NEEDED,
            )
    elif not is_terminal(sys.stdin) or not is_terminal(sys.stdout):
        complain(f"swecli: nothing was {done}; to allow this content: {command} --allow {digest[:_SHOWN_HASH]}")
        return ExitCode.APPROVAL_NEEDED
    elif not agrees("Allow all of this?"):
        print_text(f"Nothing was {done}.\n")
        return ExitCode.OK
    store.allow(candidate)
    return print_text(f"{candidate.record.name} was {done}; it counts from the next session on.\n")


def list_plugins(arguments: Sequence[str]) -> int:
    parser = _parser("list", "The plugins that were added.")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    chosen = parser.parse_args(arguments)
    from swecli.assembly.plugin_listing import summary

    store = _store()
    records = store.records()
    usable, problems = store.installed()
    roots = {plugin.name: plugin for plugin in usable}
    for problem in problems:
        complain(f"swecli: {problem}")
    lines: list[str] = []
    for name, record in sorted(records.items()):
        state = "on" if name in roots else "changed"
        brings = summary(roots[name]) if name in roots else ""
        if chosen.json:
            entry = {"name": name, "state": state, "source": str(record.source), "commit": record.commit or None}
            entry |= {"marketplace": record.market or None, "digest": record.digest, "brings": brings}
            lines.append(json.dumps(entry, ensure_ascii=False))
        else:
            at = f" {record.commit[:12]}" if record.commit else ""
            lines.append(safe_line(f"{name}  {state}  {brings or 'not used'}  ({record.source}{at})"))
    if chosen.json:
        return print_lines(lines)
    none = ["No plugins. Add one with: swecli plugin add SOURCE"]
    return print_rows(lines or none)


def show(arguments: Sequence[str]) -> int:
    parser = _parser("show", "All that a plugin brings.")
    parser.add_argument("name")
    name = parser.parse_args(arguments).name
    from swecli.assembly.plugin_listing import brought

    store = _store()
    record = _known(store, name)
    usable, problems = store.installed()
    match = next((plugin for plugin in usable if plugin.name == name), None)
    if match is None:
        raise StartError(next((problem for problem in problems if f" {name} " in problem), f"{name} can't be read."))
    at = f", commit {record.commit[:12]}" if record.commit else ""
    lines = [f"Plugin {name} from {record.source}{at}", f"Content: {record.digest[:_SHOWN_HASH]}", *brought(match)]
    return print_rows(lines)


def _known(store: PluginStore, name: str) -> Record:
    record = store.records().get(name)
    if record is None:
        raise StartError(f"There is no plugin {safe_line(name)}; swecli plugin list shows them.", ExitCode.BAD_INPUT)
    return record


def update(arguments: Sequence[str]) -> int:
    parser = _parser("update", "Fetch plugins again, show what changed, and ask.")
    parser.add_argument("name", nargs="?", help="only this one")
    parser.add_argument("--allow", metavar="HASH", help="allow the content with this hash without being asked")
    chosen = parser.parse_args(arguments)
    if chosen.allow is not None and chosen.name is None:
        raise UsageError("--allow needs the NAME of the plugin")
    store = _store()
    records = [_known(store, chosen.name)] if chosen.name is not None else [*store.records().values()]
    if not records:
        return print_text("No plugins.\n")
    return max(_updated(store, record, chosen.allow) for record in records)


def _updated(store: PluginStore, record: Record, allowed: str | None) -> int:
    from swecli.assembly.plugin_listing import brought
    from swecli.core.extensions.plugins import read_plugin
    from swecli.core.plugins.tree import PluginError, changes

    source, entry = record.source, record.entry
    if record.market:
        market = store.markets().get(record.market)
        if market is None:
            raise PluginError(f"The marketplace {record.market} was removed, so {record.name} can't be updated.")
        source, entry = _of_market(store, market, record.name)
    with store.candidate(source, os.environ, name=record.name, market=record.market, entry=entry) as candidate:
        old = store.root_of(record)
        intact = any(plugin.name == record.name for plugin in store.installed()[0])
        if candidate.record.digest == record.digest and intact:
            return print_text(f"{record.name} is up to date.\n")
        lines = [*_about(candidate)]
        if candidate.record.commit != record.commit and source.ref and source.ref == record.source.ref:
            lines.append(f"{source.ref} was the commit {record.commit[:12]} when you allowed it.")
        before = {*brought(read_plugin(old, record.name, record.entry))} if old.is_dir() else set[str]()
        now = [*_brought(candidate)]
        lines += ["It brings:", *(f"{' ' if line in before else '+'} {line}" for line in now)]
        lines += [f"- {line}" for line in sorted(before.difference(now))]
        for change in changes(old, candidate.root) if old.is_dir() else ():
            lines += [f"{change.what}: {change.name}", *change.diff.splitlines()]
        return _settled(store, candidate, lines, allowed, f"swecli plugin update {record.name}", "updated")


def remove(arguments: Sequence[str]) -> int:
    parser = _parser("remove", "Remove a plugin with everything that it kept here.")
    parser.add_argument("name")
    name = parser.parse_args(arguments).name
    store = _store()
    _known(store, name)
    store.remove(name)
    return print_text(f"{name} was removed.\n")


def market(arguments: Sequence[str]) -> int:
    parser = _parser("market", "Marketplaces: lists of plugins to choose from.")
    words = parser.add_subparsers(dest="word", required=True, parser_class=Parser)
    adding = words.add_parser("add", help="a folder, or GIT-URL@REF, with .claude-plugin/marketplace.json")
    adding.add_argument("source")
    adding.add_argument("-C", "--cwd", metavar="DIR", help="a folder is relative to this one")
    words.add_parser("list", help="all, or the plugins of one").add_argument("name", nargs="?")
    words.add_parser("remove", help="its plugins stay").add_argument("name")
    chosen = parser.parse_args(arguments)
    store = _store()
    if chosen.word == "add":
        return _add_market(store, chosen.source, working_directory(chosen.cwd))
    markets = store.markets()
    if chosen.word == "list" and chosen.name is None:
        lines = [f"{listed.name}  {listed.source}" for listed in markets.values()]
        return print_rows(lines or ["No marketplaces."])
    if chosen.name not in markets:
        raise StartError(f"There is no marketplace {safe_line(chosen.name)}.", ExitCode.BAD_INPUT)
    if chosen.word == "remove":
        store.remove_market(chosen.name)
        return print_text(f"{chosen.name} was removed; plugins from it stay.\n")
    _, entries, problems = store.read_market(markets[chosen.name].source, os.environ)
    for problem in problems:
        complain(f"swecli: {problem}")
    rows = [f"{entry['name']}@{chosen.name}  {str(entry.get('description') or '')[:160]}" for entry in entries]
    return print_rows(rows)


def _add_market(store: PluginStore, text: str, cwd: Path) -> int:
    from swecli.core.plugins.sources import parsed_source
    from swecli.core.plugins.tree import PluginError

    source = parsed_source(text, cwd)
    listing, entries, problems = store.read_market(source, os.environ)
    for problem in problems:
        complain(f"swecli: {problem}")
    known = store.markets().get(listing.name)
    if known is not None and known.source != source:
        raise PluginError(f"There is another marketplace {listing.name}, from {known.source}; remove it first.")
    store.add_market(listing)
    more = f"swecli plugin market list {listing.name}"
    return print_text(f"{listing.name} was added, with {len(entries)} plugins: {more}\n")


_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "add": add,
    "list": list_plugins,
    "show": show,
    "update": update,
    "remove": remove,
    "market": market,
}
