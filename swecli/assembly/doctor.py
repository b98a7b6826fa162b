"""Diagnosis of models (providers, keys, windows, prices) and storage (lost data). Never shows a key."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from swecli.assembly.checkpoints import FILE as CHECKPOINTS
from swecli.assembly.models import ModelSupply
from swecli.assembly.sandbox import examine_sandbox
from swecli.assembly.startup import Startup
from swecli.core.config.paths import Paths
from swecli.core.engine.model_access import ModelUnavailable
from swecli.core.llm.addresses import without_password
from swecli.core.llm.catalog import load_catalog, utc_now
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.offers import Account
from swecli.core.llm.servers import endpoint_of, find_local_servers, list_models
from swecli.core.llm.types import ModelInfo
from swecli.core.llm.windows import LOCAL_PROVIDERS
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock
from swecli.core.protocol.budget import window_words
from swecli.core.sessions.database import CONTINUED, DATABASE, has_locks
from swecli.core.sessions.health import health_of, quarantined, rebuild_index, recover, shrink, shrink_other
from swecli.core.sessions.losses import loss_sentence
from swecli.core.sessions.search import FILE as INDEX
from swecli.core.sessions.search import SearchIndex
from swecli.core.tools.base import readable_size
from swecli.figures import plural
from swecli.launch import LaunchOptions

Repair = Literal["vacuum", "index", "permissions", "recover"]
SESSIONS = "sessions"
"""Subject of the finding on the database of a folder."""
LEAST_FREE = 200_000_000
"""Bytes of free space below which a warning appears."""
_TOOLS = {
    "git": "branch and changes are not shown",
    "rg": "search is slower",
    "bash": "commands can't run",
}
"""Optional programs, with the effect of their absence."""


class Finding(Struct, frozen=True):
    """Result of one check. ``repair`` is the available remedy, if any."""

    what: str
    text: str
    level: Literal["ok", "warning", "error"] = "ok"
    repair: Repair | None = None


def examine_storage(paths: Paths, folder: Path, environment: Mapping[str, str]) -> list[Finding]:
    """Run all checks of the storage. Reads the whole database: for a thread."""
    database = paths.workspace_data(folder) / DATABASE
    return [
        *_database(database),
        *_place(paths, database),
        *_permissions(paths, database),
        _terminal(environment),
        *_programs(environment),
    ]


_NONE = "none stored for this folder yet"


def _database(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield Finding(SESSIONS, _NONE)
    else:
        health = health_of(path)
        size = f"{health.sessions:,} in {readable_size(health.size)}"
        if health.damage:
            text = f"damaged: {health.damage}. The next start recovers the readable data and keeps the file"
            yield Finding(SESSIONS, text, "error")
        elif health.trouble:
            yield Finding(SESSIONS, f"cannot read {path}: {health.trouble}", "error")
        elif health.wasteful:
            yield Finding(SESSIONS, f"{size}, {readable_size(health.free)} of it unused", "warning", "vacuum")
        elif not health.sessions:
            yield Finding(SESSIONS, _NONE)
        else:
            yield Finding(SESSIONS, f"{size}, intact")
        yield _index(path.with_name(INDEX))
    for one in quarantined(path):
        what = "a session went on in it" if CONTINUED in one.name else "a damaged database"
        yield Finding("set aside", f"{one.name}: {what}", "warning", "recover")


def _index(path: Path) -> Finding:
    if not path.exists():
        return Finding("search index", "not built yet")
    if not os.access(path.parent, os.W_OK):
        return Finding("search index", f"{readable_size(path.stat().st_size)}, not checked: its folder is read-only")
    try:
        if SearchIndex.sound(path):
            return Finding("search index", readable_size(path.stat().st_size))
    except (sqlite3.Error, OSError) as error:
        return Finding("search index", f"cannot read it: {error}", "warning", "index")
    return Finding("search index", "damaged", "warning", "index")


def _place(paths: Paths, database: Path) -> Iterator[Finding]:
    there = next((one for one in database.parents if one.exists()), paths.data)
    if not there.is_dir():
        yield Finding("data folder", f"{there} is no folder: sessions stay in memory only", "error")
        return
    try:
        free = shutil.disk_usage(there).free
    except OSError as error:
        yield Finding("data folder", f"cannot read {there}: {error.strerror}", "error")
        return
    if not os.access(there, os.W_OK):
        yield Finding("data folder", f"cannot write {there}: sessions stay in memory only", "error")
        return
    level: Literal["ok", "warning"] = "warning" if free < LEAST_FREE else "ok"
    yield Finding("data folder", f"{there}, {readable_size(free)} free", level)
    if not has_locks(there):
        text = "has no file locks: slower; open each session in only one swecli at a time"
        yield Finding("file system", text, "warning")


def _permissions(paths: Paths, database: Path) -> Iterator[Finding]:
    named = [str(path) for path in _open_to_others(paths, database)]
    if named:
        more = f" and {len(named) - 3} more" if len(named) > 3 else ""
        yield Finding("permissions", f"others may read {', '.join(named[:3])}{more}", "error", "permissions")
    else:
        yield Finding("permissions", "only you can read the files")


def _open_to_others(paths: Paths, database: Path) -> Iterator[Path]:
    """Folders and files of this user that others may read."""
    for path in (*paths.all, *(database.parent.glob("*") if database.parent.is_dir() else ()), database.parent):
        with suppress(OSError):
            status = path.lstat()
            mine = status.st_uid == os.geteuid() and not stat.S_ISLNK(status.st_mode)
            if mine and status.st_mode & 0o077:
                yield path


def _terminal(environment: Mapping[str, str]) -> Finding:
    term, encoding = environment.get("TERM", ""), (sys.getfilesystemencoding() or "").lower()
    size = shutil.get_terminal_size((0, 0))
    facts = [
        term or "TERM is not set",
        f"{size.columns}x{size.lines}" if size.columns and size.lines else "no terminal",
        f"COLORTERM {environment.get('COLORTERM', '-')}",
    ]
    facts += ["in tmux"] if environment.get("TMUX") else []
    if term in ("", "dumb"):
        return Finding("terminal", f"{', '.join(facts)}: only swecli --plain works here", "warning")
    if "utf" not in encoding:
        return Finding("terminal", f"{', '.join(facts)}, encoding {encoding}: set LANG to a UTF-8 one", "warning")
    return Finding("terminal", ", ".join(facts))


def _programs(environment: Mapping[str, str]) -> Iterator[Finding]:
    path = environment.get("PATH")
    missing = {name: why for name, why in _TOOLS.items() if shutil.which(name, path=path) is None}
    for name, why in missing.items():
        yield Finding("programs", f"{name} is not installed: {why}", "error" if name == "bash" else "warning")
    if not missing:
        yield Finding("programs", ", ".join(_TOOLS))


def is_damaged(findings: Sequence[Finding]) -> bool:
    """Whether stored sessions can't be read as written."""
    return any(one.what == SESSIONS and one.level == "error" for one in findings)


def finding_blocks(findings: Sequence[Finding]) -> tuple[DisplayBlock, ...]:
    """A table, the problems, and the available repairs."""
    rows = tuple((one.what, one.text if one.level == "ok" else f"{one.level}, see below") for one in findings)
    table = TableBlock(("Checked", "Result"), rows, "Storage and terminal")
    blocks: list[DisplayBlock] = [table]
    blocks += [TextBlock(f"{one.what}: {one.text}", one.level) for one in findings if one.level != "ok"]
    offered: dict[Repair, str] = {one.repair: OFFERS[one.repair] for one in findings if one.repair is not None}
    blocks += [TextBlock(f"{offer}: swecli doctor --repair {name}") for name, offer in offered.items()]
    return tuple(blocks)


OFFERS: Mapping[Repair, str] = {
    "vacuum": "Return unused space to the disk",
    "index": "Rebuild the search index",
    "permissions": "Make the files private",
    "recover": "Recover readable data from the damaged database",
}


class Repaired(Struct, frozen=True):
    """Result of a repair, in sentences. ``complete``: nothing is known to be missing afterwards."""

    text: str
    complete: bool = True


def repair(name: Repair, paths: Paths, folder: Path) -> Repaired:
    """Carry out one repair.

    Raises:
        OSError, sqlite3.Error: it failed; nothing was lost.
    """
    database = paths.workspace_data(folder) / DATABASE
    return _REPAIRS[name](paths, database)


NOTHING_STORED = Repaired("Nothing is stored here.")


def _vacuum(paths: Paths, database: Path) -> Repaired:
    if not database.exists():
        return NOTHING_STORED
    freed = shrink(database)
    for other in (database.with_name(INDEX), paths.state / "checkpoints" / database.parent.name / CHECKPOINTS):
        freed += shrink_other(other)
    return Repaired(f"Returned {readable_size(freed)} to the disk.")


def _new_index(paths: Paths, database: Path) -> Repaired:
    if not database.exists():
        return NOTHING_STORED
    rebuild_index(database)
    return Repaired("Rebuilt the search index.")


def _close(paths: Paths, database: Path) -> Repaired:
    closed = 0
    for path in list(_open_to_others(paths, database)):
        os.chmod(path, stat.S_IMODE(path.lstat().st_mode) & 0o700)
        closed += 1
    return Repaired(f"Made {closed} files and folders private to you.")


def _recover(paths: Paths, database: Path) -> Repaired:
    aside = quarantined(database)
    if not aside:
        return Repaired("There is no damaged database here.")
    done = [recover(database, one) for one in aside]
    said: list[str] = []
    added = sum(one.added for one in done)
    if added:
        said.append("Recovered 1 session." if added == 1 else f"Recovered {added:,} sessions.")
    elif any(one.found for one in done):
        said.append("All readable sessions are already here.")
    unreadable = [path.name for path, one in zip(aside, done, strict=True) if not one.found]
    said += [f"{name} has no readable session." for name in unreadable]
    lost = list({one.session: one for each in done for one in each.lost}.values())
    said += [f"{loss_sentence(lost)}."] if lost else []
    damaged = "" if any(CONTINUED in one.name for one in aside) else "damaged "
    said.append(f"The {damaged}file is kept." if len(aside) == 1 else f"The {len(aside):,} {damaged}files are kept.")
    return Repaired(" ".join(said), complete=not unreadable and not lost)


_REPAIRS: Mapping[Repair, Callable[[Paths, Path], Repaired]] = {
    "vacuum": _vacuum,
    "index": _new_index,
    "permissions": _close,
    "recover": _recover,
}


HEADERS = ("Model", "What is known")
_NONE_LISTED = "no models listed, see below"


class Report(Struct, frozen=True):
    """``blocks`` are to be shown; ``healthy``: the model that would answer is reachable, as far as checked."""

    blocks: tuple[DisplayBlock, ...]
    healthy: bool


class _Known(Struct, frozen=True):
    """Facts about one model, or about a provider without one: a line each for ``name`` and its facts."""

    name: str
    facts: tuple[str, ...]
    problem: str = ""

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        first, *others = [fact for fact in self.facts if fact] or [""]
        return ((self.name, first), *(("", fact) for fact in others))


def examine_files(options: LaunchOptions, startup: Startup) -> tuple[DisplayBlock, ...]:
    """What is ignored in the files of settings, servers, hooks, plugins, instructions, skills, commands and agents."""
    from swecli.assembly.extension_files import extension_files
    from swecli.assembly.instructions import project_instructions
    from swecli.core.mcp.configured import definitions_of, importable

    files, instructions = extension_files(options, startup), project_instructions(options, startup)
    servers = (*definitions_of(startup, options.cwd)[1], *importable(startup, options.cwd)[1])
    told = (*startup.notices, *servers, *files.problems)
    told = (*told, *instructions.notices, *(f"{text}." for _, text in files.now.problems))
    return tuple(TextBlock(text, "warning") for text in dict.fromkeys(told))


async def examine_session(
    options: LaunchOptions, startup: Startup, supply: ModelSupply, model: ModelInfo | None, *, online: bool
) -> Sequence[DisplayBlock]:
    """Examine a running session: its ``model``, the sandbox, its storage; ``online`` contacts the providers."""
    contained = await asyncio.to_thread(examine_sandbox, options, startup)
    found = await asyncio.to_thread(examine_storage, startup.paths, options.cwd, startup.environment)
    files = await asyncio.to_thread(examine_files, options, startup)
    rest = (contained, *finding_blocks(found), *files)
    if supply.scripted:
        return (TextBlock("A script answers instead of a model; no provider is needed."), *rest)
    main = model.ref if model is not None else None
    return (*(await examine(supply, main, online=online, at_work=model)).blocks, *rest)


async def examine(supply: ModelSupply, main: str | None, *, online: bool, at_work: ModelInfo | None = None) -> Report:
    """Examine every configured provider; with ``online``, contact each of them. ``at_work`` is a session's knowledge of
    its model."""
    accounts = [account for account in supply.accounts.all() if _configured(account, supply, main)]
    looked = await asyncio.gather(*(_look(supply, account, main, at_work, online=online) for account in accounts))
    servers = await find_local_servers() if online else ()
    known = {account.provider.name for account in accounts}
    found = [
        _Known(
            server.provider,
            (
                "free, no key needed",
                f"{server.base_url}: {'loads its model' if server.loading else _reached(len(server.models))}",
            ),
        )
        for server in servers
        if server.provider not in known
    ]
    rows = tuple(row for one in (*looked, *found) for row in one.rows)
    blocks: list[DisplayBlock] = [TableBlock(HEADERS, rows, "Models")] if rows else []
    blocks += [TextBlock(notice, "warning") for notice in supply.notices]
    blocks += [TextBlock(one.problem, "error") for one in looked if one.problem]
    chosen = next((one for one, account in zip(looked, accounts, strict=True) if _is(account, main)), None)
    healthy = main is not None and chosen is not None and not chosen.problem
    if main is None:
        blocks.append(TextBlock(supply.nothing_chosen, "error"))
    elif healthy:
        more = "" if online else " /doctor online, or swecli doctor --online, contacts its server as well."
        blocks.append(TextBlock(f"{main} is the model.{more}"))
    elif chosen is None:
        blocks.append(TextBlock(f"{main} is selected, but its provider is unknown.", "error"))
    return Report(tuple(blocks), healthy)


def _configured(account: Account, supply: ModelSupply, main: str | None) -> bool:
    named = account.provider.name in {provider.name for provider in supply.accounts.custom}
    usable = account.elsewhere or account.key in ("environment", "stored")
    return named or usable or bool(account.problem) or _is(account, main)


def _is(account: Account, model: str | None) -> bool:
    return model is not None and model.partition("/")[0].lower() == account.provider.name


async def _look(
    supply: ModelSupply, account: Account, main: str | None, at_work: ModelInfo | None, *, online: bool
) -> _Known:
    name, usual = account.provider.name, account.provider.default_model
    ref = f"{name}/{usual}" if usual and not account.elsewhere else ""
    if main is not None and _is(account, main):
        ref = main
    if not ref:
        place, problem = without_password(account.address), account.problem
        if online and account.elsewhere and account.key != "missing":
            offers, problem = await supply.offered_by(account)
            place = f"{place}: {_NONE_LISTED if problem else _reached(len(offers))}"
        return _Known(name, (_key(account), place), problem)
    try:
        client = supply.make(ref)
    except ModelUnavailable as error:
        return _Known(ref, (_key(account), without_password(account.address)), f"{name}: {error}")
    assert isinstance(client, HttpModelClient)
    reached, problem = await _reach(supply, client) if online else ("not contacted", "")
    info = at_work if at_work is not None and at_work.ref == client.info.ref else client.info
    window = window_words(info.window, info.window_source)
    if not online and info is client.info and info.window_source in ("catalogue", "assumed"):
        window = f"{window}, server not contacted"  # a session has asked, and its answer precedes these
    place = f"{without_password(client.config.base_url)}: {reached}"
    facts = (f"window {window}", _price(supply, account, info.name), _key(account), place)
    await client.close()
    return _Known(info.ref, facts, f"{name}: {problem}" if problem else "")


async def _reach(supply: ModelSupply, client: HttpModelClient) -> tuple[str, str]:
    models, _ = await asyncio.gather(list_models(endpoint_of(client.config)), supply.windows.ask(client))
    if models.problem:
        return _NONE_LISTED, models.problem
    ids = {model.id for model in models.models}
    name = client.info.name
    listed = any(one in (name, f"{name}:latest") or one.endswith(f"/{name}") for one in ids)
    return (_reached(len(ids)), "") if listed else (f"reached, but {name} is not listed", "")


def _reached(models: int) -> str:
    return f"reached, {plural(models, 'model')}"


def _price(supply: ModelSupply, account: Account, model: str) -> str:
    """Price as a session counts it: a server of the user's own may be a gateway to a paid one."""
    prices = supply.own_prices.get(f"{account.provider.name}/{model}")
    if prices is None and account.provider.name in LOCAL_PROVIDERS and account.key == "not needed":
        return "free"
    if prices is None:
        found = load_catalog().lookup(account.provider.name, model) if account.own_host else None
        prices = found.prices if found is not None else None
    if prices is None:
        return "price ?"
    rates = prices.at(utc_now())
    return f"${rates.input.normalize():f} in, ${rates.output.normalize():f} out per million tokens"


def _key(account: Account) -> str:
    if account.key == "environment":
        return f"key from {account.variable}"
    if account.key == "missing":
        return f"key missing: {account.variable}" if account.variable else "key missing"
    return "stored key" if account.key == "stored" else "no key needed"
