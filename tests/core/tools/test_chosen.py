"""Hunks and edited texts: what is written is what was chosen, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from swecli.core.protocol.blocks import DiffBlock
from swecli.core.protocol.request_events import EditedText, hunk_texts
from swecli.core.tools.base import Choice, Preview, ToolContext, ToolError
from swecli.core.tools.edit_file import FileChange, OutdatedChoice, chosen, preview_of
from swecli.core.validation import validated
from swecli.core.workspace.text_file import decode
from tests.support.thorough import examples
from tests.support.tool_context import ToolBench

LINE = st.sampled_from(["a", "b", "", "x = 1", "ü", "\ttab", "end"])
TEXT = st.builds(
    lambda lines, end, last: end.join(lines) + (end if last else ""),
    st.lists(LINE, min_size=1, max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
CODEC = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"])


def context(tmp_path: Path) -> ToolContext:
    return ToolBench(tmp_path).context


def of(change: FileChange, ctx: ToolContext, hunks: tuple[int, ...] | None, *texts: EditedText) -> bytes | None:
    shown = preview_of([change], ctx)
    left = chosen([change], replace(ctx, choices=(Choice(shown.state, hunks, texts),)))
    return left[0].after


@settings(max_examples=examples(60, 300), deadline=None)
@given(old=TEXT, new=TEXT, codec=CODEC, pick=st.integers(0, 255))
def test_accepted_hunks_are_new_and_all_else_is_as_it_was(old: str, new: str, codec: str, pick: int) -> None:
    ctx = context(Path("/tmp"))
    change = FileChange(Path("/tmp/f"), old.encode(codec), new.encode(codec), None)
    shown = preview_of([change], ctx)
    total = len(shown.hunks)
    accepted = tuple(number for number in range(1, total + 1) if pick >> (number % 8) & 1)
    (block,) = shown.blocks
    assert isinstance(block, DiffBlock)
    lines = decode(old.encode(codec)).text.split("\n")
    for number, hunk in reversed(list(enumerate(shown.hunks, 1))):
        removed, added = hunk_texts(block, hunk)
        assert lines[hunk.old_start - 1 : hunk.old_start - 1 + hunk.old_lines] == removed
        if number in accepted:
            lines[hunk.old_start - 1 : hunk.old_start - 1 + hunk.old_lines] = added
    if not accepted:
        if total:
            with pytest.raises(ToolError, match="rejected the whole change"):
                of(change, ctx, accepted)
        return
    after = of(change, ctx, accepted)
    assert after is not None
    if len(accepted) == total:
        assert after == change.after
    elif old.endswith("\n") and new.endswith("\n"):
        assert decode(after).text == "\n".join(lines)


@settings(max_examples=examples(40, 200), deadline=None)
@given(old=TEXT, new=TEXT, edited=TEXT, codec=CODEC)
def test_an_edited_text_is_what_is_written(old: str, new: str, edited: str, codec: str) -> None:
    ctx = context(Path("/tmp"))
    change = FileChange(Path("/tmp/f"), old.encode(codec), new.encode(codec), None)
    proposed = decode(change.after or b"")
    try:
        wanted = proposed.bom + proposed.encode_new(edited) + proposed.tail
    except UnicodeEncodeError:
        wanted = None
    if wanted is None or wanted == change.before:
        with pytest.raises(ToolError, match="rejected the whole change" if wanted is not None else "cannot contain"):
            of(change, ctx, None, EditedText(0, edited))
    else:
        assert of(change, ctx, None, EditedText(0, edited)) == wanted


def test_bytes_that_are_no_text_stay_under_an_edit(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    before = "größe\nüber\n".encode() + b"\xff\xfe raw\nlast\n"
    change = FileChange(tmp_path / "f", before, before.replace(b"last", b"LAST"), None)
    text = decode(change.after or b"").text.replace("über", "unter")
    sent = text.encode("utf-8", "replace").decode()  # as it comes through JSON or an editor that cannot contain it
    sent = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    assert of(change, ctx, None, EditedText(0, sent)) == before.replace(b"last", b"LAST").replace(
        "über".encode(), b"unter"
    )


def test_only_a_part_of_a_long_file_is_shown_and_edited(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    lines = [f"line {number} {'x' * 60}\n" for number in range(5_000)]
    before = "".join(lines).encode()
    changed = before.replace(b"line 2500 ", b"LINE 2500 ").replace(b"line 2510 ", b"LINE 2510 ")
    change = FileChange(tmp_path / "f", before, changed, None)
    shown = preview_of([change], ctx)
    (block,) = shown.blocks
    assert isinstance(block, DiffBlock)
    assert block.new is not None
    assert block.first_line > 2_000
    assert [hunk_texts(block, hunk)[1][0][:9] for hunk in shown.hunks] == ["LINE 2500", "LINE 2510"]
    text = block.new.replace("LINE 2510", "Line 2510")
    assert of(change, ctx, None, EditedText(0, text)) == changed.replace(b"LINE 2510", b"Line 2510")
    assert of(change, ctx, (2,)) == before.replace(b"line 2510 ", b"LINE 2510 ")


async def test_the_tools_write_the_chosen_hunks(tmp_path: Path) -> None:
    bench = ToolBench(tmp_path)
    file = tmp_path / "a.txt"
    file.write_bytes(b"one\r\ntwo\r\nthree\r\nfour\r\n")
    edits = [{"old_string": "one", "new_string": "ONE"}, {"old_string": "four", "new_string": "FOUR"}]
    calls = {
        "edit_file": {"path": "a.txt", "edits": edits},
        "write_file": {"path": "a.txt", "content": "ONE\ntwo\nthree\nFOUR\n"},
        "apply_patch": {
            "input": "*** Begin Patch\n*** Update File: a.txt\n@@\n"
            "-one\n+ONE\n two\n three\n-four\n+FOUR\n*** End Patch"
        },
    }
    for name, arguments in calls.items():
        file.write_bytes(b"one\r\ntwo\r\nthree\r\nfour\r\n")
        shown = await _preview(bench, name, arguments)
        assert len(shown.hunks) == 2, name
        await _run(bench, name, arguments, Choice(shown.state, (2,)))
        assert file.read_bytes() == b"one\r\ntwo\r\nthree\r\nFOUR\r\n", name


async def test_a_choice_from_another_state_of_the_file_writes_nothing(tmp_path: Path) -> None:
    bench = ToolBench(tmp_path)
    (tmp_path / "a").write_text("one\ntwo\nthree\n")
    arguments = {"path": "a", "content": "ONE\ntwo\nTHREE\n"}
    shown = await _preview(bench, "write_file", arguments)
    (tmp_path / "a").write_text("one\ntwo\nthree!\n")
    with pytest.raises(OutdatedChoice):
        await _run(bench, "write_file", arguments, Choice(shown.state, (1,)))
    assert (tmp_path / "a").read_text() == "one\ntwo\nthree!\n"


async def test_files_of_a_patch_are_chosen_singly_and_a_move_is_one(tmp_path: Path) -> None:
    bench = ToolBench(tmp_path)
    (tmp_path / "b").write_text("b\n")
    (tmp_path / "c").write_text("c\n")
    patch = (
        "*** Begin Patch\n*** Add File: a\n+new\n*** Update File: b\n*** Move to: d\n@@\n-b\n+B\n"
        "*** Delete File: c\n*** End Patch"
    )
    shown = await _preview(bench, "apply_patch", {"input": patch})
    assert [hunk.block for hunk in shown.hunks] == [0, 1, 3]
    await _run(bench, "apply_patch", {"input": patch}, Choice(shown.state, (2,)))
    assert sorted(os.listdir(tmp_path)) == ["c", "d"]
    assert (tmp_path / "d").read_text() == "B\n"


async def _preview(bench: ToolBench, name: str, arguments: Mapping[str, object]) -> Preview:
    tool = bench.registry.get(name)
    assert tool is not None
    return await tool.preview(validated(tool.params, arguments), bench.context)


async def _run(bench: ToolBench, name: str, arguments: Mapping[str, object], choice: Choice) -> None:
    tool = bench.registry.get(name)
    assert tool is not None
    await tool.run(validated(tool.params, arguments), replace(bench.context, choices=(choice,)))
