"""Long output on disk: what was written comes back, up to the cap, whatever the disk does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.workspace import command_output
from swecli.core.workspace.command_output import HIGH, PIECE, CommandOutput, OutputSpill
from tests.support.thorough import examples

CAP = 100


@settings(max_examples=examples(60, 300), deadline=None)
@given(
    pieces=st.lists(st.tuples(st.binary(max_size=70), st.booleans()), max_size=12),
    offset=st.integers(0, 500),
    size=st.integers(1, 300),
)
def test_what_is_read_is_what_was_written_at_that_place(
    pieces: list[tuple[bytes, bool]], offset: int, size: int
) -> None:
    spill, whole = OutputSpill(cap=CAP), b""
    for data, write in pieces:
        spill.add(data)
        whole += data
        if write:
            spill.write()
    at, read = spill.read(offset, size)
    assert whole[at : at + len(read)] == read
    assert at >= min(offset, len(whole))
    in_head, in_tail = offset < min(CAP // 2, len(whole)), len(whole) - CAP // 2 <= offset < len(whole)
    if in_head or in_tail:
        assert at == offset
        assert read
    spill.close()


def test_the_file_is_private_nameless_and_bounded(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "output"
    spill = OutputSpill(folder, cap=1_000)
    for _ in range(50):
        spill.add(os.urandom(100))
        spill.write()
    assert spill.mode == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.iterdir()) == []
    file = spill._file  # pyright: ignore[reportPrivateUsage]
    assert file is not None
    assert os.fstat(file.fileno()).st_size == 1_000
    spill.close()
    spill.add(b"late")
    assert (spill.total, spill.read(0, 10)) == (5_004, (5_004, b""))


def test_short_output_never_reaches_the_disk() -> None:
    spill = OutputSpill(Path("/nowhere/at/all"))
    spill.add(b"x" * (PIECE - 1))
    assert not spill.wants_writing
    spill.add(b"x")
    assert spill.wants_writing
    assert not spill.full


def test_a_full_disk_costs_the_middle_and_not_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    output = CommandOutput(tmp_path)
    output.add(b"head" + b"a" * HIGH)
    assert output.full

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(command_output.os, "pwrite", full)
    output.write()
    assert output.failure == "No space left on device"
    assert not output.full
    for _ in range(40):
        output.add(b"b" * 100_000)
    output.add(b"tail")
    text, omitted = output.text(1_000, 1_000)
    assert text.startswith("head")
    assert text.endswith("tail")
    assert output.total == 4 + HIGH + 4_000_000 + 4
    assert omitted > 0
    output.close()


def test_text_is_whole_or_both_ends_from_any_place() -> None:
    output = CommandOutput(cap=1_000_000)
    lines = b"".join(b"%06d\n" % number for number in range(100_000))
    for start in range(0, len(lines), 50_000):
        output.add(lines[start : start + 50_000])
        output.write()
    assert output.text(400_000, 400_000)[0] == lines.decode()
    text, omitted = output.text(14, 14)
    assert text == f"000000\n000001\n\n[… {len(lines) - 28:,} bytes of output not kept …]\n099998\n099999\n"
    assert omitted == len(lines) - 28
    assert output.text(100, 100, len(lines) - 14) == ("099998\n099999\n", 0)
    assert output.text(100, 100, len(lines)) == ("", 0)
    output.close()
