"""What a file is by its first bytes."""

from __future__ import annotations

_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_KINDS = (
    (b"\x7fELF", "an ELF program or library"),
    (b"MZ", "a Windows program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a zip archive (also .docx, .xlsx, .jar, .whl)"),
    (b"\x1f\x8b", "gzip data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"BZh", "bzip2 data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"\x00asm", "a WebAssembly module"),
    (b"\xca\xfe\xba\xbe", "a Java class or universal Mach-O file"),
    (b"OggS", "Ogg media"),
    (b"ID3", "MP3 audio"),
    (b"BM", "a BMP image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"wOF2", "a web font"),
)


def image_type(head: bytes) -> str | None:
    """Media type of an image that models can see; None for anything else."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media for magic, media in _IMAGES if head.startswith(magic)), None)


def binary_kind(head: bytes) -> str:
    """What a binary file seems to be."""
    if head[4:8] == b"ftyp":
        return "MP4 or similar media"
    return next((kind for magic, kind in _KINDS if head.startswith(magic)), "unknown binary data")


def is_binary(head: bytes) -> bool:
    """Whether the first bytes are no text: NUL without a Unicode mark, or a document's signature."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        return False
    return b"\0" in head or head.startswith(b"%PDF-")
