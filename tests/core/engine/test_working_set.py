"""What a compaction attaches fresh from disk counts as read: edits go on from there, and only from there."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.context_management.compaction.options import Allowances
from swecli.core.permissions.types import Policy
from swecli.core.protocol.commands import Compact, RedoCompaction, UndoCompaction
from swecli.core.protocol.events import CompactionCompleted, FileRead
from swecli.core.tools.registry import builtin_tools
from tests.core.engine.support import Bench, bench, until
from tests.core.engine.test_read_set import LINES, edit, get, gone, open_bench, put, read, real, step, texts, told

SUMMARY = '[[step]]\ntext = "## Goal\\nChange a.py.\\n## Done\\nIt was read with the other files, nothing else."\n'
DONE = '[[step]]\ntext = "done"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    path.write_text(LINES)
    (tmp_path / "big.txt").write_text("".join(f"{number} word word word word\n" for number in range(1_500)))
    return path


def script(*after: str) -> str:
    """Reads that make a compaction worth while (a.py twice, so that it belongs to the working set), the summary, then
    a turn for each step."""
    start = read() + read("big.txt") + read() + DONE + SUMMARY
    return "window = 200000\nmax_output = 2000\n" + start + DONE.join(after) + DONE


async def compacted(b: Bench) -> CompactionCompleted:
    b.send(Compact())
    await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
    return b.bodies(CompactionCompleted)[-1]


def conversation(b: Bench) -> str:
    return "\n".join(message.text for message in b.session.view.messages)


async def test_the_first_edit_after_a_compaction_is_made(tmp_path: Path, file: Path) -> None:
    async with open_bench(script(edit("value_50 = 50", "value_50 = 51")), tmp_path) as b:
        await b.say("Read.")
        done = await compacted(b)
        assert '<file path="a.py"' in conversation(b)
        attached = [body for body in b.bodies(FileRead) if body.item == done.item]
        assert [(body.path, body.first, body.last) for body in attached] == [(str(real(file)), 1, 120)]
        await b.say("Edit.")
        assert "value_50 = 51" in get(file)


async def test_what_changed_before_the_compaction_is_attached_as_it_is_and_may_be_edited(
    tmp_path: Path, file: Path
) -> None:
    async with open_bench(script(edit("value_50 = 50", "value_50 = 51")), tmp_path) as b:
        await b.say("Read.")
        put(file, LINES.replace("value_7 = 7", "value_7 = 'new'"))
        await compacted(b)
        assert "value_7 = 'new'" in conversation(b)
        await b.say("Edit.")
        assert "Changed on disk" not in told(b)
        assert "value_50 = 51" in get(file)
        assert "value_7 = 'new'" in get(file)


async def test_after_the_undo_the_old_text_is_what_was_seen(tmp_path: Path, file: Path) -> None:
    change = edit("value_50 = 50", "value_50 = 51")
    async with open_bench(script(change, change), tmp_path) as b:
        await b.say("Read.")
        now = LINES.replace("value_52 = 52", "value_52 = 'new'")
        put(file, now)
        await compacted(b)
        b.send(UndoCompaction())
        await b.say("Edit.")
        assert "changed on disk since you last saw it. Nothing was edited." in texts(b)[-1]
        assert "   53\tvalue_52 = 'new'" in texts(b)[-1]
        assert get(file) == now
        b.send(RedoCompaction())
        await b.say("Edit.")
        assert "value_50 = 51" in get(file)


async def test_what_changed_after_the_compaction_is_refused_with_its_text(tmp_path: Path, file: Path) -> None:
    change = edit("value_50 = 50", "value_50 = 51")
    async with open_bench(script(change, change), tmp_path) as b:
        await b.say("Read.")
        await compacted(b)
        now = LINES.replace("value_52 = 52", "value_52 = 'by the user'")
        put(file, now)
        await b.say("Edit.")
        assert "Changed on disk since you last saw them: a.py" in told(b)
        assert "Nothing was edited." in texts(b)[-1]
        assert "   53\tvalue_52 = 'by the user'" in texts(b)[-1]
        assert get(file) == now
        await b.say("Edit.")
        assert get(file) == now.replace("value_50 = 50", "value_50 = 51")


async def test_what_is_attached_is_not_read_again(tmp_path: Path, file: Path) -> None:
    again = (read(), read(offset=5, limit=10), step("list_files"), read())
    async with open_bench(script(*again), tmp_path) as b:
        await b.say("Read.")
        await compacted(b)
        await b.say("Read.")
        assert texts(b)[-1].startswith(
            "[a.py, lines 1-120: unchanged since you read it; the text is above, in the file"
        )
        await b.say("Read a part.")
        assert texts(b)[-1].startswith("[a.py, lines 5-14: unchanged")
        await b.say("List.")
        put(file, LINES + "more = 1\n")
        await b.say("Read.")
        assert "more = 1" in texts(b)[-1]


async def test_a_resumed_session_may_edit_what_was_attached(tmp_path: Path, file: Path) -> None:
    async with open_bench(script(), tmp_path) as b:
        await b.say("Read.")
        put(file, LINES.replace("value_7 = 7", "value_7 = 'new'"))
        await compacted(b)
        facts = list(b.facts)
    steps = edit("value_50 = 50", "value_50 = 51") + DONE
    policy = Policy(mode="auto", yolo=True)
    async with bench(steps, real(tmp_path), tools=builtin_tools(), history=facts, policy=policy) as again:
        await again.say("Edit.")
        assert "value_50 = 51" in get(file)


async def test_files_that_are_gone_special_or_no_text_are_not_attached(tmp_path: Path, file: Path) -> None:
    async with open_bench(script(), tmp_path) as b:
        await b.say("Read.")
        gone(file)
        done = await compacted(b)
        assert "<file " not in conversation(b)
        assert not any(body.item == done.item for body in b.bodies(FileRead))


async def test_no_more_than_three_files_and_their_allowance(tmp_path: Path, file: Path) -> None:
    names = [f"m{number}.py" for number in range(5)]
    for name in names:
        (tmp_path / name).write_text(f"# {name}\n" + "x = 1\n" * 40)
    reads = "".join(read(name) for name in names * 2)
    steps = "window = 200000\nmax_output = 2000\n" + reads + read("big.txt") + read() * 2 + DONE + SUMMARY
    async with open_bench(steps, tmp_path) as b:
        await b.say("Read.")
        done = await compacted(b)
        attached = [body for body in b.bodies(FileRead) if body.item == done.item]
        assert [Path(body.path).name for body in attached] == ["a.py", "m4.py", "m3.py"]
    assert Allowances.of(200_000).attached == 6_000
    assert Allowances.of(1_000_000).attached == 8_000
