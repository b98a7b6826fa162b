"""Rules as a person reads them: whether each has an effect, and which commands it would have decided about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from swecli.core.permissions.commands import allowed_by, forbids, judge
from swecli.core.permissions.rules import Pattern, RuleError, matches_call, parse_rule
from swecli.core.permissions.types import Call, Policy, Rule

_STRONGER = {"allow": ("deny", "ask"), "ask": ("deny",), "deny": ()}


@dataclass(frozen=True, slots=True)
class Match:
    """A call that a rule speaks about. ``reads`` says that it was proven to only read and needs no rule."""

    call: Call
    reads: bool


def void_reason(rule: Rule, policy: Policy) -> str:
    """Why a rule has no effect among the others, as a clause; empty where it has one."""
    try:
        pattern = parse_rule(rule.text)
    except RuleError as error:
        return f"not understood: {error}"
    if rule.effect == "allow" and rule.scope == "project" and policy.trust not in ("trusted", "session"):
        return "not in force: this folder is not trusted"
    for other in policy.rules:
        if other is rule:
            continue
        stronger = other.effect in _STRONGER[rule.effect]
        earlier = other.effect == rule.effect and _before(other, rule, policy.rules)
        if (stronger or earlier) and _covers(other, pattern):
            verb = "always overruled" if stronger else "already covered"
            return f"{verb} by {other.effect} {other.text}" + (f" ({other.origin})" if other.origin else "")
    return ""


def _before(other: Rule, rule: Rule, rules: Sequence[Rule]) -> bool:
    """Of two equal rules the first counts; a wider one counts wherever it stands."""
    if other.text != rule.text:
        return True
    return next(each is other for each in rules if each is other or each is rule)


def _covers(other: Rule, pattern: Pattern) -> bool:
    """Whether everything that ``pattern`` speaks about falls under ``other``."""
    try:
        wider = parse_rule(other.text)
    except RuleError:
        return False
    if not (set(pattern.tools) <= set(wider.tools)):
        return False
    if wider.kind == "tool":
        return True
    if wider.kind != pattern.kind:
        return False
    if wider.kind == "command":
        if pattern.rest and not wider.rest:
            return False
        return wider.matches_words(pattern.words)
    if wider.kind == "domain":
        return pattern.domain == wider.domain or pattern.domain.endswith("." + wider.domain)
    return wider.path == pattern.path


def matching_commands(rule: Rule, calls: Iterable[Call], policy: Policy) -> tuple[Match, ...]:
    """The calls that this rule alone would decide about: let run, ask about or refuse. Nothing is run.

    Raises:
        RuleError: the rule can't be understood.
    """
    parse_rule(rule.text)
    alone = replace(policy, rules=(rule,))
    found: list[Match] = []
    for call in calls:
        if call.effects.command is None:
            if matches_call(rule, call, policy.home):
                found.append(Match(call, reads=not call.effects.writes))
            continue
        judgement = judge(alone, call)
        if rule.effect == "allow":
            hit = not judgement.dangers and allowed_by((rule,), alone, call, judgement) is not None
        else:
            hit = matches_call(rule, call, policy.home) or forbids(rule, alone, call, judgement)
        if hit:
            found.append(Match(call, reads=judgement.proven))
    return tuple(found)
