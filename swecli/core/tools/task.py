"""The tool that hands a task to a subagent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.tools.base import AgentTask, Params, Tool, ToolContext, ToolError, ToolOutcome

NESTED = "A subagent can't start subagents. Do the work with the other tools."
_DESCRIPTION = 200
"""Characters of a profile's description that the model sees."""


class TaskParams(Params):
    description: str = Field(min_length=1, description="3-8 words for the user")
    prompt: str = Field(min_length=1, description="Whole task: it sees nothing of this conversation")
    agent: str = Field("general", description="Default general")
    background: bool = Field(False, description="Continue at once; the report comes as a message")
    worktree: bool = Field(False, description="Work in a new git worktree, kept if changed")


class TaskTool(Tool[TaskParams]):
    """``profiles`` gives names and descriptions of the agents."""

    name = "task"
    verb = "Task"
    params = TaskParams

    def __init__(self, profiles: Callable[[], Sequence[tuple[str, str]]]) -> None:
        self._profiles = profiles

    def description(self) -> str:
        lines = [f"- {name}: {_short(text)}" for name, text in self._profiles()]
        return "\n".join((super().description(), *lines))

    def effects(self, params: TaskParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)  # each call of the subagent is judged by itself

    def title(self, params: TaskParams, ctx: ToolContext) -> str:
        return " ".join(params.description.split())

    async def run(self, params: TaskParams, ctx: ToolContext) -> ToolOutcome:
        if ctx.agents is None:
            raise ToolError(NESTED)
        title = self.title(params, ctx) or params.agent
        task = AgentTask(title, params.prompt, params.agent, params.background, params.worktree)
        return await ctx.agents.work(ctx.item, task, ctx.output)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _DESCRIPTION else f"{line[: _DESCRIPTION - 1]}…"
