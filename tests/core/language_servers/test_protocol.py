"""Messages, places and addresses."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swecli.core.language_servers.protocol import (
    ProtocolError,
    column_of,
    content_length,
    framed,
    kind_name,
    lines_of,
    path_of,
    read_errors,
    read_json,
    read_message,
    read_published,
    start_of,
    units,
    uri_of,
)

PLACE = b'{"start":{"line":1,"character":2},"end":{"line":1,"character":3}}'


@pytest.mark.parametrize(
    ("line", "length"),
    [
        (b"Content-Length: 12\r\n", 12),
        (b"content-length:0\n", 0),
        (b"printed by mistakeContent-Length: 7\r\n", 7),
        (b"Content-Length: -1\r\n", None),
        (b"Content-Length: twelve\r\n", None),
        (b"Content-Type: x; charset=utf-8\r\n", None),
        (b"", None),
    ],
)
def test_lengths(line: bytes, length: int | None) -> None:
    assert content_length(line) == length


@pytest.mark.parametrize("value", [b"64000001", b"9" * 5_000])
def test_a_length_that_no_message_has(value: bytes) -> None:
    with pytest.raises(ProtocolError, match="64 MB"):
        content_length(b"Content-Length: " + value + b"\r\n")


def test_a_message_is_framed_by_its_bytes() -> None:
    assert (
        framed({"id": 1, "method": "😀"}) == 'Content-Length: 40\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"😀"}'.encode()
    )


def test_a_message_that_has_to_be_escaped() -> None:
    data = framed({"params": {"text": "a\udc80", "since": date(2026, 1, 2)}}).partition(b"\r\n\r\n")[2]
    assert json.loads(data)["params"] == {"text": "a\udc80", "since": "2026-01-02"}


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'{"method": 3}', b'{"id": {}}', b"\xff", b"[" * 100_000])
def test_what_is_no_message(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="not a message"):
        read_message(data)


@pytest.mark.parametrize(
    "data", [b"[]", b"null", b'{"diagnostics": []}', b'{"uri": 1}', b'{"uri": "a", "version": "x"}']
)
def test_what_is_no_list_for_a_file(data: bytes) -> None:
    assert read_published(data) is None


def test_errors_that_can_be_read_count_though_others_can_not() -> None:
    good = b'{"range":' + PLACE + b',"message":"a"}'
    warning = b'{"range":' + PLACE + b',"message":"b","severity":2}'
    assert [one.message for one in read_errors(b"[" + good + b"," + warning + b"]")] == ["a"]
    assert [one.message for one in read_errors(b'[3,{"message":"x"},' + good + b"]")] == ["a"]
    assert read_errors(b'{"no": "list"}') == ()


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=20), st.integers(0, 20))
def test_columns_and_units_are_each_others_inverse(line: str, column: int) -> None:
    column = min(column, len(line))
    assert column_of(line, units(line[:column])) == column
    assert units(line) == len(line.encode("utf-16-le")) // 2


def test_a_column_past_the_end_is_the_end() -> None:
    assert column_of("a😀", 99) == 2


def test_only_these_characters_end_a_line() -> None:
    assert lines_of("a\r\nb\rc\nd\x0be\u2028f") == ["a", "b", "c", "d\x0be\u2028f"]


@pytest.mark.parametrize("name", ["a b.py", "ö#1?.ts", "100%.c", "日本/😀.rs", "a'b\"c.go", "back\\slash"])
def test_addresses(name: str) -> None:
    path = Path("/proj") / name
    assert path_of(uri_of(path)) == path
    assert path_of(path.as_uri()) == path


@pytest.mark.parametrize("uri", [None, 3, "", "http://x/y", "file://relative", "file:///a%00b", "untitled:1"])
def test_what_is_no_file(uri: object) -> None:
    assert path_of(uri) in (None, Path("/"))


def test_other_ways_to_write_an_address() -> None:
    assert path_of("file:///srv/a%3Ab/%C3%B6.py") == Path("/srv/a:b/ö.py")
    assert path_of("file:///srv/../etc/x") == Path("/etc/x")


def test_pieces_of_answers() -> None:
    assert start_of({"start": {"line": 3, "character": 1}}) == (3, 1)
    assert start_of({"start": {"line": -3}}) is start_of([]) is start_of({"start": {"line": True}}) is None
    assert [kind_name(value) for value in (1, 5, 26, 0, 27, "x", None)] == [
        "file",
        "class",
        "type parameter",
        *[""] * 4,
    ]
    assert read_json(b"{") is read_json(b"\xff") is None
