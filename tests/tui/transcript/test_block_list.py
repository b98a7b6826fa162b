"""Long blocks leave memory and come back as they were, whatever the disk does."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from swecli.core.protocol.blocks import DiffBlock, FileEntry, FileListBlock, TerminalBlock
from swecli.core.protocol.events import Event, ItemCheckpointed, ItemCompleted, ItemStarted, Rewound
from swecli.core.protocol.messages import TextPart, ToolCallPart, ToolResultPart
from swecli.core.spill import SpillStore, weight_of
from swecli.tui.transcript.blocks import (
    LONG,
    AnswerBlock,
    Block,
    BlockList,
    NoticeBlock,
    Put,
    Remove,
    RewoundBlock,
    ShownBlock,
    ToolBlock,
    UserBlock,
    shape_of,
)
from swecli.tui.transcript.finder import Search, matching_blocks
from swecli.tui.transcript.page import Page
from swecli.tui.transcript.reducer import Reducer

RESIDENT = 100_000


def _tool(number: int, size: int = 50_000) -> ToolBlock:
    filler = random.Random(number).randbytes(size // 2).hex()
    output = f"\udc80 needle-{number}\n" + filler
    return ToolBlock(f"t{number}", "run_command", "make", "ok", blocks=(TerminalBlock("make", output, 0),), result="r")


def _long(number: int) -> Block:
    text = f"text {number}\n" * 400
    kinds: tuple[Block, ...] = (
        UserBlock(f"b{number}", text),
        AnswerBlock(f"b{number}", text, "ok"),
        ToolBlock(f"b{number}", "edit_file", "a.py", "ok", blocks=(DiffBlock("a.py", text, text + "x"),)),
        ShownBlock(f"b{number}", (FileListBlock(tuple(FileEntry(f"path/of/file-{n}") for n in range(300)), 300),)),
        RewoundBlock(f"b{number}", (AnswerBlock("inner", text, "ok"),)),
    )
    return kinds[number % len(kinds)]


@pytest.fixture(params=[0, 10_000_000], ids=["file", "memory"])
def spill(request: pytest.FixtureRequest) -> Iterator[SpillStore[Block]]:
    spill = SpillStore[Block](request.param)
    yield spill
    spill.close()


def test_every_kind_comes_back_equal(spill: SpillStore[Block]) -> None:
    blocks = BlockList(10_000, spill)
    whole = [_long(number) for number in range(40)]
    assert all(weight_of(block) >= LONG for block in whole)
    for block in whole:
        blocks.put(block)
    assert blocks.resident <= 10_000
    assert list(blocks) == whole
    assert [blocks[place] for place in range(40)] == whole
    assert [blocks.shape(place) for place in range(40)] == [shape_of(block) for block in whole]
    assert blocks == whole
    assert blocks[5:9] == whole[5:9]


def test_random_changes_leave_what_a_plain_list_would(spill: SpillStore[Block]) -> None:
    chance = random.Random(7)
    blocks, plain = BlockList(10_000, spill), list[Block]()
    for number in range(400):
        choice = chance.random()
        if choice < 0.5 or not plain:
            plain.append(_long(number) if choice < 0.4 else NoticeBlock(f"b{number}", "short"))
            blocks.put(plain[-1])
        elif choice < 0.7:
            place = chance.randrange(len(plain))
            plain[place] = replace(_long(number), id=plain[place].id)
            assert blocks.put(plain[place]) == place
        elif choice < 0.8:
            place = chance.randrange(len(plain))
            del plain[place]
            blocks.remove(place)
        else:
            place = chance.randrange(len(plain))
            assert blocks[place] == plain[place]
    assert list(blocks) == plain
    assert [blocks.place(block.id) for block in plain] == list(range(len(plain)))


def test_memory_is_bounded_however_much_was_said() -> None:
    spill = SpillStore[Block](200_000)
    page = Page()
    page.blocks = BlockList(RESIDENT, spill)
    for number in range(300):
        page.apply(Put(_tool(number)))
        page.rows(number)
    assert page.blocks.resident <= RESIDENT
    assert spill.in_memory <= 200_000
    assert matching_blocks(page.blocks, "NEEDLE-17") == [17, *range(170, 180)]
    assert page.blocks.resident <= RESIDENT
    search = Search(page, "needle-299")
    assert search.go(1) is not None
    assert len(page.rows(3)) == len(page.rows(250))
    spill.close()


def test_layout_at_another_width_reads_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page()
    page.blocks = BlockList(RESIDENT)
    for number in range(30):
        page.apply(Put(_tool(number)))
    monkeypatch.setattr(page.blocks.spill, "get", lambda ticket: pytest.fail("read"))
    assert page.configure(width=40)
    assert page.index.total > 30
    assert page.blocks.id_at(0) == "t0"
    page.apply(Remove("t0"))
    assert page.place("t29") == 28


def test_a_full_disk_keeps_them_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    blocks = BlockList(10_000, SpillStore(0))
    whole = [_long(number) for number in range(10)]
    for block in whole:
        blocks.put(block)
    assert list(blocks) == whole


def test_what_can_not_be_read_back_is_said() -> None:
    spill = SpillStore[Block](0)
    blocks = BlockList(10_000, spill)
    for number in range(10):
        blocks.put(_long(number))
    spill.close()
    lost = blocks[0]
    assert isinstance(lost, NoticeBlock)
    assert lost.id == "b0"
    assert "Cannot read back" in lost.text


def test_the_reduction_keeps_only_what_is_open_and_rewinds_all_the_same() -> None:
    page = Page()
    page.blocks = BlockList(RESIDENT)
    reducer = Reducer(page.block)
    plain_page, plain = Page(), Reducer()
    plain_page.blocks = BlockList(10**9)

    def feed(*events: Event) -> None:
        for one, reduction in ((page, reducer), (plain_page, plain)):
            for operation in reduction.reduce(events):
                one.apply(operation)

    seq = 0

    def event(body: object) -> Event:
        nonlocal seq
        seq += 1
        return Event(seq, 0.0, "s", 1, body)  # pyright: ignore[reportArgumentType]

    for number in range(20):
        user, tool = f"u{number}", f"t{number}"
        feed(event(ItemStarted(user, "user")), event(ItemCompleted(user, "ok", (TextPart("x" * 5_000),))))
        feed(
            event(ItemStarted(tool, "tool", "run_command")),
            event(ItemCheckpointed(tool, ToolCallPart("c", "run_command", "{}"))),
        )
        output = (TerminalBlock("make", f"{number} " * 20_000, 0),)
        feed(event(ItemCompleted(tool, "ok", (ToolResultPart("c", "run_command", "r"),), blocks=output)))
        assert len(reducer.blocks) <= 2
    feed(event(Rewound("u3", "wrong way")))
    assert list(page.blocks) == list(plain_page.blocks)
    folded = page.blocks[len(page.blocks) - 1]
    assert isinstance(folded, RewoundBlock)
    assert len(folded.blocks) == 34
    assert list(reducer.ids) == [block.id for block in page.blocks]
