"""Pages of PDF files, and what can't be read."""

from __future__ import annotations

import base64
import io

import pytest

from swecli.core.workspace.pdf import MOST_PAGES, Pdf, PdfError, as_ranges, page_ranges, read_pdf
from tests.support.pdf import pdf_of

pypdf = pytest.importorskip("pypdf")

SOUP = pdf_of(["Salt the soup", "", "Eat (it)"])


async def read(raw: bytes, pages: str = "1-", *, as_file: bool = False, characters: int = 100_000) -> Pdf:
    return await read_pdf(raw, page_ranges(pages), environment={}, as_file=as_file, characters=characters)


@pytest.mark.parametrize(
    ("chosen", "ranges"), [("3", ((3, 3),)), ("1-5, 8", ((1, 5), (8, 8))), ("90-", ((90, 0),)), ("2 - 4", ((2, 4),))]
)
def test_pages_are_chosen_as_in_a_print_dialog(chosen: str, ranges: tuple[tuple[int, int], ...]) -> None:
    assert page_ranges(chosen) == ranges


@pytest.mark.parametrize("chosen", ["", "x", "0", "5-3", "1--2", "-4", "1;2", "9999999"])
def test_what_is_no_choice_of_pages(chosen: str) -> None:
    with pytest.raises(ValueError, match="page"):
        page_ranges(chosen)


def test_page_numbers_become_ranges() -> None:
    assert as_ranges((1, 2, 3, 5, 8, 9)) == "1-3,5,8-9"
    assert as_ranges(()) == ""


async def test_text_comes_under_the_numbers_of_its_pages() -> None:
    pdf = await read(SOUP)
    assert pdf.text == "--- page 1 ---\nSalt the soup\n\n--- page 2 ---\n\n--- page 3 ---\nEat (it)"
    assert (pdf.total, pdf.numbers, pdf.without_text, pdf.file) == (3, (1, 2, 3), (2,), "")


async def test_a_whole_file_is_sent_byte_for_byte_and_a_part_as_a_file_of_its_own() -> None:
    assert base64.b64decode((await read(SOUP, as_file=True)).file) == SOUP
    part = await read(SOUP, "2-3", as_file=True)
    pages = pypdf.PdfReader(io.BytesIO(base64.b64decode(part.file))).pages
    assert [page.extract_text().strip() for page in pages] == ["", "Eat (it)"]


async def test_a_thousand_pages_come_in_parts() -> None:
    raw = pdf_of([f"Page {number} " + "of the book " * 20 for number in range(1, 1001)])
    pdf = await read(raw, characters=2_000)
    assert (pdf.total, len(pdf.numbers), len(pdf.left)) == (1000, MOST_PAGES, 1000 - MOST_PAGES)
    assert 1 < len(pdf.texts) < 10
    assert "Page 900 " in (await read(raw, "900")).text


def encrypted(password: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(SOUP))
    writer.encrypt(password, "owner", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


async def test_a_file_that_opens_without_a_password_is_sent_without_its_encryption() -> None:
    pdf = await read(encrypted(""), as_file=True)
    assert not pypdf.PdfReader(io.BytesIO(base64.b64decode(pdf.file))).is_encrypted
    assert "Salt the soup" in pdf.text


@pytest.mark.parametrize(
    ("raw", "pages", "reason"),
    [
        (b"%PDF-1.7\nrubbish", "1-", "it is damaged"),
        (SOUP[:400], "1-", "it is damaged"),
        (SOUP, "7-9", "it has only 3 pages"),
        (pdf_of([]), "1-", "it has no pages"),
    ],
)
async def test_what_cannot_be_read_says_why(raw: bytes, pages: str, reason: str) -> None:
    with pytest.raises(PdfError, match=reason):
        await read(raw, pages)


async def test_a_password_is_named_as_the_reason() -> None:
    with pytest.raises(PdfError, match="encrypted with a password"):
        await read(encrypted("secret"))
