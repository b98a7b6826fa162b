"""Reading stored results back: whole, in parts, by pattern, and what is said when it can't be."""

from __future__ import annotations

import errno
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from swecli.core.ports import BlobError, BlobRef, TranscriptHit
from swecli.core.tools.base import ToolError
from swecli.core.tools.read_result import MAX_PAGE, page_of
from tests.support.thorough import examples
from tests.support.tool_context import ToolBench


class Blobs:
    """Stored results by id; ``broken`` is damaged."""

    def __init__(self, **contents: bytes) -> None:
        self.contents = contents

    def put(self, tool: str, content: bytes) -> BlobRef:
        raise AssertionError

    def get(self, ref: str) -> bytes | None:
        if ref == "broken":
            raise BlobError("The stored result broken is damaged.")
        return self.contents.get(ref)


class Transcript:
    """Two entries, one of them long."""

    entries = {"t1.result": "what the tool said", "u2": "é" * 10_000}

    def search(self, query: str, limit: int) -> list[TranscriptHit]:
        hits = [TranscriptHit(item, text[:40], 1.0, "about") for item, text in self.entries.items() if query in text]
        return hits[:limit]

    def text(self, reference: str) -> str | None:
        return self.entries.get(reference)


LINES = b"".join(b"line %d: value=%d\n" % (number, number * 7) for number in range(5_000))


@pytest.fixture
def stored(bench: ToolBench) -> ToolBench:
    bench.context = replace(bench.context, blobs=Blobs(rlines=LINES, rempty=b""), transcript=Transcript())
    return bench


@given(st.text(alphabet="aé漢🙂\n", max_size=60), st.integers(0, 200), st.integers(1, 30))
@settings(deadline=None, max_examples=examples(80, 400))
def test_pages_are_whole_characters_and_put_together_the_whole(text: str, offset: int, limit: int) -> None:
    raw = text.encode()
    page = page_of(raw, offset, limit)
    assert page.text.encode() == raw[page.start : page.end]
    pieces, at = "", 0
    while at < len(raw):
        page = page_of(raw, at, limit)
        assert page.start == at
        assert at < page.end <= at + max(limit, 4)
        pieces, at = pieces + page.text, page.end
    assert pieces == text


@given(st.binary(max_size=40), st.integers(0, 60), st.integers(1, 8))
@settings(deadline=None, max_examples=examples(80, 400))
def test_pages_of_any_bytes_come_to_an_end(raw: bytes, offset: int, limit: int) -> None:
    at, pages = min(offset, len(raw)), 0
    while at < len(raw):
        page = page_of(raw, at, limit)
        assert page.end > at
        at, pages = page.end, pages + 1
    assert pages <= 60


async def test_paging_through_with_the_offsets_that_are_reported(stored: ToolBench) -> None:
    outcome = await stored.call("read_result", ref_id="rlines")
    head, text = outcome.text.split("\n", 1)
    assert text.encode() == LINES[:4_096]
    assert head == f"[rlines: bytes 0 to 4,096 of {len(LINES):,}; continue with offset=4096]"
    pieces, offset = text, 4_096
    while match := re.search(r"offset=(\d+)\]$", head):
        offset = int(match[1])
        head, text = (await stored.call("read_result", ref_id="rlines", offset=offset, limit=50_000)).text.split(
            "\n", 1
        )
        assert len(text.encode()) <= MAX_PAGE
        pieces += text
    assert pieces.encode() == LINES
    assert head.endswith("this is the end]")
    assert (await stored.call("read_result", ref_id="rempty")).text == "[rempty: all 0 bytes]\n"
    with pytest.raises(ToolError, match="past its end"):
        await stored.call("read_result", ref_id="rlines", offset=10**9)


async def test_lines_are_found_with_number_and_offset(stored: ToolBench) -> None:
    outcome = await stored.call("read_result", ref_id="rlines", pattern=r"value=(700|2100)$")
    assert outcome.detail == "2 matching lines"
    lines = outcome.text.split("\n")
    assert "of 5,000" in lines[0]
    assert [line.split(":", 1)[1].strip() for line in lines[1:]] == ["line 100: value=700", "line 300: value=2100"]
    number, offset = re.match(r"\s*(\d+) @(\d+):", lines[2]).groups()  # type: ignore[union-attr]
    assert number == "301"
    assert LINES[int(offset) :].startswith(b"line 300: ")
    later = await stored.call("read_result", ref_id="rlines", pattern="value=", offset=int(offset), limit=100)
    found = later.text.split("\n")
    assert "line 300: " in found[1]
    assert len(found) < 6
    rest = re.search(r"continue with offset=(\d+)", found[0])
    assert rest is not None
    assert LINES[int(rest[1]) :].startswith(f"line {300 + len(found) - 1}: ".encode())


async def test_a_search_without_room_for_temporary_files_is_explained(
    stored: ToolBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_folder(**_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.TemporaryDirectory", no_folder)
    with pytest.raises(ToolError, match="No usable temporary directory"):
        await stored.call("read_result", ref_id="rlines", pattern="value")


async def test_a_pattern_that_never_ends_is_stopped_and_a_bad_one_explained(
    stored: ToolBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolError, match="Invalid pattern"):
        await stored.call("read_result", ref_id="rlines", pattern="(")
    with pytest.raises(ToolError, match="single lines"):
        await stored.call("read_result", ref_id="rlines", pattern="a\nb")
    stored.context = replace(
        stored.context, blobs=Blobs(revil=b"a" * 40 + b"!\n\0\xff binary\n"), environment={"PATH": "/nonexistent"}
    )
    assert "binary" in (await stored.call("read_result", ref_id="revil", pattern="binary")).text
    monkeypatch.setattr("swecli.core.tools.read_result.SECONDS", 0.2)
    stopped = await stored.call("read_result", ref_id="revil", pattern="(a+)+$")
    assert "stopped after 0 s" in stopped.text


async def test_what_can_not_be_given_is_explained(stored: ToolBench) -> None:
    with pytest.raises(ToolError, match="damaged"):
        await stored.call("read_result", ref_id="broken")
    with pytest.raises(ToolError, match="nknown stored result 'r9'"):
        await stored.call("read_result", ref_id="r9")
    assert (await stored.call("read_result", ref_id="t1.result")).text.endswith("what the tool said")
    stored.context = replace(stored.context, blobs=None, transcript=None)
    with pytest.raises(ToolError, match="nknown stored result"):
        await stored.call("read_result", ref_id="rlines")
    with pytest.raises(ToolError, match="keeps no transcript"):
        await stored.call("recall", query="x")


async def test_recall_by_words_and_by_id(stored: ToolBench) -> None:
    found = await stored.call("recall", query="tool said")
    assert found.text.startswith("[t1.result] about\nwhat the tool said")
    assert found.detail == "1 entry"
    assert "No match in the removed content" in (await stored.call("recall", query="unheard")).text
    assert (await stored.call("recall", id="t1.result")).text == "[t1.result: all 18 bytes]\nwhat the tool said"
    first = await stored.call("recall", id="u2")
    assert "continue with offset=8000" in first.text
    second = await stored.call("recall", id="u2", offset=8_000)
    assert second.text.split("\n")[1] == "é" * 4_000
    with pytest.raises(ToolError, match="No entry in this session has the id 't99'"):
        await stored.call("recall", id="t99")
    with pytest.raises(ToolError, match="query"):
        await stored.call("recall", query=" ")
    with pytest.raises(ToolError, match="past its end"):
        await stored.call("recall", id="u2", offset=30_000)


async def test_both_are_internal(stored: ToolBench) -> None:
    for name, arguments in (("read_result", {"ref_id": "r1"}), ("recall", {"query": "x"})):
        tool, params = stored.parsed(name, **arguments)
        assert tool.effects(params, stored.context).internal
        assert tool.result_kind == "stored"


@given(st.text(max_size=20))
@settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_any_id_gives_an_answer_or_an_error(stored: ToolBench, reference: str) -> None:
    import asyncio

    async def ask() -> None:
        for name, key in (("read_result", "ref_id"), ("recall", "id")):
            said = ""
            try:
                said = (await stored.call(name, **{key: reference})).text
            except ToolError as error:
                said = str(error)
            assert said

    asyncio.run(ask())
