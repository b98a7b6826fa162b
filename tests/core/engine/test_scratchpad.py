"""The scratchpad in a session with a scripted model."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.protocol.commands import ChangeContext
from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import ContextEdited, ItemStarted
from tests.core.engine.support import bench, new_notes, notes_in, until
from tests.core.engine.test_instruction_news import AUTO, DONE, TOOLS, step


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
