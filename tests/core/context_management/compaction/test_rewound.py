"""What the user took back with a rewind is in nothing that is written from the record: not in a compaction's text, its
quality gate, the session notes or a handoff. An undo of the rewind brings it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.context_management.compaction.options import Allowances, EntrySizes
from swecli.core.context_management.compaction.package import SessionFacts, attachments, build_package
from swecli.core.context_management.compaction.quality import anchors_of
from swecli.core.context_management.compaction.selection import covered
from swecli.core.context_management.counter import CharCounter
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.work_log import WorkLog
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import CompactionCompleted, FileChanged, RewindUndone, Rewound
from swecli.export.handoff import handoff_of
from swecli.features.memory.note_lines import notes_lines
from tests.support.said import Said

SIZES = EntrySizes(TokenMonitor(CharCounter()), ModelInfo("p", "m", 100_000))
TAKEN_BACK = ("use tabs", "src/wrong.py", "pytest -q wrong", "AssertionError: wrong", "the wrong way")
KEPT = ("Never touch port 7001", "src/right.py", "pytest -q right", "AssertionError: right", "the right way")


def worked(said: Said, name: str) -> None:
    said.call("write_file", {"path": f"src/{name}.py", "content": name}, "written")
    said.call("run_command", {"command": f"pytest -q {name}"}, f"E AssertionError: {name}", 1)
    said.call("run_command", {"command": "make"}, f"{name}", 0 if name == "right" else 2)
    said.call("ask_user", {"question": "How?"}, f"the {name} way")
    said.answer(f"Done {name}.")


@pytest.fixture
def said(tmp_path: Path) -> Said:
    (tmp_path / "src").mkdir()
    for name in ("right", "wrong"):
        (tmp_path / "src" / f"{name}.py").write_text(name)
    said = Said()
    said.user("Never touch port 7001.")
    worked(said, "right")
    wrong = said.user("Always use tabs.")
    worked(said, "wrong")
    said.tell(FileChanged(str(tmp_path / "src/wrong.py"), None, "a" * 64, ""))
    said.tell(Rewound(wrong, "", "Always use tabs.", name="w1"))
    return said


def texts(said: Said, folder: Path) -> dict[str, str]:
    ledger, facts, log = said.ledger, SessionFacts(), WorkLog.of(said.ledger)
    files = attachments(log.files(ledger.left), folder, SIZES, 8_000)
    package = build_package(ledger, covered(ledger.view), "", facts, SIZES, Allowances.of(80_000), files)
    return {
        "package": package.text,
        "anchors": "\n".join(anchors_of(ledger, [*ledger.entries], facts)),
        "notes": str(notes_lines(log, (), folder, left=ledger.left)),
        "handoff": str(handoff_of(said.events, folder, str, 0.0)),
    }


def test_what_was_taken_back_is_written_nowhere(said: Said, tmp_path: Path) -> None:
    written = texts(said, tmp_path)
    for name, text in written.items():
        shown = ("src/wrong.py",) if name in ("notes", "handoff") else ()  # it has really changed on disk
        assert [one for one in TAKEN_BACK if one in text and one not in shown] == [], name
    assert [one for one in KEPT if one not in written["package"]] == []
    assert "`make` -> exit 0" in written["package"]


def test_an_undo_of_the_rewind_brings_it_back(said: Said, tmp_path: Path) -> None:
    said.tell(RewindUndone("w1"))
    package = texts(said, tmp_path)["package"]
    assert [one for one in (*KEPT, *TAKEN_BACK) if one not in package] == []
    assert "`make` -> exit 2" in package


def test_what_a_summary_stands_for_is_not_taken_back(said: Said, tmp_path: Path) -> None:
    ledger = said.ledger
    before = texts(said, tmp_path)
    summary = ViewEntry("summary", "k1", "A summary.", covered(ledger.view))
    said.tell(CompactionCompleted("k1", (summary,), 0, 0, 0, 0, ()))
    said.user("Go on.")
    assert texts(said, tmp_path)["anchors"] == before["anchors"]
    assert not ledger.left & {ledger.entries[name].item for name in summary.sources}
    old = Said()
    old.user("Never touch port 7001.")
    old.tell(CompactionCompleted("k1", (ViewEntry("summary", "k1", "A summary without sources."),), 0, 0, 0, 0, ()))
    assert old.ledger.left == frozenset()
