"""The permission rules of a folder for a person: with their uses, tried, added and revoked."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from swecli.assembly.services import build_policy, grant_rules, grants_of
from swecli.assembly.settings import SettingsFiles
from swecli.assembly.startup import Startup, startup_of
from swecli.assembly.storage import DATABASE
from swecli.core.config.load import toml_text
from swecli.core.config.paths import Paths
from swecli.core.config.trust import GrantStore
from swecli.core.permissions.check import COMMAND_TOOL, command_call, matching_commands, void_reason
from swecli.core.permissions.rules import RuleError, check_rules, rule_pattern
from swecli.core.permissions.types import Call, Policy, Rule
from swecli.core.sessions.database import read_only
from swecli.core.tools.registry import builtin_tools
from swecli.core.workspace.process import scrubbed_environment
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError
from swecli.tui.backend import ShownRule, Tried

NEWEST = 200
"""Commands that a rule is tried on."""


@dataclass(frozen=True, slots=True)
class Use:
    """How often a rule decided, and when last (Unix seconds)."""

    count: int
    last: float


def newest_commands(paths: Paths, workspace: Path, limit: int = NEWEST) -> tuple[Call, ...]:
    """The newest commands of the model in this workspace, each as the call that it was."""
    rows = _rows(
        paths,
        workspace,
        "SELECT e.session_id, CAST(e.body AS BLOB), s.cwd FROM events e JOIN sessions s ON s.id = e.session_id"
        " WHERE e.type = 'item_checkpointed' AND instr(e.body, ?) ORDER BY e.ts DESC LIMIT ?",
        (f'"{COMMAND_TOOL}"', limit * 5),
    )
    calls: dict[tuple[str, str], Call] = {}
    for session, body, cwd in rows:
        found = _command(body)
        if found is not None and len(calls) < limit:
            calls.setdefault((session, found[0]), command_call(found[1], Path(str(cwd))))
    return tuple(calls.values())


def rule_uses(paths: Paths, workspace: Path) -> Mapping[tuple[str, str], Use]:
    """Uses of each rule by effect and text."""
    rows = _rows(
        paths,
        workspace,
        "SELECT json_extract(body, '$.effect'), json_extract(body, '$.rule'), count(*), max(ts) FROM events"
        " WHERE type = 'rule_applied' GROUP BY 1, 2",
        (),
    )
    return {(str(effect), str(rule)): Use(count, last) for effect, rule, count, last in rows}


def _command(body: object) -> tuple[str, str] | None:
    """The item and the command of a checkpoint of the shell tool."""
    try:
        data = cast("dict[str, Any]", json.loads(cast("bytes", body)))
        part = data["part"]
        command = json.loads(part["arguments"])["command"] if part["name"] == COMMAND_TOOL else None
    except (ValueError, KeyError, TypeError):
        return None
    return (str(data.get("item")), command) if isinstance(command, str) else None


def _rows(paths: Paths, workspace: Path, query: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
    """Read without taking part in writing; nothing where there is no store or it can't be read."""
    file = paths.workspace_data(workspace) / DATABASE
    if not file.is_file():
        return []
    try:
        with closing(read_only(file)) as connection:
            return connection.execute(query, values).fetchall()
    except sqlite3.Error:
        return []


SHOWN = 8
"""Commands that are named when a rule is tried."""


class PermissionRules:
    """Implements ``PermissionsPort`` for the folder of ``options``."""

    def __init__(self, options: LaunchOptions, environment: Mapping[str, str]) -> None:
        self._options = options
        self._environment = environment

    def read(self) -> Sequence[ShownRule]:
        startup = self._startup()
        uses = rule_uses(startup.paths, self._options.cwd)
        store = self._store(startup)
        granted = {grant.rule: grant.id for grant in store.active()}
        policy = self._policy(startup)
        found: list[ShownRule] = []
        for rule in policy.rules:
            use = uses.get((rule.effect, rule.text))
            used = f"{use.count}x, last {datetime.fromtimestamp(use.last):%Y-%m-%d}" if use else "never"
            grant = granted.get(rule.text, "") if rule.scope == "grant" else ""
            found.append(
                ShownRule(rule.effect, rule.text, rule.origin or rule.scope, used, void_reason(rule, policy), grant)
            )
        return found

    def try_rule(self, effect: str, rule: str) -> Tried:
        startup = self._startup()
        calls = newest_commands(startup.paths, self._options.cwd)
        try:
            found = matching_commands(_rule(effect, rule), calls, self._policy(startup))
        except RuleError as error:
            raise ValueError(f"{rule}: {error}") from None
        ordered = sorted(found, key=lambda match: match.reads)
        commands = tuple(" ".join((match.call.effects.command or "").split()) for match in ordered)
        return Tried(len(found), len(calls), tuple(dict.fromkeys(commands))[:SHOWN])

    def add(self, how: str, rule: str) -> str:
        try:
            rule_pattern(_rule(how, rule))
        except RuleError as error:
            raise ValueError(f"{rule}: {error}") from None
        if how in ("ask", "deny"):
            settings = SettingsFiles(self._options, self._environment)
            there = [each.text for each in self._startup().loaded.rules if each.effect == how and each.scope == "user"]
            if rule in there:
                raise ValueError(f"{how} {rule} is in your settings already")
            return settings.write(f"approval.{how}", toml_text([*there, rule]), "user").told
        try:
            kept = self._store(self._startup()).add(rule, "week" if how == "week" else "project")
        except OSError as error:
            raise ValueError(f"this can't be kept ({error.strerror or error}); nothing was changed") from None
        return f"allow {kept.rule}: {kept.origin}"

    def revoke(self, grant: str) -> str:
        try:
            gone = self._store(self._startup()).revoke(grant)
        except OSError as error:
            raise ValueError(f"this can't be kept ({error.strerror or error}); nothing was changed") from None
        return f"Revoked: {', '.join(each.rule for each in gone)}" if gone else "It was revoked already"

    def _store(self, startup: Startup) -> GrantStore:
        return grants_of(startup, self._options.cwd)

    def _policy(self, startup: Startup) -> Policy:
        policy = build_policy(self._options, startup, scrubbed_environment(self._environment))
        return replace(policy, rules=(*policy.rules, *grant_rules(self._store(startup))))

    def _startup(self) -> Startup:
        try:
            return startup_of(self._options, self._environment)
        except StartError as error:
            raise ValueError(str(error)) from None


def _rule(effect: str, text: str) -> Rule:
    return Rule("deny" if effect == "deny" else "ask" if effect == "ask" else "allow", text, "session")


def rule_notices(rules: Sequence[Rule]) -> tuple[str, ...]:
    """A sentence for each rule that is no rule or names no tool: it would stop, ask or allow nothing, and its author
    believes that it does."""
    if not rules:
        return ()
    tools = frozenset(tool.name for tool in builtin_tools())
    told = ((rule, _trouble(rule, tools)) for rule in rules)
    return tuple(
        f"{f'{rule.origin}: ' if rule.origin else ''}the {rule.effect} rule {rule.text!r} has no effect: {trouble}."
        for rule, trouble in told
        if trouble
    )


def require_rules(options: LaunchOptions, startup: Startup) -> None:
    """Refuse a run with a deny or ask rule that can't be understood: it would let through what it is there to stop.

    Raises:
        StartError: there is one; the message names each with its place.
    """
    rules = [Rule(rule.effect, rule.text, rule.scope, rule.origin) for rule in startup.loaded.rules]
    rules += [Rule("deny", text, "flag", "--disallowed-tools") for text in options.disallowed_tools]
    problems = check_rules(rule for rule in rules if rule.effect != "allow")
    if problems:
        told = [f"{one.rule.origin}: the {one.rule.effect} rule {one.message}" for one in problems]
        raise StartError("\n".join(told), ExitCode.CONFIG)


def _trouble(rule: Rule, tools: Collection[str]) -> str:
    try:
        pattern = rule_pattern(rule)
    except RuleError as error:
        return str(error)
    named = pattern.tools
    if named and not any(name in tools or name.startswith("mcp__") for name in named):
        return f"there is no tool {named[0]!r}; there are {', '.join(sorted(tools))}"
    return ""
