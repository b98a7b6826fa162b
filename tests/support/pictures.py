"""Small image files, written by hand."""

from __future__ import annotations

import os
import struct
import zlib


def png(width: int, height: int, *, noise: bool = False) -> bytes:
    """A PNG, grey or of random colours, which hardly compress."""
    rows = b"".join(b"\0" + (os.urandom(width * 3) if noise else b"\x80" * (width * 3)) for _ in range(height))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
