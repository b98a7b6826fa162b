"""Contents that are a model's habit and not the file's text."""

from __future__ import annotations

import unicodedata

import pytest

from swecli.core.tools.base import ToolError
from tests.support.tool_context import ToolBench

DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-x\n+y\n"


@pytest.mark.parametrize("fenced", ["```python\nx = 1\n```", "```\nx = 1\n```\n", "\n~~~py\nx = 1\n~~~\n"])
async def test_the_fence_around_a_file_is_left_out_and_named(bench: ToolBench, fenced: str) -> None:
    bench.file("old.py", b"x = 0\n")
    for name in ("new.py", "old.py"):
        preview = await bench.preview("write_file", path=name, content=fenced)
        outcome = await bench.call("write_file", path=name, content=fenced)
        assert (bench.folder / name).read_text() == "x = 1\n"
        assert "Without the code fence around it." in outcome.text
        assert preview.blocks == outcome.blocks


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", "```python\nx = 1\n```\n"),
        ("a.txt", "```\nx\n```"),
        ("Makefile", "```\nx\n```"),
        ("a.py", "```\nx\n```\ny\n```\nz\n```"),
        ("a.py", "# See:\n# ```\n# x\n# ```\n"),
        ("a.diff", DIFF),
        ("a.md", DIFF),
        ("a.tsv", "1\ta\n2\tb\n"),
        ("a.py", "1\ta\n3\tb\n"),
        ("a.py", "class A(Protocol):\n    def a(self) -> int:\n        ...\n"),
        ("new.py", "# ... existing code ...\n"),
        ("a.js", "f(...rest)\n"),
        ("a.json", '{"a": "\\n"}'),
    ],
)
async def test_what_may_be_meant_is_written_as_it_is(bench: ToolBench, name: str, content: str) -> None:
    await bench.call("write_file", path=name, content=content)
    assert (bench.folder / name).read_text() == content


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (DIFF, "is a diff"),
        (f"diff --git a/a.py b/a.py\nindex 1..2 100644\n{DIFF}", "is a diff"),
        ("*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch\n", "is a diff"),
        ("    1\timport os\n    2\tx = 1\n", "line numbers"),
        ("import os\\nx = 1\\n", "two characters"),
        ("# ... existing code ...\n\ndef f(): ...\n", "'# ... existing code ...' of content stands for text"),
        ("x = 1\n// rest of the code remains unchanged...\n", "of content stands for text"),
    ],
)
async def test_what_would_lose_the_file_is_refused(bench: ToolBench, content: str, why: str) -> None:
    path = bench.file("a.py", b"x = 0\n")
    with pytest.raises(ToolError, match=r"^Nothing was written: ") as refused:
        await bench.preview("write_file", path="a.py", content=content)
    assert why in str(refused.value)
    assert path.read_bytes() == b"x = 0\n"


async def test_an_edit_puts_no_placeholder_in_place_of_text(bench: ToolBench) -> None:
    path = bench.file("a.py", b"def f():\n    a()\n    b()\n")
    given = {"path": "a.py", "old_string": "    a()\n    b()\n"}
    with pytest.raises(ToolError, match=r"stands for text that it leaves out"):
        await bench.call("edit_file", **given, new_string="    # ... existing code ...\n    b()\n")
    assert path.read_bytes() == b"def f():\n    a()\n    b()\n"
    bench.file("a.py", b"# ... existing code ...\n")
    await bench.call("edit_file", path="a.py", old_string="# ...", new_string="x\n# ...")
    assert path.read_bytes() == b"x\n# ... existing code ...\n"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        (unicodedata.normalize("NFD", "café.txt"), unicodedata.normalize("NFC", "café.txt")),
        (unicodedata.normalize("NFC", "é/é.txt"), unicodedata.normalize("NFD", "é/é.txt")),
        ("Screenshot at 9.41\u202fAM.txt", "Screenshot at 9.41 AM.txt"),
        ("a b.txt", "a\u00a0b.txt"),
    ],
)
async def test_a_name_that_looks_the_same_is_the_same_file(bench: ToolBench, name: str, written: str) -> None:
    path = bench.file(name, b"one\n")
    assert "one" in (await bench.call("read_file", path=written)).text
    await bench.call("edit_file", path=written, old_string="one", new_string="two")
    assert path.read_bytes() == b"two\n"
    assert [each for each in path.parent.iterdir() if each.suffix] == [path]


async def test_of_two_names_that_look_the_same_none_is_guessed(bench: ToolBench) -> None:
    bench.file("a\u202fb.txt", b"one\n")
    bench.file("a\u2009b.txt", b"two\n")
    with pytest.raises(ToolError, match="does not exist"):
        await bench.call("read_file", path="a b.txt")
