"""``@path`` in instruction files, other places of them, and which of them count."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.context_management.instructions import (
    IMPORT_DEPTH,
    MAX_BYTES,
    MOST_BYTES,
    MOST_IMPORTS,
    Merge,
    imported_paths,
    load_instructions,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "project"
    (root / ".git").mkdir(parents=True)
    return root


def names(folder: Path, **changes: object) -> list[str]:
    return [file.name for file in load_instructions(folder, **changes).files]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("See @docs/a.md and @b.md.", ["docs/a.md", "b.md"]),
        ("(@docs/a.md), [@./c.md]", ["docs/a.md", "./c.md"]),
        ("mail me@example.org, `@code.md`", []),
        ("```\n@in/fence.md\n```\n@after.md", ["after.md"]),
        ("<!-- @hidden.md --> @~/x.md @a.md @a.md", ["~/x.md", "a.md"]),
        ("@", []),
    ],
)
def test_what_counts_as_an_import(text: str, found: list[str]) -> None:
    assert imported_paths(text) == found


def test_imports_follow_their_file_and_are_relative_to_it(project: Path) -> None:
    (project / "docs").mkdir()
    (project / "AGENTS.md").write_text("Root. @docs/style.md")
    (project / "docs" / "style.md").write_text("Style. @more.md")
    (project / "docs" / "more.md").write_text("More.")
    found = load_instructions(project)
    assert [(file.name, file.importer) for file in found.files] == [
        ("AGENTS.md", ""),
        ("docs/style.md", "AGENTS.md"),
        ("docs/more.md", "docs/style.md"),
    ]
    assert '<instructions path="docs/more.md" imported-by="docs/style.md">' in found.render()
    assert found.notices == ()
    assert names(project, imports=False) == ["AGENTS.md"]


def test_circles_end(project: Path) -> None:
    (project / "AGENTS.md").write_text("One. @b.md @AGENTS.md")
    (project / "b.md").write_text("Two. @AGENTS.md @b.md")
    found = load_instructions(project)
    assert [file.name for file in found.files] == ["AGENTS.md", "b.md"]
    assert found.notices == tuple(
        f"Imports form a circle ({way}); each file is read once."
        for way in ("AGENTS.md -> b.md -> AGENTS.md", "b.md -> b.md", "AGENTS.md -> AGENTS.md")
    )


def test_what_is_imported_twice_is_no_circle(project: Path) -> None:
    (project / "AGENTS.md").write_text("One. @b.md @c.md")
    (project / "b.md").write_text("Two. @c.md")
    (project / "c.md").write_text("Three.")
    found = load_instructions(project)
    assert [file.name for file in found.files] == ["AGENTS.md", "b.md", "c.md"]
    assert not found.notices


def test_imports_go_five_files_deep(project: Path) -> None:
    (project / "AGENTS.md").write_text("Start. @n1.md")
    for number in range(1, 9):
        (project / f"n{number}.md").write_text(f"File {number}. @n{number + 1}.md")
    found = load_instructions(project)
    assert len(found.files) == 1 + IMPORT_DEPTH
    assert any("5 files deep" in text for text in found.notices)


def test_many_and_large_imports_are_bounded(project: Path) -> None:
    (project / "AGENTS.md").write_text(" ".join(f"@{number}.md" for number in range(40)))
    for number in range(40):
        (project / f"{number}.md").write_text(f"{number}")
    assert len(names(project)) == 1 + MOST_IMPORTS
    for number in range(8):
        (project / f"{number}.md").write_text(f"{number} " + "word " * 1_000_000)
    found = load_instructions(project)
    assert sum(len(file.text) for file in found.files) <= MOST_BYTES
    assert all(len(file.text) <= MAX_BYTES for file in found.files)
    assert any("left out" in text for text in found.notices)


def test_nothing_outside_and_no_secret_is_imported(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "secret.md"
    outside.write_text("outside words")
    (project / "link.md").symlink_to(outside)
    (project / ".env").write_text("KEY=1")
    (project / "blob.md").write_bytes(b"\0\1")
    (project / "AGENTS.md").write_text(
        f"@../secret.md @{outside} @link.md @.env @gone.md @blob.md @nobody @~/.ssh/id_rsa"
    )
    found = load_instructions(project)
    assert [file.name for file in found.files] == ["AGENTS.md"]
    text = " ".join(found.notices)
    assert text.count("outside the project") == 3
    for word in ("secrets", "does not exist", "not text"):
        assert word in text
    assert "@nobody" not in text


def test_folders_of_strangers_import_nothing_and_the_users_own_may(project: Path, tmp_path: Path) -> None:
    (project / "AGENTS.md").write_text("Quoted. @b.md")
    (project / "b.md").write_text("imported")
    own = tmp_path / "config"
    own.mkdir()
    (tmp_path / "shared.md").write_text("shared words")
    (own / "AGENTS.md").write_text("Mine. @../shared.md")
    found = load_instructions(project, user_directory=own, project="quoted")
    assert [file.text for file in found.files] == ["Mine. @../shared.md", "shared words", "Quoted. @b.md"]
    assert "shared words" in found.render_own()
    assert "shared words" not in found.render_project()


def test_the_projects_folder_of_swecli_has_one_too(project: Path) -> None:
    (project / ".swecli").mkdir()
    (project / ".swecli" / "OPENCLI.md").write_text("Inner.")
    (project / "AGENTS.md").write_text("Agents.")
    assert names(project) == [".swecli/OPENCLI.md"]
    (project / "OPENCLI.md").write_text("Outer.")
    assert names(project) == ["OPENCLI.md"]


@pytest.mark.parametrize(
    ("merge", "found"),
    [
        ("folder", ["AGENTS.md", "src/CLAUDE.md"]),
        ("nearest", ["src/CLAUDE.md"]),
        ("all", ["AGENTS.md", "GEMINI.md", "src/CLAUDE.md"]),
        ("none", []),
    ],
)
def test_which_files_count_is_a_setting(project: Path, merge: Merge, found: list[str]) -> None:
    (project / "src" / "deep").mkdir(parents=True)
    (project / "AGENTS.md").write_text("a")
    (project / "GEMINI.md").write_text("g")
    (project / "src" / "CLAUDE.md").write_text("c")
    (project / "src" / "AGENTS.md").write_text("  ")
    assert names(project / "src" / "deep", merge=merge) == found
