"""A conversation with a strict server, through the real client: it grows by what is said, as a session's does."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.providers import Overrides, resolve
from swecli.core.llm.scripted import parse_script
from swecli.core.llm.types import Finished, ModelRequest, StreamNotice, SystemBlock, ToolSchema
from swecli.core.protocol.messages import Message, ReasoningPart, TextPart, ToolResultPart
from tests.support.loopback import LoopbackServer

LOOK = ToolSchema("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})


def steps(count: int) -> str:
    """A script in which every answer has a thought, and all but the last a call."""
    lines: list[str] = []
    for number in range(1, count + 1):
        lines += ["[[step]]", f'reasoning = "Thought {number}."', f'text = "Step {number}."']
        if number < count:
            lines.append(f"""call = [{{ tool = "look", arguments = '{{"at": "{number}"}}' }}]""")
    return "\n".join(lines)


class Talk:
    """``messages`` may be changed between two requests, as an edit of the conversation does."""

    def __init__(
        self, server: LoopbackServer, model: str, overrides: Overrides | None = None, learned: list[str] | None = None
    ) -> None:
        learned = [] if learned is None else learned
        chosen = structs.replace(overrides or Overrides(), refused=lambda _: tuple(learned))
        self.client = HttpModelClient(
            resolve(model, server.environment(), overrides=chosen), learn=lambda name: learned.append(name) or ""
        )
        self.messages: list[Message] = [Message("user", (TextPart("Look around."),), "u1")]
        self.system = "Be brief."
        self.notices: list[str] = []
        self.tools: tuple[ToolSchema, ...] = (LOOK,)

    async def go_on(self, **more: Any) -> Message:
        """One request; its answer and the results of its calls belong to the conversation."""
        request = ModelRequest((SystemBlock(self.system, breakpoint=True),), self.tools, tuple(self.messages), **more)
        last = None
        async for event in self.client.stream(request):
            if isinstance(event, StreamNotice):
                self.notices.append(event.text)
            last = event
        assert isinstance(last, Finished), last
        return self._said(last.message)

    def _said(self, message: Message) -> Message:
        message = structs.replace(message, id=f"a{len(self.messages)}")
        self.messages.append(message)
        if message.tool_calls:
            results = tuple(ToolResultPart(call.call_id, call.name, "seen") for call in message.tool_calls)
            self.messages.append(Message("tool", results, f"t{len(self.messages)}"))
        else:
            self.messages.append(Message("user", (TextPart("Go on."),), f"u{len(self.messages)}"))
        return message

    def edit(self, index: int, text: str) -> None:
        """Change a message that was sent."""
        before = self.messages[index]
        parts = tuple(
            structs.replace(part, text=text) for part in before.parts if isinstance(part, TextPart | ToolResultPart)
        )
        self.messages[index] = structs.replace(before, parts=parts)


def server_script(count: int) -> Any:
    return parse_script(steps(count))


def thoughts(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, ReasoningPart))
