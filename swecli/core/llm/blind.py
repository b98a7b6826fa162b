"""Images for a model that can't see: a sentence takes their place, so that the model knows what it misses. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from swecli.core.llm.errors import WireError
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.messages import ImagePart, Message, Part, TextPart, ToolResultPart

_NO_IMAGES = re.compile(
    r"(?:does not|doesn't|do not|cannot|can't) (?:support|accept|process|handle|take) (?:the use of )?(?:an? )?"
    r"(?:image|vision|visual|multi-?modal)"
    r"|(?:image|vision)[a-z_ ]{0,30} (?:is|are) not (?:supported|available|enabled|allowed)"
    r"|support image input|image input is not supported|no vision|not a (?:vision|multi-?modal) model"
    r"|unknown variant `?image_url|unsupported content type:? .?image|must be a string|mmproj",
    re.IGNORECASE,
)
NOTICE = "The model can't see images; it is told in their place that they were left out."


def refuses_images(error: WireError) -> bool:
    """Whether the server says that the model takes no images."""
    return error.kind in ("bad_request", "not_found", "server") and _NO_IMAGES.search(error.message) is not None


def has_images(request: ModelRequest) -> bool:
    """Whether there is any image in the conversation."""
    return any(
        isinstance(part, ImagePart) or (isinstance(part, ToolResultPart) and part.images)
        for message in request.messages
        for part in message.parts
    )


def without_images(request: ModelRequest) -> ModelRequest:
    """The request with a sentence for each image; the request itself where there is none."""
    if not has_images(request):
        return request
    return replace(request, messages=tuple(_without(message) for message in request.messages))


def _without(message: Message) -> Message:
    parts = tuple(_part(part) for part in message.parts)
    return message if parts == message.parts else replace(message, parts=parts)


def _part(part: Part) -> Part:
    if isinstance(part, ImagePart):
        return TextPart(_sentence(part))
    if isinstance(part, ToolResultPart) and part.images:
        text = "\n".join([part.text, *map(_sentence, part.images)])
        return replace(part, text=text.lstrip("\n"), images=())
    return part


def _sentence(image: ImagePart) -> str:
    name = f" {image.name}" if image.name else ""
    return f"[The image{name} ({image.media_type}) is not shown to you: this model can't see images.]"
