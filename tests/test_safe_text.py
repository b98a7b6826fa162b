"""Nothing that acts on a terminal, or hides, passes the door to the screen."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swecli.safe_text import MAX_MARKS, SafeText, safe_line, sanitise

SAFE_FORMAT = {"\u200c", "\u200d", "\ufe0f"}
"""Allowed inside of emoji and of some scripts only."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]52;c;ZQ==\x07", "␛]52;c;ZQ==␇"),
        ("\x1b[2J", "␛[2J"),
        ("\x9b31m", "⟨U+009B⟩31m"),
        ("a\x00b\x7fc", "a␀b␡c"),
        ("a\u202eb\u2066c", "a⟨U+202E⟩b⟨U+2066⟩c"),
        ("pay\u200bpal\ufeff\u00ad", "pay⟨U+200B⟩pal⟨U+FEFF⟩⟨U+00AD⟩"),
        ("a\u2028b\u2029c\x85d", "a⟨U+2028⟩b⟨U+2029⟩c⟨U+0085⟩d"),
        ("\ud800x\udfff", "⟨U+D800⟩x⟨U+DFFF⟩"),
        ("\U000e0041tag", "⟨U+E0041⟩tag"),
        ("a\r\nb\rc\x0bd\x0ce", "a\nb␍c␋d␌e"),
        ("a\tb\n\tc", "a   b\n    c"),
        ("x\u200dy", "x⟨U+200D⟩y"),
        ("ab\u200cc \u200cی", "ab⟨U+200C⟩c ⟨U+200C⟩ی"),
        ("ی\u200c\u200cی", "ی⟨U+200C⟩⟨U+200C⟩ی"),
        ("x\ufe0f", "x⟨U+FE0F⟩"),
        ("[red]x[/red] [/foo]", "[red]x[/red] [/foo]"),
    ],
)
def test_stand_ins(text: str, shown: str) -> None:
    assert sanitise(text) == shown
    assert isinstance(sanitise(text), SafeText)


@pytest.mark.parametrize(
    "text",
    [
        "日本語",
        "👍🏽",
        "👨‍👩‍👧",
        "❤️",
        "1️⃣",
        "é",
        "e\u0301",
        "กำ้",
        "שָׁלוֹם",
        "नमस्ते",
        "─│▎",
        "\ue0b0",
        "می\u200cخواهم",
        "क्\u200dष",
        "ന്\u200d",
        "র\u200d্য",
        "क्\u200cष",
    ],
)
def test_text_of_people_is_left_as_it_is(text: str) -> None:
    assert sanitise(text) == text


def test_one_line_has_no_newline_and_no_tab() -> None:
    assert safe_line("a\nb\tc\r\n") == "a␊b c␊"
    assert sanitise("a\tb", tabs=0) == "a␉b"
    assert sanitise(sanitise("a\nb"), keep_newlines=False) == "a␊b"


def test_a_tower_of_marks_is_bounded_and_counted() -> None:
    shown = sanitise("e" + "\u0301" * 3_000 + "x")
    assert shown.count("\u0301") == MAX_MARKS
    assert f"⟨{3_000 - MAX_MARKS} more marks⟩x" in shown


@given(
    st.text(st.characters(), max_size=200)
    | st.text("\x1b\x9b[]\r\n\t\u200c\u200d\ufe0fی\u094dक\u0301👍é\u202e\ud800a", max_size=60)
)
def test_every_character_that_passes_is_harmless(text: str) -> None:
    shown = sanitise(text)
    run = 0
    for character in shown:
        category = unicodedata.category(character)
        assert character == "\n" or category not in ("Cc", "Cs", "Zl", "Zp")
        assert not 0x202A <= ord(character) <= 0x202E
        assert not 0x2066 <= ord(character) <= 0x2069
        run = run + 1 if category in ("Mn", "Me", "Mc") and character not in SAFE_FORMAT else 0
        assert run <= MAX_MARKS
    assert sanitise(shown) is shown
    assert sanitise(str(shown)) == shown


@given(
    st.text(
        st.characters(
            exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp", "Mn", "Me", "Mc", "Lo", "Cn"),
            exclude_characters="\U0001d159",
        )
    )
)
def test_letters_digits_and_signs_pass_unchanged(text: str) -> None:
    assert sanitise(text) == text


@pytest.mark.parametrize("piece", ["a", "\x1b[0m", "é", "─", "e\u0301", "\u0301", "👨‍", "日本", "\r\n", "\t"])
def test_time_grows_with_the_length_only(piece: str) -> None:
    def spent(count: int) -> float:
        text = piece * count
        best = 9.0
        for _ in range(3):
            start = time.process_time()
            sanitise(text)
            best = min(best, time.process_time() - start)
        return best

    assert spent(80_000) <= 60 * max(spent(10_000), 1e-4)
