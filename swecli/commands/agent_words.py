"""The words about subagents where the context is shown: each has one of its own, and only its report comes into this
one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from swecli.figures import dollars
from swecli.figures import tokens as short

if TYPE_CHECKING:
    from swecli.core.context_management.items import ContextItem
    from swecli.core.engine.state import AgentRecord


def told_by_agents(items: Sequence[ContextItem]) -> Mapping[str, int]:
    """Tokens of this context that the results and reports of each subagent take, by its id."""
    told: dict[str, int] = {}
    for item in items:
        if item.agent and item.kind != "call":
            told[item.agent] = told.get(item.agent, 0) + item.tokens
    return told


def agent_figures(agent: AgentRecord, told: int) -> tuple[str, ...]:
    """A subagent's name, its state, how full its own context is, what it used and cost, what it takes in this context
    (``told`` tokens); empty where there is nothing to tell yet."""
    state = "at work" if agent.outcome is None else agent.outcome
    own = agent.budget
    window = f"{own.shown} of {short(own.effective)}" if own is not None else ""
    used, cost = _used([agent], "used {}")
    return (f"{agent.id} ({agent.started.profile})", state, window, used, cost, _here(told))


def agents_line(agents: Sequence[AgentRecord], told: int) -> str:
    """The same of all subagents together; empty without any."""
    if not agents:
        return ""
    working = sum(agent.outcome is None for agent in agents)
    count = f"{len(agents):,} subagent{'s' if len(agents) > 1 else ''}"
    words = "{} tokens of their own" if len(agents) > 1 else "{} tokens of its own"
    parts = (count, f"{working} at work" if working else "", *_used(agents, words), _here(told))
    return " · ".join(filter(None, parts))


def _here(told: int) -> str:
    return f"{short(told)} here" if told else ""


def _used(agents: Sequence[AgentRecord], words: str) -> tuple[str, str]:
    """Tokens and cost of their requests. A sum over what is not known throughout would look like the whole."""
    asked = [agent for agent in agents if agent.tally.responses]
    if not asked:
        return "", ""
    silent = any(not agent.tokens for agent in asked)
    used = "tokens not reported" if silent else words.format(short(sum(agent.tokens for agent in asked)))
    known = [agent.tally.cost for agent in asked if agent.tally.cost is not None]
    if len(known) < len(asked):
        return used, "price unknown"
    about = "about " if any(agent.tally.estimated for agent in asked) else ""
    return used, f"{about}{dollars(sum(known, Decimal(0)))}"
