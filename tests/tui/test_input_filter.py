"""Input before the key parser: pastes whole, colour reports read, keys untouched."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual import events
from textual._xterm_parser import XTermParser

from swecli.tui.terminal import (
    PASTE_END,
    PASTE_TIME,
    SEQUENCE_TIME,
    Alt,
    Background,
    Escape,
    EscapeSeen,
    EscapeWithdrawn,
    InputFilter,
    Keys,
    Pasted,
    Piece,
    Run,
)
from tests.support.thorough import examples


def feed(*chunks: str) -> list[Piece]:
    cutter = InputFilter()
    out = [piece for chunk in chunks for piece in cutter.feed(chunk)]
    return out + cutter.flush()


def keys(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Keys | Run))


def test_keys_pass() -> None:
    assert feed("abc\x1b[A\r") == [Keys("abc\x1b[A\r")]


def test_a_paste_is_one_object() -> None:
    assert feed("a\x1b[200~two\nlines\x1b[31m\x1b[201~b") == [Keys("a"), Pasted("two\nlines\x1b[31m"), Keys("b")]


def test_a_background_report_is_read_and_removed() -> None:
    pieces = feed("x\x1b]11;rgb:ffff/ffff/ffff\x1b\\y\x1b]11;rgb:1a/1b/26\x07")
    assert keys(pieces) == "xy"
    assert [piece.dark for piece in pieces if isinstance(piece, Background)] == [False, True]


def test_a_lone_escape_is_the_key_once_nothing_follows() -> None:
    cutter = InputFilter(patience=0.05)
    assert cutter.feed("\x1b") == []
    assert cutter.flush(0.05) == [Escape()]
    assert cutter.flush() == []
    assert cutter.feed("\x1b\x1b[A") == [Escape(), Keys("\x1b[A")]


def test_the_beginning_of_a_marker_becomes_keys_when_nothing_follows() -> None:
    cutter = InputFilter()
    assert cutter.feed("\x1b[2") == []
    assert cutter.flush() == [Keys("\x1b[2")]


def test_mouse_reports_without_numbers_are_dropped() -> None:
    assert keys(feed("a\x1b[<0;NaN;5Mb")) == "ab"


PASTE = "\x1b[200~pasted\ntext\x1b[201~"
REPORT = "\x1b]11;rgb:00/00/00\x07"
PLAIN = ("key", "\x1b[A", "é", "\x1b[<35;40;12M", "\x1b[I")


@settings(deadline=None, max_examples=examples(80, 400))
@given(st.lists(st.sampled_from([*PLAIN, PASTE, REPORT])), st.lists(st.integers(0, 60), max_size=6))
def test_pastes_survive_any_chunking(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    places = sorted({cut for cut in cuts if cut < len(text)})
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


def test_many_lines_of_one_read_are_a_paste_and_nothing_that_is_sent() -> None:
    lines = [f"line {number}" for number in range(9)]
    assert feed("\r".join(lines)) == [Pasted("\n".join(lines))]
    assert feed("\r\n".join(lines) + "\r\n") == [Pasted("\n".join(lines) + "\n")]
    typed = "/init\r/context\rhello\rhalf"
    assert feed(typed) == [Keys(typed)]
    assert feed("\r" * 9) == [Keys("\r" * 9)]


def test_the_rest_of_a_paste_without_brackets_is_a_paste_until_a_pause() -> None:
    cutter = InputFilter()
    assert cutter.feed("1\r2\r3\r4\r5\r6") == [Pasted("1\n2\n3\n4\n5\n6")]
    assert cutter.feed("6\r") == [Pasted("6\n")]
    assert cutter.flush(SEQUENCE_TIME) == []
    assert cutter.feed("y\r") == [Keys("y\r")]


def test_letters_of_what_the_terminal_reports_are_no_typing() -> None:
    for report in (f"\x1bP>|{LETTERS}\x1b\\", f"\x1b_G{LETTERS}\x1b\\"):
        assert feed(report) == []
        for cut in range(1, len(report)):
            assert feed(report[:cut], report[cut:]) == []


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
    assert pieces == [Keys("one"), Alt("enter"), Keys("two")]


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


@pytest.mark.parametrize("key", ["x", "\x03", "\r", "\x1b[A", "\x1b[99;5u"])
@pytest.mark.parametrize("cut", ["", "\x1b[20"])
def test_a_paste_whose_end_is_lost_counts_after_a_pause_and_keys_go_on(key: str, cut: str) -> None:
    cutter = InputFilter()
    cutter.feed(f"\x1b[200~one\ntwo{cut}")
    assert cutter.flush(PASTE_TIME - 0.1) == []
    assert cutter.flush(PASTE_TIME) == [Pasted("one\ntwo")]
    assert cutter.flush(PASTE_TIME) == []
    assert cutter.feed(key) == [Keys(key)]
    assert cutter.feed("y\r") == [Keys("y\r")]


def test_escape_ends_a_paste_whose_end_is_lost() -> None:
    cutter = InputFilter()
    cutter.feed("\x1b[200~one")
    cutter.feed("\x1b")
    assert cutter.flush(PASTE_TIME) == [Pasted("one"), Escape()]
    assert cutter.feed("xy") == [Keys("xy")]


def test_the_rest_of_a_paste_that_a_slow_line_sends_late_is_not_typed() -> None:
    cutter = InputFilter()
    cutter.feed("\x1b[200~one\n")
    assert cutter.flush(PASTE_TIME) == [Pasted("one\n")]
    assert cutter.feed("two\r") == []
    assert cutter.flush(PASTE_TIME) == [Pasted("two\r")]
    assert cutter.feed("three\r\x1b[2") == []
    assert cutter.feed("01~\r") == [Pasted("three\r"), Keys("\r")]


def test_the_late_end_of_a_paste_is_no_key() -> None:
    for late in ("\x1b[201~", "1~"):
        cutter = InputFilter()
        cutter.feed(f"\x1b[200~one{PASTE_END[: -len(late)]}")
        assert cutter.flush(PASTE_TIME) == [Pasted("one")]
        assert keys(cutter.feed(late)) == ""
        assert cutter.feed("x") == [Keys("x")]


ANSWERS = [
    "\x1b[?1u",
    "\x1bOE",
    "\x1b[?62;c",
    "\x1b[>1;10;0c",
    "\x1b[0n",
    "\x1b[?997;1n",
    "\x1b[8;24;80t",
    "\x1b]4;1;rgb:ff/00/00\x1b\\",
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1bP1$r0m\x1b\\",
    "\x1b_Gi=1;OK\x1b\\",
]
RELEASED = ["\x1b[97;1:3u", "\x1b[57441;2:3u", "\x1b[1;1:3A", "\x1b[15;1:3~", "\x1b[27;5:3;99~"]
NO_LETTER = ["\x1b[99999999u", "\x1b[1114112u", "\x1b[55296u", "\x1b[0u", "\x1b[121~", "\x1b[65;30;97;1;0;1_"]


@pytest.mark.parametrize("sequence", [*ANSWERS, *RELEASED, *NO_LETTER])
def test_what_is_no_key_is_left_out(sequence: str) -> None:
    for cut in range(1, len(sequence)):
        assert feed(f"a{sequence[:cut]}", f"{sequence[cut:]}b") == [Keys("a"), Keys("b")]
    assert feed(f"a{sequence}b") == [Keys("ab")]


@pytest.mark.parametrize(
    ("sequence", "key"),
    [
        ("\x1b[97;5:1u", "ctrl+a"),
        ("\x1b[97;5:2u", "ctrl+a"),
        ("\x1b[97:65;6u", "ctrl+shift+a"),
        ("\x1b[1092::97;5u", "ctrl+ф"),
        ("\x1b[27;1:1u", "escape"),
        ("\x1b[1;5:1C", "ctrl+right"),
        ("\x1b[3;5:2~", "ctrl+delete"),
        ("\x1b[99;9u", "super+c"),
        ("\x1b[57417u", "left"),
        ("\x1b[7$", "shift+home"),
        ("\x1b[3^", "ctrl+delete"),
        ("\x1b[[A", "f1"),
        ("\x1bOM", "enter"),
    ],
)
def test_keys_in_every_form(sequence: str, key: str) -> None:
    parser = XTermParser()
    found = [event for piece in feed(sequence) if isinstance(piece, Keys) for event in parser.feed(piece.text)]
    assert [event.key for event in found if isinstance(event, events.Key)] == [key]


def test_letters_of_an_input_method_are_typed() -> None:
    parser = XTermParser()
    found = [event for piece in feed("\x1b[0;;26085:26412u") for event in parser.feed(keys([piece]))]
    assert [event.character for event in found if isinstance(event, events.Key)] == ["日", "本"]


@pytest.mark.parametrize(
    ("letter", "key"), [(".", "full_stop"), ("é", "é"), ("A", "shift+a"), ("[", "left_square_bracket")]
)
def test_a_key_with_alt_is_not_typed(letter: str, key: str) -> None:
    assert feed(f"\x1b{letter}") == [Alt(key)]
    assert feed("\x1b", letter) == [Alt(key)]


def test_a_report_that_a_slow_line_cuts_is_waited_for() -> None:
    cutter = InputFilter(patience=0.05)
    assert cutter.feed("\x1b[<35;4") == []
    assert cutter.flush(SEQUENCE_TIME - 0.1) == []
    assert cutter.feed("0;12M") == [Keys("\x1b[<35;40;12M")]


@settings(deadline=None, max_examples=examples(200, 2000))
@given(st.text(st.sampled_from("\x1b\x1b[[];:?<>$~umMOPR_0123456789aé\x07\\ "), max_size=30))
def test_the_key_parser_reads_whatever_is_left(text: str) -> None:
    parser = XTermParser()
    for piece in feed(text):
        if isinstance(piece, Keys):
            list(parser.feed(piece.text))


PATIENCE, WAIT = 0.05, 0.2
RESTS = ["[<65;70;34M", "[<0;3;4m", "[I", "[O", "[?62;c", "[?2026;2$y", "]11;rgb:1a/1b/26\x1b\\", "[A", "OB", "[1;5C"]
TYPED_BEHIND = ["x", "!", "#", "/", "[x] done", "]", "O", "\r", "Ideas"]


def patient(keyboard: int | None = None) -> InputFilter:
    cutter = InputFilter(PATIENCE, WAIT)
    cutter.keyboard = keyboard
    return cutter


@pytest.mark.parametrize("rest", RESTS)
def test_the_rest_of_a_sequence_that_comes_after_a_pause_belongs_to_its_esc(rest: str) -> None:
    for cut in (len(rest), *range(2, len(rest))):
        cutter = patient()
        assert cutter.feed("\x1b") == []
        assert cutter.flush(PATIENCE) == [EscapeSeen()]
        assert cutter.flush(WAIT - 0.05) == []
        pieces = [*cutter.feed(rest[:cut]), *cutter.feed(rest[cut:])]
        whole = InputFilter().feed(f"\x1b{rest}")
        assert pieces == [EscapeWithdrawn(), *whole]


@pytest.mark.parametrize("rest", RESTS)
def test_the_rest_of_a_sequence_is_not_typed_after_the_key_esc_either(rest: str) -> None:
    cutter = patient()
    cutter.feed("\x1b")
    cutter.flush(PATIENCE)
    assert cutter.flush(WAIT) == [Escape()]
    assert cutter.feed(rest) == InputFilter().feed(f"\x1b{rest}")
    assert cutter.feed("x") == [Keys("x")]


@pytest.mark.parametrize("typed", TYPED_BEHIND)
@pytest.mark.parametrize("idle", [PATIENCE, WAIT])
def test_what_is_typed_some_time_after_esc_is_typed(idle: float, typed: str) -> None:
    cutter = patient()
    cutter.feed("\x1b")
    cutter.flush(idle)
    pieces = [*cutter.feed(typed), *cutter.flush(WAIT)]
    assert keys(pieces) == typed
    assert isinstance(pieces[0], Escape) == (idle < WAIT)
    assert not any(isinstance(piece, EscapeWithdrawn | Alt) for piece in pieces)


REPORTS = [
    "\x1b[<65;70;34M",
    "\x1b[<35;-3;40M",
    "\x1b[<35;12;-7M",
    "\x1b[<0;-1;-1m",
    "\x1b]11;rgb:1a1a/1b1b/2626\x07",
    "\x1b]11;rgb:1a/1b/26\x1b\\",
    "\x1b[?2026;2$y",
    "\x1b[>1;10;0c",
    "\x1b[48;24;80;480;640t",
    "\x1bP>|terminal(1.0)\x1b\\",
    "\x1b[200~two\nlines\x1b[201~",
]


@pytest.mark.parametrize("pause", [0.0, 0.05, 0.15])
@pytest.mark.parametrize("report", REPORTS)
def test_a_report_is_the_same_wherever_a_pause_cuts_it(report: str, pause: float) -> None:
    whole = [*feed(f"a{report}"), Keys("b")]
    assert not any(isinstance(piece, Escape | Alt) for piece in whole)
    for cut in range(1, len(report)):
        cutter = InputFilter(0.1, WAIT)
        pieces = cutter.feed(f"a{report[:cut]}")
        if pause:
            pieces += cutter.flush(pause)
        pieces += cutter.feed(report[cut:])
        pieces = [piece for piece in pieces if not isinstance(piece, EscapeSeen | EscapeWithdrawn)]
        assert keys(pieces) == keys(whole[:-1]), cut
        assert [piece for piece in pieces if not isinstance(piece, Keys)] == [
            piece for piece in whole if not isinstance(piece, Keys)
        ]
        assert cutter.feed("b") == [Keys("b")]


def test_a_mouse_left_of_the_window_is_no_text() -> None:
    parser = XTermParser()
    found = [event for piece in feed("\x1b[<35;-3;40M") for event in parser.feed(keys([piece]))]
    assert not any(isinstance(event, events.Key) for event in found)


def test_esc_as_a_byte_is_no_key_where_the_terminal_reports_it_otherwise() -> None:
    cutter = patient()
    cutter.feed("\x1b[?1u\x1b")
    assert cutter.keyboard == 1
    assert cutter.flush(WAIT) == []
    assert keys(cutter.feed("[<65;70;34M")) == "\x1b[<65;70;34M"
    cutter.feed("\x1b")
    assert cutter.flush(SEQUENCE_TIME) == [Escape()]


@pytest.mark.parametrize("beginning", ["\x1b[<65;", "\x1b[?2026;", "\x1b]11;rgb:1a/"])
def test_the_beginning_of_a_report_is_never_typed(beginning: str) -> None:
    rest = {"\x1b[<65;": "70;34M", "\x1b[?2026;": "2$y"}.get(beginning, "1b/26\x07")
    for feeds, expected in (((rest, "x"), "x"), (("x",), "x"), (("two words",), "two words")):
        cutter = InputFilter()
        cutter.feed(beginning)
        assert cutter.flush() == []
        typed = keys([piece for chunk in feeds for piece in cutter.feed(chunk)])
        assert typed.removeprefix(f"{beginning}{rest}") == expected


@pytest.mark.parametrize("letter", ["!", "#", "/", "@", "x", "5", "Z"])
def test_esc_and_a_letter_at_once_are_two_keys_where_alt_means_nothing(letter: str) -> None:
    cutter = InputFilter(is_bound=lambda key: key == "alt+b")
    assert cutter.feed(f"\x1b{letter}") == [Escape(), Keys(letter)]
    assert cutter.feed("\x1bb") == [Alt("b")]


@pytest.mark.parametrize(
    ("sequence", "letter"),
    [
        ("\x1b[97u", "a"),
        ("\x1b[97;1u", "a"),
        ("\x1b[97;2u", "A"),
        ("\x1b[97:65;2u", "A"),
        ("\x1b[97;65u", "A"),
        ("\x1b[97;66u", "a"),
        ("\x1b[97;129u", "a"),
        ("\x1b[49;2u", "!"),
        ("\x1b[55:47;2u", "/"),
        ("\x1b[47u", "/"),
        ("\x1b[32u", " "),
        ("\x1b[233u", "é"),
        ("\x1b[1092;2u", "Ф"),
        ("\x1b[57404u", "5"),
        ("\x1b[27;1;97~", "a"),
    ],
)
def test_letters_reported_without_their_text_are_typed(sequence: str, letter: str) -> None:
    parser = XTermParser()
    found = [event for event in parser.feed(keys(feed(sequence))) if isinstance(event, events.Key)]
    assert [event.character for event in found] == [letter]
    assert keys(feed(f"{sequence[:-1]}{sequence[-1]}")) == letter
