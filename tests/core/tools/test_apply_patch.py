"""The patch tool and several edits in one call: everything or nothing, shown before, every path judged."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from swecli.core.protocol.blocks import DiffBlock
from swecli.core.tools import apply_patch, edit_file
from swecli.core.tools.base import ToolError
from swecli.core.tools.registry import ToolRegistry, builtin_tools
from swecli.core.workspace.atomic_write import Written, atomic_write
from tests.support.tool_context import ToolBench
from tests.support.trees import tree

PATCH = """*** Begin Patch
*** Update File: a.py
@@
 x = 1
-y = 2
+y = 3
*** Add File: new/b.py
+b = 1
*** Update File: c.py
*** Move to: moved/c.py
-c = 1
+c = 2
*** Delete File: d.py
*** End Patch"""


def prepared(bench: ToolBench) -> None:
    bench.file("a.py", b"x = 1\r\ny = 2\r\n")
    bench.file("c.py", "c = 1\n").chmod(0o755)
    bench.file("d.py", "d = 1\n").chmod(0o600)


def relative(paths: Sequence[str], bench: ToolBench) -> list[str]:
    return [os.path.relpath(path, bench.folder) for path in paths]


async def test_a_patch_of_all_kinds(bench: ToolBench) -> None:
    prepared(bench)
    tool, params = bench.parsed("apply_patch", input=PATCH)
    effects = tool.effects(params, bench.context)
    assert relative(effects.writes, bench) == ["a.py", "new/b.py", "c.py", "moved/c.py", "d.py"]
    assert relative(effects.reads, bench) == ["a.py", "c.py", "d.py"]
    assert tool.title(params, bench.context) == "a.py and 3 more"
    preview = await bench.preview("apply_patch", input=PATCH)
    assert preview.blocks == (
        DiffBlock("a.py", "x = 1\r\ny = 2\r\n", "x = 1\r\ny = 3\r\n"),
        DiffBlock("new/b.py", None, "b = 1\n"),
        DiffBlock("moved/c.py", None, "c = 2\n", "moved from c.py"),
        DiffBlock("c.py", "c = 1\n", None, "moved to moved/c.py"),
        DiffBlock("d.py", "d = 1\n", None),
    )
    outcome = await bench.call("apply_patch", input=PATCH)
    assert outcome.blocks == preview.blocks
    assert outcome.detail == "5 files, +3 -3"
    assert outcome.text.splitlines()[0] == "Updated a.py (+1 -1)"
    assert (bench.folder / "a.py").read_bytes() == b"x = 1\r\ny = 3\r\n"
    assert stat.S_IMODE((bench.folder / "moved/c.py").stat().st_mode) == 0o755
    assert not (bench.folder / "c.py").exists()
    assert not (bench.folder / "d.py").exists()
    assert {Path(one.path).name for one in outcome.changed if one.after is None} == {"c.py", "d.py"}


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        (PATCH.replace("y = 2", "y = 9"), "Nothing was changed"),
        (PATCH.replace("d.py", "e.py"), "e.py does not exist"),
        (PATCH.replace("new/b.py", "a.py"), "a.py already exists"),
        (PATCH.replace("moved/c.py", "d.py"), "d.py already exists"),
        (PATCH.replace("*** Delete File: d.py", "*** Delete File: a.py"), "appears twice"),
        ("*** Begin Patch\n*** Delete File: .\n*** End Patch", "a directory"),
    ],
)
async def test_one_part_that_does_not_fit_changes_nothing(bench: ToolBench, patch: str, says: str) -> None:
    prepared(bench)
    before = tree(bench.folder)
    with pytest.raises(ToolError, match=says):
        await bench.call("apply_patch", input=patch)
    assert tree(bench.folder) == before


async def test_a_text_that_is_no_patch_is_refused_before_anything_is_asked(bench: ToolBench) -> None:
    tool, params = bench.parsed("apply_patch", patch="diff --git a b")
    with pytest.raises(ToolError, match="The first line must be"):
        tool.effects(params, bench.context)


async def test_a_failure_on_the_way_takes_back_what_was_written(
    bench: ToolBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(bench)
    before = tree(bench.folder)
    calls: list[Path] = []

    def failing(path: Path, data: bytes, expected: str | None, *, follow: bool) -> Written:
        calls.append(path)
        if path.name == "z.py" and data == b"z\n":
            raise OSError(28, "No space left on device")
        return atomic_write(path, data, expected, follow=follow)

    monkeypatch.setattr(edit_file, "atomic_write", failing)
    patch = PATCH.replace("*** End Patch", "*** Add File: z.py\n+z\n*** End Patch")
    with pytest.raises(ToolError, match=r"no space left.*were reverted"):
        await bench.call("apply_patch", input=patch)
    after = tree(bench.folder)
    assert {name: entry for name, entry in after.items() if entry[0] == "file"} == {
        name: entry for name, entry in before.items() if entry[0] == "file"
    }


async def test_several_edits_in_one_call_are_one_change(bench: ToolBench) -> None:
    path = bench.file("a.py", "α = 1\r\nb = 2\r\nb = 2\r\n".encode())
    edits = [
        {"old_string": "α = 1", "new_string": "α = 10\nnew = 1"},
        {"old_string": "b = 2", "new_string": "b = 3", "replace_all": True},
        {"old_string": "new = 1\nb", "new_string": "new = 2\nc"},
    ]
    preview = await bench.preview("edit_file", path="a.py", edits=edits)
    (block,) = preview.blocks
    assert isinstance(block, DiffBlock)
    outcome = await bench.call("edit_file", path="a.py", edits=edits)
    assert path.read_bytes() == "α = 10\r\nnew = 2\r\nc = 3\r\nb = 3\r\n".encode()
    assert block.new == path.read_bytes().decode()
    assert outcome.text.startswith("Edited a.py at 3 places")


async def test_all_edits_or_none(bench: ToolBench) -> None:
    path = bench.file("a.py", "a\nb\n")
    edits = [{"old_string": "a", "new_string": "A"}, {"old_string": "zz", "new_string": "y"}]
    with pytest.raises(ToolError, match=r"Edit 2 of 2: .*No edit was made"):
        await bench.call("edit_file", path="a.py", edits=edits)
    assert path.read_text() == "a\nb\n"
    back = [{"old_string": "a", "new_string": "A"}, {"old_string": "A", "new_string": "a"}]
    with pytest.raises(ToolError, match="edits would change nothing"):
        await bench.call("edit_file", path="a.py", edits=back)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "old_string and new_string are required, or edits"),
        ({"old_string": "a"}, "new_string is required, or edits"),
        (
            {"old_string": "a", "new_string": "b", "edits": [{"old_string": "a", "new_string": "b"}]},
            "combined with edits",
        ),
        ({"edits": []}, "are required, or edits"),
        ({"edits": [{"old_string": "a"}]}, "edits.0.new_string: is required"),
    ],
)
async def test_one_form_or_the_other(bench: ToolBench, arguments: dict[str, object], says: str) -> None:
    bench.file("a.py", "a\n")
    with pytest.raises(ToolError, match=says):
        await bench.call("edit_file", path="a.py", **arguments)


def test_only_models_that_know_it_are_told_of_it() -> None:
    registry = ToolRegistry(builtin_tools())
    assert apply_patch.ApplyPatch.name not in {schema.name for schema in registry.schemas()}
    for model in ("gpt-5.2", "openai/gpt-4.1-mini", "gpt-5-codex", "openai/gpt-oss-120b", "o4-mini"):
        assert [schema.name for schema in registry.special(model)] == ["apply_patch"], model
    for model in ("claude-opus-5", "gpt-4o", "qwen3-coder", "scripted/test", ""):
        assert registry.special(model) == (), model
    assert registry.get("apply_patch") is not None
