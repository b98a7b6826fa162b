"""Search gives the same with ripgrep and without."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import psutil
import pytest

from swecli.core.secret_names import secret_names
from swecli.core.workspace.process import scrubbed_environment
from swecli.core.workspace.search import SearchError, SearchRequest, SearchResult, find_ripgrep, list_tree, search
from tests.core.workspace.test_east_asian import EAST_ASIAN_TEXTS
from tests.support.waiting import PATIENCE, until

FILES: dict[str, bytes] = {
    "a.py": b"import os\nneedle = 1\nend\n",
    "crlf.txt": b"one\r\nneedle\r\nthree",
    "wide.txt": "\ufeffneedle ä\r\n".encode("utf-16-le"),
    "blob.bin": b"needle\0\xff",
    "long.txt": b"x" * 3_000 + b" needle\n",
    ".hidden/a.cfg": b"needle\n",
    ".git/config": b"needle\n",
    ".gitignore": b"ignored/\n",
    "ignored/x.py": b"needle\n",
    "sub/.swecliignore": b"own.py\n",
    "sub/own.py": b"needle\n",
    "sub/b.py": b"Needle\nneedle again\n",
    "odd\nname.txt": b"nothing\n",
}


@pytest.fixture(params=["ripgrep", "worker"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    made = scrubbed_environment(os.environ)
    if request.param == "worker":
        return {**made, "PATH": "/nonexistent"}
    if shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, data in FILES.items():
        path = tmp_path / "w" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return (tmp_path / "w").resolve()


async def found(root: Path, environment: dict[str, str], pattern: str, **options: object) -> SearchResult:
    place = root / str(options.pop("start", "."))
    return await search(SearchRequest(pattern, place.resolve(), (root,), **options), environment)  # type: ignore[arg-type]


def places(result: SearchResult, root: Path) -> list[tuple[str, int]]:
    return [(line.path.relative_to(root).as_posix(), line.number) for line in result.lines if line.matched]


async def test_finds_lines_that_are_not_ignored(root: Path, environment: dict[str, str]) -> None:
    result = await found(root, environment, "needle")
    assert places(result, root) == [
        (".hidden/a.cfg", 1),
        ("a.py", 2),
        ("crlf.txt", 2),
        ("long.txt", 1),
        ("sub/b.py", 2),
        ("wide.txt", 1),
    ]
    assert (result.matches, result.files, result.incomplete) == (6, 6, "")
    assert max(len(line.text) for line in result.lines) < 500
    assert next(line.text for line in result.lines if line.path.name == "crlf.txt") == "needle"


async def test_options(root: Path, environment: dict[str, str]) -> None:
    assert places(await found(root, environment, "NEEDLE$", ignore_case=True, glob="*.py"), root) == [("sub/b.py", 1)]
    assert places(await found(root, environment, "needle$", start="crlf.txt"), root) == [("crlf.txt", 2)]
    assert places(await found(root, environment, "needle", start="ignored"), root) == [("ignored/x.py", 1)]
    assert places(await found(root, environment, "needle", glob="sub/*.py"), root) == [("sub/b.py", 2)]
    assert places(await found(root, environment, "needle", glob="*.{cfg,txt}"), root)[0] == (".hidden/a.cfg", 1)
    around = await found(root, environment, "needle", start="a.py", context=1)
    assert [(line.number, line.text, line.matched) for line in around.lines] == [
        (1, "import os", False),
        (2, "needle = 1", True),
        (3, "end", False),
    ]
    assert (await found(root, environment, "--needle")).lines == ()


async def test_of_a_long_line_the_part_around_the_match_is_shown(root: Path, environment: dict[str, str]) -> None:
    (root / "small.js").write_bytes(
        b"a=1;" * 3_000 + b"the_needle(1);" + b"b=2;" * 3_000 + b"the_needle(2)\nthe_needle\n"
    )
    (line, short) = (await found(root, environment, "^.*the_needle|the_needle", glob="small.js")).lines
    assert (line.number, line.text[:4], short.text) == (1, "a=1;", "the_needle")  # a match from the beginning
    (line, short) = (await found(root, environment, "the_needle", glob="small.js")).lines
    assert "a=1;the_needle(1);b=2;" in line.text
    assert (line.text.startswith("[…"), line.text.endswith("]"), len(line.text) < 500) == (True, True, True)
    (line,) = (await found(root, environment, "^a=1", glob="small.js")).lines
    assert line.text.removeprefix("[…] ").startswith("a=1;a=1;")


async def test_letters_beyond_ascii_are_found_in_every_encoding(root: Path, environment: dict[str, str]) -> None:
    (root / "old.c").write_bytes("/* Größe */\nint café;\n".encode("latin-1"))
    (root / "quoted.txt").write_bytes("“Größe”\n".encode("cp1252"))
    (root / "new.c").write_bytes("/* Größe Ã */\n".encode())
    (root / "marked.c").write_bytes("Größe\n".encode("utf-16"))
    result = await found(root, environment, "größe", ignore_case=True)
    assert places(result, root) == [("marked.c", 1), ("new.c", 1), ("old.c", 1), ("quoted.txt", 1)]
    assert {line.text for line in result.lines} == {"Größe", "/* Größe Ã */", "/* Größe */", "“Größe”"}
    assert places(await found(root, environment, "Größe|int", glob="old.c"), root) == [("old.c", 1), ("old.c", 2)]
    # The bytes of UTF-8 are no letters of another encoding.
    assert places(await found(root, environment, "Ã"), root) == [("new.c", 1)]


@pytest.mark.parametrize(("codec", "text"), EAST_ASIAN_TEXTS)
async def test_east_asian_letters_are_found_in_their_encodings(
    root: Path, environment: dict[str, str], codec: str, text: str
) -> None:
    (root / "old.c").write_bytes(text.encode(codec))
    (root / "new.c").write_bytes(text.encode())
    first = text.splitlines()[0]
    result = await found(root, environment, first[-4:])
    assert {(line.path.name, line.number, line.text) for line in result.lines} == {
        ("old.c", 1, first),
        ("new.c", 1, first),
    }


async def test_invalid_expression_shows_the_position(root: Path, environment: dict[str, str]) -> None:
    with pytest.raises(SearchError, match="Invalid pattern") as refused:
        await found(root, environment, "need(le")
    assert "need(le" in str(refused.value)
    assert "^" in str(refused.value)


async def test_catastrophic_expression_is_stopped_and_the_loop_lives(root: Path) -> None:
    (root / "bad.txt").write_text("x" * 60 + "\n")
    beats = 0

    async def heartbeat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    beat = asyncio.create_task(heartbeat())
    result = await found(root, {"PATH": ""}, "(x+x+)+y", seconds=0.5)
    beat.cancel()
    assert "stopped" in result.incomplete
    assert beats > 2


async def test_cancelled_search_ends_at_once(root: Path) -> None:
    (root / "bad.txt").write_text("x" * 60 + "\n")
    task = asyncio.create_task(found(root, {"PATH": ""}, "(x+x+)+y", seconds=100 * PATIENCE))
    children = psutil.Process().children
    before = {child.pid for child in children()}
    await until(lambda: {child.pid for child in children()} - before)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE)


def test_ripgrep_of_the_workspace_is_not_run(tmp_path: Path) -> None:
    for folder in ("w/bin", "home"):
        (tmp_path / folder).mkdir(parents=True)
        program = tmp_path / folder / "rg"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    (tmp_path / "sneaky").symlink_to(tmp_path / "w" / "bin")
    search_path = os.pathsep.join(("", ".", f"{tmp_path}/w/bin", f"{tmp_path}/sneaky", f"{tmp_path}/home"))
    assert find_ripgrep(search_path, ((tmp_path / "w").resolve(),)) == f"{tmp_path}/home/rg"


async def test_unsuitable_ripgrep_falls_back_to_the_worker(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "rg").write_text("#!/bin/sh\necho 'error: unrecognized flag' >&2\nexit 2\n")
    (folder / "rg").chmod(0o755)
    assert (await found(root, {"PATH": str(folder)}, "needle")).matches == 6


async def test_listing(root: Path) -> None:
    environment = {"PATH": ""}
    whole = await list_tree(root, (root,), environment=environment, depth=1)
    assert [entry.path for entry in whole.entries] == sorted(
        [".gitignore", ".hidden", "a.py", "blob.bin", "crlf.txt", "long.txt", "odd\nname.txt", "sub", "wide.txt"]
    )
    few = await list_tree(root, (root,), environment=environment, limit=3)
    assert (len(few.entries), few.total, {entry.depth for entry in few.entries}) == (3, 12, {1})
    named = await list_tree(root, (root,), environment=environment, glob="*.py")
    assert [entry.path for entry in named.entries] == ["a.py", "sub/b.py"]


@pytest.fixture
def oddly_named(tmp_path: Path) -> Path:
    try:
        (tmp_path / os.fsdecode(b"\xff\xfe.txt")).write_text("")
    except OSError:
        pytest.skip("the file system refuses such names")
    return tmp_path.resolve()


async def test_listing_survives_names_that_are_no_text(oddly_named: Path) -> None:
    listing = await list_tree(oddly_named, (oddly_named,), environment={})
    assert [os.fsencode(entry.path) for entry in listing.entries] == [b"\xff\xfe.txt"]


async def test_files_to_leave_out_are_counted_whether_they_match_or_not(
    root: Path, environment: dict[str, str]
) -> None:
    (root / "sub" / ".env").write_text("needle\n")
    (root / "sub" / "[a]!{b}.PEM").write_text("other\n")
    (root / "ignored" / "c.pem").write_text("needle\n")
    (root / "sub" / "own.vault").write_text("needle\n")
    leave_out = secret_names(("*.vault",))
    everything = await found(root, environment, "needle|other", leave_out=leave_out)
    assert everything.left_out == 3
    assert not {"sub/.env", "sub/own.vault", "sub/[a]!{b}.PEM"} & {name for name, _ in places(everything, root)}
    assert (await found(root, environment, "nothing at all", leave_out=leave_out)).left_out == 3
    assert (await found(root, environment, "needle", leave_out=leave_out, glob="*.py")).left_out == 0
    below = await found(root, environment, "needle", leave_out=leave_out, start="sub")
    assert (below.left_out, [name for name, _ in places(below, root)]) == (3, ["sub/b.py"])


async def test_a_file_that_was_named_is_searched(root: Path, environment: dict[str, str]) -> None:
    (root / ".env").write_text("needle\n")
    named = await found(root, environment, "needle", leave_out=secret_names(), start=".env")
    assert (places(named, root), named.left_out) == ([(".env", 1)], 0)


@pytest.mark.parametrize("context", [0, 1])
async def test_a_name_with_a_line_break_stays_whole(root: Path, environment: dict[str, str], context: int) -> None:
    result = await found(root, environment, "nothing|three", context=context)
    assert places(result, root) == [("crlf.txt", 3), ("odd\nname.txt", 1)]
