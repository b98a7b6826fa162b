"""The page: places, heights and rows of blocks, and what it keeps in memory."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.tui.transcript.block_rows import render_block
from swecli.tui.transcript.blocks import AnswerBlock, NoticeBlock, Put, Remove, UserBlock
from swecli.tui.transcript.page import Page
from swecli.tui.transcript.palette import DARK, LIGHT
from tests.tui.transcript.samples import MARKDOWN, blocks


def filled(count: int) -> Page:
    page = Page()
    for number in range(count):
        page.apply(Put(UserBlock(f"u{number}", f"question {number}")))
    return page


def texts(page: Page) -> list[str]:
    return [row.text for number in range(len(page.blocks)) for row in page.rows(number)]


def test_a_block_is_replaced_where_it_stands() -> None:
    page = filled(3)
    assert page.apply(Put(UserBlock("u1", "changed"))) == 1
    assert texts(page) == ["› question 0", "", "› changed", "", "› question 2"]


def test_removing_moves_the_others_up() -> None:
    page = filled(4)
    assert page.apply(Remove("u1")) == 1
    assert page.apply(Remove("u1")) is None
    assert [page.place(f"u{n}") for n in range(4)] == [0, None, 1, 2]
    assert page.apply(Put(UserBlock("u3", "changed"))) == 2


def test_lines_of_work_stand_together_and_other_blocks_apart() -> None:
    page = Page()
    for block in (NoticeBlock("n", "one"), NoticeBlock("m", "two"), UserBlock("u", "three")):
        page.apply(Put(block))
    assert texts(page) == ["· one", "· two", "", "› three"]


def test_a_block_without_rows_takes_no_line() -> None:
    page = Page()
    for block in (UserBlock("u", "x"), AnswerBlock("a", " \n", "ok"), UserBlock("v", "y")):
        page.apply(Put(block))
        page.measure(len(page.blocks) - 1)
    assert page.index.total == 3


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 60), max_size=40), st.sampled_from([10, 40]))
def test_a_streamed_answer_has_the_rows_of_the_whole_one(sizes: list[int], width: int) -> None:
    page = Page()
    page.configure(width=width)
    text, rest = "", MARKDOWN
    for size in sizes:
        text, rest = text + rest[:size], rest[size:]
        page.apply(Put(AnswerBlock("a", text)))
        page.measure(0)
    done = AnswerBlock("a", MARKDOWN, "ok")
    page.apply(Put(done))
    assert [row.text for row in page.rows(0)] == [row.text for row in render_block(done, width, DARK)]


def test_another_text_starts_the_stream_anew() -> None:
    page = Page()
    page.apply(Put(AnswerBlock("a", "one two")))
    page.rows(0)
    page.apply(Put(AnswerBlock("a", "other", revision=1)))
    assert texts(page) == ["other"]


def test_width_palette_and_form_change_the_rows() -> None:
    page = Page()
    for block in blocks().values():
        page.apply(Put(block))
    first = texts(page)
    assert not page.configure(width=80)
    assert page.configure(width=30)
    assert texts(page) != first
    assert page.configure(width=80, palette=LIGHT)
    assert texts(page) == first
    assert page.configure(density="full")
    assert texts(page) != first
    assert page.configure(density="short")
    assert len(texts(page)) < len(first)
    assert page.configure(density="usual")
    assert texts(page) == first


def test_only_blocks_with_two_forms_can_be_folded() -> None:
    page = filled(1)
    page.apply(Put(AnswerBlock("a", "x", "ok")))
    assert page.toggle(0)
    assert page.is_expanded(0)
    assert not page.toggle(1)


def test_rows_are_not_drawn_again_while_nothing_changes() -> None:
    page = filled(3)
    assert all(page.rows(number) is page.rows(number) for number in range(3))
    before = page.rows(1)
    page.toggle(1)
    assert page.rows(1) is not before


def test_an_estimate_is_replaced_by_the_exact_height_on_measuring() -> None:
    page = Page()
    page.apply(Put(AnswerBlock("a", "word " * 200, "ok")))
    assert not page.index.is_exact(0)
    page.measure(0)
    assert page.index.is_exact(0)
    assert page.index.height(0) == len(page.rows(0))
