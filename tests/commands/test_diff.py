"""/diff and /doctor."""

from __future__ import annotations

from pathlib import Path

from swecli.commands.base import CommandResult
from swecli.commands.registry import Invocation, parse
from swecli.core.checkpoints.history import Difference
from swecli.core.protocol.blocks import DiffBlock, TextBlock
from tests.commands.support import CommandSession

FILES = (
    DiffBlock("/work/a.py", "1\n", "2\n"),
    DiffBlock("/work/sub/new.py", None, "x\n"),
    DiffBlock("/else/c", "c", None),
)


async def shown(changed: Difference, line: str) -> CommandResult:
    session = CommandSession(Path("/work"))
    session.files.changed = changed
    found = parse(line)
    assert isinstance(found, Invocation)
    return await found.command.run(session, found.arguments)


async def test_each_file_is_a_diff_with_its_path_as_the_user_knows_it() -> None:
    *diffs, said = (await shown(Difference(FILES), "/diff")).blocks
    assert [block.path for block in diffs if isinstance(block, DiffBlock)] == ["a.py", "sub/new.py", "/else/c"]
    assert said == TextBlock("3 files changed in this session (1 new, 1 removed); /undo reverts it.", "dim")


async def test_a_path_narrows_it() -> None:
    diff, _ = (await shown(Difference(FILES), "/diff sub")).blocks
    assert isinstance(diff, DiffBlock)
    assert diff.path == "sub/new.py"
    (said,) = (await shown(Difference(FILES), "/diff nowhere")).blocks
    assert isinstance(said, TextBlock)
    assert "no file below nowhere" in said.text


async def test_nothing_changed_nothing_known_and_more_than_is_shown() -> None:
    for changed, expected in (
        (Difference(), "changed no file"),
        (Difference(reason="Checkpoints are off."), "Checkpoints are off."),
        (Difference(FILES, more=7), "7 more files"),
    ):
        last = (await shown(changed, "/diff")).blocks[-1]
        assert isinstance(last, TextBlock)
        assert expected in last.text


async def test_doctor_asks_providers_only_where_told_to() -> None:
    session = CommandSession()
    assert await session.slash("/doctor") == "not asked"
    assert await session.slash("/doctor online") == "asked"
    assert "/doctor online" in await session.slash("/doctor everything")
