"""What a server has besides tools: prompts as commands, resources to read."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from swecli.core.engine.services import PromptError, PromptTemplate
from swecli.core.mcp.connection import Connection, ServerError
from swecli.core.mcp.tools import content_of, described, program, resource_of, tool_name
from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.messages import ImagePart
from swecli.core.tools.base import ToolContext, ToolError, ToolOutcome, readable_size
from swecli.core.tools.dynamic import DynamicTool, RawParams

if TYPE_CHECKING:
    import mcp_types

READ_RESOURCE: Final = "read_resource"
_SHOWN = 4_000
_LISTED = 20


def prompt_of(connection: Connection, prompt: mcp_types.Prompt) -> PromptTemplate:
    """A prompt of a server as a template: ``/mcp__server__prompt`` and ``/server:prompt``."""
    wanted = prompt.arguments or []
    hint = " ".join(f"<{one.name}>" if one.required else f"[{one.name}]" for one in wanted)

    async def render(text: str) -> str:
        arguments = given(text, [one.name for one in wanted])
        missing = [one.name for one in wanted if one.required and not arguments.get(one.name)]
        if missing:
            raise PromptError(f"it needs {', '.join(missing)} ({hint}).")

        async def ask(client: Any, alive: Any) -> mcp_types.GetPromptResult:
            return await client.get_prompt(prompt.name, arguments)

        try:
            result = await connection.ask(ask)
        except ServerError as error:
            raise PromptError(f"MCP server {connection.name}: {error}.") from error
        texts = [content_of(message.content)[0] for message in result.messages]
        whole = "\n\n".join(text for text in texts if text.strip())
        if not whole:
            raise PromptError("the server gave an empty prompt.")
        return whole

    summary = described(prompt.description or prompt.title or prompt.name, 120).split("\n")[0]
    name = tool_name(connection.name, prompt.name)
    return PromptTemplate(name, summary, render, hint, (f"{connection.name}:{prompt.name}",))


def given(text: str, names: Sequence[str]) -> dict[str, str]:
    """Arguments of a prompt: ``name=value``, the others in their order; what is left over belongs to the last."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    found: dict[str, str] = {}
    rest: list[str] = []
    for word in words:
        name, sign, value = word.partition("=")
        if sign and name in names:
            found[name] = value
        else:
            rest.append(word)
    free = [name for name in names if name not in found]
    for place, name in enumerate(free):
        if place < len(rest):
            found[name] = " ".join(rest[place:]) if place == len(free) - 1 else rest[place]
    return found


class ResourceTool(DynamicTool):
    """Reads a resource of a server."""

    of_server = True

    def __init__(self, connection: Connection) -> None:
        listed = connection.offered.resources
        names = ", ".join(str(one.uri) for one in listed[:_LISTED])
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
            text, image = resource_text(contents)
            texts += [text] if text else []
            images += [image] if image is not None else []
        whole = "\n".join(texts) or ("" if images else "(empty)")
        shown = (TextBlock(whole[:_SHOWN]),) if whole else ()
        size = readable_size(len(whole.encode("utf-8", "replace")))
        return ToolOutcome(whole, shown, size, images=tuple(images), untrusted=program(self.source))


def resource_text(contents: Any) -> tuple[str, ImagePart | None]:
    text = getattr(contents, "text", None)
    return (text, None) if text is not None else resource_of(contents)
