"""``#`` adds a line to the instructions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from swecli.commands.instructions import instructions_file, note_of, remember, with_note
from swecli.core.protocol.blocks import TextBlock
from tests.commands.support import CommandSession


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("# use pytest -q", "use pytest -q"),
        ("#use tabs ", "use tabs"),
        ("## never push", "never push"),
        ("#12 is broken", ""),
        ("# Title\n\ntext", ""),
        ("#", ""),
        ("see # this", ""),
    ],
)
def test_which_messages_are_notes(text: str, note: str) -> None:
    assert note_of(text) == note


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "## Notes\n\n- new\n"),
        ("# Guide\n\ntext\n", "# Guide\n\ntext\n\n## Notes\n\n- new\n"),
        ("## Notes\n\n- old\n", "## Notes\n\n- old\n- new\n"),
        ("## Notes\n\n- old\n\n## More\n\ntext\n", "## Notes\n\n- old\n- new\n\n## More\n\ntext\n"),
        ("# Guide\n\n<!-- kept: 1 -->\n", "# Guide\n\n## Notes\n\n- new\n\n<!-- kept: 1 -->\n"),
    ],
)
def test_where_the_line_goes(before: str, after: str) -> None:
    assert with_note(before, "new") == after


async def test_the_file_that_counts_is_changed_by_the_tool(tmp_path: Path) -> None:
    assert instructions_file(tmp_path).name == "OPENCLI.md"
    (tmp_path / "CLAUDE.md").write_text("# Rules\n")
    session = CommandSession(tmp_path)
    result = await remember(cast("Any", session), "be short", tmp_path)
    assert (tmp_path / "CLAUDE.md").read_text() == "# Rules\n\n## Notes\n\n- be short\n"
    assert not (tmp_path / "OPENCLI.md").exists()
    assert isinstance(result.blocks[0], TextBlock)
    assert result.blocks[0].text == "Added to CLAUDE.md: be short. The model sees it with your next message."
    session.command_tools.refuse = "rejected by the user"
    result = await remember(cast("Any", session), "be long", tmp_path)
    assert isinstance(result.blocks[0], TextBlock)
    assert result.blocks[0].text == "CLAUDE.md was not changed. rejected by the user"


@pytest.mark.parametrize("own", [False, True])
async def test_no_character_and_no_line_end_is_lost(tmp_path: Path, own: bool) -> None:
    file = tmp_path / "AGENTS.md"
    for before, after in (
        ("caf\xe9\n".encode("latin-1"), "café\n\n## Notes\n\n- new\n"),
        (b"a\r\n\r\n## Notes\r\n\r\n- old\r\n", "a\n\n## Notes\n\n- old\n- new\n"),
    ):
        file.write_bytes(before)
        await remember(cast("Any", CommandSession(tmp_path)), "new", tmp_path, own=own)
        assert file.read_text() == after
    assert not own or b"- old\r\n- new\r\n" in file.read_bytes()
    broken = "ä ö ü".encode() + b" \xff\n"
    file.write_bytes(broken)
    result = await remember(cast("Any", CommandSession(tmp_path)), "new", tmp_path, own=own)
    assert isinstance(result.blocks[0], TextBlock)
    assert "bytes that are not text; convert it to UTF-8); nothing was added" in result.blocks[0].text
    assert file.read_bytes() == broken


async def test_the_users_own_file_is_written_itself(tmp_path: Path) -> None:
    session = CommandSession(tmp_path)
    await remember(cast("Any", session), "be short", tmp_path / "config", own=True)
    assert (tmp_path / "config" / "OPENCLI.md").read_text() == "## Notes\n\n- be short\n"
    assert session.command_tools.written == []
