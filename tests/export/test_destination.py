"""Where an export goes, and that nothing that is there is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.export.destination import Destination, DestinationError, destination, format_of, write_export


@pytest.mark.parametrize(
    ("words", "name", "wanted"),
    [
        ("", "s.html", "html"),
        ("--markdown", "s.md", "markdown"),
        ("html", "s.html", "html"),
        ("JSON", "s.json", "json"),
        ("md", "s.md", "markdown"),
        ("out.htm", "out.htm", "html"),
        ("a b/c.MD", "a b/c.MD", "markdown"),
        ("../x.json", "../x.json", "json"),
        ('"my notes.md"', "my notes.md", "markdown"),
        ("'my notes.md'", "my notes.md", "markdown"),
        ('@"my notes.md"', "my notes.md", "markdown"),
        ("my\\ notes\\ \\(1\\).md", "my notes (1).md", "markdown"),
        ('it"s.md', 'it"s.md', "markdown"),
    ],
)
def test_words_name_a_format_or_a_file(tmp_path: Path, words: str, name: str, wanted: str) -> None:
    found = destination(words, tmp_path, "s")
    assert (found.path, found.format, found.replace) == ((tmp_path / name).resolve(), wanted, False)


def test_force_stands_before_or_after(tmp_path: Path) -> None:
    wanted = Destination(tmp_path / "a.md", "markdown", replace=True)
    assert destination('--force "a.md"', tmp_path, "s") == wanted
    assert destination("--force a.md", tmp_path, "s") == destination("a.md --force", tmp_path, "s") == wanted


def test_a_name_without_a_format_and_an_impossible_one_are_refused(tmp_path: Path) -> None:
    for words in ("x.pdf", "x", ".md", "dir/"):
        with pytest.raises(DestinationError, match="sets the format"):
            format_of(words)
    with pytest.raises(DestinationError, match="null character"):
        destination("a\0b.md", tmp_path, "s")
    with pytest.raises(DestinationError, match=r"There is no option --to; ./--to x.md names a file"):
        destination("--to x.md", tmp_path, "s")
    assert destination("./--to x.md", tmp_path, "s").path == tmp_path / "--to x.md"


def test_a_free_name_is_taken_and_nothing_is_replaced_unasked(tmp_path: Path) -> None:
    for name in ("s.md", "s-2.md", "s-3.md"):
        place = destination("markdown", tmp_path, "s").path
        assert place.name == name
        write_export(place, name)
    with pytest.raises(DestinationError, match=r"exists\. Add --force"):
        write_export(tmp_path / "s.md", "other")
    write_export(tmp_path / "s.md", "other", replace=True)
    assert [(tmp_path / name).read_text() for name in ("s.md", "s-2.md")] == ["other", "s-2.md"]
    assert (tmp_path / "s.md").stat().st_mode & 0o077 == 0


def test_links_folders_and_missing_folders(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("mine")
    (tmp_path / "link.md").symlink_to(tmp_path / "target")
    (tmp_path / "dangling.md").symlink_to(tmp_path / "nothing")
    (tmp_path / "folder.md").mkdir()
    for name, why in (
        ("link.md", "exists"),
        ("dangling.md", "exists"),
        ("folder.md", "is a folder"),
        ("no/x.md", "does not exist"),
        ("x" * 300 + ".md", "cannot be written"),
    ):
        with pytest.raises(DestinationError, match=why):
            write_export(tmp_path / name, "text")
    with pytest.raises(DestinationError, match="is a folder"):
        write_export(tmp_path / "folder.md", "text", replace=True)
    with pytest.raises(DestinationError, match="does not exist"):
        write_export(tmp_path / "no" / "x.md", "text", replace=True)
    assert (tmp_path / "target").read_text() == "mine"
    assert not (tmp_path / "nothing").exists()


def test_a_file_without_a_name_is_written_outside_the_project(tmp_path: Path) -> None:
    outside = tmp_path / "exports"
    assert destination("", tmp_path, "s", outside) == Destination(outside / "s.html", "html")
    assert destination("markdown", tmp_path, "s", outside).path == outside / "s.md"
    assert destination("here.md", tmp_path, "s", outside).path == tmp_path / "here.md"
