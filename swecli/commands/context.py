"""/context: what fills the context window, in the same figures as the meter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand
from swecli.commands.figures import aligned, number, percent
from swecli.core.engine.view import SessionPort, SessionView
from swecli.core.protocol.events import Budget

if TYPE_CHECKING:  # the rules bring the whole manager
    from swecli.core.context_management.compaction.retention import RuleReport

_BAR_CELLS = 40
_SOURCES = {"measured": "anchored on reported usage", "estimated": "estimated", "unknown": "unknown"}
_LEVELS = {
    "ok": "",
    "warn": "More than 80 % is used.",
    "compact": "More than 95 % is used.",
    "block": "98 % is used: no request is sent until there is room. /clear starts a new conversation.",
}


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    return CommandResult.text("\n".join(filter(None, (context_text(port.view), rules_text(port.retention())))))


CONTEXT = SlashCommand("context", "What fills the context window", _run, aliases=("tokens",))


def context_text(view: SessionView) -> str:
    """The whole report as plain text."""
    budget, model = view.budget, view.model
    if budget is None:
        lines = ["Nothing is measured yet: the first request does it."]
        if model is not None and model.window:
            lines.append(f"{model.ref} has a window of {number(model.window)} tokens ({model.window_source}).")
        return "\n".join(lines)
    sign = "" if budget.source == "measured" else "~"
    parts = [
        f"Context {sign}{percent(budget.share)}: {sign}{number(budget.used)} of {number(budget.effective)} tokens"
        f" ({_SOURCES[budget.source]})",
        bar(budget.share),
        _components(budget),
        f"Window {number(budget.window)} tokens{_named(budget.window_source)}, {number(budget.reserve)} of them kept"
        f" for the answer. {_messages(len(view.messages))} in the conversation.",
        _LEVELS[budget.level],
    ]
    return "\n".join(part for part in parts if part)


def rules_text(rules: Sequence[RuleReport]) -> str:
    """What the user's rules did; empty without rules."""
    rows = [
        (rule.rule, f"{number(rule.removed)} gone", f"{number(rule.saved)} tokens", f"{rule.recalled} asked for again")
        for rule in rules
    ]
    return f"Your rules:\n{aligned(rows)}" if rows else ""


def bar(share: float, cells: int = _BAR_CELLS) -> str:
    """A bar of ``cells`` characters, full at 1 and above; anything above nothing shows."""
    filled = min(cells, max(1 if share > 0 else 0, round(share * cells)))
    return "▓" * filled + "░" * (cells - filled)


def _components(budget: Budget) -> str:
    rows = [
        (
            component.name,
            number(component.tokens),
            percent(component.tokens / budget.effective) if budget.effective > 0 else "?",
            f"of at most {number(component.limit)}" if component.limit is not None else "",
        )
        for component in budget.components
    ]
    rows.append(("free", number(max(0, budget.effective - budget.used)), percent(max(0.0, 1 - budget.share)), ""))
    return aligned(rows)


def _named(source: str) -> str:
    return f" ({source})" if source else ""


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{number(count)} messages"
