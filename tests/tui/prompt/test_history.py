"""The history of sent messages: walking, searching, and its file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from swecli.tui.prompt.box import KEEP, History


def test_history_walks_and_comes_back(tmp_path: Path) -> None:
    history = History(tmp_path / "h.jsonl")
    for text in ("one", "two\nlines", "two\nlines", " "):
        history.add(text)
    assert history.entries == ["one", "two\nlines"]
    assert history.older("draft") == "two\nlines"
    assert history.older("two\nlines") == "one"
    assert history.older("one") is None
    assert history.newer() == "two\nlines"
    assert history.newer() == "draft"
    assert history.newer() is None


def test_history_is_kept_privately_and_survives_garbage(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "h.jsonl"
    history = History(path)
    history.add("secret [b]é\ud800[/b]")
    history.save()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with path.open("ab") as file:
        file.write(b'{"no": "text"}\n\xff\xfe broken\n"fine"\n"cut')
    assert History(path).entries == ["secret [b]é\ud800[/b]", "fine"]


@pytest.mark.parametrize(
    ("size", "stored", "kept"), [(5, 2 * KEEP, 2 * KEEP), (5, 2 * KEEP + 1, KEEP), (150_000, 60, 26)]
)
def test_a_history_that_has_grown_long_is_cut_to_the_newest(tmp_path: Path, size: int, stored: int, kept: int) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text("".join(f'"{number:0{size}}"\n' for number in range(stored)))
    history = History(path)
    assert [int(text[-5:]) for text in history.entries] == list(range(stored))[-min(KEEP, kept) :]
    assert len(path.read_text().splitlines()) == kept
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 or kept == stored
    other = History(path)
    other.add("new")
    other.save()
    assert History(path).entries[-1] == "new"
    assert [one.name for one in tmp_path.iterdir()] == ["h.jsonl"]


def test_no_key_is_kept_with_what_was_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "k3y-9fZq")
    path, shaped = tmp_path / "h.jsonl", "sk-" + "a1" * 12
    history = History(path)
    history.add(f"use k3y-9fZq and {shaped} here")
    history.save()
    assert history.entries == [f"use k3y-9fZq and {shaped} here"]
    assert History(path).entries == [f"use ******** and {'*' * len(shaped)} here"]


def test_history_that_can_not_be_written_says_so_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []
    history = History(tmp_path / "file" / "h.jsonl", said.append)
    for text in ("one", "two"):
        history.add(text)
        history.save()
    assert len(said) == 1
    assert history.entries == ["one", "two"]


def test_search_finds_the_newest_first_and_no_entry_twice() -> None:
    history = History(None)
    for text in ("fix login", "other", "Fix LOGOUT", "fix login"):
        history.add(text)
    assert [history.search("fix", skip) for skip in range(3)] == ["fix login", "Fix LOGOUT", None]
