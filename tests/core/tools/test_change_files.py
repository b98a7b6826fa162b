"""Writing and editing through the tools: what is shown is what is written, or nothing is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from swecli.core.protocol.blocks import DiffBlock
from swecli.core.tools import edit_file
from swecli.core.tools.base import ToolError
from swecli.core.workspace.atomic_write import StaleFileError
from tests.support.tool_context import ToolBench


async def test_edit_shows_and_writes_the_same(bench: ToolBench) -> None:
    path = bench.file("a.py", b"x = 1\r\ny = 2\r\n")
    path.chmod(0o755)
    arguments = {"path": "a.py", "old_string": "x = 1\ny", "new_string": "x = 1\nz"}
    preview = await bench.preview("edit_file", **arguments)
    assert preview.blocks == (DiffBlock("a.py", "x = 1\r\ny = 2\r\n", "x = 1\r\nz = 2\r\n"),)
    assert preview.facts == ("+1 -1",)
    longer = await bench.preview("edit_file", **{**arguments, "new_string": "x = 10\ny"})
    assert longer.facts == ("+1 -1",)
    assert path.read_bytes() == b"x = 1\r\ny = 2\r\n"
    outcome = await bench.call("edit_file", **arguments)
    assert path.read_bytes() == b"x = 1\r\nz = 2\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert outcome.blocks == preview.blocks
    assert (outcome.detail, outcome.text) == ("+1 -1", "Edited a.py at line 1 (+1 -1).")
    (changed,) = outcome.changed
    assert changed.path == str(path)
    assert changed.before is not None
    assert preview.state.startswith(f"{path}={changed.before}")


async def test_state_changes_when_the_file_does(bench: ToolBench) -> None:
    path = bench.file("a.py", "x = 1\n")
    arguments = {"path": "a.py", "old_string": "x", "new_string": "y"}
    first = await bench.preview("edit_file", **arguments)
    assert (await bench.preview("edit_file", **arguments)).state == first.state
    path.write_text("x = 1\n# by the user\n")
    assert (await bench.preview("edit_file", **arguments)).state != first.state


async def test_file_that_changes_during_the_run_is_left_alone(
    bench: ToolBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bench.file("a.py", "x = 1\n")

    def someone_else_was_quicker(target: Path, data: bytes, expected: str | None, *, follow: bool) -> None:
        raise StaleFileError(f"{target} changed on disk")

    monkeypatch.setattr(edit_file, "atomic_write", someone_else_was_quicker)
    with pytest.raises(ToolError, match=r"changed on disk while it was being edited\. Nothing was written"):
        await bench.call("edit_file", path="a.py", old_string="x", new_string="y")
    assert path.read_text() == "x = 1\n"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("write_file", {"path": "in/new", "content": "y"}),
        ("edit_file", {"path": "in/there", "old_string": "x", "new_string": "y"}),
    ],
)
async def test_a_folder_that_becomes_a_link_after_the_decision_is_not_followed(
    bench: ToolBench, tmp_path_factory: pytest.TempPathFactory, tool: str, given: dict[str, str]
) -> None:
    away = tmp_path_factory.mktemp("away")
    (away / "there").write_text("x = 1\n")
    bench.file("in/there", "x = 1\n")
    prepared, params = bench.parsed(tool, **given)
    assert prepared.effects(params, bench.context).writes == (str(bench.folder / given["path"]),)
    (bench.folder / "in").rename(bench.folder / "out")
    (bench.folder / "in").symlink_to(away)
    with pytest.raises(ToolError):
        await prepared.run(params, bench.context)
    assert {one.name: one.read_text() for one in away.iterdir()} == {"there": "x = 1\n"}


async def test_edit_refusals_come_with_the_preview(bench: ToolBench) -> None:
    bench.file("a.py", "x = 1\nx = 1\n")
    for arguments, says in (
        ({"old_string": "x = 1", "new_string": "y"}, "lines 1, 2"),
        ({"old_string": "x  = 1", "new_string": "y"}, "closest text is at line 1"),
        ({"old_string": "x", "new_string": "x"}, "the same"),
    ):
        with pytest.raises(ToolError, match=says):
            await bench.preview("edit_file", path="a.py", **arguments)
    with pytest.raises(ToolError, match=r"b\.py does not exist\. Did you mean a\.py\? Use write_file"):
        await bench.preview("edit_file", path="b.py", old_string="x", new_string="y")


async def test_replace_all_reports_places(bench: ToolBench) -> None:
    path = bench.file("a.py", "x\ny\nx\n")
    outcome = await bench.call("edit_file", path="a.py", old_string="x", new_string="z", replace_all=True)
    assert path.read_text() == "z\ny\nz\n"
    assert "2 places, first at line 1" in outcome.text


async def test_long_files_show_the_region_that_changes(bench: ToolBench) -> None:
    bench.file("long.txt", "".join(f"line {number}\n" for number in range(40_000)))
    preview = await bench.preview("edit_file", path="long.txt", old_string="line 30000\n", new_string="here\n")
    (block,) = preview.blocks
    assert isinstance(block, DiffBlock)
    assert block.old is not None
    assert block.new is not None
    assert block.first_line == 29_981
    assert block.old.startswith("line 29980\n")
    assert "here\n" in block.new
    assert len(block.old) < 1_000


async def test_write_creates_with_parents(bench: ToolBench) -> None:
    preview = await bench.preview("write_file", path="new/deep/a.txt", content="one\ntwo\n")
    assert preview.blocks == (DiffBlock("new/deep/a.txt", None, "one\ntwo\n"),)
    assert preview.state.endswith("/new/deep/a.txt=absent")
    assert not (bench.folder / "new").exists()
    outcome = await bench.call("write_file", path="new/deep/a.txt", content="one\ntwo\n")
    assert (bench.folder / "new/deep/a.txt").read_text() == "one\ntwo\n"
    assert outcome.text == "Created new/deep/a.txt (2 lines, 8 bytes; +2 -0)."
    assert outcome.changed[0].before is None


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\nb\n", "x\ny\n", b"x\ny\n"),
        (b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n"),
        ("\ufeffa\n".encode("utf-16-le"), "ä\n", "\ufeffä\n".encode("utf-16-le")),
        (b"caf\xe9\n", "th\xe9\n", b"th\xe9\n"),
        (b"caf\xe9\n", "日\n", "日\n".encode()),
        (b"\0\1", "text\n", b"text\n"),
        (b"", "text\n", b"text\n"),
    ],
)
async def test_overwriting_keeps_the_form_of_the_text(
    bench: ToolBench, before: bytes, content: str, after: bytes
) -> None:
    path = bench.file("a", before)
    outcome = await bench.call("write_file", path="a", content=content)
    assert path.read_bytes() == after
    assert outcome.text.startswith("Overwrote a")


async def test_same_content_is_not_written(bench: ToolBench) -> None:
    path = bench.file("a", "same\n")
    before = path.stat()
    outcome = await bench.call("write_file", path="a", content="same\n")
    assert outcome.changed == ()
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


async def test_what_is_no_file_is_not_written(bench: ToolBench) -> None:
    os.mkfifo(bench.folder / "pipe")
    bench.file("file")
    (bench.folder / "folder").mkdir()
    for path, says in (
        ("pipe", "a named pipe"),
        ("folder", "a directory"),
        ("/dev/null", "a character device"),
        ("file/x", "part of the path is a file"),
    ):
        with pytest.raises(ToolError, match=says):
            await bench.preview("write_file", path=path, content="x")
        with pytest.raises(ToolError, match=says):
            await bench.call("write_file", path=path, content="x")
    with pytest.raises(ToolError, match="surrogate"):
        await bench.preview("write_file", path="new", content="\ud800")


async def test_link_is_declared_as_its_target(bench: ToolBench, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside").resolve() / "target.txt"
    outside.write_text("x\n")
    (bench.folder / "link").symlink_to(outside)
    tool, params = bench.parsed("edit_file", path="link", old_string="x", new_string="y")
    assert tool.effects(params, bench.context).writes == (str(outside),)
    (block,) = (await bench.preview("edit_file", path="link", old_string="x", new_string="y")).blocks
    assert isinstance(block, DiffBlock)
    assert block.note == "outside the workspace"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write_file", {"path": "a.py", "content": "z = 2\n"}),
        ("edit_file", {"path": "a.py", "old_string": "x = 1", "new_string": "z = 2"}),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+z = 2\n*** End Patch"}),
    ],
)
async def test_a_change_is_planned_once_for_its_preview_and_its_run(
    bench: ToolBench, monkeypatch: pytest.MonkeyPatch, name: str, arguments: dict[str, str]
) -> None:
    tool, params = bench.parsed(name, **arguments)
    assert isinstance(tool, edit_file.ChangeTool)
    plans: list[edit_file.ChangePlan] = []
    plan = tool.plan
    monkeypatch.setattr(tool, "plan", lambda *given: plans.append(plan(*given)) or plans[-1])
    path = bench.file("a.py", "x = 1\n")
    shown = await tool.preview(params, bench.context)
    assert await tool.target_state(params, bench.context) == shown.state
    await tool.run(params, bench.context)
    assert (len(plans), path.read_text()) == (1, "z = 2\n")


async def test_a_change_is_planned_again_when_its_file_has_changed(bench: ToolBench) -> None:
    path = bench.file("a.py", "x = 1\n")
    arguments = {"path": "a.py", "old_string": "x = 1", "new_string": "z = 2"}
    await bench.preview("edit_file", **arguments)
    path.write_text("y = 0\nx = 1\n")
    assert (await bench.call("edit_file", **arguments)).text == "Edited a.py at line 2 (+1 -1)."
    assert path.read_text() == "y = 0\nz = 2\n"
