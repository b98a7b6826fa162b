"""Diagnosis of models: providers, keys, windows, prices. Never shows a key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from swecli.assembly.health import examine_storage, finding_blocks
from swecli.assembly.models import ModelSupply
from swecli.assembly.sandbox import examine_sandbox
from swecli.assembly.startup import Startup
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
from swecli.figures import plural
from swecli.launch import LaunchOptions

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
    findings = await asyncio.to_thread(examine_storage, startup.paths, options.cwd, startup.environment)
    files = await asyncio.to_thread(examine_files, options, startup)
    rest = (contained, *finding_blocks(findings), *files)
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
    running = [
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
    rows = tuple(row for entry in (*looked, *running) for row in entry.rows)
    blocks: list[DisplayBlock] = [TableBlock(HEADERS, rows, "Models")] if rows else []
    blocks += [TextBlock(notice, "warning") for notice in supply.first.notices]
    blocks += [TextBlock(entry.problem, "error") for entry in looked if entry.problem]
    chosen = next((entry for entry, account in zip(looked, accounts, strict=True) if _is(account, main)), None)
    healthy = main is not None and chosen is not None and not chosen.problem
    if main is None:
        blocks.append(TextBlock(supply.first.nothing_chosen, "error"))
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
        location, problem = without_password(account.address), account.problem
        if online and account.elsewhere and account.key != "missing":
            offers, problem = await supply.offered.listed_by(account)
            location = f"{location}: {_NONE_LISTED if problem else _reached(len(offers))}"
        return _Known(name, (_key(account), location), problem)
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
    location = f"{without_password(client.config.base_url)}: {reached}"
    facts = (f"window {window}", _price(supply, account, info.name), _key(account), location)
    await client.close()
    return _Known(info.ref, facts, f"{name}: {problem}" if problem else "")


async def _reach(supply: ModelSupply, client: HttpModelClient) -> tuple[str, str]:
    models, _ = await asyncio.gather(list_models(endpoint_of(client.config)), supply.windows.ask(client))
    if models.problem:
        return _NONE_LISTED, models.problem
    ids = {model.id for model in models.models}
    name = client.info.name
    listed = any(identifier in (name, f"{name}:latest") or identifier.endswith(f"/{name}") for identifier in ids)
    return (_reached(len(ids)), "") if listed else (f"reached, but {name} is not listed", "")


def _reached(models: int) -> str:
    return f"reached, {plural(models, 'model')}"


def _price(supply: ModelSupply, account: Account, model: str) -> str:
    """Price as a session counts it: a server of the user's own may be a gateway to a paid one."""
    prices = supply.prices.own.get(f"{account.provider.name}/{model}")
    if prices is None and account.provider.name in LOCAL_PROVIDERS and account.key == "not needed":
        return "free"
    if prices is None:
        match = load_catalog().lookup(account.provider.name, model) if account.own_host else None
        prices = match.prices if match is not None else None
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
