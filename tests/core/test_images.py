"""Images: size from their headers, and smaller copies."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from typing import Any

import pytest

from swecli.core import images
from swecli.core.images import (
    MAX_BYTES,
    USUAL_CHARACTERS,
    USUAL_EDGE,
    Picture,
    dimensions,
    image_type,
    prepared,
    too_large,
)


def png(width: int, height: int, rows: bytes = b"") -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


JPEG_NOTES = b"\xff\xe1" + struct.pack(">H", 60_000) + bytes(59_998)
HEADERS = {
    "png": png(1300, 1050),
    "gif": b"GIF89a" + struct.pack("<HH", 1300, 1050) + bytes(8),
    "jpeg": b"\xff\xd8" + JPEG_NOTES + b"\xff\xff\xc2\x00\x11\x08" + struct.pack(">HH", 1050, 1300) + bytes(9),
    "webp lossy": b"RIFF\0\0\0\0WEBPVP8 " + bytes(7) + b"\x9d\x01\x2a" + struct.pack("<HH", 1300, 1050),
    "webp lossless": b"RIFF\0\0\0\0WEBPVP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 1299 | 1049 << 14),
    "webp extended": b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + (1299).to_bytes(3, "little") + (1049).to_bytes(3, "little"),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_the_size_is_in_the_headers(kind: str) -> None:
    assert dimensions(HEADERS[kind]) == (1300, 1050)


@pytest.mark.parametrize("kind", HEADERS)
def test_a_damaged_header_tells_no_size(kind: str) -> None:
    raw = HEADERS[kind]
    for end in range(min(len(raw), 40)):
        dimensions(raw[:end])
    assert dimensions(raw[:12]) in (None, (1300, 1050))
    assert dimensions(b"no image") is None


def test_an_image_within_the_limits_stays_as_it_is() -> None:
    raw = png(20, 10, (b"\0" + bytes(60)) * 10)
    assert prepared(raw, "image/png") == Picture("image/png", base64.b64encode(raw).decode())


def test_without_the_optional_part_large_images_stay_or_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "reduces", lambda: False)
    picture = prepared(png(5000, 5000), "image/png")
    assert isinstance(picture, Picture)
    assert picture.note == ""
    assert too_large(MAX_BYTES) == ""
    assert too_large(MAX_BYTES + 1) == "the limit is 5 MB (swecli[images] scales larger images down)"
    assert prepared(png(10, 10) + bytes(MAX_BYTES), "image/png") == too_large(MAX_BYTES + 1)


def test_damaged_and_huge_images_are_not_unpacked() -> None:
    pytest.importorskip("PIL")
    for raw in (png(5000, 5000, b"x"), png(60_000, 60_000), png(5000, 5000)[:60], png(0, 5000)):
        picture = prepared(raw, "image/png")
        assert isinstance(picture, Picture)
        assert base64.b64decode(picture.data) == raw


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_larger_image_is_scaled_down(kind: str) -> None:
    image: Any = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    image.effect_noise((2600, 1300), 80).save(out, kind)
    raw = out.getvalue()
    media = image_type(raw)
    assert media == f"image/{kind.lower()}"
    picture = prepared(raw, media)
    assert isinstance(picture, Picture)
    smaller = base64.b64decode(picture.data)
    assert dimensions(smaller) == (USUAL_EDGE, USUAL_EDGE // 2)
    assert image_type(smaller) == picture.media
    assert len(picture.data) <= USUAL_CHARACTERS
    assert picture.note.startswith("sent as 2000x1000")


def test_an_image_that_is_only_too_large_as_base64_is_encoded_anew() -> None:
    image: Any = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    image.effect_noise((2000, 2000), 200).convert("RGB").save(out, "PNG", compress_level=0)
    raw = out.getvalue()
    assert len(raw) > MAX_BYTES
    picture = prepared(raw, "image/png")
    assert isinstance(picture, Picture)
    assert len(picture.data) <= USUAL_CHARACTERS
    assert dimensions(base64.b64decode(picture.data)) == (2000, 2000)
