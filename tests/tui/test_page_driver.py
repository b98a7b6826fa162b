"""Packets between the interface and the server of its page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swecli.tui.web import Packets

PACKET = st.tuples(st.sampled_from((b"D", b"M")), st.binary(max_size=40))


@given(st.lists(PACKET, max_size=6), st.integers(1, 30))
def test_packets_are_split_as_they_were_joined(packets: list[tuple[bytes, bytes]], size: int) -> None:
    stream = b"".join(kind + len(data).to_bytes(4, "big") + data for kind, data in packets)
    reader = Packets()
    chunks = (stream[at : at + size] for at in range(0, len(stream), size))
    assert [packet for chunk in chunks for packet in reader.feed(chunk)] == packets


@pytest.mark.parametrize("data", [b"X\0\0\0\0", b"D\xff\xff\xff\xff"])
def test_what_is_no_packet_ends_the_stream(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a packet"):
        list(Packets().feed(data))
