"""Dry runs for people: the calls a rule matches, and the decision a command would get."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.permissions.commands import allowed_by, forbids, judge
from swecli.core.permissions.decide import decide
from swecli.core.permissions.rules import Pattern, RuleError, matches_call, parse_rule, rule_pattern, valid_pattern
from swecli.core.permissions.types import Call, Decision, Effects, Policy, Rule
from swecli.core.protocol.events import Mode

_STRONGER = {"allow": ("deny", "ask"), "ask": ("deny",), "deny": ()}


class Match(Struct, frozen=True):
    """A call that a rule matches. ``reads``: it is proven read-only and needs no rule."""

    call: Call
    reads: bool


def void_reason(rule: Rule, policy: Policy) -> str:
    """Why a rule has no effect beside the others, as a clause; empty if it has one."""
    try:
        pattern = rule_pattern(rule)
    except RuleError as error:
        return f"not understood: {error}"
    if rule.effect == "allow" and rule.scope == "project" and policy.trust not in ("trusted", "session"):
        return "no effect: this folder is not trusted"
    for other in policy.rules:
        if other is rule:
            continue
        stronger = other.effect in _STRONGER[rule.effect]
        if (stronger or other.effect == rule.effect) and _covers(other, pattern):
            if not stronger and not _takes_effect_before(other, rule, policy.rules):
                continue
            verb = "always overruled" if stronger else "already covered"
            return f"{verb} by {other.effect} {other.text}" + (f" ({other.origin})" if other.origin else "")
    return ""


def _takes_effect_before(other: Rule, rule: Rule, rules: Sequence[Rule]) -> bool:
    """Whether ``other``, which covers ``rule``, takes effect before it: the first of two rules that mean the same,
    and a wider rule in any position."""
    if not _covers(rule, rule_pattern(other)):
        return True
    return next(each is other for each in rules if each is other or each is rule)


def _covers(other: Rule, pattern: Pattern) -> bool:
    wider = valid_pattern(other)
    if wider is None:
        return False
    if wider.kind == "tool":
        tools = pattern.tools or parse_rule("Read" if pattern.kind == "read" else "Edit").tools
        return all(map(wider.matches_tool, tools))
    if not (set(pattern.tools) <= set(wider.tools)):
        return False
    if wider.kind != pattern.kind:
        return False
    if wider.kind == "command":
        wide = other.effect != "allow"
        if pattern.rest and not (wider.rest or (wide and wider.only_program)):
            return False
        return wider.matches_words(pattern.words, wide=wide)
    if wider.kind == "domain":
        return pattern.domain == wider.domain or pattern.domain.endswith("." + wider.domain)
    return wider.path == pattern.path


def matching_commands(rule: Rule, calls: Iterable[Call], policy: Policy) -> tuple[Match, ...]:
    """The calls that this rule alone would allow, ask about or refuse. Runs nothing.

    Raises:
        RuleError: the rule is invalid.
    """
    rule_pattern(rule)
    alone = replace(policy, rules=(rule,))
    matches: list[Match] = []
    for call in calls:
        if call.effects.command is None:
            if matches_call(rule, call, policy.home):
                matches.append(Match(call, reads=not call.effects.writes))
            continue
        judgement = judge(alone, call)
        if rule.effect == "allow":
            hit = not judgement.dangers and allowed_by((rule,), alone, call, judgement) is not None
        else:
            hit = matches_call(rule, call, policy.home) or forbids(rule, alone, call, judgement)
        if hit:
            matches.append(Match(call, reads=judgement.proven))
    return tuple(matches)


COMMAND_TOOL = "run_command"


class BadCheck(ValueError):
    """The check is impossible; the message says why."""


PolicyOf = Callable[[Path], Policy]
"""The policy of a session started in this directory.

Raises:
    BadCheck: no session could start there.
"""


class CommandCheck(Struct, frozen=True):
    """A command, its working directory and the mode; None is the mode from the settings."""

    command: str
    cwd: Path
    mode: Mode | None = None


def judge_command(check: CommandCheck, policy_of: PolicyOf) -> Decision:
    """The decision that a session would make.

    Raises:
        BadCheck: a session can't work in the directory.
    """
    policy = policy_of(check.cwd)
    if check.mode is not None:
        policy = replace(policy, mode=check.mode)
    return decide(policy, command_call(check.command, check.cwd))


def command_call(command: str, cwd: Path) -> Call:
    return Call(COMMAND_TOOL, {"command": command}, Effects(command=command), str(cwd), (str(cwd),))


def decision_data(decision: Decision) -> dict[str, Any]:
    """A decision as plain data: ``verdict`` is allow, ask or deny, ``offer`` the rules that "always" would add, as
    shown, ``offers`` the same as a list, ``offer_note`` what else they would allow, or why there are none."""
    return {
        "verdict": decision.outcome,
        "reason": decision.reason,
        "rule": None if decision.rule is None else rule_data(decision.rule),
        "offer": decision.offer,
        "offers": list(decision.offers),
        "offer_note": decision.offer_note,
        "evidence": list(decision.evidence),
    }


def rule_data(rule: Rule) -> dict[str, Any]:
    return {"effect": rule.effect, "rule": rule.text, "scope": rule.scope, "origin": rule.origin}


def judge_lines(lines: Iterable[str], policy_of: PolicyOf) -> Iterator[str]:
    """One verdict line for each line ``{"command", "cwd", "mode"}``. ``cwd`` and ``mode`` are optional, an ``id`` is
    echoed; a line that can't be judged gives ``error`` instead of a verdict."""
    for line in lines:
        if line.strip():
            yield json.dumps(_judged(line, policy_of))


def _judged(line: str, policy_of: PolicyOf) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    try:
        data = _object(line)
        if "id" in data:
            answer["id"] = data["id"]
        check = _check(data)
        return {**answer, "command": check.command, **decision_data(judge_command(check, policy_of))}
    except BadCheck as error:
        return {**answer, "verdict": None, "error": str(error)}


def _object(line: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadCheck(f"invalid JSON: {error}") from error
    if not isinstance(data, dict):
        raise BadCheck("not a JSON object")
    return cast("dict[str, Any]", data)


def _check(data: dict[str, Any]) -> CommandCheck:
    command, cwd, mode = data.get("command"), data.get("cwd"), data.get("mode")
    if not isinstance(command, str):
        raise BadCheck("command: must be a string")
    if cwd is not None and not isinstance(cwd, str):
        raise BadCheck("cwd: must be a string")
    if mode is not None and mode not in get_args(Mode):
        raise BadCheck(f"mode: {mode!r} is not one of {', '.join(get_args(Mode))}")
    return CommandCheck(command, existing_directory(cwd or "."), mode)


def existing_directory(text: str) -> Path:
    """The directory of this name, resolved. Raises ``BadCheck`` if it is none."""
    try:
        path = Path(os.path.expanduser(text)).resolve()
        if path.is_dir():
            return path
    except (OSError, ValueError, RuntimeError):
        pass
    raise BadCheck(f"cwd: {text!r} is not a directory")
