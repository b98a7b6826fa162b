from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from swecli.core.context_management.counter import (
    CALL_OVERHEAD,
    IMAGE_TOKENS,
    PIECE_CHARS,
    CharCounter,
    PieceEstimator,
    SizeCache,
    mark_of,
    o200k,
    pieces,
)
from swecli.core.protocol.messages import DocumentPart, Message, ToolResultPart
from tests.support.thorough import examples

ESTIMATOR = PieceEstimator()

PYTHON = '''
def load_settings(path: Path, *, strict: bool = False) -> Settings:
    """Read the file and merge it over the defaults."""
    if not path.exists():
        raise FileNotFoundError(f"no settings at {path}")
    values = {key: value for key, value in parse(path.read_text()).items() if value is not None}
    return Settings(**values, source=str(path), maxRetryCount=3, timeout=120)
'''
MARKDOWN = """
# Usage

Install the package, then run `make test`. The server listens on port 8080; see [the guide](docs/guide.md).

- **fast**: answers within 100 ms
- **safe**: nothing is written before you agree
"""
CHINESE = "这是一个关于上下文管理的文件。我们需要估计标记的数量，并且不能太慢。"
LISTING = "\n".join(
    f"-rw-r--r-- 1 root root {size:6} Nov 21 11:{size % 60:02} file_{size}.txt" for size in range(900, 960)
)


@pytest.mark.parametrize(
    ("text", "real"),
    [(PYTHON, 95), (MARKDOWN, 56), (CHINESE, 23), (LISTING, 1499)],
    ids=["python", "markdown", "chinese", "listing"],
)
def test_estimates_are_near_what_the_encoding_gives(text: str, real: int) -> None:
    assert ESTIMATOR.count(text) == pytest.approx(real, rel=0.15)


NOISE = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(60))
PROSE: dict[str, str] = json.loads((Path(__file__).parents[2] / "data" / "prose.json").read_text(encoding="utf-8"))
"""The same two paragraphs in many languages: a bound that is kept, no independent measure of the weights."""
OTHER = {
    "ruled lines": "\n".join(
        f"{mark * 78}\nTitle of a section\n{mark * 78}\nwith a line of text" for mark in "-=*#_~─━═"
    ),
    "base64": base64.encodebytes(NOISE).decode(),
    "base64 in one line": base64.b64encode(NOISE).decode(),
    "hexadecimal": NOISE.hex(),
    "checksums": "\n".join(f"{hashlib.sha256(bytes([n])).hexdigest()}  file_{n}.txt" for n in range(40)),
}


@pytest.mark.parametrize("text", [*PROSE.values(), *OTHER.values()], ids=[*PROSE, *OTHER])
def test_other_scripts_are_within_fifteen_percent(text: str) -> None:
    assert ESTIMATOR.count(text) == pytest.approx(o200k().count(text), rel=0.15)


def test_a_few_foreign_words_do_not_change_what_code_takes() -> None:
    assert ESTIMATOR.count(PYTHON * 20 + "# café\n") == pytest.approx(20 * ESTIMATOR.count(PYTHON), rel=0.02)


def test_the_parts_cost_what_was_fitted() -> None:
    assert ESTIMATOR.count("") == 0
    assert ESTIMATOR.count("a") == 1
    assert ESTIMATOR.count(" the" * 1000) == 989
    assert ESTIMATOR.count(" longword" * 1000) == 989 + 152
    assert ESTIMATOR.count(" camelCase" * 1000) == 989 + 152 + 381
    assert ESTIMATOR.count((" " + "x" * 19) * 1000) == 989 + 152 + 3297
    assert ESTIMATOR.count("1234," * 1000) == 2 * 1911 + 521
    assert ESTIMATOR.count("上" * 1000) == 771
    assert ESTIMATOR.count("\t\n" * 1000) == 636
    assert ESTIMATOR.count(" и" * 1000) == 790
    assert ESTIMATOR.count("😀😁" * 500) == 740


@settings(deadline=None, max_examples=examples(60, 300))
@given(st.text(st.characters(codec=None), max_size=400))
def test_any_text_has_an_estimate(text: str) -> None:
    count = ESTIMATOR.count(text)
    assert (count == 0) == (not text)
    assert count <= 3 * len(text)


@pytest.mark.parametrize("unit", [" ", "\n", "\t", "a", "aB", "!", "7", "上", "😀", "\ud800", " \n", "a1", "\x00"])
def test_no_text_of_any_shape_takes_more_than_linear_time(unit: str) -> None:
    # A regular expression that goes back and forth would take minutes for this, not the blink that it is.
    length = 200_000
    assert ESTIMATOR.count(unit * (length // len(unit))) > length // 50


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(["line of text\n", "x" * 5_000, "\n", "y" * 40_000]), max_size=40))
def test_pieces_are_the_text_and_never_too_long(parts: list[str]) -> None:
    text = "".join(parts)
    cut = list(pieces(text))
    assert "".join(cut) == text
    assert max(map(len, cut)) <= PIECE_CHARS


def test_cutting_hardly_changes_the_count() -> None:
    text = PYTHON * 400
    assert ESTIMATOR.count(text) == pytest.approx(400 * ESTIMATOR.count(PYTHON), rel=0.01)


def test_characters_over_four() -> None:
    assert [CharCounter().count("x" * length) for length in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert CharCounter(2).count("abc") == 2
    with pytest.raises(ValueError, match="above 0"):
        CharCounter(0)


def test_a_pdf_file_counts_as_its_text_and_an_image_of_each_page() -> None:
    sizes = SizeCache()
    document = DocumentPart("UERG", "soup.pdf", "Salt the soup", 3)
    words = sizes.counter.count("Salt the soup")
    said = sizes.measure(Message("user", (document,), "u"))
    result = sizes.measure(Message("tool", (ToolResultPart("c", "read_file", "", documents=(document,)),), "r"))
    assert said.total >= words + 3 * IMAGE_TOKENS
    assert result.total - said.total == CALL_OVERHEAD
    other = replace(document, data="T1RI")
    assert mark_of(Message("user", (document,))) != mark_of(Message("user", (other,)))
