"""Conversion of pastes: image paths to attachments, large texts to files, each with a placeholder."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from swecli.core.atomic_text import make_private
from swecli.figures import plural
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.core.protocol.messages import ImagePart

MAX_IMAGES = 20
"""Images that one paste may contain."""
_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_PLACEHOLDER = lazy_pattern(r"\[Image #(\d+): [^\]\n]*\]")
_MAX_TEXT = 8_000
_SLOW_BYTES = 300_000
"""A file of this size may have enough pixels to take a tenth of a second."""


class Attachments:
    """Images of the current draft. Those without a placeholder in the text are not sent."""

    def __init__(self) -> None:
        self.images: dict[int, ImagePart] = {}
        """Images by number."""
        self.weigh: Callable[[str, int], str] = lambda text, images: ""
        """Share of the window that a text and a number of images take, for display."""

    def take(self, pasted: str) -> tuple[str, str]:
        """Editor text for a paste of image paths only, and a sentence about images that can't be attached; both empty
        for any other paste."""
        return self.put(loaded_from(pasted))

    def put(self, loaded: Sequence[Loaded]) -> tuple[str, str]:
        """Editor text for loaded images, and a sentence why one can't be attached; one of them is empty."""
        labels: list[str] = []
        for name, image, words in loaded:
            if image is None:
                return "", words
            number = max(self.images, default=0) + 1
            self.images[number] = image
            weight = self.weigh("", 1)
            labels.append(f"[Image #{number}: {_label(name)}, {words}{', ' if weight else ''}{weight}]")
        return " ".join(labels), ""

    def used(self, text: str) -> tuple[ImagePart, ...]:
        """Images whose placeholders are in the text, in its order."""
        numbers = dict.fromkeys(int(match[1]) for match in _PLACEHOLDER.finditer(text))
        return tuple(self.images[number] for number in numbers if number in self.images)

    def back(self, text: str, images: Sequence[ImagePart]) -> str:
        """Take over the images of a message that was not sent. Returns its text with the images' new numbers."""
        numbers: dict[int, int] = {}
        named = dict.fromkeys(int(match[1]) for match in _PLACEHOLDER.finditer(text))
        for number, image in zip(named, images, strict=False):
            free = self.images.get(number, image) == image
            numbers[number] = number if free else max(self.images) + 1
            self.images[numbers[number]] = image

        def renumbered(match: re.Match[str]) -> str:
            number = int(match[1])
            return match[0].replace(f"#{number}:", f"#{numbers.get(number, number)}:", 1)

        return _PLACEHOLDER.sub(renumbered, text)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Spans of the placeholders."""
        return [match.span() for match in _PLACEHOLDER.finditer(text) if int(match[1]) in self.images]

    def sent(self, text: str) -> tuple[ImagePart, ...]:
        """Images of a sent message. They are kept until the next one, in case it is returned."""
        images = self.used(text)
        self.images = {number: image for number, image in self.images.items() if image in images}
        return images


Loaded: TypeAlias = "tuple[str, ImagePart | None, str]"
"""Name, image and its size; without an image, the reason."""


def load(name: str, data: bytes, failure: str = "") -> Loaded:
    """An image of these bytes. It may take a second to scale a large one down."""
    from swecli.core.images import image_type, prepared, too_large
    from swecli.core.protocol.messages import ImagePart

    media = image_type(data)
    if failure:
        return name, None, failure
    if media is None:
        return name, None, f"{name} is not a PNG, JPEG, GIF or WebP image"
    picture = too_large(len(data)) or prepared(data, media)
    if isinstance(picture, str):
        return name, None, f"{name} was not attached: {picture}"
    size = f"{_size(len(data))}{f', {picture.note}' if picture.note else ''}"
    return name, ImagePart(picture.media, picture.data, name), size


def loaded_from(pasted: str) -> list[Loaded]:
    """The images of a paste of paths."""
    return [load(*_read(path)) for path in image_paths(pasted)]


def takes_time(pasted: str) -> bool:
    """Whether images of a paste may have to be scaled down, which must not hold up the screen."""
    with contextlib.suppress(OSError):  # reading it reports the reason
        return any(path.stat().st_size > _SLOW_BYTES for path in image_paths(pasted))
    return False


def image_paths(text: str) -> list[Path]:
    """Paths that a terminal typed for images dropped on it: plain, quoted, with escaped blanks, or as ``file:`` URLs.
    Empty if the text contains anything else."""
    stripped = text.strip()
    if not stripped or len(stripped) > _MAX_TEXT or not stripped.lower().rstrip("'\"").endswith(_SUFFIXES):
        return []
    for words in _readings(stripped):
        paths = [_path(word) for word in words]
        if 0 < len(paths) <= MAX_IMAGES and all(
            path is not None and path.suffix.lower() in _SUFFIXES and os.path.isfile(path) for path in paths
        ):
            return [path for path in paths if path is not None]
    return []


def _readings(text: str) -> list[list[str]]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    try:
        split = shlex.split(" ".join(lines))
    except ValueError:
        split = []
    return [lines, split]


def _path(word: str) -> Path | None:
    if word.startswith("file:"):
        from urllib.parse import unquote, urlsplit

        address = urlsplit(word)
        word = unquote(address.path) if address.netloc in ("", "localhost") else ""
    if not word or "\0" in word:
        return None
    with contextlib.suppress(RuntimeError):  # an unknown user's home
        return Path(word).expanduser()
    return None


def _read(path: Path) -> tuple[str, bytes, str]:
    """Name and content of a file, and why it can't be read."""
    from swecli.core.images import largest_file

    try:
        with path.open("rb") as file:
            return path.name, file.read(largest_file() + 1), ""
    except OSError as error:
        return path.name, b"", f"Cannot read {path.name}: {error.strerror or error}"


def _label(name: str) -> str:
    return re.sub(r"[\[\]\n]", "_", safe_line(name))[:60]


def _size(size: int) -> str:
    return f"{size} B" if size < 1000 else f"{size / 1000:.0f} KB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


# Large pastes become files, so that only their paths are sent.


def keep_as_files(typed: str, pastes: Sequence[tuple[str, str]], cwd: Path) -> str:
    """The message with each paste replaced by the path of a file.

    Raises:
        OSError: a file can't be written.
    """
    from swecli.core.config.paths import PASTES, project_folder  # not needed by the first frame
    from swecli.core.config.trust import is_led_away

    folder = project_folder(cwd) / PASTES
    if is_led_away(folder):
        raise OSError(f"{folder} is a link or inside one")
    make_private(folder)
    with contextlib.suppress(FileExistsError), open(folder / ".gitignore", "x", encoding="utf-8") as ignore:
        ignore.write("*\n")
    for placeholder, text in pastes:
        path = _free(folder)
        data = text.encode("utf-8", "replace")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
        lines = text.count("\n") + (not text.endswith("\n"))
        before, separator, after = typed.partition(placeholder)
        if not separator:
            continue
        path_words = f"{path.relative_to(cwd)} (a pasted text of {plural(lines, 'line')})"
        typed = f"{_apart(before)}{path_words}{' ' if after[:1].isalnum() else ''}{after}"
    return typed


def _apart(before: str) -> str:
    """The text before a path, with a separating blank."""
    return before if not before or before[-1].isspace() else f"{before} "


def _free(folder: Path) -> Path:
    number = 1 + max(
        (int(path.stem[6:]) for path in folder.glob("paste-*.txt") if path.stem[6:].isdecimal()), default=0
    )
    return folder / f"paste-{number}.txt"
