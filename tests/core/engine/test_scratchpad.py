"""The scratchpad in a session with a scripted model."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.permissions.types import Policy
from swecli.core.protocol.commands import ChangeContext
from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import ContextEdited, ItemStarted
from swecli.core.tools.edit_file import EditFile, WriteFile
from swecli.core.tools.read_file import ReadFile
from swecli.core.tools.run_command import RunCommand
from swecli.core.tools.session_tools import Scratchpad, UpdateTodos
from tests.core.engine.support import bench, new_notes, notes_in, until

TOOLS = (ReadFile(), WriteFile(), EditFile(), RunCommand(), UpdateTodos(), Scratchpad())
AUTO = Policy(mode="accept-edits", trust="trusted")


def step(tool: str, arguments: str) -> str:
    return f'[[step]]\n[[step.call]]\ntool = "{tool}"\narguments = {{ {arguments} }}\n'


DONE = '[[step]]\ntext = "Done."\n'


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    return folder


async def test_the_scratchpad_outlives_what_removes_its_call(work: Path) -> None:
    script = step("scratchpad", 'text = "port is 8123"') + DONE
    async with bench(script, work, tools=TOOLS, policy=AUTO) as one:
        await one.say("Note the port")
        assert "scratchpad" not in notes_in(one.model.requests[-1]), "the model sees its own call"
        call = next(body.item for body in one.bodies(ItemStarted) if body.name == "scratchpad")
        facts = list(one.facts)
    async with bench(DONE + DONE, work, tools=TOOLS, policy=AUTO, history=facts) as one:
        await one.say("Which port?")
        assert "scratchpad" not in notes_in(one.model.requests[-1])
        one.send(ChangeContext((ContextChange("drop", call),)))
        await until(lambda: bool(one.bodies(ContextEdited)))
        await one.say("And now?")
        assert "Your scratchpad:\nport is 8123" in new_notes(one.model.requests[-1])
        assert all("8123" not in block.text for block in one.model.requests[-1].system)
