"""What the question about trust names, without opening anything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swecli.core.config.trust import MAX_NAMES, covered_by_trust


def test_only_what_would_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("x")
    assert covered_by_trust(tmp_path) == ()
    (tmp_path / ".swecli" / "hooks").mkdir(parents=True)
    (tmp_path / ".swecli" / "logs").mkdir()
    (tmp_path / ".swecli" / "logs" / "a.log").write_text("x")
    assert covered_by_trust(tmp_path) == ()
    (tmp_path / ".swecli" / "hooks" / "a.sh").write_text("x")
    (tmp_path / ".swecli" / "config.toml").write_text("x")
    (tmp_path / "AGENTS.md").write_text("x")
    assert covered_by_trust(tmp_path) == (".swecli/config.toml", ".swecli/hooks/ (1)", "AGENTS.md")


def test_files_of_the_repository_above_count_and_those_of_strangers_do_not(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("x")
    inner = tmp_path / "a"
    inner.mkdir()
    assert covered_by_trust(inner) == ()
    (tmp_path / ".git").mkdir()
    assert covered_by_trust(inner) == ("../AGENTS.md",)


@pytest.mark.parametrize("kind", ["file", "fifo", "dangling link", "link out", "folder"])
def test_odd_things_under_the_name_of_the_project_folder_are_named_and_not_opened(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "w"
    place.mkdir()
    own = place / ".swecli"
    match kind:
        case "file":
            own.write_text("x")
        case "fifo":
            os.mkfifo(own)
        case "dangling link":
            own.symlink_to("nowhere")
        case "link out":
            own.symlink_to("/etc")
        case _:
            own.mkdir()
            (own / "config.toml").write_text("x")
    assert covered_by_trust(place) == ((".swecli/config.toml",) if kind == "folder" else (".swecli",))


def test_instructions_for_other_agents_are_named(tmp_path: Path) -> None:
    for name in (".cursor/rules/a.mdc", ".cursor/rules/b.mdc", ".github/copilot-instructions.md", "CLAUDE.local.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / ".claude" / "rules").mkdir(parents=True)
    (tmp_path / ".clinerules").write_text("x")
    found = covered_by_trust(tmp_path)
    assert found == (".clinerules", ".cursor/rules/ (2)", ".github/copilot-instructions.md", "CLAUDE.local.md")


def test_a_folder_of_many_names_is_cut(tmp_path: Path) -> None:
    (tmp_path / ".swecli").mkdir()
    for number in range(MAX_NAMES + 50):
        (tmp_path / ".swecli" / f"{number}.md").write_text("")
    assert len(covered_by_trust(tmp_path)) == MAX_NAMES
