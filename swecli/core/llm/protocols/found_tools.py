"""Which tools the results of searches have brought: providers that know it take them there, and not before the
conversation, whose cache then holds. Pure."""

from __future__ import annotations

from typing import Final

from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.messages import ToolResultPart

SEARCH: Final = "tool_search"
"""The tool that finds those which are withheld."""


def found_tools(request: ModelRequest) -> dict[str, tuple[str, ...]]:
    """Names of tools by the call that found them, each where it is named first. What a compaction took away of the
    results is not found there."""
    known = {tool.name for tool in request.tools if tool.source and tool.name != SEARCH}
    found: dict[str, tuple[str, ...]] = {}
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolResultPart) and part.name == SEARCH and not part.is_error:
                heads = (line.partition(": ")[0] for line in part.text.split("\n"))
                names = tuple(dict.fromkeys(name for name in heads if name in known))
                if names:
                    found[part.call_id] = names
                    known.difference_update(names)
    return found
