"""Sessions of other agents, read part by part: the same for every format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, cast

from msgspec import Struct, field

from swecli.core.protocol.messages import ImagePart, Part, TextPart
from swecli.core.sessions.store import LATEST

Line = Mapping[str, Any]


class Said(Struct, frozen=True):
    """Part of a foreign session, in order. ``answer`` groups the parts of one response."""

    part: Part
    at: float
    answer: str = ""
    """Empty for user messages and results."""


class Foreign(Struct):
    """Content of a file. ``left_out`` counts omitted lines by reason, without lines that carry no content."""

    agent: str
    cwd: str = ""
    model: str = ""
    title: str = ""
    said: list[Said] = field(default_factory=list[Said])
    left_out: Counter[str] = field(default_factory=Counter[str])

    def add(self, part: Part, at: float, answer: str = "") -> None:
        if not isinstance(part, TextPart) or part.text.strip():
            self.said.append(Said(part, at, answer))


NOT_UNDERSTOOD: Final = "not understood"
OF_SUBAGENTS: Final = "of subagents"
OF_BRANCHES: Final = "of abandoned branches"
SUMMARIES: Final = "summaries of existing entries"


def object_of(text: str) -> dict[str, Any]:
    """The JSON object in a text; empty if it is none."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def string_in(line: Line, name: str) -> str:
    """The string under a name; empty if it is none."""
    value = line.get(name)
    return value if isinstance(value, str) else ""


def texts_of(content: object) -> tuple[str, tuple[ImagePart, ...]]:
    """The texts of a content, which is one block or a list of blocks, and its images."""
    if isinstance(content, str):
        return content, ()
    texts: list[str] = []
    images: list[ImagePart] = []
    for entry in cast("list[object]", content) if isinstance(content, list) else ():
        block = cast("Line", entry) if isinstance(entry, dict) else {}
        if isinstance(entry, str):
            texts.append(entry)
        elif text := string_in(block, "text"):
            texts.append(text)
        elif (image := image_of(block)) is not None:
            images.append(image)
    return "\n".join(texts), tuple(images)


_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


def image_of(block: Line) -> ImagePart | None:
    """The image of a block in any of the four forms; None without embedded data."""
    source = block.get("source")
    address = string_in(block, "image_url") or string_in(line_in(block, "image_url"), "url")
    if isinstance(source, dict):
        kind, data = string_in(cast("Line", source), "media_type"), string_in(cast("Line", source), "data")
    elif address.startswith("data:"):
        head, _, data = address.partition(",")
        kind = head.removeprefix("data:").partition(";")[0]
    else:
        kind, data = string_in(block, "mimeType"), string_in(block, "data")
    return ImagePart(kind, data) if kind in _IMAGES and data else None


def when(value: object) -> float:
    """Unix seconds of an ISO time, or of milliseconds; 0 for other values, and for times beyond the year 3000."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) / 1000 if 1e11 < value < LATEST * 1000 else 0.0
    try:
        seconds = datetime.fromisoformat(str(value)).timestamp() if value else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return seconds if seconds < LATEST else 0.0


def line_in(line: Line, name: str) -> Line:
    """The object under a name; empty if it is none."""
    value = line.get(name)
    return cast("Line", value) if isinstance(value, dict) else {}
