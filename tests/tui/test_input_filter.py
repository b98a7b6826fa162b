"""Input before the key parser: pastes whole, colour reports read, keys untouched."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.tui.terminal import Alt, Background, InputFilter, Keys, Pasted, Piece, Run
from tests.support.thorough import examples


def feed(*chunks: str) -> list[Piece]:
    cutter = InputFilter()
    out = [piece for chunk in chunks for piece in cutter.feed(chunk)]
    return out + cutter.flush()


def keys(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Keys | Run))


def test_keys_pass() -> None:
    assert feed("abc\x1b[A\r") == [Keys("abc\x1b[A\r")]


def test_a_paste_is_one_object() -> None:
    assert feed("a\x1b[200~two\nlines\x1b[31m\x1b[201~b") == [Keys("a"), Pasted("two\nlines\x1b[31m"), Keys("b")]


def test_a_background_report_is_read_and_removed() -> None:
    pieces = feed("x\x1b]11;rgb:ffff/ffff/ffff\x1b\\y\x1b]11;rgb:1a/1b/26\x07")
    assert keys(pieces) == "xy"
    assert [piece.dark for piece in pieces if isinstance(piece, Background)] == [False, True]


def test_a_lone_escape_is_not_held_back() -> None:
    cutter = InputFilter()
    assert cutter.feed("\x1b") == [Keys("\x1b")]
    assert cutter.flush() == []


def test_the_beginning_of_a_marker_becomes_keys_when_nothing_follows() -> None:
    cutter = InputFilter()
    assert cutter.feed("\x1b[2") == []
    assert cutter.flush() == [Keys("\x1b[2")]


def test_mouse_reports_without_numbers_are_dropped() -> None:
    assert keys(feed("a\x1b[<0;NaN;5Mb")) == "ab"


PASTE = "\x1b[200~pasted\ntext\x1b[201~"
REPORT = "\x1b]11;rgb:00/00/00\x07"
PLAIN = ("key", "\x1b[A", "é", "\x1b[2J")


@settings(deadline=None, max_examples=examples(80, 400))
@given(st.lists(st.sampled_from([*PLAIN, PASTE, REPORT])), st.lists(st.integers(0, 60), max_size=6))
def test_pastes_survive_any_chunking(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    # A marker that is cut right behind its escape character can't be told from the key; terminals don't do that.
    places = sorted({cut for cut in cuts if cut < len(text) and not text[:cut].endswith(("\x1b", "\x1b["))})
    chunks = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    pieces = feed(*chunks)
    assert [piece for piece in pieces if isinstance(piece, Pasted)] == [Pasted("pasted\ntext")] * parts.count(PASTE)
    assert sum(isinstance(piece, Background) for piece in pieces) == parts.count(REPORT)
    assert keys(pieces) == "".join(part for part in parts if part in PLAIN)


def test_five_megabytes_are_quick() -> None:
    import time

    chunk = "x" * 65536
    began = time.process_time()
    pieces = feed("\x1b[200~", *[chunk] * 80, "\x1b[201~")
    assert isinstance(pieces[0], Pasted)
    assert len(pieces[0].text) == 80 * 65536
    assert time.process_time() - began < 1.0


def test_keys_with_alt_are_told_apart_from_what_came_with_them() -> None:
    assert InputFilter().feed("x\x1bb\x0b\x1b\x7fy\x1b[A\x1bOB") == [
        Keys("x"),
        Alt("b"),
        Keys("\x0b"),
        Alt("backspace"),
        Keys("y\x1b[A\x1bOB"),
    ]


LETTERS = "a sentence, long enough to be no typing: éñ日本"


def test_letters_that_came_at_once_are_one_object() -> None:
    assert feed(f"{LETTERS}\r{LETTERS}") == [Run(LETTERS), Keys("\r"), Run(LETTERS)]
    assert feed(f"\x1b[I\x1b[A{LETTERS}\x1bOA\t") == [Keys("\x1b[I\x1b[A"), Run(LETTERS), Keys("\x1bOA\t")]
    assert feed("y" * 32) == [Keys("y" * 32)]


def test_letters_of_what_the_terminal_reports_are_no_typing() -> None:
    for report in (f"\x1bP>|{LETTERS}\x1b\\", f"\x1b_G{LETTERS}\x1b\\"):
        assert feed(report) == [Keys(report)]
        assert not [piece for piece in feed(report[:4], report[4:]) if isinstance(piece, Run)]


def test_after_a_pause_an_unfinished_sequence_is_over() -> None:
    cutter = InputFilter()
    cutter.feed("\x1bO")
    cutter.flush()
    assert cutter.feed(LETTERS) == [Run(LETTERS)]


@given(st.sampled_from(["one", "é", "\x1b[A", ""]), st.sampled_from(["two", "\r", ""]))
def test_escape_and_enter_in_one_read_are_alt_enter(before: str, after: str) -> None:
    pieces = feed(f"{before}\x1b\r{after}")
    assert [piece for piece in pieces if isinstance(piece, Alt)] == [Alt("enter")]
    assert keys(pieces) == before + after


def test_escape_and_enter_in_two_reads_are_alt_enter() -> None:
    cutter = InputFilter()
    pieces = [*cutter.feed("one\x1b"), *cutter.feed("\rtwo")]
    assert keys(pieces) == "one\x1b[13;3utwo"  # the key parser waits with the Esc, and takes it together with the rest


def test_enter_some_time_after_escape_is_enter() -> None:
    cutter = InputFilter()
    cutter.feed("\x1b")
    cutter.flush()
    assert cutter.feed("\r") == [Keys("\r")]


def test_enter_after_a_paste_that_ends_in_escape_is_enter() -> None:
    cutter = InputFilter()
    cutter.feed("\x1b[200~a\x1b")
    assert cutter.feed("\x1b[201~") == [Pasted("a\x1b")]
    assert cutter.feed("\r") == [Keys("\r")]
