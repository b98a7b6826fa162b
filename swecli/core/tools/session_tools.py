"""The tools that act on the session itself: questions, todos, scratchpad, compaction."""

from __future__ import annotations

from collections import Counter

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import TextBlock, Todo, TodoBlock, TodoStatus
from swecli.core.protocol.events import Option, Question
from swecli.core.tools.base import Params, Tool, ToolContext, ToolError, ToolOutcome, plural


class TodoItem(Params):
    text: str = Field(min_length=1)
    status: TodoStatus = "pending"


class UpdateTodosParams(Params):
    todos: list[TodoItem] = Field(max_length=50, description="The whole list")


class UpdateTodos(Tool[UpdateTodosParams]):
    name = "update_todos"
    verb = "Todos"
    params = UpdateTodosParams

    def effects(self, params: UpdateTodosParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

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
    text: str = Field(max_length=LONGEST_SCRATCHPAD)


class Scratchpad(Tool[ScratchpadParams]):
    name = "scratchpad"
    verb = "Scratchpad"
    params = ScratchpadParams

    def effects(self, params: ScratchpadParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

    def title(self, params: ScratchpadParams, ctx: ToolContext) -> str:
        return next((line.strip()[:80] for line in params.text.splitlines() if line.strip()), "cleared")

    async def run(self, params: ScratchpadParams, ctx: ToolContext) -> ToolOutcome:
        text = params.text.strip()
        ctx.set_scratchpad(text)
        lines = plural(len(text.splitlines()), "line")
        return ToolOutcome("Kept.", (TextBlock(text),), lines) if text else ToolOutcome("Cleared.", (), "cleared")


class CompactContextParams(Params):
    """Takes nothing."""


class CompactContextTool(Tool[CompactContextParams]):
    name = "compact_context"
    verb = "Compact"
    params = CompactContextParams

    def effects(self, params: CompactContextParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

    async def run(self, params: CompactContextParams, ctx: ToolContext) -> ToolOutcome:
        if ctx.request_compaction is None:
            raise ToolError("There is no conversation to compact here.")
        line = ctx.request_compaction()
        return ToolOutcome(line, detail="before the next step")


class AskOption(Params):
    label: str = Field(min_length=1)
    description: str = ""


class AskQuestion(Params):
    question: str = Field(min_length=1)
    options: list[AskOption] = Field(
        default_factory=list[AskOption], max_length=9, description="Leave empty for free text"
    )
    multiple: bool = Field(False, description="Allow several choices")


class AskUserParams(Params):
    questions: list[AskQuestion] = Field(min_length=1, max_length=4)


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
