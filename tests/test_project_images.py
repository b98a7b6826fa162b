"""The pictures and the recording of the documentation: they show this program, and nothing of the machine they were
made on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyte

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
FOLDER = "/tmp/stationery"
"""The one folder that they name; `scripts/shown_project.py` makes it."""
OF_A_MACHINE = re.compile(r"/(?:tmp|home|root|Users|work|opt|usr|var|private|mnt|srv|nix)\b[^\s\"'<>\\&]*")


def strangers(text: str) -> set[str]:
    """Absolute paths other than that of the sample project. At the end of a line the folder may be cut."""
    found = (match.group().rstrip("….,)") for match in OF_A_MACHINE.finditer(text))
    return {path for path in found if not path.startswith(FOLDER) and not (FOLDER.startswith(path) and len(path) > 4)}


def frames() -> list[str]:
    """What the recording shows after each of its pieces."""
    header, *pieces = map(json.loads, (IMAGES / "demo.cast").read_text("utf-8").splitlines())
    assert (header["version"], header["env"]) == (2, {"TERM": "xterm-256color"})
    screen = pyte.Screen(header["width"], header["height"])
    stream = pyte.ByteStream(screen)
    out: list[str] = []
    last = 0.0
    for at, kind, text in pieces:
        assert kind == "o"
        assert last <= at < 60
        last = at
        stream.feed(text.encode())
        out.append("\n".join(line.rstrip() for line in screen.display))
    return out


def test_no_picture_and_no_frame_names_a_folder_of_a_machine() -> None:
    for image in IMAGES.iterdir():
        if image.suffix == ".webp":  # of a page; what is in it besides could name one
            assert not any(chunk in image.read_bytes() for chunk in (b"EXIF", b"XMP ")), image.name
        else:
            assert not strangers(image.read_text("utf-8")), image.name
    for frame in frames():
        assert not strangers(frame)


def test_the_recording_is_the_whole_demonstration() -> None:
    shown = frames()
    place = 0
    for text in ("Search", "Make this change?", "Run this command?", "5 passed, 0 failed", "/context", "% "):
        place = next(n for n, frame in enumerate(shown) if n >= place and text in frame)
    assert "kept for the answer" in "".join(shown[-20:])
    assert not any("Traceback" in frame or "internal error" in frame for frame in shown)


def test_every_picture_is_shown_somewhere() -> None:
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
    for image in IMAGES.iterdir():
        assert f"images/{image.name}" in pages, image.name
