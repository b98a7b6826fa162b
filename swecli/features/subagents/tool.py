"""The tool that hands a task to a subagent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from swecli.core.tools.base import Params, SessionTool, ToolContext, ToolError, ToolOutcome
from swecli.features.subagents.profiles import AgentTask
from swecli.figures import cut_line

if TYPE_CHECKING:
    from swecli.core.extensions.watch import ExtensionFiles
    from swecli.features.subagents.companion import Subagents

NESTED = "A subagent can't start subagents. Do the work with the other tools."
_DESCRIPTION = 200
"""Characters of a profile's description shown to the model."""
_LIST: Final = 12_000
"""Characters of all profiles together, about 3,000 tokens: people have collections of hundreds."""


class TaskParams(Params):
    description: Annotated[str, Meta(min_length=1, description="3-8 words for the user")]
    prompt: Annotated[str, Meta(min_length=1, description="It sees nothing of this conversation")]
    agent: Annotated[str, Meta(description="general (default), explore or review (only read)")] = "general"
    background: Annotated[bool, Meta(description="The report comes later as a message")] = False
    worktree: Annotated[bool, Meta(description="In a new git worktree, kept if changed")] = False


class TaskTool(SessionTool[TaskParams]):
    """``profiles`` returns names and descriptions of the agents to list; without them the model knows those of
    swecli. Each call of the subagent is judged by itself."""

    name = "task"
    verb = "Task"
    params = TaskParams

    def __init__(self, profiles: Callable[[], Sequence[tuple[str, str]]]) -> None:
        self._profiles = profiles

    def description(self) -> str:
        profiles = self._profiles()
        own = Path(__file__).with_name("task.md").read_text(encoding="utf-8").strip()
        if not profiles:
            return own
        lines = [f"- {name}: {cut_line(text, _DESCRIPTION)}" for name, text in profiles]
        if sum(map(len, lines)) + len(lines) > _LIST:
            lines = _within_limit(profiles)
        return "\n".join((f"{own} Agents:", *lines))

    def title(self, params: TaskParams, ctx: ToolContext) -> str:
        return " ".join(params.description.split())

    def announce(self, ctx: ToolContext) -> None:
        if (agents := _agents(ctx)) is not None:
            agents.expect(ctx.item)

    async def run(self, params: TaskParams, ctx: ToolContext) -> ToolOutcome:
        agents = _agents(ctx)
        if agents is None:
            raise ToolError(NESTED)
        title = self.title(params, ctx) or params.agent
        task = AgentTask(title, params.prompt, params.agent, params.background, params.worktree)
        return await agents.work(ctx.item, task, ctx.output)


def _agents(ctx: ToolContext) -> Subagents | None:
    """Runs subagents; None where they are unavailable, as within a subagent."""
    from swecli.features.subagents.companion import Subagents

    return ctx.companion(Subagents)


def _within_limit(profiles: Sequence[tuple[str, str]]) -> list[str]:
    """A line for each profile, the longest descriptions cut; if that is not enough, the last ones share a line with
    only their names."""
    from swecli.core.extensions.skills import longest_that_fit

    names = sum(len(name) + 5 for name, _ in profiles)
    fit = longest_that_fit([min(len(text), _DESCRIPTION) for _, text in profiles], _LIST - names)
    longest = min(fit, _DESCRIPTION)
    lines: list[str] = []
    room = _LIST - sum(len(name) + 2 for name, _ in profiles)  # beside the names of the profiles that follow
    for at, (name, text) in enumerate(profiles):
        line = f"- {name}: {cut_line(text, longest)}"
        room += len(name) + 2 - (len(line) + 1)
        if room < 0:
            return [*lines, f"- {', '.join(other for other, _ in profiles[at:])}"]
        lines.append(line)
    return lines


def told_agents(files: ExtensionFiles) -> Callable[[], Sequence[tuple[str, str]]]:
    """Names and descriptions of the agents at the start of the session, for the model; none while there are only those
    of swecli, which the tool names itself."""
    profiles = files.profiles.values() if files.now.profiles else ()
    from swecli.core.context_management.prompts import without_notes

    listed = sorted((profile.name, without_notes(profile.description)) for profile in profiles)
    return lambda: listed
