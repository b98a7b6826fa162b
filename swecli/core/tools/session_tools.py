"""Tools that act on the session: questions, todos, scratchpad, compaction, subagents, skills, tool search."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from swecli.core.llm.types import ToolSchema
from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import TextBlock, Todo, TodoBlock, TodoStatus
from swecli.core.protocol.request_events import Option, Question
from swecli.core.tools.base import Params, SessionTool, Tool, ToolContext, ToolError, ToolOutcome, readable_size
from swecli.figures import plural

if TYPE_CHECKING:
    from swecli.core.extensions.skills import Skill


MOST_TODOS = 50


class TodoItem(Params):
    text: Annotated[str, Meta(min_length=1)]
    status: TodoStatus = "pending"


class UpdateTodosParams(Params):
    todos: Annotated[list[TodoItem], Meta(max_length=MOST_TODOS)]


class UpdateTodos(SessionTool[UpdateTodosParams]):
    name = "update_todos"
    verb = "Todos"
    params = UpdateTodosParams

    def title(self, params: UpdateTodosParams, ctx: ToolContext) -> str:
        return next((todo.text for todo in params.todos if todo.status == "in_progress"), "")

    async def run(self, params: UpdateTodosParams, ctx: ToolContext) -> ToolOutcome:
        todos = tuple(Todo(todo.text, todo.status) for todo in params.todos)
        ctx.set_todos(todos)
        summary = _summary(params)
        return ToolOutcome(f"Todo list updated: {summary}.", (TodoBlock(todos),), summary)


def _summary(params: UpdateTodosParams) -> str:
    counts = Counter(todo.status for todo in params.todos)
    if not counts:
        return "empty"
    words = (("completed", "done"), ("in_progress", "in progress"), ("pending", "to do"))
    return ", ".join(f"{counts[status]} {word}" for status, word in words if counts[status])


LONGEST_SCRATCHPAD = 4_000


class ScratchpadParams(Params):
    text: Annotated[str, Meta(max_length=LONGEST_SCRATCHPAD)]


class Scratchpad(SessionTool[ScratchpadParams]):
    name = "scratchpad"
    verb = "Scratchpad"
    params = ScratchpadParams

    def title(self, params: ScratchpadParams, ctx: ToolContext) -> str:
        return next((line.strip()[:80] for line in params.text.splitlines() if line.strip()), "cleared")

    async def run(self, params: ScratchpadParams, ctx: ToolContext) -> ToolOutcome:
        text = params.text.strip()
        ctx.set_scratchpad(text)
        lines = plural(len(text.splitlines()), "line")
        return ToolOutcome("Kept.", (TextBlock(text),), lines) if text else ToolOutcome("Cleared.", (), "cleared")


class CompactContextParams(Params):
    """No parameters."""


class CompactContextTool(SessionTool[CompactContextParams]):
    name = "compact_context"
    verb = "Compact"
    params = CompactContextParams

    async def run(self, params: CompactContextParams, ctx: ToolContext) -> ToolOutcome:
        if ctx.request_compaction is None:
            raise ToolError("There is no conversation to compact here.")
        line = ctx.request_compaction()
        return ToolOutcome(line, detail="before the next step")


class AskOption(Params):
    label: Annotated[str, Meta(min_length=1)]
    description: str = ""


class AskQuestion(Params):
    question: Annotated[str, Meta(min_length=1)]
    options: Annotated[list[AskOption], Meta(max_length=9, description="None: free text")] = []
    multiple: Annotated[bool, Meta(description="Several may be chosen")] = False


class AskUserParams(Params):
    questions: Annotated[list[AskQuestion], Meta(min_length=1, max_length=4)]


class AskUser(Tool[AskUserParams]):
    name = "ask_user"
    verb = "Ask"
    params = AskUserParams

    def effects(self, params: AskUserParams, ctx: ToolContext) -> Effects:
        return Effects(interactive=True)

    def title(self, params: AskUserParams, ctx: ToolContext) -> str:
        return params.questions[0].question

    async def run(self, params: AskUserParams, ctx: ToolContext) -> ToolOutcome:
        questions = tuple(
            Question(
                asked.question,
                tuple(Option(option.label, option.description) for option in asked.options),
                asked.multiple,
            )
            for asked in params.questions
        )
        answers = await ctx.asker.ask(ctx.item, questions)
        if answers is None:
            text = (
                "This run is not interactive, so no user can answer. Choose the most reasonable interpretation and "
                "say so in your answer; if a wrong guess would do harm, stop and say what you need to know."
            )
            return ToolOutcome(text, (), "no user to ask")
        if not answers:
            return ToolOutcome("The user closed the question without an answer.", (), "no answer")
        lines = [
            f"{question.text}\n→ {', '.join(answer) or '(no answer)'}"
            for question, answer in zip(questions, answers, strict=False)
        ]
        text = "\n".join(lines)
        return ToolOutcome(text, (TextBlock(text),), plural(len(lines), "answer"))


# The tool with which the model gets the text of a skill.


SOURCE = "skills"
MOST = 48 * 1024
"""Maximum characters of a skill per call."""


class SkillParams(Params):
    name: str
    arguments: Annotated[str, Meta(description="Arguments for the skill, if it takes any")] = ""


class SkillTool(SessionTool[SkillParams]):
    """``skills`` returns the currently available skills by name."""

    name = "skill"
    verb = "Skill"
    params = SkillParams
    source = SOURCE
    result_kind = "stored"

    def __init__(self, skills: Callable[[], Mapping[str, Skill]]) -> None:
        self._skills = skills

    def title(self, params: SkillParams, ctx: ToolContext) -> str:
        return f"{params.name} {params.arguments}".strip()

    async def run(self, params: SkillParams, ctx: ToolContext) -> ToolOutcome:
        from swecli.core.extensions.markdown_commands import plain_text
        from swecli.core.extensions.skills import near

        skills = {name: skill for name, skill in self._skills().items() if skill.for_model}
        name = params.name.strip().removeprefix("/").lower()
        skill = skills.get(name)
        if skill is None:
            if name in self._skills():
                raise ToolError(f"Only the user can use the skill {name}.")
            matches = near(skills.values(), name)
            lines = [f"- {match.name}: {match.description[:200]}" for match in matches]
            hint = "\n".join(["Matching skills:", *lines]) if lines else f"Skills: {', '.join(skills)}"
            raise ToolError(f"Unknown skill {params.name!r}. {hint[:4_000]}")
        text = plain_text(skill, params.arguments)
        if len(text) > MOST:
            text = f"{text[:MOST]}\n… (cut: {len(text):,} characters; read_file {skill.origin.path} reads the rest)"
        return ToolOutcome(text, detail=readable_size(len(text.encode("utf-8", "replace"))))


# Finding tools that are withheld to save context; what is found can be called from then on.


NAME: Final = "tool_search"


class ToolSearchParams(Params):
    query: str


class ToolSearch(SessionTool[ToolSearchParams]):
    """``search`` finds withheld tools and makes them callable."""

    name = NAME
    verb = "Find tools"
    params = ToolSearchParams
    result_kind = "page"

    def __init__(self, search: Callable[[str], Sequence[ToolSchema]], waiting: Callable[[], int]) -> None:
        self._search = search
        self._waiting = waiting

    def title(self, params: ToolSearchParams, ctx: ToolContext) -> str:
        return params.query

    async def run(self, params: ToolSearchParams, ctx: ToolContext) -> ToolOutcome:
        tools = await asyncio.to_thread(self._search, params.query)
        if not tools:
            count = plural(self._waiting(), "tool")
            text = f"No tool matches {params.query!r} ({count} deferred). Try other words: what it does, and to what."
            return ToolOutcome(text, (TextBlock(text),), "none found")
        parts = [
            f"{tool.name}: {tool.description}\nParameters: {json.dumps(tool.parameters, ensure_ascii=False)}"
            for tool in tools
        ]
        text = f"{plural(len(tools), 'tool')} found; call them by name from now on.\n\n" + "\n\n".join(parts)
        beginnings = ((tool.name, tool.description.partition("\n")[0][:120]) for tool in tools)
        block = TextBlock("\n".join(f"{name}: {beginning}" for name, beginning in beginnings))
        return ToolOutcome(text, (block,), f"{plural(len(tools), 'tool')} found")
