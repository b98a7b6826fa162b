"""The text that stands for a stored result: small, valid, and with what matters of it."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.ports import BlobRef
from swecli.core.sessions.results import SMALLEST, Excerpt, encodable, error_lines, reference_text, usual_excerpt
from tests.support.thorough import examples

FRAME = 500
"""Bytes that a reference has besides its excerpt."""


def reference(text: str, excerpt: Excerpt, **more: object) -> str:
    ref = BlobRef("r0123456789ab", "run_command", len(encodable(text).encode()))
    return reference_text(ref, text, excerpt, **more)  # type: ignore[arg-type]


@given(
    st.text(alphabet=st.sampled_from("aé漢🙂\n\r\t \ud800E"), max_size=400),
    st.integers(0, 200),
    st.integers(0, 200),
    st.integers(0, 200),
)
@settings(deadline=None, max_examples=examples(80, 400))
def test_it_is_bounded_valid_and_made_of_the_two_ends(text: str, head: int, tail: int, errors: int) -> None:
    made = reference(text, Excerpt(head, tail, errors))
    raw = made.encode("utf-8")  # raises where a character was cut in two
    assert len(raw) <= head + tail + errors + FRAME
    clean = encodable(text)
    offset = int(re.search(r"offset=(\d+)", made)[1])  # type: ignore[index]
    beginning = clean.encode()[:offset].decode("utf-8")
    assert beginning.removesuffix("\n") in made
    assert offset <= head or offset == len(clean.encode())


def test_it_cuts_at_line_ends_and_says_what_it_is() -> None:
    text = "".join(f"line {number}\n" for number in range(2_000))
    made = reference(text, Excerpt(100, 100, 0), exit_status=0, note="Too long to keep here")
    lines = made.split("\n")
    assert lines[0].startswith("[run_command: 18,890 bytes, 2,000 lines, exit status 0. Too long to keep here.")
    assert 'read_result(ref_id="r0123456789ab", offset=' in lines[0]
    assert lines[1] == "line 0"
    assert all(re.fullmatch(r"line \d+|\[….*\]|", line) for line in lines[1:])
    assert "line 1999" in lines


def test_errors_in_the_middle_are_found_with_their_line_numbers() -> None:
    lines = [f"step {number}" for number in range(5_000)]
    lines[1_234] = "src/app.py:7: TypeError: bad operand"
    lines[4_000] = "FAILED tests/test_app.py::test_one"
    lines[4_001] = "FAILED tests/test_app.py::test_one"
    made = reference("\n".join(lines), usual_excerpt(50_000, failed=False))
    assert "  1235: src/app.py:7: TypeError: bad operand" in made
    assert made.count("FAILED tests/test_app.py::test_one") == 1


def test_of_too_many_errors_the_first_and_the_last_are_kept() -> None:
    text = "\n".join(f"error number {number}" for number in range(1_000))
    found = error_lines(text, 1, 400)
    assert found[0].endswith("error number 0")
    assert found[-1].endswith("error number 999")
    assert sum(len(line) + 1 for line in found) <= 400
    assert error_lines(text, 1, 0) == []
    assert error_lines("all is well\n" * 5, 1, 400) == []


def test_a_reference_is_much_smaller_than_what_it_stands_for() -> None:
    for size in (4_097, 5_000, 8_000, 20_000, 2_000_000):
        text = ("error: no such thing as this\n" * (size // 29 + 1))[:size]
        assert len(reference(text, usual_excerpt(size, failed=False))) <= 0.6 * size
    assert len(reference("x" * 2_000_000, usual_excerpt(2_000_000, failed=True)).encode()) <= 16_384
    assert len(reference("x\n" * 1_000_000, SMALLEST)) < 300
