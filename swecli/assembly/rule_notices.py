"""What to tell about permission rules that can't hold because they are misspelt."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from swecli.core.permissions.rules import RuleError, parse_rule
from swecli.core.permissions.types import Rule
from swecli.core.tools.builtin import builtin_tools


def rule_notices(rules: Sequence[Rule]) -> tuple[str, ...]:
    """A sentence for each rule that is no rule or names no tool: it would stop, ask or allow nothing, and its author
    believes that it does."""
    if not rules:
        return ()
    tools = frozenset(tool.name for tool in builtin_tools())
    told = ((rule, _trouble(rule.text, tools)) for rule in rules)
    return tuple(
        f"{f'{rule.origin}: ' if rule.origin else ''}the {rule.effect} rule {rule.text!r} has no effect: {trouble}."
        for rule, trouble in told
        if trouble
    )


def _trouble(text: str, tools: Collection[str]) -> str:
    try:
        pattern = parse_rule(text)
    except RuleError as error:
        return str(error)
    named = pattern.tools
    if named and not any(name in tools or name.startswith("mcp__") for name in named):
        return f"there is no tool {named[0]!r}; there are {', '.join(sorted(tools))}"
    return ""
