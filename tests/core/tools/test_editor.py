"""Files that the user's editor has open, with changes that are not saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.ports import EditorError
from swecli.core.tools.base import ToolError
from swecli.core.tools.editor import with_text, writable_as_text
from tests.support.tool_context import ToolBench


@dataclass
class Buffers:
    """An editor; ``saves`` is what it makes of a text when it saves it."""

    open: dict[str, str] = field(default_factory=dict[str, str])
    writes: bool = True
    saves: Callable[[str], str] = lambda text: text
    fails: str = ""

    def text(self, path: Path) -> str | None:
        return self.open.get(path.name)

    def write(self, path: Path, text: str) -> None:
        if self.fails:
            raise EditorError(self.fails)
        self.open[path.name] = self.saves(text)
        path.write_text(self.open[path.name], newline="")


@pytest.fixture
def bench(tmp_path: Path) -> ToolBench:
    return ToolBench(tmp_path)


def with_editor(bench: ToolBench, **given: object) -> Buffers:
    buffers = Buffers(**given)  # pyright: ignore[reportArgumentType]
    bench.context = replace(bench.context, editor=buffers)
    return buffers


@pytest.mark.parametrize(
    ("disk", "text", "bytes_"),
    [
        (b"a\n", "a\n", b"a\n"),
        (b"a\r\nb\r\n", "a\nb\n", b"a\r\nb\r\n"),
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        ("é\n".encode("latin-1"), "è\n", "è\n".encode("latin-1")),
        ("é\n".encode("latin-1"), "€\n", "é\n".encode("latin-1")),
        (b"a\0b", "text", b"a\0b"),
        (b"", "new\n", b"new\n"),
    ],
)
def test_the_bytes_that_saving_would_give(disk: bytes, text: str, bytes_: bytes) -> None:
    assert with_text(disk, text) == bytes_


def test_which_files_an_editor_saves_byte_for_byte() -> None:
    assert writable_as_text("é\r\nb\r\n".encode())
    for data in (b"\xef\xbb\xbfa\n", "é".encode("latin-1"), b"a\r\nb\n", "a".encode("utf-16")):
        assert not writable_as_text(data)


async def test_what_is_not_saved_is_read(bench: ToolBench) -> None:
    (bench.folder / "a.txt").write_text("saved\n")
    with_editor(bench, open={"a.txt": "unsaved\n"})
    outcome = await bench.call("read_file", path="a.txt")
    assert "unsaved" in outcome.text
    assert "editor has unsaved changes" in outcome.text
    (bench.folder / "b.txt").write_text("b\n")
    assert "editor" not in (await bench.call("read_file", path="b.txt")).text


async def test_an_edit_goes_through_the_editor(bench: ToolBench) -> None:
    file = bench.folder / "a.txt"
    file.write_bytes(b"one\r\ntwo\r\n")
    buffers = with_editor(bench, open={"a.txt": "one\ntwo, unsaved\n"})
    outcome = await bench.call("edit_file", path="a.txt", old_string="one", new_string="1")
    assert buffers.open["a.txt"] == "1\r\ntwo, unsaved\r\n"
    assert file.read_bytes() == b"1\r\ntwo, unsaved\r\n"
    assert outcome.detail == "+1 -1"


async def test_a_new_file_goes_through_the_editor(bench: ToolBench) -> None:
    buffers = with_editor(bench)
    await bench.call("write_file", path="sub/new.txt", content="new\n")
    assert buffers.open == {"new.txt": "new\n"}
    assert (bench.folder / "sub" / "new.txt").read_text() == "new\n"


async def test_what_the_editor_would_change_is_written_on_disk(bench: ToolBench) -> None:
    file = bench.folder / "a.txt"
    file.write_bytes(b"one\r\ntwo\n")
    buffers = with_editor(bench)
    await bench.call("edit_file", path="a.txt", old_string="one", new_string="1")
    assert file.read_bytes() == b"1\r\ntwo\n"
    assert buffers.open == {}


async def test_an_editor_that_can_only_be_read_keeps_its_unsaved_changes(bench: ToolBench) -> None:
    file = bench.folder / "a.txt"
    file.write_text("one\n")
    with_editor(bench, open={"a.txt": "one, unsaved\n"}, writes=False)
    with pytest.raises(ToolError, match="unsaved changes"):
        await bench.call("edit_file", path="a.txt", old_string="one", new_string="1")
    assert file.read_text() == "one\n"
    (bench.folder / "b.txt").write_text("one\n")
    await bench.call("edit_file", path="b.txt", old_string="one", new_string="1")
    assert (bench.folder / "b.txt").read_text() == "1\n"


async def test_a_failure_of_the_editor_is_told(bench: ToolBench) -> None:
    (bench.folder / "a.txt").write_text("one\n")
    with_editor(bench, fails="the editor did not write it: busy.")
    with pytest.raises(ToolError, match="busy"):
        await bench.call("edit_file", path="a.txt", old_string="one", new_string="1")
