"""Session events as updates of the protocol: a reducer for a running session and for the replay of a stored one
alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    ContentToolCallContent,
    Cost,
    CurrentModeUpdate,
    FileEditToolCallContent,
    ImageContentBlock,
    PlanEntry,
    TerminalToolCallContent,
    TextContentBlock,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
    UserMessageChunk,
)
from msgspec import Struct, field

from swecli.acp.words import (
    LONGEST_TEXT,
    absolute,
    arguments_of,
    clean,
    coloured,
    fenced,
    one_line,
    shown,
    tool_kind,
    tool_title,
    whole_sequences,
)
from swecli.block_text import block_lines, shortened
from swecli.core.protocol.blocks import (
    DiffBlock,
    DisplayBlock,
    FileListBlock,
    MarkdownBlock,
    TerminalBlock,
    TextBlock,
    TodoBlock,
)
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ContextMeasured,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    ModeChanged,
    Notice,
    RetryScheduled,
    RewindUndone,
    Rewound,
    StepStarted,
    TodosChanged,
)
from swecli.core.protocol.messages import ImagePart, Part, TextPart, ToolCallPart, ToolResultPart
from swecli.core.protocol.turns import Item, Turns
from swecli.event_lines import CLEARING, completed_line, retry_line, rewind_lines, started_words

Update = (
    AgentMessageChunk
    | AgentThoughtChunk
    | UserMessageChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | CurrentModeUpdate
    | UsageUpdate
)
ToolContent = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent

LIVE_SECONDS = 0.25
"""Seconds between updates of a command's live output."""
LIVE_OUTPUT = 8_000
"""Newest characters of live output to send."""
MOST_PLACES = 20
IN_TERMINAL = ("run_command", "shell")
"""Items whose output a client may show in a terminal."""


def message(text: str, id: str | None = None) -> AgentMessageChunk:
    return AgentMessageChunk(session_update="agent_message_chunk", content=text_content(text), message_id=id)


def thought(text: str, id: str | None = None) -> AgentThoughtChunk:
    return AgentThoughtChunk(session_update="agent_thought_chunk", content=text_content(text), message_id=id)


def text_content(text: str) -> TextContentBlock:
    return TextContentBlock(type="text", text=shown(text))


def tool_text(text: str) -> ContentToolCallContent:
    return ContentToolCallContent(type="content", content=text_content(text))


def block_content(block: DisplayBlock, cwd: Path) -> ToolContent:
    """One block of a tool's result or preview."""
    match block:
        case DiffBlock():
            return FileEditToolCallContent(
                type="diff",
                path=absolute(block.path, cwd),
                old_text=None if block.old is None else clean(block.old),
                new_text=clean(block.new or ""),
            )
        case MarkdownBlock():
            return tool_text(shortened(block.text, LONGEST_TEXT))
        case TerminalBlock():
            ended = "" if block.exit_status is None else f"\nexit {block.exit_status}"
            text = f"$ {block.command}\n{block.output}".rstrip("\n") + ended
            return tool_text(fenced(shortened(text, LONGEST_TEXT), "console"))
        case TextBlock(style="plain" | "dim"):
            return tool_text(fenced(shortened(block.text, LONGEST_TEXT)))
        case _:
            return tool_text(shortened("\n".join(block_lines(block)), LONGEST_TEXT))


def blocks_text(blocks: Iterable[DisplayBlock]) -> str:
    """Output of a slash command as Markdown."""
    parts: list[str] = []
    for block in blocks:
        match block:
            case MarkdownBlock():
                parts.append(block.text)
            case TextBlock(text=text, style=style):
                labelled = text if style in ("plain", "dim") else f"{style.capitalize()}: {text}"
                parts.append(fenced(labelled) if "\n" in text else labelled)
            case TodoBlock():
                parts.append("\n".join(f"- {line}" for line in block_lines(block)))
            case _:
                parts.append(fenced("\n".join(block_lines(block))))
    return "\n\n".join(parts)


def notice_text(notice: Notice) -> str:
    return f"\n\n> **{notice.level}**: {notice.line}\n\n"


class _Sent(Struct):
    """What the client has of an item: ``text``, and the newest live ``output`` of a command, last sent ``at``."""

    text: str = ""
    output: str = ""
    at: float = 0.0
    told: bool = False
    """Whether the client knows the call."""
    terminal: bool = False
    """Whether the client shows a terminal of this item's id."""
    unsent: str = ""
    """Live output that the terminal lacks."""
    arguments: dict[str, Any] = field(default_factory=lambda: {})


class Updates:
    """Turns events into updates, in order. ``replaying``: the user's own messages are sent, too.

    ``terminals``: the client shows terminals that it does not run itself, as Zed and other clients do for agents with
    their own sandbox. They declare ``terminal_output`` in the ``_meta`` of their capabilities, and take
    ``terminal_info``, ``terminal_output`` and ``terminal_exit`` in that of tool calls.
    """

    def __init__(self, cwd: Path, *, terminals: bool = False) -> None:
        self._cwd = cwd
        self._terminals = terminals
        self._turns = Turns()
        self._sent: dict[str, _Sent] = {}
        self._usage: UsageUpdate | None = None
        self.replaying = True
        self.echo = False
        """Whether to send the user's next message, which the client does not know."""
        self.cost: Decimal | None = None
        """US dollars of the session so far."""

    def apply(self, event: Event) -> list[Update]:
        item = self._turns.apply(event)
        updates = self._updates(event, item)
        if item is not None and item.ended is not None:
            self._sent.pop(item.id, None)
        return updates

    def _updates(self, event: Event, item: Item | None) -> list[Update]:
        match event.body:
            case ItemStarted() if item is not None and item.kind not in ("opaque", "compaction"):
                return self._start(item)
            case ItemDelta() | ItemCheckpointed() | ItemCompleted() as body if item is not None:
                return self._go_on(item, body, event.ts) if item.id in self._sent else []
            case TodosChanged(todos=todos):
                entries = [PlanEntry(content=clean(todo.text), priority="medium", status=todo.status) for todo in todos]
                return [AgentPlanUpdate(session_update="plan", entries=entries)]
            case ModeChanged(mode=mode) if not self.replaying:
                return [CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode)]
            case StepStarted(budget=budget) | ContextMeasured(budget=budget):
                return self._measured(budget)
            case RetryScheduled() as retry:
                line = retry_line(retry)
                return [thought(f"\n{line[:1].upper()}{line[1:]}\n")]
            case CompactionStarted() | CompactionCompleted() | CompactionFailed():
                return self._compaction(event.body)
            case Rewound() | RewindUndone():
                lines = rewind_lines(event.body)
                return [message(clean("\n\n".join(("", *lines, ""))))] if lines else []
            case _:
                return []

    # --- items ---

    def _start(self, item: Item) -> list[Update]:
        told = not self.replaying and (item.kind in ("tool", "attachment") or item.name == "shell")
        terminal = told and self._terminals and item.name in IN_TERMINAL
        self._sent[item.id] = _Sent(told=told, terminal=terminal)
        if not told:
            return []
        info = {"terminal_info": {"terminal_id": item.id, "cwd": str(self._cwd)}}
        return [
            ToolCallStart(
                session_update="tool_call",
                tool_call_id=item.id,
                title=tool_title(item.name, item.title),
                kind=tool_kind(item.name),
                status="pending",
                content=[_terminal(item.id)] if terminal else None,
                field_meta=info if terminal else None,
            )
        ]

    def _go_on(self, item: Item, body: ItemDelta | ItemCheckpointed | ItemCompleted, at: float) -> list[Update]:
        match body:
            case _ if item.kind in ("text", "reasoning"):
                return self._stream(item)
            case ItemDelta(channel="output", text=text):
                return self._live(item, text, at)
            case ItemCheckpointed() if item.call is not None:
                return self._call(item, item.call, body)
            case ItemCompleted() if item.kind == "user" and item.name != "shell":
                echoed, self.echo = self.replaying or self.echo, False
                return self._said(item.id, body.parts) if echoed else []
            case ItemCompleted():
                terminals = (block for block in body.blocks if isinstance(block, TerminalBlock))
                command = next(terminals, None) if self._sent[item.id].terminal else None
                return [self._result(item, body) if command is None else self._in_terminal(item, body, command)]
            case _:
                return []

    def _stream(self, item: Item) -> list[Update]:
        """Send the new part of an item's text."""
        text, sent = item.text, self._sent[item.id]
        if not text.startswith(sent.text) or text == sent.text:
            return []
        rest, sent.text = text[len(sent.text) :], text
        return [message(rest, item.id) if item.kind == "text" else thought(rest, item.id)]

    def _live(self, item: Item, text: str, at: float) -> list[Update]:
        sent = self._sent[item.id]
        sent.output = (sent.output + text)[-LIVE_OUTPUT:]
        sent.unsent += text if sent.terminal else ""
        if at - sent.at < LIVE_SECONDS:
            return []
        sent.at = at
        if sent.terminal:
            ready, sent.unsent = whole_sequences(sent.unsent)
            return [_progress(item.id, status="in_progress", field_meta=_terminal_output(item.id, ready))]
        content = tool_text(fenced(sent.output.rstrip("\n"), "console"))
        return [_progress(item.id, status="in_progress", content=[content])]

    def _call(self, item: Item, call: ToolCallPart, checkpoint: ItemCheckpointed) -> list[Update]:
        sent = self._sent[item.id]
        if sent.arguments and not checkpoint.title and not checkpoint.running:
            return []
        sent.arguments = arguments_of(call)
        if not sent.told:
            return []
        # A question about the call replaced the terminal by what it asked about.
        again = {"content": [_terminal(item.id)]} if sent.terminal and checkpoint.running else {}
        return [
            _progress(
                item.id,
                status="in_progress" if checkpoint.running else "pending",
                title=tool_title(item.name, item.title),
                locations=self._places(item),
                raw_input=sent.arguments,
                **again,
            )
        ]

    def _said(self, id: str, parts: Sequence[Part]) -> list[Update]:
        updates: list[Update] = []
        for part in parts:
            content = None
            if isinstance(part, TextPart):
                content = text_content(part.text)
            elif isinstance(part, ImagePart):
                content = ImageContentBlock(type="image", data=part.data, mime_type=part.media_type)
            if content is not None:
                updates.append(UserMessageChunk(session_update="user_message_chunk", content=content, message_id=id))
        return updates

    def _result(self, item: Item, completed: ItemCompleted) -> Update:
        sent = self._sent[item.id]
        content = [block_content(block, self._cwd) for block in completed.blocks]
        if not content:
            text = "".join(part.text for part in completed.parts if isinstance(part, ToolResultPart | TextPart))
            text = text if completed.status == "error" else completed.detail or text
            content = [tool_text(shortened(text, LONGEST_TEXT))]
        elif completed.status != "ok" and completed.detail:
            content.append(tool_text(completed.detail))
        fields: dict[str, Any] = {
            "status": "completed" if completed.status == "ok" else "failed",
            "content": content,
            "locations": self._places(item, completed.blocks),
        }
        if sent.told:
            return _progress(item.id, **fields)
        return ToolCallStart(
            session_update="tool_call",
            tool_call_id=item.id,
            title=tool_title(item.name, item.title),
            kind=tool_kind(item.name),
            raw_input=sent.arguments or None,
            **fields,
        )

    def _in_terminal(self, item: Item, completed: ItemCompleted, command: TerminalBlock) -> Update:
        """The end of a command that the client shows in a terminal: the rest of its output and the exit status."""
        sent = self._sent[item.id]
        rest = sent.unsent if sent.output else command.output
        status = command.exit_status if command.exit_status is not None else int(completed.status != "ok")
        content = [
            _terminal(item.id),
            *(block_content(each, self._cwd) for each in completed.blocks if each != command),
        ]
        if completed.status != "ok" and completed.detail:
            content.append(tool_text(completed.detail))
        ended = {"terminal_exit": {"terminal_id": item.id, "exit_code": status, "signal": None}}
        return _progress(
            item.id,
            status="completed" if completed.status == "ok" else "failed",
            content=content,
            locations=self._places(item, completed.blocks),
            field_meta={**_terminal_output(item.id, rest), **ended} if rest else ended,
        )

    def _places(self, item: Item, blocks: Sequence[DisplayBlock] = ()) -> list[ToolCallLocation] | None:
        """Files of a call, with known lines."""
        places: dict[tuple[str, int | None], None] = {}
        arguments = self._sent[item.id].arguments
        path = arguments.get("path")
        if isinstance(path, str) and path and "\0" not in path:
            line = arguments.get("offset") if item.name == "read_file" else None
            places[absolute(path, self._cwd), line if isinstance(line, int) and line > 0 else None] = None
        for block in blocks:
            if isinstance(block, DiffBlock):
                places.setdefault((absolute(block.path, self._cwd), None))
            elif isinstance(block, FileListBlock):
                for entry in block.entries[:MOST_PLACES]:
                    if not entry.is_dir:
                        places.setdefault((absolute(entry.path, self._cwd), entry.line))
        return [ToolCallLocation(path=path, line=line) for path, line in places] or None

    # --- context ---

    def _measured(self, budget: Budget) -> list[Update]:
        cost = None if self.cost is None else Cost(amount=float(self.cost), currency="USD")
        usage = UsageUpdate(
            session_update="usage_update", used=max(0, budget.used), size=max(0, budget.effective), cost=cost
        )
        known = self._usage
        if self.replaying or (known is not None and not _differs(known, usage)):
            return []
        self._usage = usage
        return [usage]

    def _compaction(self, body: CompactionStarted | CompactionCompleted | CompactionFailed) -> list[Update]:
        match body:
            case CompactionStarted():
                if (body.strategy,) == CLEARING or self.replaying:
                    return []
                self._sent[body.item] = _Sent()
                return [_compaction_call(body.item, f"Compacting the context: {started_words(body)}", "in_progress")]
            case CompactionCompleted():
                line, status = completed_line(body), "completed"
            case CompactionFailed():
                line, status = f"Could not compact: {body.reason}", "failed"
        if self._sent.pop(body.item, None) is None:
            return [_compaction_call(body.item, line, status)]
        return [_progress(body.item, status=status, title=one_line(line))]


def _terminal(id: str) -> TerminalToolCallContent:
    return TerminalToolCallContent(type="terminal", terminal_id=id)


def _terminal_output(id: str, text: str) -> dict[str, Any]:
    return {"terminal_output": {"terminal_id": id, "data": clean(coloured(text))}}


def _differs(known: UsageUpdate, usage: UsageUpdate) -> bool:
    """Whether the difference is visible: half a percent of the window, or another price."""
    moved = abs(known.used - usage.used) * 200 >= usage.size
    return moved or (known.size, known.cost) != (usage.size, usage.cost)


def _compaction_call(item: str, title: str, status: Any) -> ToolCallStart:
    return ToolCallStart(
        session_update="tool_call", tool_call_id=item, title=one_line(title), kind="think", status=status
    )


def _progress(item: str, **fields: Any) -> ToolCallProgress:
    return ToolCallProgress(session_update="tool_call_update", tool_call_id=item, **fields)
