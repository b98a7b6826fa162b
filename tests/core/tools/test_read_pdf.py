"""Reading PDF files: as files for models that read them, as text for the others."""

from __future__ import annotations

import base64

import pytest
from msgspec.structs import replace

from swecli.core.protocol.messages import DocumentPart
from swecli.core.tools.base import ToolError
from tests.support.pdf import pdf_of
from tests.support.tool_context import ToolBench

pytest.importorskip("pypdf")

BOOK = pdf_of([f"Page {number} of the book" for number in range(1, 46)])


@pytest.fixture
def reader(bench: ToolBench) -> ToolBench:
    """The tools of a model that reads PDF files."""
    bench.context = replace(bench.context, reads_documents=True)
    return bench


async def test_a_model_that_reads_pdf_gets_the_file(reader: ToolBench) -> None:
    raw = pdf_of(["Salt", "Pepper"])
    reader.file("soup.pdf", raw)
    outcome = await reader.call("read_file", path="soup.pdf")
    assert outcome.text == f"soup.pdf: PDF, {len(raw)} bytes, 2 pages"
    text = "--- page 1 ---\nSalt\n\n--- page 2 ---\nPepper"
    assert outcome.documents == (DocumentPart(base64.b64encode(raw).decode(), "soup.pdf", text, 2),)
    assert outcome.detail == "PDF, 2 pages"


async def test_any_other_model_gets_the_text(bench: ToolBench) -> None:
    bench.file("soup.pdf", pdf_of(["Salt", ""]))
    outcome = await bench.call("read_file", path="soup.pdf")
    assert outcome.documents == ()
    assert outcome.text.endswith("\n[without text, scanned or empty: page 2]\n\n--- page 1 ---\nSalt\n\n--- page 2 ---")


@pytest.mark.parametrize("reads", [True, False])
async def test_a_long_file_comes_in_parts(bench: ToolBench, reads: bool) -> None:
    bench.context = replace(bench.context, reads_documents=reads)
    bench.file("book.pdf", BOOK)
    first = await bench.call("read_file", path="book.pdf")
    assert "pages 1-20 of 45\n[continue with pages=21-40]" in first.text
    last = await bench.call("read_file", path="book.pdf", pages="41-")
    assert "pages 41-45 of 45" in last.text
    assert "continue" not in last.text
    shown = last.documents[0].text if reads else last.text
    assert "Page 45 of the book" in shown
    assert "Page 40" not in shown


async def test_long_pages_are_cut_between_pages(bench: ToolBench) -> None:
    bench.file("long.pdf", pdf_of([f"{'word ' * 100}\n" * 40 for _ in range(5)]))
    outcome = await bench.call("read_file", path="long.pdf", pages="1-5")
    assert "[continue with pages=2-5]" in outcome.text


async def test_a_scanned_file_says_what_helps(bench: ToolBench, reader: ToolBench) -> None:
    bench.file("scan.pdf", pdf_of(["", ""]))
    assert (await reader.call("read_file", path="scan.pdf")).documents[0].pages == 2
    reader.context = replace(reader.context, reads_documents=False)
    with pytest.raises(ToolError, match=r"2 pages, without any text: scanned or empty.*ocrmypdf"):
        await reader.call("read_file", path="scan.pdf")


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("soup.pdf", {"pages": "5"}, r"soup\.pdf could not be read: it has only 1 page\."),
        ("soup.pdf", {"pages": "five"}, "pages are chosen like 3, 1-5,8 or 90-"),
        ("soup.pdf", {"offset": 10}, "choose pages instead of lines"),
        ("soup.txt", {"pages": "1"}, r"soup\.txt is no PDF file"),
        ("broken.pdf", {}, r"broken\.pdf could not be read: it is damaged\."),
        ("none.pdf", {}, "does not exist"),
    ],
)
async def test_what_cannot_be_read(bench: ToolBench, name: str, arguments: dict[str, object], says: str) -> None:
    bench.file("soup.pdf", pdf_of(["Salt"]))
    bench.file("soup.txt", "Salt")
    bench.file("broken.pdf", b"%PDF-1.4 no more")
    with pytest.raises(ToolError, match=says):
        await bench.call("read_file", path=name, **arguments)
