"""The images of a conversation that a server gets, and the sentences in place of the others."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256

from msgspec import Struct, structs
from msgspec.structs import replace

from swecli.core.images import REDUCER, ImageLimits, dimensions, reduces
from swecli.core.llm.errors import WireError
from swecli.core.llm.per_message import ListPerMessage
from swecli.core.llm.refused_fields import IMAGE_REFUSAL
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.messages import ImagePart, Message, Part, TextPart, ToolResultPart
from swecli.lazy_pattern import lazy_pattern

BLIND = "this model does not support images"
REJECTED = "the server rejected it"
NOTICE = "The model does not support images; swecli sends a sentence in place of each."
_NO_IMAGES = lazy_pattern(
    r"(?:does not|doesn't|do not|cannot|can't) (?:support|accept|process|handle|take) (?:the use of )?(?:an? )?"
    r"(?:image|vision|visual|multi-?modal)"
    r"|(?:image|vision)(?! (?:format|type|media|size|file|dimension))[a-z_ ]{0,30} (?:is|are) not"
    r" (?:supported|available|enabled|allowed)"
    r"|support (?:image input|function .?function_image_chat)|image input is not supported|no vision"
    r"|not a (?:vision|multi-?modal) model"
    r"|at most 0 image|missing data required for image input"
    r"|unknown variant `?image_url|unsupported content type:? .?image|must be a string"
    r"|mmproj",
    re.IGNORECASE,
)
_UNREADABLE = lazy_pattern(
    r"(?:could not|couldn't|cannot|can't|unable to|failed to) (?:load|process|identify|decode|read|parse)[^\n]{0,20}"
    r"\bimage|(?:invalid|unsupported|corrupt(?:ed)?|not a valid|not represent a valid)(?: \w+)? image"
    r"|image_parse_error",
    re.IGNORECASE,
)
"""The server fails to read an image: some call that their own failure (500)."""
_ABOUT_IMAGES = lazy_pattern(r"image|inline_?data|\bpixels?\b", re.IGNORECASE)
_STATUSES = (200, 400, 413, 422)
_KEPT = (3, 4)
"""Share of a provider's limits that the newest images keep once older ones must go, so that the next images change
nothing before them."""


def refuses_images(error: WireError) -> bool:
    """Whether the server reports that the model takes no images at all."""
    return error.kind in ("bad_request", "not_found", "server") and _NO_IMAGES.search(error.words) is not None


def is_about_images(error: WireError) -> bool:
    """Whether the server complains about an image, or about the size of a request."""
    if error.status in _STATUSES and error.kind == "too_large":
        return True
    if error.status in _STATUSES and error.kind == "bad_request":
        return _ABOUT_IMAGES.search(error.words) is not None
    return error.kind == "server" and _UNREADABLE.search(error.words) is not None


def images_of(parts: Iterable[Part]) -> list[ImagePart]:
    """All images of some parts, those of results included."""
    images: list[ImagePart] = []
    for part in parts:
        if isinstance(part, ImagePart):
            images.append(part)
        elif isinstance(part, ToolResultPart):
            images.extend(part.images)
    return images


def images_in(message: Message) -> list[ImagePart]:
    """All images of a message, those of results included."""
    return [part for part in message.attached if isinstance(part, ImagePart)]


def newest_images(request: ModelRequest) -> list[ImagePart]:
    """Images of the newest message with any: if the server does not say which image it refuses, earlier requests with
    the others were accepted. Results of the calls of one answer count as one message."""
    newest: list[ImagePart] = []
    for message in reversed(request.messages):
        if newest and message.role != "tool":
            break
        newest = images_of(message.parts) + newest
        if newest and message.role != "tool":
            break
    return newest


def named(images: Sequence[ImagePart]) -> str:
    """The images in a sentence."""
    names = list(dict.fromkeys(image.name for image in images if image.name))
    if len(images) == 1:
        return f"the image {names[0]}" if names else "an image"
    return f"{len(images)} images ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})" if names else "images"


def refusal_name(image: ImagePart) -> str:
    """The name under which a server's refusal of an image is remembered: nothing of the image but its hash."""
    return f"{IMAGE_REFUSAL}{sha256(image.data.encode()).hexdigest()[:32]}"


Reason = Callable[[ImagePart], str]
"""Why an image is not sent; empty if it is."""


def without_images(request: ModelRequest, reason: Reason = lambda image: BLIND) -> ModelRequest:
    """The request with a sentence in place of each image that has a reason; the request itself without such images."""
    messages = tuple(_message(message, reason) for message in request.messages)
    return request if all(map(_same, messages, request.messages)) else replace(request, messages=messages)


def _same(value: object, other: object) -> bool:
    return value is other


def _message(message: Message, reason: Reason) -> Message:
    if not images_of(message.parts):
        return message
    parts = tuple(_part(part, reason) for part in message.parts)
    return message if all(map(_same, parts, message.parts)) else structs.replace(message, parts=parts)


def _part(part: Part, reason: Reason) -> Part:
    if isinstance(part, ImagePart):
        return TextPart(_sentence(part, why)) if (why := reason(part)) else part
    if isinstance(part, ToolResultPart) and part.images:
        reasons = [reason(image) for image in part.images]
        if not any(reasons):
            return part
        sentences = (_sentence(image, why) for image, why in zip(part.images, reasons, strict=True) if why)
        images = tuple(image for image, why in zip(part.images, reasons, strict=True) if not why)
        return structs.replace(part, text="\n".join([part.text, *sentences]).lstrip("\n"), images=images)
    return part


def _sentence(image: ImagePart, reason: str) -> str:
    name = f" {image.name}" if image.name else ""
    return f"[The image{name} ({image.media_type}) was left out: {reason}.]"


class SentImages:
    """Decides which images of a conversation one server gets: none if its model is blind, else those within its limits.
    The answer depends only on the images, so that it is the same in the next request and after a resume."""

    def __init__(self, limits: ImageLimits, *, is_blind: bool) -> None:
        self._fit = ImageFit(limits)
        self._is_blind = is_blind
        self._refuses = False
        """Whether the server has refused images as such."""
        self._told: set[str] = set()
        """Data of the images that the user knows to be left out."""
        self._told_blind = False
        self._images = ListPerMessage(images_in)

    def know(self, *, is_blind: bool) -> None:
        self._is_blind = is_blind or self._refuses

    def apply(self, request: ModelRequest) -> ModelRequest:
        """The request with sentences in place of the images that the server does not get."""
        images = self._images.all_of(request.messages)
        if not images:
            return request
        if self._is_blind:
            return without_images(request)
        reasons = self._fit.reasons(images)
        return without_images(request, lambda image: reasons.get(image.data, ""))

    def news(self, request: ModelRequest, refused_earlier: Callable[[ImagePart], bool]) -> list[str]:
        """A sentence for the user about each reason for which images are left out, once for each image."""
        images = self._images.all_of(request.messages)
        if not images:
            return []
        if self._is_blind:
            told, self._told_blind = self._told_blind, True
            return [] if told else [NOTICE]
        reasons = self._fit.reasons(images)
        reasons |= {image.data: f"{REJECTED} in an earlier request" for image in images if refused_earlier(image)}
        by_reason: dict[str, list[ImagePart]] = {}
        for image in images:
            if image.data in reasons and image.data not in self._told:
                by_reason.setdefault(reasons[image.data], []).append(image)
        self._told.update(reasons)
        hint = "" if reduces() else f" ({REDUCER} scales large images down)"
        return [
            f"Not sent: {named(images)}: {reason}{'' if reason.startswith(REJECTED) else hint}."
            for reason, images in by_reason.items()
        ]

    def take(self, error: WireError, request: ModelRequest) -> str:
        """Send no images after a complaint that the model takes none. Returns a sentence for the user; empty if the
        complaint is about something else."""
        if self._is_blind or not self._images.all_of(request.messages) or not refuses_images(error):
            return ""
        self._is_blind = self._refuses = self._told_blind = True
        return NOTICE


class _Sum(Struct, frozen=True):
    """Images of a request together: how many, those longer than ``many_edge``, their base64 characters."""

    count: int = 0
    long: int = 0
    characters: int = 0

    def exceeds(self, limits: ImageLimits, share: tuple[int, int] = (1, 1)) -> bool:
        part, whole = share
        return (
            self.count > limits.count * part // whole
            or (self.long > 0 and self.count > limits.many * part // whole)
            or self.characters > limits.total * part // whole
        )


class ImageFit:
    """Which images of a growing conversation fit the limits of one server."""

    def __init__(self, limits: ImageLimits) -> None:
        self.limits = limits
        self._edges: dict[str, int] = {}

    def reasons(self, images: Iterable[ImagePart]) -> dict[str, str]:
        """Why some of a request's images are left out, by their data."""
        images = list(images)
        reasons = {image.data: reason for image in images if (reason := self._alone(image))}
        fitting = [image for image in images if image.data not in reasons]
        for image in fitting[: self._dropped(fitting)]:
            reasons[image.data] = "the server accepts no more images, so only the newest are shown"
        return reasons

    def _alone(self, image: ImagePart) -> str:
        limits = self.limits
        if len(image.data) > limits.characters:
            size, most = len(image.data) / 1_000_000, limits.characters / 1_000_000
            return f"it is {size:.1f} MB as base64, and the server accepts {most:.1f} MB"
        if (edge := self._edge(image)) > limits.edge:
            return f"its longer edge has {edge:,} pixels, and the server accepts {limits.edge:,}"
        return ""

    def _edge(self, image: ImagePart) -> int:
        """Longest edge in pixels; 0 if the image does not tell it."""
        edge = self._edges.get(image.data)
        if edge is None:
            edge = self._edges[image.data] = max(_size(image.data), default=0)
        return edge

    def _dropped(self, images: Sequence[ImagePart]) -> int:
        """How many of the oldest images go because all together are too many or too large. They go in groups, and the
        later ones are never taken back: each change costs the provider's cache."""
        first, total = 0, _Sum()
        for image in images:
            total = self._changed(total, image, 1)
            if total.exceeds(self.limits):
                while total.exceeds(self.limits, _KEPT):
                    total = self._changed(total, images[first], -1)
                    first += 1
        return first

    def _changed(self, total: _Sum, image: ImagePart, sign: int) -> _Sum:
        long = self._edge(image) > self.limits.many_edge
        return _Sum(total.count + sign, total.long + sign * long, total.characters + sign * len(image.data))


_HEAD = 65_536
"""Base64 characters that usually contain the size."""


def _size(data: str) -> tuple[int, ...]:
    for piece in _pieces(data):
        try:
            size = dimensions(base64.b64decode(piece[: len(piece) // 4 * 4]))
        except ValueError:
            return ()
        if size is not None:
            return size
    return ()


def _pieces(data: str) -> Iterator[str]:
    """The beginning, then all: a camera's notes may fill the beginning of a JPEG."""
    yield data[:_HEAD]
    if len(data) > _HEAD:
        yield data
