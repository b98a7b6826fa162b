"""``swecli permissions`` about rules: list, try, grant and revoke."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from swecli.command_line.arguments import Parser, UsageError, working_directory
from swecli.core.config.grants import GrantStore
from swecli.core.permissions.types import Policy, Rule
from swecli.exit_codes import ExitCode
from swecli.launch import StartError

PolicyFor = Callable[[Path], Policy]


def list_rules(policy_for: PolicyFor, arguments: Sequence[str]) -> int:
    """Every rule that holds here, with origin, uses and what makes it void."""
    parser = Parser(prog="swecli permissions list", description="The rules that hold in this folder.")
    parser.add_argument("-C", "--cwd", metavar="DIR", help="in this folder")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each rule")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    rows = _rules(policy_for(folder), folder)
    if chosen.json:
        sys.stdout.writelines(json.dumps(row) + "\n" for row in rows)
        return ExitCode.OK
    if not rows:
        sys.stdout.write("No rules hold here. Reading in the folder runs, everything else is asked about.\n")
        return ExitCode.OK
    from swecli.block_text import block_lines
    from swecli.core.protocol.blocks import TableBlock

    table = tuple(
        (row["id"], row["effect"], row["rule"], row["origin"], _uses(row), row["void"] or "in force") for row in rows
    )
    lines = block_lines(TableBlock(("id", "", "rule", "from", "used", "effect"), table))
    sys.stdout.write("\n".join(_safe(line) for line in lines) + "\n")
    return ExitCode.OK


def _rules(policy: Policy, folder: Path) -> list[dict[str, Any]]:
    from swecli.assembly.permission_history import rule_uses
    from swecli.core.config.paths import user_paths
    from swecli.core.permissions.rule_list import void_reason

    uses = rule_uses(user_paths(os.environ), folder)
    granted = {grant.rule: grant.id for grant in _store(folder).active()}
    rows: list[dict[str, Any]] = []
    for rule in policy.rules:
        use = uses.get((rule.effect, rule.text))
        rows.append(
            {
                "id": granted.get(rule.text, "") if rule.scope == "grant" else "",
                "effect": rule.effect,
                "rule": rule.text,
                "scope": rule.scope,
                "origin": rule.origin or rule.scope,
                "uses": use.count if use else 0,
                "last_use": use.last if use else None,
                "void": void_reason(rule, policy),
            }
        )
    return rows


def _uses(row: dict[str, Any]) -> str:
    last = row["last_use"]
    return f"{row['uses']}, last {datetime.fromtimestamp(last):%Y-%m-%d}" if last else "never"


def try_rule(policy_for: PolicyFor, arguments: Sequence[str]) -> int:
    """How many of the newest commands a rule would have decided about."""
    parser = Parser(prog="swecli permissions test", description="Which of the last 200 commands a rule speaks about.")
    parser.add_argument("rule", help="for example 'Bash(npm run *)'")
    parser.add_argument("--as", dest="effect", choices=("allow", "ask", "deny"), default="allow")
    parser.add_argument("-C", "--cwd", metavar="DIR", help="in this folder")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    from swecli.assembly.permission_history import newest_commands
    from swecli.core.config.paths import user_paths
    from swecli.core.permissions.rule_list import matching_commands

    calls = newest_commands(user_paths(os.environ), folder)
    rule = _valid(chosen.rule, chosen.effect)
    found = matching_commands(rule, calls, policy_for(folder))
    writes = [match.call.effects.command or "" for match in found if not match.reads]
    sys.stdout.write(f"{_safe(rule.text)} would have matched {len(found)} of the last {len(calls)} commands")
    sys.stdout.write(f", {len(writes)} of which may write:\n" if writes else ".\n")
    sys.stdout.writelines(f"  {_safe(text)[:200]}\n" for text in writes[:10])
    return ExitCode.OK


def grant(policy_for: PolicyFor, arguments: Sequence[str]) -> int:
    """Allow something in this folder for seven days or until revoked."""
    del policy_for
    parser = Parser(prog="swecli permissions grant", description="Allow something in this folder without asking.")
    parser.add_argument("rule", help="for example 'Bash(npm run *)'")
    parser.add_argument(
        "--for", dest="span", choices=("week", "project"), default="week", help="7 days, or until revoked"
    )
    parser.add_argument("-C", "--cwd", metavar="DIR", help="in this folder")
    chosen = parser.parse_args(arguments)
    rule = _valid(chosen.rule, "allow")
    try:
        kept = _store(working_directory(chosen.cwd)).add(rule.text, chosen.span)
    except OSError as error:
        raise StartError(f"this can't be kept: {error}. Nothing was changed.") from error
    sys.stdout.write(f"{kept.id}  allow {_safe(kept.rule)}: {kept.origin}\n")
    return ExitCode.OK


def revoke(policy_for: PolicyFor, arguments: Sequence[str]) -> int:
    """Take a grant back. Running sessions ask again from their next call on."""
    del policy_for
    parser = Parser(prog="swecli permissions revoke", description="Take back what was granted in this folder.")
    parser.add_argument("name", help="the grant's id or its rule, as `swecli permissions` shows them")
    parser.add_argument("-C", "--cwd", metavar="DIR", help="in this folder")
    chosen = parser.parse_args(arguments)
    try:
        gone = _store(working_directory(chosen.cwd)).revoke(chosen.name)
    except OSError as error:
        raise StartError(f"this can't be kept: {error}. Nothing was changed.") from error
    if not gone:
        raise UsageError(f"nothing is granted under {chosen.name!r}; `swecli permissions` lists it")
    sys.stdout.writelines(f"revoked: {_safe(each.rule)}\n" for each in gone)
    return ExitCode.OK


def _valid(text: str, effect: str) -> Rule:
    from swecli.core.permissions.rules import RuleError, parse_rule

    try:
        parse_rule(text)
    except RuleError as error:
        raise UsageError(f"{text}: {error}") from error
    return Rule("allow" if effect == "allow" else "ask" if effect == "ask" else "deny", text, "session")


def _store(folder: Path) -> GrantStore:
    from swecli.core.config.grants import FILE_NAME
    from swecli.core.config.paths import user_paths

    return GrantStore(user_paths(os.environ).workspace_data(folder) / FILE_NAME)


def _safe(text: str) -> str:
    from swecli.safe_text import safe_line

    return safe_line(text)
