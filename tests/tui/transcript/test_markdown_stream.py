"""Markdown that arrives in pieces looks like markdown that arrives whole."""

from __future__ import annotations

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.tui.transcript.markdown import MarkdownStream, markdown_rows
from swecli.tui.transcript.palette import DARK
from swecli.tui.transcript.rows import Row
from tests.support.thorough import examples

DOCUMENTS = int(os.environ.get("SWECLI_DOCUMENTS", "150"))
"""Random documents; a thorough run takes many more."""

LINES = st.sampled_from(
    [
        "",
        "",
        "# Title",
        "plain text with **bold** and `code`",
        "- item",
        "  - nested",
        "    - deeper",
        "* star",
        "1. one",
        "2. two",
        "7) seven",
        "   continued",
        "> quote",
        "> - quoted item",
        "```python",
        "```",
        "~~~",
        "````",
        "  ```",
        "   def f(): return 'x'",
        "\tindented by a tab",
        "    indented by four",
        "| a | b |",
        "|---|--:|",
        "| 1 | 日本 |",
        "---",
        "===",
        "<div>",
        "</div>",
        "<!-- note",
        "-->",
        "[text](https://example.org/x) and [ref]",
        "[ref]: https://example.org",
        "- [ ] task",
        "- ",
        "-",
        "*",
        "#",
        "#x",
        "**open",
        "\x1b[31mred\x1b[0m\u202e",
        "carriage\rreturn\r",
        "``` ` not a fence",
    ]
)
SOURCES = st.lists(LINES, max_size=14).map("\n".join) | st.lists(
    st.sampled_from([*"-*+>#`~|_[]()<!1.2) \t\n\r\nab日", "\n", "\n\n", "```\n", "\r\n"]), max_size=60
).map("".join)


def shape(rows: list[Row]) -> list[tuple[str, str | None, list[tuple[str, str]]]]:
    return [(row.text, row.join, [(part.text, str(part.style)) for part in row.segments()]) for row in rows]


@settings(max_examples=DOCUMENTS, deadline=None)
@given(SOURCES, st.data(), st.sampled_from([8, 20, 60]))
def test_pieces_equal_the_whole(source: str, data: st.DataObject, width: int) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(source)), max_size=12)))
    stream = MarkdownStream(width, DARK)
    last = 0
    for cut in [*cuts, len(source)]:
        stream.feed(source[last:cut])
        last = cut
    stream.finish()
    assert shape(stream.rows) == shape(markdown_rows(source, width, DARK))


@settings(max_examples=examples(40, 200), deadline=None)
@given(SOURCES)
def test_characters_one_by_one_equal_the_whole(source: str) -> None:
    stream = MarkdownStream(30, DARK)
    for character in source:
        before = list(stream.rows)
        changed = stream.feed(character)
        assert stream.rows[:changed] == before[:changed]
    stream.finish()
    assert shape(stream.rows) == shape(markdown_rows(source, 30, DARK))
