"""What follows an ``@`` in a message: which words name files, and which are only words."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from swecli.core.workspace.mentions import Mention, mention_of, mentioned, mentioned_by_hand, resolve
from swecli.core.workspace.text_file import typed_path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("look at @src/a.py please", ("src/a.py",)),
        ("@src/a.py:10-40 and @src/", ("src/a.py:10-40", "src/")),
        ('(see @"my notes.txt":3-4)', ("my notes.txt:3-4",)),
        ("@a.py, @a.py", ("a.py,", "a.py")),
        ("mail me@example.com or x@y", ()),
        ("diff --git\n@@ -1,3 +1,4 @@ def f", ()),
        ("@ alone, @. and @-", ()),
        ("twice @a.py @a.py", ("a.py",)),
        ("first\n@b.py", ("b.py",)),
        ("修正@a.py、@b.pyを", ("a.py、", "b.pyを")),
        (r'@"say \"hi\".txt":3, @"a\b" and @"a\\"', ('say "hi".txt:3', r"a\b", "a\\")),
    ],
)
def test_words_after_an_at_sign_are_found(text: str, words: tuple[str, ...]) -> None:
    assert mentioned(text) == words


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x\n")
    (tmp_path / "odd:1").write_text("x\n")
    (tmp_path / "end.").write_text("x\n")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "gone").symlink_to("nothing")
    return tmp_path.resolve()


@pytest.mark.parametrize(
    ("word", "name", "first", "last"),
    [
        ("src/a.py", "src/a.py", 1, 0),
        ("src/a.py:10-40", "src/a.py", 10, 40),
        ("src/a.py:7", "src/a.py", 7, 7),
        ("src/a.py.", "src/a.py", 1, 0),
        ("src/a.py:10-40).", "src/a.py", 10, 40),
        ("odd:1", "odd:1", 1, 0),
        ("src/a.pyを直して、テスト", "src/a.py", 1, 0),
        ("src/a.py:10-40。", "src/a.py", 10, 40),
        ("src/a.py”", "src/a.py", 1, 0),
        ("end.", "end.", 1, 0),
    ],
)
def test_a_word_names_a_file_and_lines_of_it(folder: Path, word: str, name: str, first: int, last: int) -> None:
    found = resolve(word, folder)
    assert found is not None
    assert (found.path, found.first, found.last, found.problem) == (folder / name, first, last, "")


@pytest.mark.parametrize("word", ["src", "src/", "src/,"])
def test_a_word_names_a_folder(folder: Path, word: str) -> None:
    found = resolve(word, folder)
    assert found is not None
    assert found.is_folder
    assert not found.problem


@pytest.mark.parametrize("word", ["decorator", "app.route", "types/node", "scope/pkg", "someone", "x" * 999, "a\0b"])
def test_a_word_that_names_no_file_stays_a_word(folder: Path, word: str) -> None:
    assert resolve(word, folder) is None


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("src/missing.py", "no such file"),
        ("missing.py", "no such file"),
        ("missing.py:3-9", "no such file"),
        ("src/a.py:9-3", "9-3 is not a line range"),
        ("src/a.py:0", "0-0 is not a line range"),
        ("src:1-2", "a folder has no lines"),
        ("loop", "a link that leads nowhere"),
        ("gone,", "a link that leads nowhere"),
    ],
)
def test_what_can_only_be_a_file_but_is_none_is_a_problem(folder: Path, word: str, problem: str) -> None:
    found = resolve(word, folder)
    assert isinstance(found, Mention)
    assert found.problem == problem


@pytest.mark.parametrize(
    ("text", "typed", "own"),
    [
        ("see @a.py", "see @a.py", None),
        ("no mention at all", "[Pasted text #1]", None),
        ("see @a.py\n\npiped @b.py", "see @a.py", ("a.py",)),
        ("piped @b.py", "", ()),
    ],
)
def test_what_was_pasted_or_piped_in_mentions_nothing(text: str, typed: str, own: tuple[str, ...] | None) -> None:
    assert mentioned_by_hand(text, typed) == own


def test_a_text_of_many_megabytes_is_looked_through_in_no_time() -> None:
    text = "some words of a log line\n" * 400_000 + "(@shop.py) a@b @basket\n@end"
    began = time.process_time()
    assert mentioned(text) == ("shop.py)", "basket", "end")
    assert time.process_time() - began < 0.3


@pytest.mark.parametrize("name", ["a.py", "my file.txt", 'say "hi".txt', "back\\slash one.txt", "it's.txt"])
def test_a_command_takes_a_mention_as_the_path_that_it_names(name: str) -> None:
    assert typed_path(mention_of(name)) == name
