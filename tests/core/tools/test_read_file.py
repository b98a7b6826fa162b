"""Reading: pages, encodings, images, and what is no text."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.protocol.blocks import ImageBlock, TextBlock
from swecli.core.tools.base import ToolError
from swecli.core.tools.read_file import MAX_CHARACTERS, RawLine, Window, read_window
from tests.support.thorough import examples
from tests.support.tool_context import ToolBench

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_numbered_lines(bench: ToolBench) -> None:
    bench.file("a.py", "import os\n\n\tx = 1\n")
    outcome = await bench.call("read_file", path="a.py")
    assert outcome.text == "    1\timport os\n    2\t\n    3\t\tx = 1"
    assert outcome.detail == "3 lines"
    assert outcome.blocks == (TextBlock(outcome.text),)


async def test_pages_say_how_to_go_on(bench: ToolBench) -> None:
    bench.file("long.txt", "".join(f"line {number}\n" for number in range(1, 5_001)))
    first = await bench.call("read_file", path="long.txt", limit=2)
    assert first.text == "    1\tline 1\n    2\tline 2\n[lines 1-2 of 5,000; continue with offset=3]"
    default = await bench.call("read_file", path="long.txt")
    assert len(default.text) < MAX_CHARACTERS + 100
    assert default.text.endswith(
        f"[lines 1-{default.detail.split()[0].replace(',', '')} of 5,000; continue with "
        f"offset={int(default.detail.split()[0].replace(',', '')) + 1}]"
    )
    last = await bench.call("read_file", path="long.txt", offset=5_000)
    assert last.text == " 5000\tline 5000"
    with pytest.raises(ToolError, match="has 5,000 lines"):
        await bench.call("read_file", path="long.txt", offset=5_001)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\r\n", "    1\ta\n    2\tb\n[CRLF line endings]"),
        (b"a\r\nb\n", "    1\ta\n    2\tb\n[mixed LF and CRLF line endings]"),
        (b"a", "    1\ta\n[no newline at the end]"),
        (b"\xef\xbb\xbfa\n", "    1\ta\n[UTF-8 with BOM]"),
        ("\ufeffä\n".encode("utf-16-le"), "    1\tä\n[UTF-16 LE]"),
        ("\ufeffä\r\n".encode("utf-16-be"), "    1\tä\n[UTF-16 BE, CRLF line endings]"),
        (b"caf\xe9\n", "    1\tcafé\n[Latin-1]"),
        (b"", "(the file is empty)"),
    ],
)
async def test_forms_of_text(bench: ToolBench, data: bytes, text: str) -> None:
    bench.file("a", data)
    assert (await bench.call("read_file", path="a")).text == text


async def test_long_lines_are_cut(bench: ToolBench) -> None:
    bench.file("min.js", "x" * 50_000 + "\nshort\n")
    outcome = await bench.call("read_file", path="min.js")
    assert "[… line cut: 48,000 more]\n    2\tshort" in outcome.text
    assert len(outcome.text) < 2_200


async def test_image_is_shown(bench: ToolBench) -> None:
    bench.file("dot.png", PNG)
    outcome = await bench.call("read_file", path="dot.png")
    assert outcome.blocks == (ImageBlock("dot.png", "image/png", len(PNG)),)
    assert base64.b64decode(outcome.images[0].data) == PNG
    assert outcome.images[0].media_type == "image/png"


async def test_large_image_and_binary_files_are_named_only(bench: ToolBench) -> None:
    bench.file("big.jpg", b"\xff\xd8\xff" + b"\0" * 5_000_000)
    big = await bench.call("read_file", path="big.jpg")
    assert (big.images, "too large" in big.text) == ((), True)
    for name, data, says in (
        ("a.out", b"\x7fELF\0\0", "an ELF program"),
        ("x.bin", b"\1\2\0", "unknown binary data"),
        ("x.rc", "LTEXT 1\r\n".encode("utf-16-le"), "UTF-16LE text without a byte order mark"),
        ("y.rc", "LTEXT 1\r\n".encode("utf-16-be"), "Try iconv -f UTF-16BE -t UTF-8"),
        ("x.db", b"SQLite format 3\0", "a SQLite database"),
    ):
        bench.file(name, data)
        outcome = await bench.call("read_file", path=name)
        assert "binary file" in outcome.text
        assert says in outcome.text


@pytest.fixture
def huge(bench: ToolBench) -> Path:
    """10 GB without the disk space: lines of text, a hole, and a last line."""
    path = bench.file("huge.log", "first\nsecond\n" + "more\n" * 3_000)
    with path.open("r+b") as stream:
        stream.truncate(10 << 30)
        stream.seek(0, os.SEEK_END)
        stream.write(b"\nlast\n")
    return path


async def test_ten_gigabytes_are_paged_without_reading_them(bench: ToolBench, huge: Path) -> None:
    start = time.process_time()
    outcome = await bench.call("read_file", path=huge.name, limit=2)
    assert outcome.text.startswith("    1\tfirst\n    2\tsecond\n[lines 1-2 of a very large file")
    assert time.process_time() - start < 2


async def test_special_places(bench: ToolBench) -> None:
    bench.file("src/api/auth.py")
    os.mkfifo(bench.folder / "pipe")
    (bench.folder / "loop").symlink_to("loop")
    for path, says in (
        ("src", "List it"),
        ("pipe", "a named pipe"),
        ("/dev/zero", "a character device"),
        ("src/api/auht.py", "Did you mean src/api/auth.py"),
        ("auth.py", "Did you mean src/api/auth.py"),
        ("nowhere.txt", "does not exist"),
        ("src/api/auth.py/x", "part of the path is a file"),
        ("a\0b", "not a usable path"),
        ("\ud800", "not a usable path"),
        ("loop", "loop"),
    ):
        with pytest.raises(ToolError, match=says):
            await bench.call("read_file", path=path)


@pytest.mark.parametrize("tool", ["read_file", "edit_file"])
async def test_a_folder_that_becomes_a_link_leads_nowhere(bench: ToolBench, tool: str) -> None:
    """As by a background job, after the path was judged."""
    bench.file("src/api/notes.txt", "public\n")
    (bench.folder / "elsewhere" / "api").mkdir(parents=True)
    (bench.folder / "elsewhere" / "api" / "notes.txt").write_text("secret\n")
    edit = {"old_string": "secret", "new_string": "x"} if tool == "edit_file" else {}
    found, params = bench.parsed(tool, path="src/api/notes.txt", **edit)
    assert found.effects(params, bench.context).reads == (str(bench.folder / "src/api/notes.txt"),)
    (bench.folder / "src").rename(bench.folder / "src2")
    (bench.folder / "src").symlink_to(bench.folder / "elsewhere")
    with pytest.raises(ToolError, match="has just become a link"):
        await found.run(params, bench.context)
    assert (bench.folder / "elsewhere" / "api" / "notes.txt").read_text() == "secret\n"


async def test_effects_and_title_name_the_real_file(bench: ToolBench) -> None:
    target = bench.file("target.txt")
    (bench.folder / "link").symlink_to(target)
    tool, params = bench.parsed("read_file", path="link", offset=3, limit=2)
    assert tool.effects(params, bench.context).reads == (str(target),)
    assert tool.title(params, bench.context) == "target.txt:3-4"
    tool, params = bench.parsed("read_file", path="link", offset=3)
    assert tool.title(params, bench.context) == "target.txt:3-"  # how far nobody knows before it is read


@given(
    data=st.lists(st.sampled_from((b"\n", b"a", b"bb\n", b"\r\n", b"c" * 30)), max_size=30).map(b"".join),
    first=st.integers(1, 12),
    count=st.integers(1, 6),
)
@settings(deadline=None, max_examples=examples(60, 300))
def test_window_equals_slicing(tmp_path_factory: pytest.TempPathFactory, data: bytes, first: int, count: int) -> None:
    path = tmp_path_factory.getbasetemp() / "window"
    path.write_bytes(data)
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    window = read(path, lambda descriptor: read_window(descriptor, first, count, budget=10_000, seconds=10))
    assert window.lines == tuple(RawLine(line, len(line)) for line in lines[first - 1 : first - 1 + count])
    assert window.total == len(lines)


def test_window_stops_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a\n")
    window = read(path, lambda descriptor: read_window(descriptor, 1, 1, budget=10, seconds=10, stop=lambda: True))
    assert window.timed_out
    assert window.lines == ()


def read(path: Path, work: Callable[[int], Window]) -> Window:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return work(descriptor)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    "path",
    [
        *("src/m.py\n", " src/m.py ", "`src/m.py`", '"src/m.py"', "'src/m.py'", "<src/m.py>", "@src/m.py"),
        *("src/m.py:12", "src/m.py:4-6", "src/m.py#L4", "src/m.py#L4-L6", "src\\m.py", "file://{root}/src/m.py"),
    ],
)
async def test_a_path_is_read_as_it_must_be_meant(bench: ToolBench, path: str) -> None:
    bench.file("src/m.py", b"x\n")
    outcome = await bench.call("read_file", path=path.replace("{root}", str(bench.folder)))
    assert outcome.text.startswith("    1\tx")


@pytest.mark.parametrize("name", ["`a`", "@a", "a:12", "a\\b", "a "])
async def test_a_file_with_an_odd_name_is_itself(bench: ToolBench, name: str) -> None:
    other = "a/b" if "\\" in name else "a"
    bench.file(other, b"other\n")
    bench.file(name, b"odd\n")
    assert "odd" in (await bench.call("read_file", path=name)).text


async def test_a_new_file_gets_no_quotes_but_keeps_what_may_be_meant(bench: ToolBench) -> None:
    for path in ("`a.py`\n", "b.py:12", "@c.py", "a/d.py"):
        await bench.call("write_file", path=path, content="x\n")
    names = sorted(one.relative_to(bench.folder).as_posix() for one in bench.folder.rglob("*") if one.is_file())
    assert names == ["@c.py", "a.py", "a/d.py", "b.py:12"]


async def test_a_path_of_another_machine_leads_to_the_same_file_here(bench: ToolBench) -> None:
    bench.file("src/m.py", b"x\n")
    with pytest.raises(ToolError, match=r"does not exist\. Did you mean src/m\.py\?"):
        await bench.call("read_file", path="/nowhere/project/src/m.py")
