"""Edits change the matched bytes and no others."""

from __future__ import annotations

import codecs
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from swecli.core.workspace.edit import EditError, replace_string
from swecli.core.workspace.text_file import decode
from tests.support.thorough import examples

WORDS = ("alpha", "beta", "", "  indented", "\ttab", "“curly” quotes", "naïve café", "日本語", "🙂 end ", "a\0b")
LATIN = ("alpha", "beta", "", "  indented", "caf\xe9", "na\xefve", "x = '\xb5'")


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Bytes of a file with the encoding, line ends, mark and ending that are out there."""
    encoding = draw(st.sampled_from(("utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1", "broken")))
    words = draw(st.lists(st.sampled_from(LATIN if encoding == "latin-1" else WORDS), min_size=1, max_size=8))
    ends = draw(st.sampled_from((("\n",), ("\r\n",), ("\n", "\r\n", "\r"))))
    text = "".join(word + draw(st.sampled_from(ends)) for word in words)
    if draw(st.booleans()):
        text = text.rstrip("\r\n") + words[-1]
    if encoding == "utf-16-le":
        return codecs.BOM_UTF16_LE + text.encode(encoding) + draw(st.sampled_from((b"", b"\x41")))
    if encoding == "utf-16-be":
        return codecs.BOM_UTF16_BE + text.encode(encoding)
    if encoding == "broken":
        return text.encode() + draw(st.binary(min_size=1, max_size=4)) + text.encode()
    return text.encode(encoding)


@given(raw=st.one_of(files(), st.binary(max_size=60)))
@settings(deadline=None, max_examples=examples(60, 300))
def test_decoding_is_reversible(raw: bytes) -> None:
    file = decode(raw)
    assert file.bom + file.encode(file.text) + file.tail == raw


@given(raw=st.one_of(files(), st.binary(min_size=1, max_size=40)), data=st.data())
@settings(deadline=None, max_examples=examples(100, 500))
def test_only_matched_bytes_change(raw: bytes, data: st.DataObject) -> None:
    file = decode(raw)
    assume(file.text)
    start = data.draw(st.integers(0, len(file.text) - 1))
    end = data.draw(st.integers(start + 1, len(file.text)))
    quoted = file.text[start:end].replace("\r\n", "\n")
    new = data.draw(st.sampled_from(("", "x", "new\nlines\n", "y = 1")))
    assume(quoted != new and "\r\n" not in quoted)
    # What ends with CR is taken to the letter, so folding it would make another quote of it.
    assume(quoted == file.text[start:end] or not quoted.endswith("\r"))
    try:
        edited = replace_string(file, quoted, new)
    except EditError as error:
        assert "matches" in str(error) or "leave the file as it is" in str(error) or "\r" in quoted  # noqa: PT017
        return
    # A quote that begins with the LF of a CRLF pair takes the whole pair, unless it is taken to the letter.
    pair = file.text[start] == "\n" and file.text[start - 1 : start] == "\r" and not quoted.endswith("\r")
    first = start - 1 if pair else start
    before = file.bom + file.encode(file.text[:first])
    after = file.encode(file.text[end:]) + file.tail
    assert raw.startswith(before)
    assert raw.endswith(after)
    assert edited.data in {before + file.encode(form) + after for form in (new, new.replace("\n", "\r\n"))}


@pytest.mark.parametrize(
    ("raw", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\nc\n", "c", "c\nd", b"a\r\nb\nc\nd\n"),
        (b"a\r\nb\nc\n", "a", "a\nq", b"a\r\nq\r\nb\nc\n"),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
        (b"a\r\nb\r\n", "a\r\nb", "a\nb", b"a\nb\r\n"),
        (b"\xef\xbb\xbfone two\n", "one", "eins", b"\xef\xbb\xbfeins two\n"),
        (b"caf\xe9 one\n", "one", "h\xf4tel", b"caf\xe9 h\xf4tel\n"),
        (b"\x93q\x94 one", "“q”", "“r”", b"\x93r\x94 one"),
        ("é ü ö\n".encode() + b"\xff one\n", "one", "ö", "é ü ö\n".encode() + b"\xff \xc3\xb6\n"),
        (b"no newline", "newline", "final newline", b"no final newline"),
        (b"", "", "first\n", b"first\n"),
        (b"\r\nfoo", "\nfoo", "\nbar", b"\r\nbar"),
    ],
)
def test_places(raw: bytes, old: str, new: str, after: bytes) -> None:
    assert replace_string(decode(raw), old, new).data == after


def test_utf_16_keeps_mark_line_ends_and_odd_last_byte() -> None:
    raw = codecs.BOM_UTF16_LE + "α\r\nβ\r\n".encode("utf-16-le") + b"!"
    edited = replace_string(decode(raw), "β", "γ\nδ")
    assert edited.data == codecs.BOM_UTF16_LE + "α\r\nγ\r\nδ\r\n".encode("utf-16-le") + b"!"


def test_replace_all_changes_every_place_and_counts_them() -> None:
    edited = replace_string(decode(b"x\r\ny x\nx"), "x", "zz", replace_all=True)
    assert (edited.data, edited.count, edited.lines) == (b"zz\r\ny zz\nzz", 3, (1, 2, 3))


def test_many_replacements_are_quick() -> None:
    edited = replace_string(decode(b"x\n" * 200_000), "x", "yy", replace_all=True)
    assert edited.count == 200_000
    assert edited.data == b"yy\n" * 200_000


@pytest.mark.parametrize(
    ("raw", "old", "new", "says"),
    [
        (b"a\nb\na\n", "a", "c", "lines 1, 3"),
        (b"aaa", "aa", "b", "matches 2 places"),
        (b"a\r\nb\na\nb\n", "a\nb", "c", "lines 1, 3"),
        (b"a", "a", "a", "the same"),
        (b"a", "", "b", "old_string is empty"),
        (b"caf\xe9", "caf", "日", "Latin-1 cannot represent"),
        (b"abc", "abc", "\ud800", "cannot represent"),
        (b"", "x", "y", "the file is empty"),
        (b"a" * 5_000, "a", "b", "more than 1,000"),
    ],
)
def test_refusals(raw: bytes, old: str, new: str, says: str) -> None:
    with pytest.raises(EditError) as refused:
        replace_string(decode(raw), old, new)
    assert says in str(refused.value)


def test_replacements_in_one_long_line_cost_by_their_number() -> None:
    def seconds(count: int) -> float:
        file = decode("a🙂".encode() * count)
        start = time.thread_time()
        assert replace_string(file, "a", "x\ny", replace_all=True).count == count
        return time.thread_time() - start

    few, many = min(seconds(12_500) for _ in range(3)), min(seconds(100_000) for _ in range(2))
    assert many < 24 * few  # 8 times as many; where the cost grew with the square it would be 64 times
