"""HTML becomes text that keeps headings, lists, code and links, whatever the HTML is like."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.web.page_text import page_text
from tests.support.thorough import examples

PAGE = """<!DOCTYPE html><html><head><title>The  page</title><style>p {}</style></head><body>
<nav><a href="/home">Home</a></nav><h2>First</h2><p>Some <b>bold</b>
text &amp; more.</p><ul><li>one<li>two</ul><pre>x = 1
  y = 2</pre><script>alert("no")</script><a href="javascript:x()">odd</a><table><tr><td>a<td>b</tr></table>"""


def test_a_page() -> None:
    text = page_text(PAGE, "https://example.com/docs/")
    assert text.startswith("# The page\n\nHome (https://example.com/home)")
    assert "## First\n\nSome bold text & more." in text
    assert "- one\n- two" in text
    assert "```\nx = 1\n  y = 2\n```" in text
    assert " | a | b" in text
    for word in ("alert", "p {}", "javascript"):
        assert word not in text


@pytest.mark.parametrize("opening", ["<a ", '<a b="', "<a/", "<!--", "<?", "<!a", "</a", "<![CDATA["])
def test_the_time_limit_holds_for_thousands_of_unclosed_constructs(opening: str) -> None:
    began = time.process_time()
    text = page_text(f"<p>before</p>{opening * 40_000}", "https://example.com/", seconds=0.3)
    assert time.process_time() - began < 5
    assert text.startswith("before")


@settings(max_examples=examples(40, 200), deadline=None)
@given(st.text(alphabet="<>/!-&;ab \"'=[]?", max_size=300))
def test_any_text_is_a_page(html: str) -> None:
    assert isinstance(page_text(html, "https://example.com/"), str)


def test_a_page_that_never_ends_its_comment_takes_no_longer_than_it_may() -> None:
    assert page_text("<p>begin</p>" + "<!--" * 500_000, "https://example.com/", seconds=0.0).startswith("begin")


@pytest.mark.parametrize("inner", ["<svg><path>", "<template><select>", "<svg></svg>", "<svg/>", "</math>"])
def test_what_is_left_out_ends_where_it_is_closed(inner: str) -> None:
    assert page_text(f"<p>a</p><object>b{inner}c</object><p>d</p>", "http://x/") == "a\n\nd"
