"""The list of what is to be done."""

from __future__ import annotations

from collections import Counter

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import Todo, TodoBlock, TodoStatus
from swecli.core.tools.base import Params, Tool, ToolContext, ToolOutcome


class TodoItem(Params):
    text: str = Field(min_length=1)
    status: TodoStatus = "pending"


class UpdateTodosParams(Params):
    todos: list[TodoItem] = Field(max_length=50, description="The whole list")


class UpdateTodos(Tool[UpdateTodosParams]):
    """Replaces the session's todo list."""

    name = "update_todos"
    verb = "Todos"
    params = UpdateTodosParams

    def effects(self, params: UpdateTodosParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

    def title(self, params: UpdateTodosParams, ctx: ToolContext) -> str:
        current = next((todo.text for todo in params.todos if todo.status == "in_progress"), "")
        return current or _summary(params)

    async def run(self, params: UpdateTodosParams, ctx: ToolContext) -> ToolOutcome:
        todos = tuple(Todo(todo.text, todo.status) for todo in params.todos)
        ctx.todos.replace(todos)
        summary = _summary(params)
        return ToolOutcome(f"Todo list updated: {summary}.", (TodoBlock(todos),), summary)


def _summary(params: UpdateTodosParams) -> str:
    counts = Counter(todo.status for todo in params.todos)
    if not counts:
        return "empty"
    words = (("completed", "done"), ("in_progress", "in progress"), ("pending", "to do"))
    return ", ".join(f"{counts[status]} {word}" for status, word in words if counts[status])
