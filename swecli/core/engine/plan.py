"""The plan that an answer in plan mode proposes: whether there is one, and its steps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.messages import Message

ACCEPTED = "plan accepted"
"""Why the mode changed."""
GO_AHEAD = "Go ahead with the plan."
WITH_TODOS = f"{GO_AHEAD} Its steps are in the todo list; keep that current."
MOST_STEPS = 30
_ITEM = re.compile(r"^(\s*)(?:(\d{1,3})[.)]|[-*+\u2022])\s+(?:\[[ xX]\]\s+)?(\S.*)$")
_MARKS = re.compile(r"\*\*|__|`")
_FENCE = re.compile(r"^\s*(```|~~~)")


@dataclass(frozen=True, slots=True)
class ProposedPlan:
    """``steps`` is empty for a plan without a list."""

    steps: tuple[str, ...]


def steps_of(text: str) -> tuple[str, ...]:
    """The steps of the longest numbered list that is not nested, or else of the bulleted ones, each on one line."""
    numbered: list[list[str]] = []
    bullets: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
        item = None if fenced else _ITEM.match(line)
        if item is None or len(item[1].expandtabs(4)) > 1:
            continue
        step = " ".join(_MARKS.sub("", item[3]).split())
        if item[2] is None:
            bullets.append(step)
        elif not numbered or int(item[2]) <= 1:
            numbered.append([step])
        else:
            numbered[-1].append(step)
    return tuple(max(numbered, key=len, default=bullets)[:MOST_STEPS])


def proposed(messages: Sequence[Message]) -> ProposedPlan | None:
    """The plan of the newest answer: a list of steps, or a text that calls itself a plan. None where the newest message
    is none."""
    if not messages or messages[-1].role != "assistant" or messages[-1].tool_calls:
        return None
    text = messages[-1].text.strip()
    steps = steps_of(text)
    named = re.search(r"\bplan\b", "\n".join(text.split("\n")[:3]), re.IGNORECASE) is not None
    return ProposedPlan(steps) if len(steps) > 1 or named else None


def todos_of(plan: ProposedPlan, todos: Sequence[Todo]) -> tuple[Todo, ...]:
    """The todo list to carry it out with: the one that the model made while it planned, or else the plan's steps."""
    if any(todo.status != "completed" for todo in todos):
        return tuple(todos)
    return tuple(Todo(step, "pending" if number else "in_progress") for number, step in enumerate(plan.steps))
