"""Files that the editor has open: read with what is not saved, and written by the editor."""

from __future__ import annotations

from pathlib import Path

import pytest
from acp.schema import ClientCapabilities, FileSystemCapabilities

from tests.acp.support import bench

BOTH = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True))
READ_AND_EDIT = """
[[step]]
[[step.call]]
tool = "read_file"
arguments = { path = "a.txt" }
[[step]]
when = { last_result = "one, unsaved" }
[[step.call]]
tool = "edit_file"
arguments = { path = "a.txt", old_string = "one", new_string = "1" }
[[step]]
text = "Edited."
when = { last_result = "Edited a.txt" }
[[step]]
text = "It went wrong."
"""


async def test_unsaved_text_is_read_and_edited_in_the_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, READ_AND_EDIT, capabilities=BOTH, mode="accept-edits") as made:
        file = made.folder / "a.txt"
        file.write_text("one\n")
        made.editor.buffers[str(file)] = "one, unsaved\n"
        await made.prompt("edit it")
        assert made.editor.said() == "Edited."
        assert made.editor.buffers[str(file)] == "1, unsaved\n"
        assert file.read_text() == "1, unsaved\n"
        diff = made.editor.of("tool_call_update")[-1].content[0]
        assert (diff.old_text, diff.new_text) == ("one, unsaved\n", "1, unsaved\n")


async def test_without_the_capability_the_disk_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, READ_AND_EDIT, mode="accept-edits") as made:
        file = made.folder / "a.txt"
        file.write_text("one\n")
        made.editor.buffers[str(file)] = "one, unsaved\n"
        await made.prompt("edit it")
        assert made.editor.said() == "It went wrong."
        assert made.editor.buffers[str(file)] == "one, unsaved\n"


async def test_an_editor_that_does_not_answer_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swecli.acp.files.SECONDS", 0.05)
    script = READ_AND_EDIT.replace("one, unsaved", "one")
    async with bench(tmp_path, monkeypatch, script, capabilities=BOTH, mode="accept-edits") as made:
        (made.folder / "a.txt").write_text("one\n")
        made.editor.hangs = True
        await made.prompt("edit it")
        assert made.editor.said() == "Edited."
        assert len(made.editor.reads) == 1
        assert (made.folder / "a.txt").read_text() == "1\n"
        assert any("from now on swecli reads files from disk" in line for line in made.editor.log)
