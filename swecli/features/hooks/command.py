"""/hooks: hooks by event, their latest results, and switches for this session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand, absent
from swecli.core.protocol.blocks import TableBlock, TextBlock
from swecli.core.protocol.hook_words import short_command
from swecli.figures import labelled

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.core.hooks.runner import HookRecord
    from swecli.features.hooks.companion import SessionHooks

NONE = (
    "No hooks. Hooks are your own commands that run on session events: add [[hooks.PreToolUse]] to config.toml, "
    "or keep those in .claude/settings.json. See docs/hooks.md."
)
USAGE = 'Use /hooks, /hooks NUMBER, /hooks off NUMBER, /hooks on NUMBER or /hooks allow NUMBER; "all" means every hook.'


async def _run_hooks(session: Session, arguments: str) -> CommandResult:
    from swecli.features.hooks.companion import SessionHooks  # a list of the commands needs no engine

    hooks = session.companion(SessionHooks)
    records = hooks.records if hooks is not None else ()
    if hooks is None or not records:
        return CommandResult.text(absent(session, "hooks", NONE))
    words = arguments.split()
    match words:
        case []:
            return CommandResult((_table(records), TextBlock(_below(records), "dim")))
        case [number] if _chosen(records, number):
            return CommandResult(tuple(TextBlock(_details(record)) for record in _chosen(records, number)))
        case ["on" | "off" as switch, number] if chosen := _chosen(records, number):
            for record in chosen:
                record.enabled = switch == "on"
            return CommandResult.text(f"{_named(chosen)} {switch} for this session.")
        case ["allow", number] if chosen := _chosen(records, number):
            return await _allow(hooks, chosen)
        case _:
            return CommandResult.text(f"{USAGE} There are {len(records)}.", "error")


HOOKS = SlashCommand(
    "hooks",
    "Show hooks and their last runs, switch them off or on",
    _run_hooks,
    arguments="[number | on, off or allow number]",
)


async def _allow(hooks: SessionHooks, records: Sequence[HookRecord]) -> CommandResult:
    for record in records:
        trouble = await hooks.allow(record)
        if trouble:
            return CommandResult.text(trouble, "error")
    shown = "\n".join(f"{record.hook.event}: {record.hook.command}" for record in records)
    return CommandResult.text(f"{_named(records)} allowed in the current version; a change asks again.\n{shown}")


def _chosen(records: Sequence[HookRecord], word: str) -> list[HookRecord]:
    if word == "all":
        return list(records)
    return [record for record in records if str(record.number) == word]


def _named(records: Sequence[HookRecord]) -> str:
    return "All hooks" if len(records) > 1 else f"Hook {records[0].number}" if records else "No hook"


def _state(record: HookRecord) -> str:
    if record.hook.waiting:
        return "not allowed"
    return "on" if record.enabled else "off"


def _last(record: HookRecord) -> str:
    run = record.last
    if run is None:
        return "not run yet"
    status = f"exit {run.ran.exit_status}" if run.ran.exit_status is not None else run.ran.ending
    failed = f", {record.failures} of {record.runs} failed" if record.failures else ""
    return f"{status}, {run.ran.duration:.2f} s, {datetime.fromtimestamp(run.began):%H:%M:%S}{failed}"


def _table(records: Sequence[HookRecord]) -> TableBlock:
    rows = (
        (
            str(record.number),
            record.hook.event,
            record.hook.matcher or "*",
            short_command(record.hook.command),
            record.hook.source,
            _state(record),
            _last(record),
        )
        for record in records
    )
    return TableBlock(("", "Event", "Matcher", "Command", "From", "State", "Last run"), tuple(rows), "Hooks")


def _below(records: Sequence[HookRecord]) -> str:
    waiting = [str(record.number) for record in records if record.hook.waiting]
    allow = f" /hooks allow {waiting[0]} allows the current version of number {waiting[0]}." if waiting else ""
    return f"/hooks NUMBER shows a hook and its output, /hooks off NUMBER disables it for this session.{allow}"


def _details(record: HookRecord) -> str:
    hook, run = record.hook, record.last
    scripts = ", ".join(f"{name} ({digest[:12]})" for name, digest in hook.scripts)
    told = run.answer if run is not None else None
    allowed = "yes, without effect: hooks never skip an approval" if told and told.wish == "allow" else ""
    text = labelled(
        (
            (f"Hook {record.number}", f"{hook.event}, matcher {hook.matcher or '*'}"),
            ("Only for", hook.condition),
            ("Waits", "runs in the background; its answer has no effect" if hook.beside else ""),
            ("Command", hook.command),
            ("From", f"{hook.source}, {hook.origin}"),
            ("State", f"{_state(record)}{f': {hook.waiting}' if hook.waiting else ''}"),
            ("Files", scripts),
            ("Time limit", f"{hook.timeout:g} s"),
            ("Runs", f"{record.runs}, {record.failures} failed" if record.runs else ""),
            ("Last run", _last(record)),
            ("Problem", told.problem if told is not None else ""),
            ("Said allow", allowed),
        )
    )
    return f"{text}\n\n{record.tail}" if record.tail else text
