"""The notes file: the document's example, hand edits, two writers, bounds."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from swecli.features.memory.places import NOTES
from swecli.features.memory.session_notes import (
    DECISIONS,
    FILES,
    GOAL,
    ISSUES,
    PATTERNS,
    SECTIONS,
    TASK,
    NotesDocument,
    NotesError,
    merge,
    write_notes,
)

EXAMPLE = (Path(__file__).parents[2] / "data" / "session_notes_example.md").read_text()
"""The notes of the design document, word for word."""
TITLE = "# Session Memory: 2026-01-02\n\n## Project: shop\n"


def test_the_documents_example_is_read_and_kept() -> None:
    document = NotesDocument(EXAMPLE)
    assert document.render() == EXAMPLE
    assert tuple(document.lines()) == tuple(SECTIONS)
    assert document.lines()[GOAL] == ["Implement user authentication feature with JWT tokens."]
    assert document.lines()[ISSUES][0].startswith("- [ ] Need to configure Redis")


def test_new_lines_join_a_persons_in_their_sections() -> None:
    document = NotesDocument(EXAMPLE)
    merge(document, {}, {GOAL: ["Add logout"], FILES: ["- `a.py` (created) - x"], ISSUES: ["- [ ] fix"]})
    text = document.render()
    assert [line for line in EXAMPLE.splitlines() if line not in text.splitlines()] == []
    assert document.lines()[GOAL][0] == "Add logout"
    assert document.lines()[FILES][-1] == "- `a.py` (created) - x"
    assert document.lines()[PATTERNS] == NotesDocument(EXAMPLE).lines()[PATTERNS]


def test_a_new_file_has_the_sections_in_order(tmp_path: Path) -> None:
    folder = tmp_path / ".swecli" / "memory"
    now = {PATTERNS: ["- p"], GOAL: ["goal"], ISSUES: ["- [ ] i"]}
    assert write_notes(folder, {}, now, TITLE)
    text = (folder / "session_notes.md").read_text()
    assert text.startswith(TITLE)
    assert list(NotesDocument(text).lines()) == [GOAL, ISSUES, PATTERNS]
    assert not write_notes(folder, now, now, TITLE)
    assert "session_notes.md" in (folder / ".gitignore").read_text()


def test_what_no_longer_holds_goes_and_hand_edits_stay(tmp_path: Path) -> None:
    before = {TASK: ["write tests"], ISSUES: ["- [ ] a", "- [ ] b"], DECISIONS: ["- use x"]}
    write_notes(tmp_path, {}, before, TITLE)
    path = tmp_path / "session_notes.md"
    text = path.read_text().replace("- [ ] b", "- [x] b").replace("- use x\n", "") + "\n### Mine\nkeep me\n"
    path.write_text(text)
    write_notes(tmp_path, before, {TASK: ["release"], ISSUES: ["- [ ] b", "- [ ] c"], DECISIONS: ["- use x"]}, TITLE)
    lines = NotesDocument(path.read_text()).lines()
    assert lines[TASK] == ["release"]
    assert lines[ISSUES] == ["- [x] b", "- [ ] c"]
    assert lines.get(DECISIONS, []) == []
    assert lines["Mine"] == ["keep me"]


def test_a_file_that_somebody_deleted_stays_deleted_in_what_it_said(tmp_path: Path) -> None:
    before = {GOAL: ["goal"]}
    write_notes(tmp_path, {}, before, TITLE)
    (tmp_path / "session_notes.md").unlink()
    write_notes(tmp_path, before, {GOAL: ["goal"], TASK: ["task"]}, TITLE)
    assert NotesDocument((tmp_path / "session_notes.md").read_text()).lines() == {TASK: ["task"]}


def test_two_sessions_at_once_lose_nothing(tmp_path: Path) -> None:
    def session(name: str) -> None:
        before: dict[str, list[str]] = {}
        for number in range(4):
            now = {PATTERNS: [f"- {name}{one}" for one in range(number)], ISSUES: [f"- [ ] {name}"]}
            write_notes(tmp_path, before, now, TITLE)
            before = now

    threads = [threading.Thread(target=session, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = NotesDocument((tmp_path / "session_notes.md").read_text()).lines()
    assert sorted(lines[PATTERNS]) == [f"- {name}{one}" for name in "ab" for one in range(3)]
    assert sorted(lines[ISSUES]) == ["- [ ] a", "- [ ] b"]


def test_news_of_a_command_settle_what_an_earlier_session_noted_of_it(tmp_path: Path) -> None:
    old = {ISSUES: ["- [ ] `make a` exits with status 2", "- [ ] `make b` exits with status 2", "- [ ] tidy `make a`"]}
    write_notes(tmp_path, {}, old, TITLE)
    path = tmp_path / "session_notes.md"
    path.write_text(path.read_text() + "\n- [ ] `make a` exits with status 3, says Ann\n")
    write_notes(tmp_path, {}, {PATTERNS: ["- Test or build command: `make a`"]}, TITLE)
    failed = "- [ ] `make b` exits with status 1: no rule"
    write_notes(tmp_path, {}, {ISSUES: [failed]}, TITLE)
    text = path.read_text()
    assert "`make a` exits with status 2" not in text
    assert "`make b` exits with status 2" not in text
    assert failed in text
    assert "- [ ] tidy `make a`" in text
    assert "says Ann" in text


def test_swecli_has_a_bounded_number_of_lines_and_people_any(tmp_path: Path) -> None:
    document = NotesDocument(f"### {FILES}\n" + "".join(f"- mine {n}\n" for n in range(30)))
    merge(document, {}, {FILES: [f"- `{n}.py` (updated)" for n in range(40)]})
    lines = document.lines()[FILES]
    assert sum(line.startswith("- mine") for line in lines) == 30
    assert [line for line in lines if "`" in line] == [f"- `{n}.py` (updated)" for n in range(40 - SECTIONS[FILES], 40)]


@pytest.mark.parametrize("content", [b"\0\1binary", b"x" * 300_000])
def test_a_file_that_is_no_notes_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "session_notes.md"
    path.write_bytes(content)
    with pytest.raises(NotesError):
        write_notes(tmp_path, {}, {GOAL: ["goal"]}, TITLE)
    assert path.read_bytes() == content


def test_links_and_read_only_folders_are_told(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("kept")
    folder = tmp_path / "memory"
    folder.mkdir()
    (folder / "session_notes.md").symlink_to(outside)
    with pytest.raises(NotesError, match="link"):
        write_notes(folder, {}, {GOAL: ["goal"]}, TITLE)
    assert outside.read_text() == "kept"
    (tmp_path / "file").write_text("")
    with pytest.raises(NotesError, match="cannot write"):
        write_notes(tmp_path / "file" / "memory", {}, {GOAL: ["goal"]}, TITLE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "### \n",
        "no heading\n",
        "### Current Goal",
        "### Current Goal\n### Current Goal\n",
        "\ufeff### X\r\n",
    ],
)
def test_odd_texts_take_lines_and_lose_none(text: str) -> None:
    document = NotesDocument(text)
    merge(document, {}, {GOAL: ["goal"], ISSUES: ["- [ ] x"]})
    rendered = document.render().splitlines()
    assert all(line in rendered for line in text.splitlines() if line.strip())
    assert "goal" in rendered
    again = NotesDocument(document.render())
    merge(again, {GOAL: ["goal"], ISSUES: ["- [ ] x"]}, {})
    assert "goal" not in again.render().splitlines()


@pytest.mark.parametrize(
    "mine",
    [
        b"# Mine\r\n\r\nA line\r\n",
        "# Mine\n\nA \x0c form feed, a \u2028 separator\n".encode(),
        b"# Mine\n```\n### Current Goal\nan example\n```\n",
        b"# Mine\n~~~~ text\n```\n### Current Goal\n~~~~\n",
    ],
)
def test_lines_of_a_person_stay_as_they_are(tmp_path: Path, mine: bytes) -> None:
    end = b"\r\n" if b"\r\n" in mine else b"\n"
    (tmp_path / NOTES).write_bytes(mine)
    assert write_notes(tmp_path, {}, {GOAL: ["Fix it"]}, TITLE)
    written = (tmp_path / NOTES).read_bytes()
    assert written.startswith(mine + end.join((b"", b"### Current Goal", b"Fix it", b"")))
    assert not write_notes(tmp_path, {}, {GOAL: ["Fix it"]}, TITLE)
    assert write_notes(tmp_path, {GOAL: ["Fix it"]}, {}, TITLE)
    assert (tmp_path / NOTES).read_bytes() == mine


def test_a_fence_that_nothing_closes_hides_no_section(tmp_path: Path) -> None:
    (tmp_path / NOTES).write_text("# Mine\n```\nnever closed\n")
    for number in range(3):
        write_notes(tmp_path, {GOAL: [f"Goal {number - 1}"]}, {GOAL: [f"Goal {number}"]}, TITLE)
    text = (tmp_path / NOTES).read_text()
    assert text.startswith("# Mine\n```\nnever closed\n\n### Current Goal\nGoal 2\n")
    assert (text.count("### Current Goal"), text.count("swecli notes")) == (1, 1)


@pytest.mark.parametrize("data", [b"# caf\xc3\xa9, na\xc3\xafve \xff\n", b"a\0b"])
def test_notes_that_are_not_text_stay_as_they_are(tmp_path: Path, data: bytes) -> None:
    (tmp_path / NOTES).write_bytes(data)
    with pytest.raises(NotesError, match="is not text"):
        write_notes(tmp_path, {}, {TASK: ("Fix the parser",)}, "work")
    assert (tmp_path / NOTES).read_bytes() == data
