"""Rows are kept for few blocks and not for all."""

from __future__ import annotations

from swecli.tui.transcript.block_rows import MAX_CACHED, MAX_CACHED_ROWS, Drawn, RowCache
from swecli.tui.transcript.rows import Row, blank


def rows(count: int) -> list[Row]:
    return [blank() for _ in range(count)]


def kept(cache: RowCache, names: list[str]) -> list[str]:
    return [name for name in names if cache.get(name, expanded=False, gap=False) is not None]


def test_what_was_not_asked_for_the_longest_is_let_go() -> None:
    cache = RowCache()
    names = [f"b{number}" for number in range(MAX_CACHED + 2)]
    for name in names[:MAX_CACHED]:
        cache.keep(name, Drawn(expanded=False, gap=False, rows=rows(1)))
    assert kept(cache, ["b0"]) == ["b0"]
    for name in names[MAX_CACHED:]:
        cache.keep(name, Drawn(expanded=False, gap=False, rows=rows(1)))
    assert kept(cache, names) == [name for name in names if name not in ("b1", "b2")]


def test_few_large_blocks_are_enough_and_the_newest_always_stays() -> None:
    cache = RowCache()
    for name in "abc":
        cache.keep(name, Drawn(expanded=False, gap=False, rows=rows(MAX_CACHED_ROWS // 2)))
    assert kept(cache, ["a", "b", "c"]) == ["b", "c"]
    cache.keep("d", Drawn(expanded=False, gap=False, rows=rows(2 * MAX_CACHED_ROWS)))
    assert kept(cache, ["b", "c", "d"]) == ["d"]


def test_rows_count_for_the_way_in_which_they_were_drawn_until_they_are_dropped() -> None:
    cache = RowCache()
    drawn = rows(2)
    cache.keep("a", Drawn(expanded=True, gap=False, rows=drawn))
    assert cache.get("a", expanded=True, gap=False) is drawn
    assert cache.get("a", expanded=False, gap=False) is None
    assert cache.get("a", expanded=True, gap=True) is None
    cache.drop("a")
    assert cache.get("a", expanded=True, gap=False) is None
    cache.keep("b", Drawn(expanded=False, gap=False, rows=drawn))
    cache.clear()
    assert kept(cache, ["b"]) == []
