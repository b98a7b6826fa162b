"""/where says what the index has, and why it points to nothing."""

from __future__ import annotations

from swecli.core.protocol.blocks import TableBlock, TextBlock
from swecli.core.retrieval.index import FileState, build, document, pack, unpack
from swecli.core.retrieval.project import IndexState
from swecli.core.retrieval.retrieve import Ranked, Retrieval, retrieve
from swecli.features.retrieval.command import indexed, result_of


def found(count: int) -> Retrieval:
    files = [document(FileState(f"shop/o{n}.py"), "def redeem(): ...\n") for n in range(count)]
    return retrieve(build(files), "redeem")


def reason(files: int) -> str:
    table, said = result_of(found(files), IndexState(files)).blocks
    assert isinstance(table, TableBlock)
    assert isinstance(said, TextBlock)
    return said.text


def test_a_tiny_folder_is_named_as_the_reason() -> None:
    assert "in a folder of 1 file, words say too little" in reason(1)
    assert "in a folder of 3 files, words say too little" in reason(3)
    ranked = (Ranked("shop/o1.py", 1.0),)
    said = result_of(Retrieval(ranked=ranked), IndexState(60)).blocks[-1]
    assert isinstance(said, TextBlock)
    assert "they match too many files" in said.text


def test_what_is_not_indexed_is_said() -> None:
    assert indexed(IndexState(1)) == "1 file is indexed."
    assert indexed(IndexState(3, building=True)) == "3 files are indexed; indexing continues."
    said = indexed(IndexState(20_000, complete=False, left_out=(("gen/", 61_204), ("./", 2))))
    assert said == (
        "20,000 files are indexed. There are more, which were left out: programs come first, then tests. "
        "Most are in gen/ (61,204), ./ (2)."
    )
    (nothing,) = result_of(Retrieval(), IndexState(20_000, complete=False)).blocks
    assert isinstance(nothing, TextBlock)
    assert "There are more" in nothing.text


def test_the_index_keeps_what_it_left_out() -> None:
    index = build([document(FileState("a.py"), "x = 1\n")], complete=False, left_out=(("gen/", 5),))
    assert unpack(pack(index)).left_out == (("gen/", 5),)
