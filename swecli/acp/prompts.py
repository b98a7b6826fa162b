"""A prompt's content blocks as a message of the user. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
)
from msgspec import Struct

from swecli.commands.base import SlashCommand
from swecli.commands.registry import COMMANDS, CommandCall, UnknownCommand, parse
from swecli.core.context_management.prompts import harmless
from swecli.core.images import image_type, prepared, too_large
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.messages import ImagePart
from swecli.core.tools.base import readable_size
from swecli.core.workspace.command_output import as_read
from swecli.core.workspace.mentions import mentioned
from swecli.lazy_pattern import lazy_pattern

ContentBlock = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)
_LINES = lazy_pattern(r"L?(\d+)(?:[-:]L?(\d+))?")


class BadPrompt(Exception):
    """The prompt can't be sent. The message gives the reason."""


class Said(Struct, frozen=True):
    """``command`` is set if the prompt is only a slash command. ``left_out`` names content that could not be
    attached."""

    message: Submit
    command: CommandCall | UnknownCommand | None = None
    left_out: tuple[str, ...] = ()


def read_prompt(
    blocks: Sequence[ContentBlock], *, images: bool | None = None, commands: Sequence[SlashCommand] = COMMANDS
) -> Said:
    """The user's message. ``images``: whether the model can see, None if unknown.

    Raises:
        BadPrompt: it is empty, or an image is invalid.
    """
    texts: list[str] = []
    behind: list[str] = []
    links: list[str] = []
    pictures: list[ImagePart] = []
    left_out: list[str] = []
    typed: list[str] = []
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                texts.append(text)
                typed.append(text)
            case ResourceContentBlock(uri=uri, name=name):
                word = file_word(uri)
                texts.append(f"@{word}" if word else f"[{name}]({uri})")
                links += [word] if word else []
            case EmbeddedResourceContentBlock(resource=resource) if isinstance(resource, BlobResourceContents):
                texts.append(_named(resource.uri))
                picture = _picture(resource.blob, resource.uri, refuse=False)
                if picture is None or images is False:
                    left_out.append(f"{resource.uri}: only text and images can be attached")
                else:
                    pictures.append(picture)
            case EmbeddedResourceContentBlock(resource=resource):
                texts.append(_named(resource.uri))
                behind.append(f'<attached uri="{_attribute(resource.uri)}">\n{_inside(resource.text)}\n</attached>')
            case ImageContentBlock(data=data, uri=uri) if data or not uri:
                picture = _picture(data, uri or "the image", refuse=True)
                if images is False:
                    left_out.append("an image: the model does not support images")
                elif picture is not None:
                    pictures.append(picture)
            case ImageContentBlock(uri=uri):
                word = file_word(uri or "")
                links += [word] if word else []
            case _:
                raise BadPrompt("audio is not supported (see promptCapabilities)")
    text = "".join(texts)
    if not text.strip() and not pictures and not behind and not links:
        raise BadPrompt("the prompt is empty")
    only_text = len(typed) == len(blocks)
    command = parse(text, commands) if only_text else None
    mentions = tuple(dict.fromkeys([*mentioned("".join(typed)), *links]))
    whole = "\n\n".join((text.strip("\n") or "See the attachment.", *behind))
    return Said(Submit(whole, tuple(pictures), mentions), command, tuple(left_out))


def file_word(uri: str) -> str:
    """The word after an ``@`` for a local file, with the lines from the fragment (``#L10-20``, ``#L10:20``); empty for
    anything else."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return ""
    path = unquote(parts.path)
    if not path.startswith("/") or "\0" in path or "\n" in path:
        return ""
    lines = _LINES.fullmatch(parts.fragment)
    if lines is None:
        return path
    return f"{path}:{lines[1]}-{lines[2] or lines[1]}"


def _named(uri: str) -> str:
    word = file_word(uri)
    return f"@{Path(word).name}" if word else f"<{uri}>"


def _picture(data: str, name: str, *, refuse: bool) -> ImagePart | None:
    """The image; None for other data, which is an error with ``refuse``.

    Raises:
        BadPrompt: it can't be shown to a model.
    """
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    media = image_type(raw[:32])
    if media is None:
        if not refuse:
            return None
        raise BadPrompt(f"{name} is not a base64-encoded PNG, JPEG, GIF or WebP image")
    picture = too_large(len(raw)) or prepared(raw, media)
    if not isinstance(picture, str):
        return ImagePart(picture.media, picture.data, name.rpartition("/")[2] or "image")
    if not refuse:
        return None
    raise BadPrompt(f"{name} is {readable_size(len(raw))}; {picture}")


_ATTACHED = lazy_pattern(r"<(?=\s*/?\s*attached\b)", re.IGNORECASE)


def _inside(text: str) -> str:
    """An attached text as people see it, which can't end its frame."""
    return _ATTACHED.sub(r"<\\", harmless(as_read(text)))


def _attribute(uri: object) -> str:
    return " ".join(as_read(str(uri)).translate(dict.fromkeys(map(ord, '<>"'))).split())
