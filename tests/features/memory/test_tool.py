"""The memory tool: its six commands, and paths and texts that are none."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import get_args

import pytest

from swecli.core.tools.base import ToolError, ToolOutcome
from swecli.core.tools.registry import ToolRegistry
from swecli.features.memory.places import MAX_FILES, MemoryPlaces
from swecli.features.memory.tool import MemoryCommand, MemoryParams, MemoryTool
from tests.support.tool_context import ToolBench

LIMIT = 2_000
EXAMPLE = Path(__file__).parents[2] / "data" / "memory_tool_example.ts"
"""The tool as one of the design documents has it, word for word."""


class MemoryBench(ToolBench):
    def __init__(self, folder: Path) -> None:
        self.project, self.user = folder / "work" / ".swecli" / "memory", folder / "data" / "memories"
        (folder / "work").mkdir()
        super().__init__(folder / "work")
        places = MemoryPlaces(self.project, self.user)
        self.registry = ToolRegistry([MemoryTool(places, LIMIT, lambda text: "sk-secret" in text)])

    async def do(self, command: str, path: str = "", **more: object) -> str:
        named = {"path": path} if path else {}
        return (await self.call("memory", command=command, **named, **more)).text

    async def refused(self, command: str, path: str = "", **more: object) -> str:
        with pytest.raises(ToolError) as error:
            await self.do(command, path, **more)
        return str(error.value)


@pytest.fixture
def memory(tmp_path: Path) -> MemoryBench:
    return MemoryBench(tmp_path.resolve())


async def test_the_six_commands(memory: MemoryBench) -> None:
    await memory.do("create", "/memories/build.md", file_text="one\ntwo\nthree\n")
    assert (memory.project / "build.md").read_text() == "one\ntwo\nthree\n"
    assert "     2\ttwo" in await memory.do("view", "/memories/build.md")
    assert await memory.do("view", "/memories/build.md", view_range=[2, -1]) == (
        "/memories/build.md\n     2\ttwo\n     3\tthree"
    )
    await memory.do("str_replace", "/memories/build.md", old_str="two", new_str="2")
    await memory.do("insert", "/memories/build.md", insert_line=0, insert_text="zero")
    await memory.do("insert", "/memories/build.md", insert_line=4, insert_text="four\n")
    assert (memory.project / "build.md").read_text() == "zero\none\n2\nthree\nfour\n"
    await memory.do("rename", old_path="/memories/build.md", new_path="/memories/user/how/to.md")
    assert (memory.user / "how" / "to.md").read_text().startswith("zero")
    assert "how/" in await memory.do("view", "/memories/user")
    await memory.do("delete", "/memories/user/how")
    assert not (memory.user / "how").exists()
    assert "no memories" in await memory.do("view", "/memories/user")


def test_the_call_of_the_design_document_is_ours() -> None:
    schema = EXAMPLE.read_text().split("MemoryInputSchema = z.object({")[1].split("});")[0]
    names = set(re.findall(r"^  (\w+):", schema, re.MULTILINE))
    commands = re.findall(r"'(\w+)'", schema.split("path:")[0])
    assert names <= set(MemoryParams.__struct_fields__)
    assert list(get_args(MemoryCommand)) == commands
    assert re.findall(r"case '(\w+)'", EXAMPLE.read_text()) == commands


async def test_the_documents_own_rename_by_path_works_too(memory: MemoryBench) -> None:
    await memory.do("create", "/memories/a.md", file_text="a")
    await memory.do("rename", "/memories/a.md", new_path="/memories/b.md")
    assert "b.md" in await memory.do("view", "/memories")


@pytest.mark.parametrize(
    "path",
    [
        "/memories/../secret",
        "/memories/%2e%2e/secret",
        "/memories/..%2Fsecret",
        "/memories/a/../../x",
        "../x",
        "/memories-x/a",
        "/memoriesx",
        "/etc/passwd",
        "/",
        "~/x",
        "/memories/..",
        "/memories/a\\..\\b",
        "/memories/.hidden",
        "/memories/a\nb",
        "/memories/a\u202eb",
        "/memories/" + "x" * 300,
        "/memories/" + "/".join("abcdefghij"),
        "",
        "   ",
        "/memories/user/../../x",
    ],
)
async def test_no_path_leads_out(memory: MemoryBench, path: str) -> None:
    outside = memory.folder / "secret"
    outside.write_text("kept")
    for command, more in (
        ("view", {}),
        ("create", {"file_text": "x"}),
        ("delete", {}),
        ("rename", {"new_path": "/memories/new.md"}),
    ):
        assert await memory.refused(command, path, **more)
    assert outside.read_text() == "kept"
    assert not memory.project.exists() or [one.name for one in memory.project.iterdir()] == []


async def test_the_target_of_a_rename_is_held_too(memory: MemoryBench) -> None:
    await memory.do("create", "/memories/a.md", file_text="a")
    for target in ("/memories/../b.md", "/memories-x/b.md", "/memories", ""):
        assert await memory.refused("rename", "/memories/a.md", new_path=target)
    assert (memory.project / "a.md").exists()


async def test_links_are_not_followed(memory: MemoryBench) -> None:
    outside = memory.folder / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("kept")
    memory.project.mkdir(parents=True)
    (memory.project / "file.md").symlink_to(outside / "x.md")
    (memory.project / "dir").symlink_to(outside)
    for path in ("/memories/file.md", "/memories/dir/x.md", "/memories/dir"):
        assert "link" in await memory.refused("view", path)
        assert "link" in await memory.refused("delete", path)
        assert "link" in await memory.refused("create", path, file_text="x", overwrite=True)
    assert "dir" not in await memory.do("view", "/memories")
    assert (outside / "x.md").read_text() == "kept"


async def test_a_folder_of_memories_that_is_a_link_is_no_such_folder(memory: MemoryBench) -> None:
    (memory.folder / "elsewhere").mkdir()
    (memory.folder / ".swecli").mkdir()
    memory.project.symlink_to(memory.folder / "elsewhere")
    assert "link" in await memory.refused("create", "/memories/a.md", file_text="x")
    assert list((memory.folder / "elsewhere").iterdir()) == []


async def test_nothing_is_lost_by_a_slip(memory: MemoryBench) -> None:
    await memory.do("create", "/memories/a.md", file_text="x = 1\nx = 1\n")
    assert "exists" in await memory.refused("create", "/memories/a.md", file_text="y")
    assert "2 places, at lines 1, 2" in await memory.refused(
        "str_replace", "/memories/a.md", old_str="x = 1", new_str=""
    )
    assert "/memories/a.md: " in await memory.refused("str_replace", "/memories/a.md", old_str="z", new_str="")
    assert "the same" in await memory.refused("str_replace", "/memories/a.md", old_str="x = 1\nx", new_str="x = 1\nx")
    assert "needs old_str" in await memory.refused("str_replace", "/memories/a.md", old_str="", new_str="b")
    assert "from 0 to 2" in await memory.refused("insert", "/memories/a.md", insert_line=3, insert_text="z")
    assert "needs insert_line" in await memory.refused("insert", "/memories/a.md", insert_text="z")
    assert "itself" in await memory.refused("delete", "/memories")
    assert "itself" in await memory.refused("delete", "/memories/user")
    assert "itself" in await memory.refused("rename", "/memories", new_path="/memories/b")
    await memory.do("create", "/memories/b.md", file_text="b")
    assert "exists" in await memory.refused("rename", "/memories/a.md", new_path="/memories/b.md")
    assert (memory.project / "a.md").read_text() == "x = 1\nx = 1\n"
    await memory.do("create", "/memories/a.md", file_text="new", overwrite=True)
    assert (memory.project / "a.md").read_text() == "new"


async def test_folders_move_whole_and_not_into_themselves(memory: MemoryBench) -> None:
    for name in ("one", "two/three"):
        await memory.do("create", f"/memories/api/{name}.md", file_text=name)
    assert "into itself" in await memory.refused("rename", "/memories/api", new_path="/memories/api/old")
    await memory.do("rename", "/memories/api", new_path="/memories/old")
    assert (memory.project / "old" / "two" / "three.md").read_text() == "two/three"
    assert not (memory.project / "api").exists()
    assert "is a folder" in await memory.refused("create", "/memories/old", file_text="x")
    assert "is a file" in await memory.refused("create", "/memories/old/one.md/below.md", file_text="x")


async def test_what_is_not_there_is_named_with_what_is(memory: MemoryBench) -> None:
    assert "no memories yet" in await memory.refused("view", "/memories/a.md")
    await memory.do("create", "/memories/api/b.md", file_text="b")
    for command, more in (
        ("view", {}),
        ("delete", {}),
        ("str_replace", {"old_str": "a", "new_str": "b"}),
        ("insert", {"insert_line": 0, "insert_text": "x"}),
        ("rename", {"new_path": "/memories/c.md"}),
    ):
        assert "Memories: /memories/api/b.md" in await memory.refused(command, "/memories/b.md", **more)


@pytest.mark.parametrize("span", [[0, 2], [4, 5], [3, 1], [-1, 2]])
async def test_a_range_that_is_none(memory: MemoryBench, span: list[int]) -> None:
    await memory.do("create", "/memories/a.md", file_text="1\n2\n3\n")
    assert "has 3 lines" in await memory.refused("view", "/memories/a.md", view_range=span)


async def test_what_may_not_be_kept(memory: MemoryBench) -> None:
    assert "limit for memory files is 2.0 KB" in await memory.refused(
        "create", "/memories/a.md", file_text="x" * (LIMIT + 1)
    )
    assert "password" in await memory.refused("create", "/memories/a.md", file_text="key: sk-secret")
    assert "NUL" in await memory.refused("create", "/memories/a.md", file_text="a\0b")
    assert "surrogate" in await memory.refused("create", "/memories/a.md", file_text="a\ud800b")
    await memory.do("create", "/memories/a.md", file_text="x" * (LIMIT - 5))
    assert "the limit for memory files is" in await memory.refused(
        "insert", "/memories/a.md", insert_line=1, insert_text="more text"
    )
    assert (memory.project / "a.md").stat().st_size == LIMIT - 5


async def test_the_number_of_files_is_bounded(memory: MemoryBench) -> None:
    memory.project.mkdir(parents=True)
    for number in range(MAX_FILES):
        (memory.project / f"{number}.md").write_text("x")
    assert "already" in await memory.refused("create", "/memories/new.md", file_text="x")


async def test_files_that_are_no_memories(memory: MemoryBench) -> None:
    memory.project.mkdir(parents=True)
    (memory.project / "blob").write_bytes(b"\0\1\2" * 100)
    os.mkfifo(memory.project / "pipe")
    assert "is not text" in await memory.refused("view", "/memories/blob")
    assert "not a regular file" in await memory.refused("view", "/memories/pipe")
    (memory.project / "latin.md").write_bytes(b"caf\xe9\n")
    await memory.do("str_replace", "/memories/latin.md", old_str="caf", new_str="Caf")
    assert (memory.project / "latin.md").read_bytes() == b"Caf\xe9\n"
    (memory.project / "crlf.md").write_bytes(b"a\r\nb\r\n")
    assert "     2\tb" in await memory.do("view", "/memories/crlf.md")
    await memory.do("str_replace", "/memories/crlf.md", old_str="a\nb", new_str="c\nd")
    assert (memory.project / "crlf.md").read_bytes() == b"c\r\nd\r\n"


async def test_effects_are_declared_and_shown(memory: MemoryBench) -> None:
    await memory.do("create", "/memories/a.md", file_text="a")
    for arguments, reads, writes in (
        ({"command": "view", "path": "/memories/a.md"}, 1, 0),
        ({"command": "delete", "path": "/memories/a.md"}, 0, 1),
        ({"command": "rename", "path": "/memories/a.md", "new_path": "/memories/user/b.md"}, 0, 2),
    ):
        tool, params = memory.parsed("memory", **arguments)
        effects = tool.effects(params, memory.context)
        assert (len(effects.reads), len(effects.writes)) == (reads, writes)
        assert not effects.internal
    shown = await memory.preview("memory", command="create", path="/memories/b.md", file_text="b")
    assert shown.facts == ("new file, 1 line",)
    outcome: ToolOutcome = await memory.call("memory", command="create", path="/memories/b.md", file_text="b")
    assert "/undo t1" in outcome.detail
    assert [Path(one.path).name for one in outcome.changed] == ["b.md"]


async def test_off_where_a_folder_is_missing(memory: MemoryBench) -> None:
    tool = MemoryTool(MemoryPlaces(None, memory.user), LIMIT, lambda text: False)
    memory.registry = ToolRegistry([tool])
    assert "trusts this folder" in await memory.refused("create", "/memories/a.md", file_text="x")
    await memory.do("create", "/memories/user/a.md", file_text="x")
    assert "a.md" in await memory.do("view", "/memories/user")
