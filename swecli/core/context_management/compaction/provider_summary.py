"""Summaries that the provider writes and signs: the request, the answer, and the view with it.

Anthropic: the block goes back first, as it came, in place of the summarised messages; the kept turns follow unchanged
and keep their thoughts (platform.claude.com, compaction-on-demand, compaction-keep-recent-turns,
compaction-thinking-blocks). OpenAI: the item that answers a ``compaction_trigger`` is encrypted (types of openai 3.57);
whether thoughts behind it stay valid is not documented, so they count as lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.gateway import RequestGateway
from swecli.core.context_management.ledger import RECORD, Ledger
from swecli.core.context_management.prompts import harmless, read_prompt
from swecli.core.context_management.view_stack import View
from swecli.core.llm.json_values import as_object, as_text
from swecli.core.llm.protocols.base import SUMMARY
from swecli.core.llm.types import Failed, Finished, ModelClient, ModelRequest
from swecli.core.protocol.context_events import ProviderSummary, ViewEntry
from swecli.core.protocol.messages import Message, Opaque, OpaquePart, Origin, Usage

ROOM = 8_000
"""Tokens for the summary's answer, which has thoughts too."""


SEALED = "(A summary that only {model} can read. /compact undo brings the messages back that it replaced.)"
"""In place of an encrypted summary, for the user and for other models."""
EXPECTED = Opaque(Origin("", "", ""), {})
"""In place of the original of a summary that is still to be written."""


class Written(Struct, frozen=True):
    """A summary of the provider. ``trouble`` says why there is none, as a clause."""

    text: str = ""
    opaque: Opaque | None = None
    usage: Usage | None = None
    trouble: str = ""
    sealed: bool = False
    """Whether only the provider can read it; thoughts behind it are then not known to stay valid."""


def cut_points(ledger: Ledger, view: View, starts: Sequence[int]) -> list[int]:
    """Those of the places where the kept part may begin: with a message of another role than the one before it, and no
    system message, because the server would join them."""
    return [start for start in starts if 0 < start < len(view) and _turns(ledger, view, start)]


def _turns(ledger: Ledger, view: View, start: int) -> bool:
    before = next((role for entry in reversed(view[:start]) if (role := _role(ledger, entry))), "")
    return bool(before) and _role(ledger, view[start]) not in ("", before)


def _role(ledger: Ledger, entry: ViewEntry) -> str:
    """The role of an entry on the wire; empty for one that is no message of its own."""
    known = ledger.entries.get(entry.id)
    if entry.kind == "dropped" or (known is not None and known.kind == "note"):
        return ""
    return "user" if known is None or known.kind in ("user", "attachment", "result") else "assistant"


def with_summary(view: View, start: int, item: str, written: Written, stands_for: tuple[int, ...], record: str) -> View:
    """The view with the summary in place of everything before ``start``, and the record behind the kept turns: nothing
    may stand between the summary and them."""
    sources = tuple(dict.fromkeys(name for entry in view[:start] for name in (entry.sources or (entry.id,))))
    stands_for = () if written.sealed else stands_for
    provider = ProviderSummary(written.opaque, stands_for, written.sealed) if written.opaque is not None else None
    text = f"<compacted by='the provider'>\n\n# Summary\n\n{harmless(written.text)}\n\n</compacted>"
    return (
        ViewEntry("summary", item, text, sources, provider=provider),
        *view[start:],
        ViewEntry("summary", f"{item}{RECORD}", record, sources),
    )


async def ask(
    gateway: RequestGateway, client: ModelClient, request: ModelRequest, messages: tuple[Message, ...], focus: str
) -> Written:
    """Have the provider summarise these messages. ``request`` has the conversation's beginning."""
    text = read_prompt("compaction").replace("{words}", "1000")
    wanted = replace(
        request,
        messages=messages,
        breakpoints=(),
        summarise=f"{text}\n\nThe user asks you to pay attention to: {focus}" if focus else text,
        max_output_tokens=ROOM,
        answer_format=None,
        server_clearing=None,
        web_search=None,
    )
    async with aclosing(gateway.send(client, wanted, likely=True)) as events:
        async for event in events:
            if isinstance(event, Finished):
                return _read(event.message)
            if isinstance(event, Failed):
                return Written(trouble=str(event.error).rstrip("."))
    return Written(trouble="the answer ended without its end marker")


def _read(message: Message) -> Written:
    usage = message.response.usage if message.response is not None else None
    for part in message.parts:
        if not isinstance(part, OpaquePart):
            continue
        data = as_object(part.opaque.data)
        block = as_object(data.get("block") or data.get("item"))
        sealed = as_text(block.get("encrypted_content")) and "content" not in block
        text = SEALED.format(model=part.opaque.origin.model) if sealed else as_text(block.get("content"))
        if block.get("type") == SUMMARY and text.strip():
            return Written(text, Opaque(part.opaque.origin, {SUMMARY: block}), usage, sealed=bool(sealed))
    reason = message.response.stop.raw if message.response is not None else ""
    return Written(usage=usage, trouble=f"the provider wrote none{f' ({reason})' if reason else ''}")
