"""Bounding of results to a size that fits a context window."""

from __future__ import annotations

from msgspec import Struct

from swecli.lazy_pattern import lazy_pattern

MAX_BYTES = 48_000
MAX_LINES = 2_400
_HEAD_SHARE = 0.4
"""The end of an output (a summary, a failure) usually says more than its beginning."""
_LONE_SURROGATE = lazy_pattern("[\ud800-\udfff]")


class Bounded(Struct, frozen=True):
    """A bounded text and how much was cut from it, in bytes of UTF-8."""

    text: str
    omitted_bytes: int = 0


def bound_result(text: str, max_bytes: int = MAX_BYTES, max_lines: int = MAX_LINES) -> str:
    """The beginning and end of ``text``, with a line between them that says how much is missing."""
    return bound(text, max_bytes, max_lines).text


def bound(text: str, max_bytes: int = MAX_BYTES, max_lines: int = MAX_LINES) -> Bounded:
    """Like ``bound_result``, with figures. The result is valid UTF-8: lone surrogates become U+FFFD."""
    text = _LONE_SURROGATE.sub("\ufffd", text)
    raw = text.encode("utf-8")
    lines = text.count("\n") + 1
    if len(raw) <= max_bytes and lines <= max_lines:
        return Bounded(text)
    head, tail = _halves(raw, max_bytes, max_lines)
    missing = raw[len(head) : len(raw) - len(tail)]
    cut = missing.count(b"\n")
    marker = f"[… {len(missing):,} bytes, {cut:,} lines left out …]"
    joined = f"{_text(head)}\n{marker}\n{_text(tail)}"
    return Bounded(joined, len(missing))


def _halves(raw: bytes, max_bytes: int, max_lines: int) -> tuple[bytes, bytes]:
    """Beginning and end within the byte and line limits, cut at line ends if that costs little."""
    head = raw[: int(max_bytes * _HEAD_SHARE)].decode("utf-8", "ignore").encode("utf-8")
    tail = raw[max(len(head), len(raw) - (max_bytes - len(head))) :]
    while tail and tail[0] & 0xC0 == 0x80:
        tail = tail[1:]
    head_lines = max(1, int(max_lines * _HEAD_SHARE))
    tail_lines = max(1, max_lines - head_lines)
    head = b"\n".join(head.split(b"\n")[:head_lines])
    tail = b"\n".join(tail.split(b"\n")[-tail_lines:])
    if 0 < len(head) - (edge := head.rfind(b"\n")) < len(head) // 4 and len(raw) > len(head):
        head = head[: edge + 1].removesuffix(b"\n")
    if 0 <= (edge := tail.find(b"\n")) < len(tail) // 4 and raw[: -len(tail)][-1:] != b"\n":
        tail = tail[edge + 1 :]
    return head, tail


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
