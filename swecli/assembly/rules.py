"""Rules that have no effect: each is named, and one that was to stop calls ends the start."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from swecli.core.permissions.rules import Pattern, RuleError, parse_rule, rule_pattern, unknown_tool
from swecli.core.permissions.types import Rule


def without_tool(pattern: Pattern) -> str:
    """A clause if the rule names no tool of swecli, so that it has no effect; else empty."""
    name = unknown_tool(pattern, _tools())
    return f"unknown tool {name!r}; tools: {', '.join(_tools())}" if name else ""


def rule_notice(rule: str) -> str:
    """``without_tool`` of a rule's text, as a sentence."""
    trouble = without_tool(parse_rule(rule))
    return f"The rule {rule} has no effect: {trouble}." if trouble else ""


def rule_notices(rules: Sequence[Rule]) -> tuple[str, ...]:
    """A sentence for each invalid rule or one that names no tool: it has no effect although its author relies on it."""
    messages = ((rule, no_effect(rule)) for rule in rules)
    return tuple(
        f"{f'{rule.origin}: ' if rule.origin else ''}the {rule.effect} rule {rule.text!r} has no effect: {trouble}."
        for rule, trouble in messages
        if trouble
    )


def no_effect(rule: Rule) -> str:
    """Why the rule has no effect, as a clause; empty if it may have one."""
    try:
        return without_tool(rule_pattern(rule))
    except RuleError as error:
        return str(error)


@cache
def _tools() -> tuple[str, ...]:
    from swecli.core.tools.registry import builtin_tools

    return tuple(sorted(tool.name for tool in builtin_tools()))
