"""The permission rules of a folder for people: with their uses, tried on what ran, added, revoked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from swecli.assembly.grants import grant_rules, grants_of
from swecli.assembly.permission_history import newest_commands, rule_uses
from swecli.assembly.services import build_policy
from swecli.assembly.settings_files import SettingsFiles
from swecli.assembly.startup import Startup, startup_of
from swecli.core.config.grants import GrantStore
from swecli.core.config.toml_value import toml_text
from swecli.core.permissions.rule_list import matching_commands, void_reason
from swecli.core.permissions.rules import RuleError, parse_rule
from swecli.core.permissions.types import Policy, Rule
from swecli.core.workspace.environment import scrubbed_environment
from swecli.launch import LaunchOptions, StartError
from swecli.tui.screens.ports import ShownRule, Tried

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
            parse_rule(rule)
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
