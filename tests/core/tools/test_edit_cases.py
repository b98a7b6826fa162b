"""What real files do to edits: special files, links, modes, odd bytes, races. Bytes besides the edit never change."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from swecli.core.tools.base import ToolError
from tests.support.tool_context import ToolBench
from tests.support.trees import tree

BIG = b"".join(b"line %d\r\n" % number for number in range(40_000))

EDITS: tuple[tuple[str, bytes, str, str, bytes], ...] = (
    ("curly quotes stay", "say “a” it’s\nx\n".encode(), "x", "y", "say “a” it’s\ny\n".encode()),
    ("curly quotes are not straight ones", '“a”\n"a"\n'.encode(), '"a"', '"b"', '“a”\n"b"\n'.encode()),
    ("mixed line ends, LF place", b"a\r\nb\nc\r\n", "b\nc", "B\nC", b"a\r\nB\nC\r\n"),
    ("mixed line ends, in one line", b"a\r\nb\nc\r\n", "b", "b1\nb2", b"a\r\nb1\nb2\nc\r\n"),
    ("old Mac line ends", b"a\rb\rc", "b", "B", b"a\rB\rc"),
    (
        "form feed, vertical tab, next line",
        "a\x0cb\x0bc\u2028d\x85e\n".encode(),
        "d",
        "D",
        "a\x0cb\x0bc\u2028D\x85e\n".encode(),
    ),
    ("NUL bytes", b"a\0b\0c", "b", "B", b"a\0B\0c"),
    ("no final newline is added", b"a\nb", "b", "c", b"a\nc"),
    ("a final newline that is asked for", b"a\nb", "b", "b\n", b"a\nb\n"),
    ("several final newlines", b"a\n\n\n", "a", "b", b"b\n\n\n"),
    ("mark of UTF-8", b"\xef\xbb\xbfa = 1\n", "a = 1", "a = 2", b"\xef\xbb\xbfa = 2\n"),
    ("UTF-16 with CRLF", "a\r\nb\r\n".encode("utf-16"), "a\nb", "a\nc", "a\r\nc\r\n".encode("utf-16")),
    ("UTF-32", "a\nb\n".encode("utf-32"), "b", "c", "a\nc\n".encode("utf-32")),
    ("Latin-1 gets its own bytes", "größe = 1\n".encode("latin-1"), "größe", "höhe", "höhe = 1\n".encode("latin-1")),
    (
        "Shift-JIS, half of whose letters may be a backslash",
        "x = '表示テスト'\r\n# これは 設定 です\r\n".encode("cp932"),
        "設定",
        "能力",
        "x = '表示テスト'\r\n# これは 能力 です\r\n".encode("cp932"),
    ),
    (
        "a stray byte in UTF-8",
        "ä ö ü ".encode() + b"\xff\nx\n",
        "x",
        "ß",
        "ä ö ü ".encode() + b"\xff\n" + "ß\n".encode(),
    ),
    ("combining characters are not composed ones", "e\u0301 é\n".encode(), "é", "e", "e\u0301 e\n".encode()),
    ("emoji of several code points", "👩‍👩‍👧 x\n".encode(), "x", "👍🏽", "👩‍👩‍👧 👍🏽\n".encode()),
    ("a pattern is no regular expression", b"a.*(b)[c]\\1\n", ".*(b)[c]\\1", "$0\\g<1>", b"a$0\\g<1>\n"),
    ("white space at line ends", b"a  \n\tb\t\n", "a  \n\tb\t", "a\n\tb", b"a\n\tb\n"),
    ("deleting a line", b"a\r\nb\r\nc\r\n", "b\n", "", b"a\r\nc\r\n"),
    ("all of the file", b"a\r\nb\r\n", "a\nb\n", "c\n", b"c\r\n"),
    ("the first of a long file", BIG, "line 0\nline 1\n", "x\n", b"x\r\n" + BIG[len(b"line 0\r\nline 1\r\n") :]),
    ("an empty file", b"", "", "a\n", b"a\n"),
    ("tabs quoted as spaces", b"if a:\r\n\tx = 1\r\n", "    x = 1", "    x = 2\n    y", b"if a:\r\n\tx = 2\r\n\ty\r\n"),
    ("typographic quotes quoted as plain", "it’s a\n".encode(), "it's a", "it's b", "it’s b\n".encode()),
)


@pytest.mark.parametrize(("data", "old", "new", "after"), [case[1:] for case in EDITS], ids=[case[0] for case in EDITS])
async def test_bytes(bench: ToolBench, data: bytes, old: str, new: str, after: bytes) -> None:
    path = bench.file("f", data)
    await bench.call("edit_file", path="f", old_string=old, new_string=new)
    assert path.read_bytes() == after


REFUSED: tuple[tuple[str, bytes, dict[str, object], str], ...] = (
    ("overlapping places", b"aaa\n", {"old_string": "aa", "new_string": "b"}, "matches 2 places"),
    ("places across line ends", b"\n\n\n", {"old_string": "\n\n", "new_string": "x"}, "matches 2 places"),
    ("not there", b"alpha\n", {"old_string": "beta", "new_string": "x"}, "not found"),
    ("other indentation twice", b"\tx = 1\n\tx = 1\n", {"old_string": "    x = 1", "new_string": "y"}, "indentation"),
    ("typographic quotes twice", "it’s\nit’s\n".encode(), {"old_string": "it's", "new_string": "y"}, "typographic"),
    ("nothing to do", b"a\n", {"old_string": "a", "new_string": "a"}, "the same"),
    ("empty in a full file", b"a\n", {"old_string": "", "new_string": "b"}, "not"),
    ("a character that Latin-1 lacks", b"caf\xe9\n", {"old_string": "caf", "new_string": "→"}, "cannot represent"),
    ("a lone surrogate", b"a\n", {"old_string": "a", "new_string": "\ud800"}, "cannot represent"),
)


@pytest.mark.parametrize(
    ("data", "arguments", "says"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
async def test_refused_and_nothing_changed(
    bench: ToolBench, data: bytes, arguments: dict[str, object], says: str
) -> None:
    path = bench.file("f", data)
    before = path.stat()
    with pytest.raises(ToolError, match=says):
        await bench.call("edit_file", path="f", **arguments)
    after = path.stat()
    assert path.read_bytes() == data
    assert (before.st_mtime_ns, before.st_ino, before.st_ctime_ns) == (
        after.st_mtime_ns,
        after.st_ino,
        after.st_ctime_ns,
    )


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _gone(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize("make", [_fifo, _device, _loop, _gone, Path.mkdir])
@pytest.mark.parametrize("tool", ["edit_file", "write_file", "apply_patch"])
async def test_what_is_no_file_is_refused_at_once(bench: ToolBench, make: Callable[[Path], None], tool: str) -> None:
    make(bench.folder / "f")
    before = tree(bench.folder)
    arguments: dict[str, object] = {
        "edit_file": {"path": "f", "old_string": "a", "new_string": "b"},
        "write_file": {"path": "f", "content": "b"},
        "apply_patch": {"input": "*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch"},
    }[tool]
    if make is _gone and tool == "write_file":
        await bench.call(tool, **arguments)
        assert (bench.folder / "nowhere").read_text() == "b"
        return
    with pytest.raises(ToolError):
        await bench.call(tool, **arguments)
    assert tree(bench.folder) == before


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o4755, 0o2770, 0o1666])
async def test_every_bit_of_the_mode_stays(bench: ToolBench, mode: int) -> None:
    path = bench.file("f", "a\n")
    path.chmod(mode)
    await bench.call("edit_file", path="f", old_string="a", new_string="b")
    assert stat.S_IMODE(path.stat().st_mode) == mode


async def test_links_of_both_kinds_stay(bench: ToolBench) -> None:
    path = bench.file("real/f", "a\n")
    os.link(path, bench.folder / "hard")
    (bench.folder / "soft").symlink_to("real/f")
    (bench.folder / "soft2").symlink_to("soft")
    for name, old, new in (("soft2", "a", "b"), ("hard", "b", "c"), ("soft", "c", "d")):
        await bench.call("edit_file", path=name, old_string=old, new_string=new)
    assert {(bench.folder / name).read_text() for name in ("real/f", "hard", "soft", "soft2")} == {"d\n"}
    assert path.stat().st_ino == (bench.folder / "hard").stat().st_ino
    assert os.readlink(bench.folder / "soft2") == "soft"


async def test_names_that_are_odd(bench: ToolBench) -> None:
    for name in ("a b", "-rf", "ü", "a\nb", "x" * 240, "#!", "a'\"`$(b)"):
        path = bench.file(name, "a\n")
        await bench.call("edit_file", path=name, old_string="a", new_string="b")
        assert path.read_text() == "b\n"
    assert not [name for name in os.listdir(bench.folder) if name.startswith(".swecli")]
