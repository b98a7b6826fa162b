"""What must survive compaction does: constraints of the user, touched files, open todos, the last failing test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import pytest

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.commands import Compact
from swecli.core.protocol.events import CompactionCompleted, CompactionFailed
from swecli.core.tools.base import Params, Tool, ToolContext, ToolOutcome
from swecli.core.tools.session_tools import UpdateTodos
from tests.core.context_management.test_projection import check_valid
from tests.core.engine.support import Bench, bench, until

USELESS = "## Goal\\nHelp.\\n## Done\\nThis summary has forgotten everything that was said, and only talks."
TEXT = "\n".join(f"line {number} of a file with some words in it" for number in range(60))
WORDS = [
    "never",
    "always",
    "don't",
    "must",
    "only",
    "avoid",
    "make sure to",
    "prefer to",
    "instead of asking,",
    "keep to",
]


class PathParams(Params):
    path: str
    content: str = ""


class Read(Tool[PathParams]):
    name = "read_file"
    verb = "Read"
    params: ClassVar[type[Params]] = PathParams

    def effects(self, params: PathParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

    async def run(self, params: PathParams, ctx: ToolContext) -> ToolOutcome:
        return ToolOutcome(f"{params.path}\n{TEXT}")


class Edit(Read):
    name = "edit_file"
    verb = "Edit"

    async def run(self, params: PathParams, ctx: ToolContext) -> ToolOutcome:
        return ToolOutcome(f"{params.path} was changed.")


class CommandParams(Params):
    command: str


class Run(Tool[CommandParams]):
    name = "run_command"
    verb = "Run"
    params: ClassVar[type[Params]] = CommandParams

    def effects(self, params: CommandParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

    async def run(self, params: CommandParams, ctx: ToolContext) -> ToolOutcome:
        output = f"collected 40 items\n{TEXT}\nFAILED test_pay.py::test_{len(params.command)} - AssertionError: 3 != 4"
        return ToolOutcome(output, (TerminalBlock(params.command, output, 1),), "exit 1", is_error=True)


def step(*calls: tuple[str, dict[str, object]]) -> str:
    listed = ", ".join(
        f'{{ tool = "{tool}", arguments = {json.dumps(json.dumps(arguments))} }}' for tool, arguments in calls
    )
    return f"[[step]]\ncall = [{listed}]"


def plan() -> tuple[list[str], list[str], list[str], list[str], list[str]]:
    """Per round: what the user says; and the facts: constraints, files, todos, commands. Fifty in all."""
    constraints = [f"{WORDS[n % 10].capitalize()} touch the rule number {n} of table t{n * 7}." for n in range(20)]
    files = [f"src/part{n}/module_{n}.py" for n in range(20)]
    todos = [f"Finish the piece number {n}" for n in range(8)]
    commands = ["pytest tests/test_pay.py", "make check"]
    said = [f"Round {r}. {' '.join(constraints[r * 7 : r * 7 + 7])} Please do the next part." for r in range(3)]
    return said, constraints, files, todos, commands


def script(window: int, files: list[str], todos: list[str], commands: list[str]) -> str:
    steps = [f"window = {window}\nmax_output = 2000"]
    for number in range(3):
        part = files[number * 7 : number * 7 + 7]
        steps += [step(("read_file", {"path": path})) for path in part]
        steps += [step(*(("edit_file", {"path": path, "content": "x" * 400}) for path in part[:3]))]
        listed = [{"text": text, "status": "pending"} for text in todos]
        steps += [step(("update_todos", {"todos": listed}), *(("run_command", {"command": c}) for c in commands))]
        steps += ['[[step]]\ntext = "Done with this part."']
        steps += [f'[[step]]\nwhen = {{ last_user = "Write the summary" }}\ntext = "{USELESS}"']
    return "\n".join(steps)


async def compact(b: Bench, number: int) -> None:
    def ended() -> int:
        return len(b.bodies(CompactionCompleted)) + len(b.bodies(CompactionFailed))

    before = ended()
    b.send(Compact())
    await until(lambda: ended() > before and not b.session.view.busy, f"compaction {number}")


@pytest.mark.parametrize("window", [32_000, 200_000, 1_000_000])
async def test_fifty_planted_facts_survive_three_compactions(tmp_path: Path, window: int) -> None:
    said, constraints, files, todos, commands = plan()
    tools = [Read(), Edit(), Run(), UpdateTodos()]
    async with bench(script(window, files, todos, commands), tmp_path, tools=tools) as b:
        for number, text in enumerate(said):
            assert (await b.say(text)).outcome == "done"
            await compact(b, number)
            check_valid(tuple(b.session.view.messages))
        assert len(b.bodies(CompactionCompleted)) >= 3
        request = b.session.view.messages
        text = "\n".join(message.text for message in request)
        assert USELESS.split("\\n")[-1] in text
        facts = [*constraints, *files, *todos, *commands]
        assert len(facts) == 50
        assert [fact for fact in facts if fact not in text] == []
        assert "exit 1" in text
        assert "AssertionError: 3 != 4" in text
        budget = b.session.view.budget
        assert budget is not None
        assert budget.used <= 0.30 * budget.effective
        sizes = [(body.tokens_before, body.tokens_after) for body in b.bodies(CompactionCompleted)]
        assert all(after < before for before, after in sizes)
