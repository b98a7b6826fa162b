"""What ``unkind_server.py`` offers, made with the SDK: ``python sdk_server.py [http PORT | sse PORT]``."""

from __future__ import annotations

import base64
import os
import sys
import time

import anyio
from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, ImageContent, ResourceLink, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

WAYS = sys.argv[1:]
READS = ToolAnnotations(read_only_hint=True)
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 16).decode()

server = MCPServer("unkind", instructions="Be kind to it.", version="1.2")


class Form(BaseModel):
    name: str
    again: bool


@server.tool(description="Says the text again.", annotations=READS)
def echo(text: str) -> str:
    return text


@server.tool(description="Writes a file.")
def write(path: str) -> str:
    with open(path, "w") as file:
        file.write("written\n")
    return "done"


@server.tool(description="Ends the server.")
def crash() -> str:
    os._exit(7)


@server.tool(description="Takes very long.")
async def slow(ctx: Context) -> str:
    for step in range(6_000):
        await ctx.report_progress(step, 6_000, f"step {step}")
        await anyio.sleep(0.1)
    return "slept"


@server.tool(description="Hears nothing until there is a file.")
async def deaf(path: str) -> str:
    write(f"{path}.deaf")
    while not os.path.exists(path):  # noqa: ASYNC240 - this is what is tried
        time.sleep(0.02)  # noqa: ASYNC251
    return "hears again"


@server.tool(description="Gives many bytes.")
def large(size: int) -> str:
    return "0123456789" * (size // 10)


@server.tool(description="Gives all kinds of content.")
def mixed() -> CallToolResult:
    return CallToolResult(
        content=[
            TextContent(text="some text"),
            ImageContent(data=PNG, mime_type="image/png"),
            ImageContent(data="!!", mime_type="image/png"),
            ImageContent(data=base64.b64encode(b"no image").decode(), mime_type="image/png"),
            ResourceLink(name="more", uri="note://more", description="More of it."),
        ],
        structured_content={"a": 1},
    )


@server.tool(description="Fails.")
def fail() -> str:
    raise ValueError("it is broken")


@server.tool(description="Asks the user.")
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Who are you?", Form)
    return f"{answer.action}: {getattr(answer, 'data', None)}"


class Bounded(BaseModel):
    name: str = Field(min_length=2)
    count: int = Field(ge=1, le=5, description="how many")
    force: bool = False


@server.tool(description="Asks the user for what has bounds.")
async def bounded(ctx: Context) -> str:
    answer = await ctx.elicit("Say more.", Bounded)
    return f"{answer.action}: {getattr(answer, 'data', None)}"


@server.tool(description="Asks the client's model.")
async def sample(ctx: Context) -> str:
    from mcp_types import SamplingMessage

    try:
        await ctx.session.create_message([SamplingMessage(role="user", content=TextContent(text="hi"))], max_tokens=5)
    except MCPError as error:
        return f"refused: {error}"
    return "sampled"


@server.tool(description="Changes the tools.")
async def change(ctx: Context) -> str:
    server.add_tool(lambda: "new", name="added", description="Is new.")
    server.remove_tool("echo")
    await ctx.session.send_tool_list_changed()
    return "changed"


@server.resource("note://one", description="A note.")
def note() -> str:
    return "the first note"


@server.prompt(description="Reviews something.")
def review(what: str) -> str:
    return f"Review {what} closely."


if "http" in WAYS or "sse" in WAYS:
    port = int(WAYS[-1])
    server.run("streamable-http", port=port) if "http" in WAYS else server.run("sse", port=port)
else:
    server.run("stdio")
