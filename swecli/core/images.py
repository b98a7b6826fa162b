"""Images for models: their type and size from the first bytes, and copies that fit the limits of providers."""

from __future__ import annotations

import base64
import io
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from PIL.Image import Image

USUAL_CHARACTERS: Final = 5_242_880
"""Base64 characters of one image that every provider with published limits accepts, except for those that limit the
whole request (``ImageLimits``)."""
USUAL_EDGE: Final = 2_000
"""Longest edge in pixels that Anthropic accepts among more than 20 images. Providers scale larger images down to
about this size, so that nothing is lost by sending no more."""
MAX_BYTES: Final = 5_000_000
"""Largest file that is accepted as it is."""
MAX_REDUCED_BYTES: Final = 40_000_000
"""Largest file that is read to be scaled down."""
MAX_PIXELS: Final = 100_000_000
"""Pixels that are unpacked at most: 400 MB of memory."""
REDUCER: Final = "swecli[images]"
"""The optional part of the package that scales images down."""
_SMALLEST_EDGE: Final = 200
"""Below this, a reduced image shows nothing any more."""
_QUALITY: Final = 85
_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class ImageLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """Images that a provider accepts in one request. The defaults are Anthropic's, the narrowest of the large
    providers: https://platform.claude.com/docs/en/build-with-claude/vision (5 MB of base64 text an image, 8000 pixels,
    2000 pixels among more than 20 images, 100 images for windows of 200,000 tokens, 32 MB a request)."""

    characters: int = USUAL_CHARACTERS
    """Base64 characters of one image."""
    edge: int = 8_000
    """Longest edge of one image in pixels."""
    count: int = 100
    many: int = 20
    """Number of images above which each may have an edge of ``many_edge`` pixels at most."""
    many_edge: int = USUAL_EDGE
    total: int = 24_000_000
    """Base64 characters of all images; the rest of the request needs space, too."""


class Picture(Struct, frozen=True):
    """An image to send. ``data`` is base64 text; ``note`` says how it differs from the file, empty if it does not."""

    media: str
    data: str
    note: str = ""


def image_type(head: bytes) -> str | None:
    """Media type of an image that models can see; None for anything else."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media for magic, media in _MAGIC if head.startswith(magic)), None)


def dimensions(raw: bytes) -> tuple[int, int] | None:
    """Width and height in pixels as the headers state them; None if they are damaged or of another type."""
    try:
        match image_type(raw):
            case "image/png":
                return struct.unpack(">II", raw[16:24])
            case "image/gif":
                return struct.unpack("<HH", raw[6:10])
            case "image/jpeg":
                return next(_jpeg_frames(raw), None)
            case "image/webp":
                return _webp(raw)
            case _:
                return None
    except struct.error:
        return None


def _jpeg_frames(raw: bytes) -> Iterator[tuple[int, int]]:
    """Sizes in the frame headers (SOF0 to SOF15; C4, C8 and CC are other segments)."""
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", raw[at + 5 : at + 9])
            yield width, height
        at += 2 + struct.unpack(">H", raw[at + 2 : at + 4])[0]


def _webp(raw: bytes) -> tuple[int, int] | None:
    chunk = raw[12:16]
    if chunk == b"VP8X":
        return 1 + int.from_bytes(raw[24:27], "little"), 1 + int.from_bytes(raw[27:30], "little")
    if chunk == b"VP8L":
        bits = struct.unpack("<I", raw[21:25])[0]
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if chunk == b"VP8 ":
        width, height = struct.unpack("<HH", raw[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return None


def reduces() -> bool:
    """Whether images can be scaled down here."""
    from importlib.util import find_spec

    return find_spec("PIL") is not None


def largest_file() -> int:
    """Bytes of the largest image file that is worth reading."""
    return MAX_REDUCED_BYTES if reduces() else MAX_BYTES


def encoded_size(size: int) -> int:
    """Base64 characters of a number of bytes."""
    return (size + 2) // 3 * 4


def too_large(size: int) -> str:
    """Why a file of this many bytes is no image to send; empty if it is."""
    if size <= largest_file():
        return ""
    limit = f"the limit is {largest_file() / 1_000_000:.0f} MB"
    return limit if reduces() else f"{limit} ({REDUCER} scales larger images down)"


def prepared(raw: bytes, media: str) -> Picture | str:
    """The image for a model, scaled down if it is larger than providers use; or the reason why there is none."""
    size = dimensions(raw)
    fits = encoded_size(len(raw)) <= USUAL_CHARACTERS and (size is None or max(size) <= USUAL_EDGE)
    if not fits and reduces() and (reduced := _reduced(raw, media, size)) is not None:
        return reduced
    if len(raw) > MAX_BYTES:
        return too_large(len(raw)) or "it could not be scaled down"
    return Picture(media, base64.b64encode(raw).decode("ascii"))


def _reduced(raw: bytes, media: str, size: tuple[int, int] | None) -> Picture | None:
    """A smaller copy of the image's first frame; None if it can't be read."""
    if size is None or not 0 < size[0] * size[1] <= MAX_PIXELS:
        return None
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(raw), formats=("PNG", "JPEG", "GIF", "WEBP")) as opened:
            image = ImageOps.exif_transpose(opened)
            image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    except (OSError, ValueError, SyntaxError, EOFError, struct.error, Image.DecompressionBombError):
        return None  # the decoders' errors for damaged files
    edge = min(max(size), USUAL_EDGE)
    while edge >= _SMALLEST_EDGE:
        image.thumbnail((edge, edge), Image.Resampling.LANCZOS)
        for kind in ("JPEG",) if media == "image/jpeg" else ("PNG", "JPEG"):
            copy = _saved(image, kind)
            if encoded_size(len(copy)) <= USUAL_CHARACTERS:
                note = f"sent as {image.width}x{image.height} {kind}, {len(copy) / 1_000_000:.1f} MB"
                return Picture(f"image/{kind.lower()}", base64.b64encode(copy).decode("ascii"), note)
        edge = edge * 3 // 4
    return None


def _saved(image: Image, kind: str) -> bytes:
    """The file's bytes. JPEG has no transparency: it becomes white."""
    out = io.BytesIO()
    if kind == "JPEG":
        from PIL import Image as images

        if image.mode == "RGBA":
            paper = images.new("RGB", image.size, "white")
            paper.paste(image, mask=image.getchannel("A"))
            image = paper
        image.save(out, kind, quality=_QUALITY)
    else:
        image.save(out, kind, compress_level=6)
    return out.getvalue()
