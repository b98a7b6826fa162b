"""The files of memories, which other sessions change meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.features.memory.places import MemoryPlaces, read_text


def test_a_file_that_another_session_removes_during_a_listing_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one.md", "three.md", "two.md"):
        (tmp_path / name).write_text(name)

    def read(file: Path, limit: int) -> str | None:
        (tmp_path / "three.md").unlink(missing_ok=True)
        return read_text(file, limit)

    monkeypatch.setattr("swecli.features.memory.places.read_text", read)
    assert [file.text for file in MemoryPlaces(tmp_path, None).files(1_000)] == ["one.md", "two.md"]
