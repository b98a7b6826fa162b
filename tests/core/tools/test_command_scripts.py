"""An approval of a command covers the scripts that it names, as they were when it was shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tool_context import ToolBench


@pytest.fixture
def bench(tmp_path: Path) -> ToolBench:
    made = ToolBench(tmp_path)
    for name in ("run.sh", "tools/check", "tools/a.py", "data.txt", "Makefile"):
        made.file(name, "first")
    (made.folder / "tools" / "check").chmod(0o755)
    return made


async def state(bench: ToolBench, command: str) -> str:
    return (await bench.preview("run_command", command=command)).state


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("sh run.sh", "run.sh"),
        ("./run.sh --fast", "run.sh"),
        ("bash -x run.sh", "run.sh"),
        ("bash < run.sh", "run.sh"),
        ("timeout 60 env A=1 sh ./run.sh | tee out", "run.sh"),
        ("bash -c 'sh run.sh'", "run.sh"),
        ("cd tools && python3 a.py data.txt", "tools/a.py"),
        ("python3 -u tools/a.py", "tools/a.py"),
        ("xargs -n1 tools/check", "tools/check"),
        ("tools/check", "tools/check"),
        (". run.sh", "run.sh"),
        ("make -f Makefile all", "Makefile"),
        ("sh later.sh", "later.sh"),
    ],
)
async def test_a_script_that_is_swapped_is_another_call(bench: ToolBench, command: str, file: str) -> None:
    before = await state(bench, command)
    assert await state(bench, command) == before
    bench.file(file, "second")
    assert await state(bench, command) != before


@pytest.mark.parametrize("command", ["cat data.txt", "python3 tools/a.py x data.txt", "ls -l data.txt", "echo 'x"])
async def test_data_of_a_command_may_change(bench: ToolBench, command: str) -> None:
    before = await state(bench, command)
    bench.file("data.txt", "second")
    assert await state(bench, command) == before


async def test_a_link_that_is_turned_to_another_script_is_another_call(bench: ToolBench) -> None:
    link = bench.folder / "now.sh"
    link.symlink_to("run.sh")
    before = await state(bench, "sh now.sh")
    link.unlink()
    link.symlink_to("data.txt")
    bench.file("data.txt", "another")
    assert await state(bench, "sh now.sh") != before
