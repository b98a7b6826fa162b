"""Going back to an earlier point, with compactions before and after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.engine.rewind import files_words
from swecli.core.protocol.commands import Compact, RedoCompaction, Rewind, UndoCompaction, UndoRewind
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionUndone,
    FilesRestored,
    LeftFile,
    Notice,
    RestoredFile,
    RewindUndone,
    Rewound,
)
from tests.core.engine.support import Bench, bench, call, until

LINES = "\n".join(f"line {number} of a file with some words in it" for number in range(120))
SUMMARY = "## Goal\\nFind the bug.\\n## Done\\nRead the files of this request; nothing changed yet."
READS = "\n".join(f"[[step]]\ncall = [{call('read_file', f'f{number}')}]" for number in range(8))
SCRIPT = f"""
window = 200000
max_output = 2000
{READS}
[[step]]
text = "Read them all."
[[step]]
text = "{SUMMARY}"
[[step]]
text = "After it."
"""


async def compacted(b: Bench, *requests: str) -> None:
    for number in range(8):
        b.gates.outputs[f"f{number}"] = f"file {number}\n{LINES}"
    for request in requests:
        await b.say(request)
    b.send(Compact())
    await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)


def users(b: Bench) -> list[str]:
    return [message.id for message in b.session.view.messages if message.role == "user"]


async def rewound(b: Bench, item: str) -> None:
    b.send(Rewind(item))
    await until(lambda: bool(b.bodies(Rewound)))


async def test_a_summary_of_what_is_taken_back_goes_with_it(tmp_path: Path) -> None:
    async with bench(SCRIPT, tmp_path) as b:
        await compacted(b, "Read the files.")
        assert "<compacted" in b.session.view.messages[0].text
        await rewound(b, "u1")
        assert list(b.session.view.messages) == []
        b.send(UndoCompaction())
        await until(lambda: any("no compaction to undo" in body.text for body in b.bodies(Notice)))
        assert list(b.session.view.messages) == []


async def test_what_was_taken_back_does_not_come_back_by_an_undo(tmp_path: Path) -> None:
    async with bench(SCRIPT, tmp_path) as b:
        await compacted(b, "Read the files.")
        await b.say("Later request.")
        later = users(b)[-1]
        await rewound(b, later)
        before = tuple(b.session.view.messages)
        b.send(UndoCompaction())
        await until(lambda: bool(b.bodies(CompactionUndone)))
        text = "\n".join(message.text for message in b.session.view.messages)
        assert "Later request." not in text
        assert "Read them all." in text
        b.send(RedoCompaction())
        await until(lambda: tuple(b.session.view.messages) == before)


async def test_a_rewind_survives_a_restart(tmp_path: Path) -> None:
    async with bench(SCRIPT, tmp_path) as b:
        await compacted(b, "Read the files.")
        await b.say("Later request.")
        await rewound(b, users(b)[-1])
        after, facts = tuple(b.session.view.messages), list(b.facts)
    async with bench('[[step]]\ntext = "x"', tmp_path, history=facts) as again:
        assert tuple(again.session.view.messages) == after


async def test_the_undo_of_a_rewind_names_the_compaction_that_goes_with_it(tmp_path: Path) -> None:
    script = SCRIPT.replace("[[step]]", '[[step]]\ntext = "1"\n[[step]]\ntext = "2"\n[[step]]', 1)
    async with bench(script, tmp_path) as b:
        await b.say("Begin.")
        await b.say("Go on.")
        before = tuple(b.session.view.messages)
        await rewound(b, users(b)[-1])
        await compacted(b, "Read the files.")
        b.send(UndoRewind())
        await until(lambda: bool(b.bodies(RewindUndone)))
        assert tuple(b.session.view.messages) == before
        assert b.bodies(RewindUndone)[0].reason.endswith("The compaction made since the rewind is undone too.")


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (FilesRestored("undo"), "No file had to change."),
        (
            FilesRestored(
                "undo",
                files=(RestoredFile("/proj/new", "removed"), RestoredFile("/proj/new/b.txt", "removed")),
                conflicts=(LeftFile("/proj/notes.txt", "changed since"),),
            ),
            "1 file removed; notes.txt left alone (changed since).",
        ),
        (
            FilesRestored(
                "undo",
                files=(
                    RestoredFile("/proj/a", "restored"),
                    RestoredFile("/proj/b", "removed"),
                    RestoredFile("/proj/c", "mode restored"),
                ),
            ),
            "2 files restored, 1 removed.",
        ),
        (
            FilesRestored("undo", conflicts=tuple(LeftFile(f"/proj/{name}", "changed since") for name in "abcde")),
            "No file restored; a, b, c and 2 more left alone (changed since).",
        ),
        (
            FilesRestored("undo", not_covered=(LeftFile("/proj/a", "too large"), LeftFile("/else/b", "a device"))),
            "No file restored; a (too large), /else/b (a device) not tracked.",
        ),
        (
            FilesRestored(
                "redo",
                files=(RestoredFile("/proj/a", "restored"),),
                not_covered=(LeftFile("/proj/.cache", "redo could not restore its current content: generated folder"),),
            ),
            "1 file restored.",
        ),
    ],
)
def test_what_became_of_files_is_short_and_names_them_as_the_user_knows_them(done: FilesRestored, said: str) -> None:
    assert files_words(done, Path("/proj")) == said
