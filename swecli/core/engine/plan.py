"""The plan that an answer in plan mode proposes: detection, steps, and its file."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from datetime import date
from itertools import takewhile
from pathlib import Path

from msgspec import Struct, structs

from swecli.core.atomic_text import write_whole
from swecli.core.context_management.projection import project
from swecli.core.engine.companion import Companion, TurnStopped
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.settings import Settings
from swecli.core.llm.foreign_calls import own_name
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import Notice, PlanChanged
from swecli.core.protocol.messages import Message
from swecli.core.tools.session_tools import MOST_TODOS, UpdateTodos
from swecli.core.workspace.text_file import NotRegularError, TooLargeError, decode, read_bytes
from swecli.lazy_pattern import lazy_pattern

ACCEPTED = "plan accepted"
"""Reason for the change of mode."""
GO_AHEAD = "Go ahead with the plan."
WITH_TODOS = f"{GO_AHEAD} Its steps are in the todo list; keep it current."
CHANGED = "I changed it; this is the plan now:"
AS_CHANGED = "I changed it."
MOST_BYTES = 200_000
"""Most bytes read back from a plan's file."""
_SLUG_WORDS = 6
_SAME_DAY = 99
"""Most plans with the same title on one day."""
_ITEM = lazy_pattern(r"^(\s*)(?:(\d{1,3})[.)]|[-*+\u2022])\s+(?:\[[ xX]\]\s+)?(\S.*)$")
_MARKS = lazy_pattern(r"\*\*|__|`")
_FENCE = lazy_pattern(r"^\s*(```|~~~)")


class ProposedPlan(Struct, frozen=True):
    """A proposed plan. ``steps`` is empty for a plan without a list; ``path`` is its file relative to the working
    directory, or empty. ``listed``: the model wrote its todo list since the message that the plan answers, so the list
    belongs to this plan and not to an earlier one."""

    steps: tuple[str, ...]
    text: str = ""
    path: str = ""
    listed: bool = False


def steps_of(text: str) -> tuple[str, ...]:
    """Steps of the longest top-level numbered list, or else of the bulleted ones, each on one line."""
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
    return tuple(max(numbered, key=len, default=bullets))


def proposed(messages: Sequence[Message]) -> ProposedPlan | None:
    """The plan in the newest answer: a list of steps, or a text that calls itself a plan, not one that merely mentions
    plan mode. None if the newest message contains no plan."""
    if not messages or messages[-1].role != "assistant" or messages[-1].tool_calls:
        return None
    text = messages[-1].text.strip()
    steps = steps_of(text)
    named = re.search(r"\bplan\b(?!\s+mode)", "\n".join(text.split("\n")[:3]), re.IGNORECASE) is not None
    if len(steps) <= 1 and not named:
        return None
    turn = takewhile(lambda message: message.role != "user" or bool(message.note), reversed(messages))
    listed = any(own_name(call.name) == UpdateTodos.name for message in turn for call in message.tool_calls)
    return ProposedPlan(steps, text, listed=listed)


def todos_of(plan: ProposedPlan, todos: Sequence[Todo]) -> tuple[Todo, ...]:
    """Todo list for carrying out the plan: the model's list from planning, or else the plan's steps, those that a list
    has no room for in its last entry."""
    if (plan.listed or not plan.steps) and any(todo.status != "completed" for todo in todos):
        return tuple(todos)
    steps, last = plan.steps, MOST_TODOS - 1
    if len(steps) > MOST_TODOS:
        steps = (*steps[:last], f"Steps {last + 1} to {len(steps)} of the plan")
    return tuple(Todo(step, "pending" if number else "in_progress") for number, step in enumerate(steps))


def file_name(text: str, today: date) -> str:
    """File name of a plan without suffix: the day and the words of its title."""
    lines = [line.strip("#*_ \t") for line in text.split("\n") if line.strip("#*_ \t")]
    title = next((line for line in lines[:3] if re.sub(r"(?i)\b(the|a|my|plan)\b|\W", "", line)), "")
    words = [word for word in re.findall(r"[a-z0-9]+", title.lower()) if word not in ("the", "a", "my", "plan")]
    return "-".join([today.isoformat(), *words[:_SLUG_WORDS]])[:80]


class Plans(Companion):
    """Plans of a session: written to a file when proposed, read back when carried out."""

    def __init__(self, cwd: Path, settings: Settings, recorder: Recorder) -> None:
        self._cwd = cwd
        self._settings = settings
        self._recorder = recorder

    @property
    def proposed(self) -> ProposedPlan | None:
        """The plan proposed by the newest answer, if no message has followed it."""
        plan = proposed(project(self._recorder.ledger))
        known = self._recorder.state.plan
        if plan is None or known is None or known.accepted or known.text != plan.text:
            return plan
        return structs.replace(plan, path=known.path)

    async def end_turn(self, end: TurnStopped) -> None:
        """In plan mode, write the newest answer to a file if it is a plan."""
        planning = end.outcome == "done" and self._recorder.state.mode == "plan"
        plan = proposed(project(self._recorder.ledger)) if planning else None
        if plan is None:
            return
        try:
            path = await asyncio.to_thread(self._write, plan.text)
        except OSError as error:
            text = f"Could not write the plan to {self._settings.now.plans}: {error.strerror or error}."
            self._recorder.emit(Notice(f"{text} It is in the conversation.", "warning", "plan"))
            path = ""
        self._recorder.emit(PlanChanged(plan.text, path))

    def accept(self, plan: ProposedPlan) -> ProposedPlan:
        """Accept the plan with the user's edits in its file. Returns the edited plan."""
        written = read_plan(self._cwd / plan.path) if plan.path else None
        final = plan
        if written is not None and written != plan.text:
            final = ProposedPlan(steps_of(written), written, plan.path)
        self._recorder.emit(PlanChanged(final.text, final.path, accepted=True))
        return final

    def newest(self) -> PlanChanged | None:
        """The last proposed or accepted plan, with the current text of its file. Blocks on the disk."""
        known = self._recorder.state.plan
        if known is None or not known.path:
            return known
        return structs.replace(known, text=read_plan(self._cwd / known.path) or known.text)

    def _write(self, text: str) -> str:
        """Write the text, replacing an earlier plan of the same conversation unless the user edited it. Returns the
        path, empty if none may be written.

        Raises:
            OSError: it can't be written.
        """
        folder, cwd = self._settings.now.plans, self._cwd
        if folder is None:
            return ""
        if not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(cwd)):
            raise OSError(f"{folder} leads outside the project")
        folder.mkdir(parents=True, exist_ok=True)
        known = self._recorder.state.plan
        if (
            known is not None
            and known.path
            and not known.accepted
            and read_plan(cwd / known.path) == known.text.strip()
        ):
            place = cwd / known.path
        else:
            place = _free(folder, file_name(text, date.fromtimestamp(self._recorder.clock())))
        write_whole(place, f"{text.strip()}\n")
        return str(place.relative_to(cwd))


def read_plan(path: Path) -> str | None:
    """Current text of a plan's file; None if it is empty or unreadable."""
    try:
        return decode(read_bytes(path, MOST_BYTES)[0]).text.strip() or None
    except (OSError, ValueError, NotRegularError, TooLargeError):
        return None


def _free(folder: Path, name: str) -> Path:
    for number in range(1, _SAME_DAY):
        place = folder / f"{name}{f'-{number}' if number > 1 else ''}.md"
        if not os.path.lexists(place):
            return place
    raise OSError(f"{folder} already has {_SAME_DAY} plans of this name")


def go_ahead(plan: ProposedPlan, shown: str, *, todos: bool) -> tuple[str, str]:
    """Message that starts to carry out a plan: the user's short form and the full text. ``shown`` is the plan as the
    model wrote it."""
    said = WITH_TODOS if todos else GO_AHEAD
    if plan.path:
        said = f"{said} It is in {plan.path}."
    if plan.text.strip() == shown.strip():
        return GO_AHEAD, said
    return f"{GO_AHEAD} {AS_CHANGED}", f"{said} {CHANGED}\n\n{plan.text}"
