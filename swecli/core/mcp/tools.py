"""What servers offer: tools (name, effects, result), prompts as commands, and resources."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import re
import shlex
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from swecli.core.context_management.prompts import without_notes
from swecli.core.engine.services import PromptError, PromptTemplate
from swecli.core.images import image_type, prepared, too_large
from swecli.core.mcp.connection import Connection, ServerError
from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.core.protocol.messages import ImagePart
from swecli.core.tools.base import ToolContext, ToolError, ToolOutcome, readable_size
from swecli.core.tools.dynamic import DynamicTool, RawParams, portable_schema
from swecli.core.tools.outside_text import framed, outside_text, seen_text
from swecli.figures import cut
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import without_sequences

if TYPE_CHECKING:
    import mcp_types

LONGEST_NAME: Final = 64
"""Maximum length that providers accept."""
DESCRIPTION: Final = 2_048
"""Maximum bytes of a tool's description; half of it for a parameter's."""
MOST_TEXT: Final = 20_000_000
"""Characters of a result that are processed."""
MOST_IMAGES: Final = 8
_SHOWN = 4_000
_HIDDEN = lazy_pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""Characters that are invisible to people but not to a model."""


def program(server: str) -> str:
    """The server in words, for effects, questions and the rule about untrusted text."""
    return f"the MCP server {server}"


def tool_name(server: str, tool: str, taken: Collection[str] = ()) -> str:
    """``mcp__server__tool`` in the characters that providers accept: letters, digits, ``_`` and ``-``, 64 at most. A
    changed or cut name ends with a hash, so that names stay unique."""
    whole = f"mcp__{_plain(server)}__{_plain(tool)}"
    if len(whole) <= LONGEST_NAME and whole not in taken and _plain(tool) == tool:
        return whole
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:7]
    return f"{whole[: LONGEST_NAME - 8]}_{digest}"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", text) or "_"


def described(text: str, limit: int = DESCRIPTION) -> str:
    """A server's text for the model, without hidden characters and imitated notes, and of bounded length."""
    clean = without_notes(_HIDDEN.sub("", text).strip())
    raw = clean.encode("utf-8", "replace")
    return clean if len(raw) <= limit else f"{raw[:limit].decode('utf-8', 'ignore')}…"


def _parameter(text: str) -> str:
    return described(text, DESCRIPTION // 2)


def fingerprint(tool: mcp_types.Tool) -> str:
    """SHA-256 of what accepting this tool covers: its texts and its parameters."""
    hints = tool.annotations.model_dump(mode="json") if tool.annotations else None
    text = tool.description or tool.title  # as the model is told
    shown = json.dumps([tool.name, text, tool.input_schema, hints], sort_keys=True, default=str)
    return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()


class McpTool(DynamicTool):
    """One tool of a server."""

    of_server = True

    def __init__(self, connection: Connection, tool: mcp_types.Tool, taken: Collection[str] = ()) -> None:
        server = connection.name
        texts = (described(text) for text in (tool.description, tool.title) if text)  # perhaps hidden characters only
        text = next(filter(None, texts), described(f"{tool.name} of {server}"))
        parameters = portable_schema(tool.input_schema, _parameter)
        super().__init__(
            tool_name(server, tool.name, taken),
            text,
            parameters,
            server,
            verb=f"{server}: {described(tool.title or tool.name, 60)}",
            checked=tool.input_schema,
        )
        self._connection = connection
        self._tool = tool.name
        hints = tool.annotations
        self._reads_only = hints is not None and hints.read_only_hint is True

    def effects(self, params: RawParams, ctx: ToolContext) -> Effects:
        trusted = self._connection.definition.trust
        return Effects(external=program(self.source), vouched=trusted and self._reads_only)

    async def run(self, params: RawParams, ctx: ToolContext) -> ToolOutcome:
        connection = self._connection

        async def call(client: Any, alive: Any) -> mcp_types.CallToolResult:
            async def progress(done: float, total: float | None, message: str | None) -> None:
                alive()
                ctx.output(_progress(done, total, message))

            return await client.call_tool(self._tool, params.arguments, progress_callback=progress)

        try:
            with connection.calling(ctx.item, ctx.asker) as notes:
                result = await connection.ask(call, tell=ctx.output)
        except ServerError as error:
            raise ToolError(f"MCP server {self.source}: {error}.") from error
        return await asyncio.to_thread(outcome_of, result, self.source, notes)  # large images are scaled down


def _progress(done: float, total: float | None, message: str | None) -> str:
    share = f"{min(100, round(100 * done / total))}%" if total else f"{done:g}"
    return f"{share} {' '.join((message or '').split())[:200]}".rstrip() + "\n"


def outcome_of(result: mcp_types.CallToolResult, server: str, notes: Sequence[str] = ()) -> ToolOutcome:
    """The result of a call: texts as people see them in a frame, images if the model accepts them, and a note about
    anything that can't be shown."""
    texts: list[str] = []
    images: list[ImagePart] = []
    for content in result.content:
        text, image = content_of(content)
        texts += [text] if text else []
        if image is not None and len(images) < MOST_IMAGES:
            images.append(image)
    structured = result.structured_content
    if structured is not None and not _says(texts, structured):
        texts.append(json.dumps(structured, ensure_ascii=False))
    whole = "\n".join(texts)
    longer = f"\n[The result was longer: {len(whole):,} characters.]" if len(whole) > MOST_TEXT else ""
    shown = _HIDDEN.sub("", without_sequences(whole[:MOST_TEXT]))
    blocks: tuple[DisplayBlock, ...] = (TextBlock(cut(shown, _SHOWN)),)
    whole = seen_text(whole[:MOST_TEXT]) + longer
    framing = outside_text(whole, program(server)) or ("(no text)" if not images else "")
    told = "\n".join((*map(seen_text, notes), framing))
    detail = _detail(whole, images)
    return ToolOutcome(
        told.strip("\n"),
        blocks if shown else (),
        detail,
        is_error=result.is_error,
        images=tuple(images),
        untrusted=program(server),
    )


def _detail(text: str, images: Sequence[ImagePart]) -> str:
    pictures = f"{len(images)} image{'s' if len(images) > 1 else ''}" if images else ""
    size = readable_size(len(text.encode("utf-8", "replace"))) if text else ""
    return ", ".join(filter(None, (size, pictures))) or "no text"


def _says(texts: Sequence[str], structured: Any) -> bool:
    """Whether the texts repeat the structured content, as the protocol recommends: one of them has all of it, or they
    have what servers wrap because it is no object (``{"result": 3}``), a list as one text or as one for each item."""
    if not texts or any(len(text) > MOST_TEXT for text in texts):
        return False
    values = [_value(text) for text in texts]
    if structured in values:
        return True
    if not isinstance(structured, dict) or len(cast("dict[str, Any]", structured)) != 1:
        return False
    only = next(iter(cast("dict[str, Any]", structured).values()))
    return only in (*values, *texts, values, list(texts))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def content_of(content: Any) -> tuple[str, ImagePart | None]:
    """One piece of a result as text for the model, and as an image if it is one."""
    match content.type:
        case "text":
            return content.text, None
        case "image":
            return _image(content.data, content.mime_type)
        case "audio":
            return f"[Audio ({content.mime_type}, {_size(content.data)}) can't be shown.]", None
        case "resource":
            return resource_of(content.resource)
        case "resource_link":
            about = f": {described(content.description, 300)}" if content.description else ""
            kind = f" ({content.mime_type})" if content.mime_type else ""
            return f"[Resource {content.name} at {content.uri}{kind}{about}]", None
        case _:
            return f"[Content of type {content.type} can't be shown.]", None


def resource_of(resource: Any) -> tuple[str, ImagePart | None]:
    text = getattr(resource, "text", None)
    if text is not None:
        return f"[Resource {resource.uri}]\n{text}", None
    kind = resource.mime_type or "unknown kind"
    if kind.startswith("image/"):
        return _image(resource.blob, kind)
    return f"[Resource {resource.uri}: binary data ({kind}, {_size(resource.blob)}) can't be shown.]", None


def _image(data: str, kind: str) -> tuple[str, ImagePart | None]:
    try:
        raw = base64.b64decode(data, validate=True)
    except (ValueError, binascii.Error):
        return f"[An image ({kind}) that is not valid base64 was left out.]", None
    media = image_type(raw[:64])
    if media is None:
        return (
            f"[Binary data ({kind}, {readable_size(len(raw))}) was left out: models cannot see it as an image.]",
            None,
        )
    picture = too_large(len(raw)) or prepared(raw, media)
    if isinstance(picture, str):
        return f"[An image of {readable_size(len(raw))} was left out: {picture}.]", None
    return (f"[Image {picture.note}]" if picture.note else ""), ImagePart(picture.media, picture.data)


def _size(data: str) -> str:
    return readable_size(len(data) * 3 // 4 - data[-2:].count("="))


# What a server has besides tools: prompts as commands, resources to read.


READ_RESOURCE: Final = "read_resource"
_LISTED = 20


def prompt_of(connection: Connection, prompt: mcp_types.Prompt) -> PromptTemplate:
    """A server's prompt as a template: ``/mcp__server__prompt`` and ``/server:prompt``."""
    wanted = prompt.arguments or []
    hint = " ".join(f"<{argument.name}>" if argument.required else f"[{argument.name}]" for argument in wanted)

    async def render(text: str) -> str:
        arguments = given(text, [argument.name for argument in wanted])
        missing = [argument.name for argument in wanted if argument.required and not arguments.get(argument.name)]
        if missing:
            raise PromptError(f"it needs {', '.join(missing)} ({hint}).")

        async def ask(client: Any, alive: Any) -> mcp_types.GetPromptResult:
            return await client.get_prompt(prompt.name, arguments)

        try:
            result = await connection.ask(ask)
        except ServerError as error:
            raise PromptError(f"MCP server {connection.name}: {error}.") from error
        texts = [content_of(message.content)[0] for message in result.messages]
        whole = seen_text("\n\n".join(text for text in texts if text.strip()))
        if not whole:
            raise PromptError("the server returned an empty prompt.")
        origin = program(connection.name)
        return f"The user chose this prompt of {origin}:\n{framed(whole, origin)}"

    summary = described(prompt.description or prompt.title or prompt.name, 120).split("\n")[0]
    name = tool_name(connection.name, prompt.name)
    return PromptTemplate(name, summary, render, hint, (f"{connection.name}:{prompt.name}",))


def given(text: str, names: Sequence[str]) -> dict[str, str]:
    """Arguments of a prompt: ``name=value``, others by position; the last one takes the rest."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    arguments: dict[str, str] = {}
    rest: list[str] = []
    for word in words:
        name, sign, value = word.partition("=")
        if sign and name in names:
            arguments[name] = value
        else:
            rest.append(word)
    free = [name for name in names if name not in arguments]
    for index, name in enumerate(free):
        if index < len(rest):
            arguments[name] = " ".join(rest[index:]) if index == len(free) - 1 else rest[index]
    return arguments


class ResourceTool(DynamicTool):
    """Reads a resource of a server."""

    of_server = True

    def __init__(self, connection: Connection) -> None:
        listed = connection.offered.resources
        names = ", ".join(str(resource.uri) for resource in listed[:_LISTED])
        more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
        schema = {
            "type": "object",
            "properties": {"uri": {"type": "string", "description": "URI of the resource"}},
            "required": ["uri"],
        }
        super().__init__(
            tool_name(connection.name, READ_RESOURCE),
            described(f"Read a resource of {connection.name}: {names}{more}"),
            schema,
            connection.name,
            verb=f"{connection.name}: read",
        )
        self._connection = connection

    def effects(self, params: RawParams, ctx: ToolContext) -> Effects:
        return Effects(external=program(self.source), vouched=self._connection.definition.trust)

    async def run(self, params: RawParams, ctx: ToolContext) -> ToolOutcome:
        async def ask(client: Any, alive: Any) -> mcp_types.ReadResourceResult:
            return await client.read_resource(str(params.arguments["uri"]))

        try:
            result = await self._connection.ask(ask, tell=ctx.output)
        except ServerError as error:
            raise ToolError(f"MCP server {self.source}: {error}.") from error
        texts: list[str] = []
        images: list[ImagePart] = []
        for contents in result.contents:
            text, image = await asyncio.to_thread(resource_text, contents)
            texts += [text] if text else []
            images += [image] if image is not None else []
        whole = seen_text("\n".join(texts)) or ("" if images else "(empty)")
        shown = (TextBlock(whole[:_SHOWN]),) if whole else ()
        size = readable_size(len(whole.encode("utf-8", "replace")))
        origin = program(self.source)
        return ToolOutcome(outside_text(whole, origin), shown, size, images=tuple(images), untrusted=origin)


def resource_text(contents: Any) -> tuple[str, ImagePart | None]:
    text = getattr(contents, "text", None)
    return (text, None) if text is not None else resource_of(contents)
