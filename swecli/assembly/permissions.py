"""The permission rules of a folder for a person: list with uses, try, add and revoke."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from swecli.assembly.policy import build_policy, grant_rules
from swecli.assembly.rules import no_effect, rule_notice
from swecli.assembly.settings import SettingsFiles
from swecli.assembly.startup import Startup, startup_of
from swecli.core.config.load import toml_text
from swecli.core.config.paths import Paths, user_paths
from swecli.core.config.trust import GRANTS_FILE, GrantStore, PendingItem
from swecli.core.engine.state import FOR_THIS_TURN
from swecli.core.permissions.check import COMMAND_TOOL, Match, command_call, matching_commands, void_reason
from swecli.core.permissions.rules import RuleError, rule_pattern
from swecli.core.permissions.types import Call, Policy, Rule, RuleEffect
from swecli.core.sessions.database import DATABASE, read_only
from swecli.launch import LaunchOptions, StartError

NEWEST = 200
"""Newest commands on which to try a rule."""


class Use(Struct, frozen=True):
    """Number of a rule's decisions, and the time of the last one (Unix seconds)."""

    count: int
    last: float | None


def newest_commands(paths: Paths, workspace: Path) -> tuple[Call, ...]:
    """The model's newest commands in this workspace, as tool calls."""
    rows = _rows(
        paths,
        workspace,
        "SELECT e.session_id, CAST(e.body AS BLOB), s.cwd FROM events e JOIN sessions s ON s.id = e.session_id"
        " WHERE e.type = 'item_checkpointed' AND instr(e.body, ?) ORDER BY e.ts DESC LIMIT ?",
        (f'"{COMMAND_TOOL}"', NEWEST * 5),
    )
    calls: dict[tuple[str, str], Call] = {}
    for session, body, cwd in rows:
        recorded = _command(body)
        if recorded is not None and len(calls) < NEWEST:
            calls.setdefault((session, recorded[0]), command_call(recorded[1], Path(str(cwd))))
    return tuple(calls.values())


def rule_uses(paths: Paths, workspace: Path) -> Mapping[tuple[str, str], Use]:
    rows = _rows(
        paths,
        workspace,
        "SELECT json_extract(body, '$.effect'), json_extract(body, '$.rule'), count(*), max(ts) FROM events"
        " WHERE type = 'rule_applied' GROUP BY 1, 2",
        (),
    )
    return {(str(effect), str(rule)): Use(count, last) for effect, rule, count, last in rows}


def _command(body: object) -> tuple[str, str] | None:
    try:
        data = cast("dict[str, Any]", json.loads(cast("bytes", body)))
        part = data["part"]
        command = json.loads(part["arguments"])["command"] if part["name"] == COMMAND_TOOL else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return (str(data.get("item")), command) if isinstance(command, str) else None


def _rows(paths: Paths, workspace: Path, query: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
    """Read-only query; empty if there is no readable store."""
    file = paths.workspace_data(workspace) / DATABASE
    if not os.path.isfile(file):
        return []
    try:
        with closing(read_only(file)) as connection:
            return connection.execute(query, values).fetchall()
    except sqlite3.Error:
        return []


class RuleRow(Struct, frozen=True):
    """An active rule of a folder. ``id`` is that of a grant, else empty; ``last_use`` is Unix seconds; ``void`` is the
    reason for a rule without effect."""

    id: str
    effect: str
    rule: str
    scope: str
    origin: str
    uses: int
    last_use: float | None
    void: str

    @property
    def held(self) -> bool:
        """Whether an answer in the current session allowed it, and the session can revoke it."""
        return self.scope == "session"

    @property
    def used(self) -> str:
        return f"{self.uses}x, last {datetime.fromtimestamp(self.last_use):%Y-%m-%d}" if self.last_use else "never"


class Tried(Struct, frozen=True):
    """Recent commands that a rule would match: ``count`` of ``total``, commands that may write first."""

    count: int
    total: int
    commands: tuple[str, ...] = ()


SHOWN = 8
"""Commands to name when a rule is tried."""


class FolderRules:
    """The rules of the folder of ``options``: list, try, grant and revoke. What a list on the screen calls raises
    ``ValueError`` with a sentence for every failure."""

    def __init__(self, options: LaunchOptions, environment: Mapping[str, str]) -> None:
        self.options = options
        self.environment = environment

    def startup(self) -> Startup:
        """The present settings of the folder.

        Raises:
            StartError: a settings file is broken.
        """
        return startup_of(self.options, self.environment)

    def policy(self, startup: Startup) -> Policy:
        """Initial policy of a session here, grants included."""
        policy = build_policy(self.options, startup, startup.child_environment)
        return replace(policy, rules=(*policy.rules, *grant_rules(self.grants)))

    @property
    def grants(self) -> GrantStore:
        return GrantStore(user_paths(self.environment).workspace_data(self.options.cwd) / GRANTS_FILE)

    def rows(self, held: Sequence[Rule] = ()) -> list[RuleRow]:
        """All active rules, and the project's own that wait for consent; ``held`` are those allowed by answers in a
        running session.

        Raises:
            StartError: a settings file is broken.
        """
        startup = self.startup()
        uses = rule_uses(startup.paths, self.options.cwd)
        granted = {grant.rule: grant.id for grant in self.grants.active()}
        policy = self.policy(startup)
        policy = replace(policy, rules=(*policy.rules, *held))
        rows: list[RuleRow] = []
        for rule in policy.rules:
            use = uses.get((rule.effect, rule.text), Use(0, None))
            grant = granted.get(rule.text, "") if rule.scope == "grant" else ""
            origin = rule.origin or rule.scope
            if rule in held:
                origin = "this turn" if rule.origin == FOR_THIS_TURN else "this session"
            void = void_reason(rule, policy) or no_effect(rule)
            rows.append(RuleRow(grant, rule.effect, rule.text, rule.scope, origin, use.count, use.last, void))
        return [*rows, *_waiting(startup.pending)]

    def matches(self, effect: RuleEffect, rule: str) -> tuple[Sequence[Match], int]:
        """The newest commands that a rule matches, and the number examined. Runs nothing.

        Raises:
            RuleError: the rule is invalid.
            StartError: a settings file is broken.
        """
        wanted = checked_rule(effect, rule)
        startup = self.startup()
        calls = newest_commands(startup.paths, self.options.cwd)
        return matching_commands(wanted, calls, self.policy(startup)), len(calls)

    # --- for a list on the screen ---

    def read(self, held: Sequence[Rule] = ()) -> Sequence[RuleRow]:
        """All rules; ``held`` are those that answers allowed in the session."""
        with _in_a_sentence():
            return self.rows(held)

    def try_rule(self, effect: str, rule: str) -> Tried:
        """Match a rule against recent commands, without running any."""
        with _in_a_sentence(rule):
            matches, total = self.matches(_effect(effect), rule)
        ordered = sorted(matches, key=lambda match: match.reads)
        commands = tuple(" ".join((match.call.effects.command or "").split()) for match in ordered)
        return Tried(len(matches), total, tuple(dict.fromkeys(commands))[:SHOWN])

    def add(self, how: str, rule: str) -> str:
        """Add a rule: ``week`` and ``project`` allow for seven days or until revoked; ``ask`` and ``deny`` are written
        to the user's settings. Returns a sentence."""
        with _in_a_sentence(rule):
            checked_rule(_effect(how), rule)
            startup = self.startup()
        if how in ("ask", "deny"):
            settings = SettingsFiles(self.options, self.environment)
            there = [each.text for each in startup.loaded.rules if each.effect == how and each.scope == "user"]
            if rule in there:
                raise ValueError(f"{how} {rule} is already in your settings")
            return settings.write(f"approval.{how}", toml_text([*there, rule]), "user").message
        with _in_a_sentence():
            grant = self.grants.add(rule, "week" if how == "week" else "project")
        return f"{rule_notice(rule)} allow {grant.rule}: {grant.origin}".lstrip()

    def revoke(self, grant: str) -> str:
        with _in_a_sentence():
            revoked = self.grants.revoke(grant)
        return f"Revoked: {', '.join(each.rule for each in revoked)}" if revoked else "It was already revoked"


def _waiting(pending: Sequence[PendingItem]) -> Iterator[RuleRow]:
    """The allow rules of a trusted project that its user has not accepted yet."""
    for item in pending:
        if item.key == _ALLOW:
            for rule in json.loads(item.value):
                yield RuleRow("", "allow", str(rule), "project", item.origin, 0, None, _NOT_ACCEPTED)


_ALLOW = "approval.allow"
_NOT_ACCEPTED = f"not accepted: swecli permissions accept {_ALLOW}"


def checked_rule(effect: RuleEffect, text: str) -> Rule:
    """The rule with this text.

    Raises:
        RuleError: the text is invalid.
    """
    rule = Rule(effect, text, "session")
    rule_pattern(rule)
    return rule


@contextmanager
def _in_a_sentence(rule: str = "") -> Generator[None]:
    try:
        yield
    except RuleError as error:
        raise ValueError(f"{rule}: {error}") from None
    except StartError as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise ValueError(f"The change cannot be stored ({error.strerror or error}); nothing was changed") from None


def _effect(word: str) -> RuleEffect:
    return "deny" if word == "deny" else "ask" if word == "ask" else "allow"
