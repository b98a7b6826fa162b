"""Conversion of events to operations on blocks. Pure: the same events give the same operations, and the stored events
of a finished turn give the same blocks as its live stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final

from msgspec.structs import replace

from swecli.core.context_management.note_topics import is_shown
from swecli.core.llm.catalog import shown_ref
from swecli.core.llm.foreign_calls import own_name
from swecli.core.protocol.blocks import DisplayBlock, TerminalBlock, TextBlock
from swecli.core.protocol.events import (
    CHOSEN,
    MAIN,
    AgentEnded,
    AgentStarted,
    Body,
    CacheBreak,
    CompactionCompleted,
    CompactionFailed,
    CompactionRedone,
    CompactionStarted,
    CompactionUndone,
    ContextEdited,
    Event,
    HookRan,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemsOffloaded,
    ItemStarted,
    JobChanged,
    ModeChanged,
    ModelChanged,
    ModelResponded,
    Notice,
    PermissionRequested,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    RetryScheduled,
    RewindUndone,
    Rewound,
    SessionStarted,
    StepEnded,
    StepStarted,
    ToolsChanged,
    TurnEnded,
    Unknown,
)
from swecli.core.protocol.hook_words import hook_line
from swecli.core.protocol.messages import ImagePart, ToolCallPart
from swecli.event_lines import CLEARING, completed_line, edited_line, retry_line, started_words
from swecli.figures import plural
from swecli.tool_words import OWN_COMMAND, call_title
from swecli.tui.transcript.blocks import (
    AgentFigures,
    AnswerBlock,
    Block,
    CompactionBlock,
    NoticeBlock,
    Operation,
    Put,
    ReasoningBlock,
    Remove,
    RewoundBlock,
    SessionBlock,
    ToolBlock,
    TurnEndBlock,
    UserBlock,
    image_of,
    is_live,
    with_output,
    with_part,
)

RETRY: Final = "retry"
"""Id of the retry line, which is removed at the next event."""

NOTICES: Final[tuple[type, ...]] = (
    Notice,
    RetryScheduled,
    ModeChanged,
    ModelChanged,
    ItemsOffloaded,
    CacheBreak,
    JobChanged,
    HookRan,
    ToolsChanged,
)


def notice_of(event: Event) -> NoticeBlock | None:
    """Notice line for one of the ``NOTICES`` events; None if other parts of the screen show it."""
    key = f"notice-{event.seq}"
    match event.body:
        case Notice() as body:
            return NoticeBlock(key, body.text, body.level, body.hint)
        case RetryScheduled() as body:
            # The activity line shows the attempt with a countdown, and all of it if the server is unreachable.
            return None if body.unreached else NoticeBlock(RETRY, body.reason, "warning")
        case ModeChanged() as body:
            told = not body.reason or body.reason == CHOSEN  # the key or command that chose it already shows it
            return None if told else NoticeBlock(key, f"Mode: {body.mode} ({body.reason})", "warning")
        case ModelChanged() as body:
            effort = f", effort {body.effort}" if body.effort else ""
            location = f" at {body.address}" if body.address else ""
            return NoticeBlock(key, f"Model: {shown_ref(body.model)}{location}{effort}") if body.switched else None
        case ItemsOffloaded() as body:
            tokens = sum(item.tokens for item in body.items)
            moved = plural(len(body.items), "item")
            return NoticeBlock(key, f"{moved} kept out of the context ({tokens:,} tokens)")
        case CacheBreak() as body:
            return NoticeBlock(key, f"Prompt cache miss: {body.tokens:,} tokens re-sent, {body.cause}")
        case JobChanged() as body:
            return _job(key, body)
        case HookRan() as body:
            line = hook_line(body)
            return NoticeBlock(key, line, "warning" if body.outcome == "problem" else "info") if line else None
        case ToolsChanged(reason=reason) if reason:
            return NoticeBlock(key, reason)
        case _:
            return None


def _job(key: str, body: JobChanged) -> NoticeBlock:
    match body.status:
        case "running":
            state = "runs in the background"
        case "killed":
            state = f"was stopped{f' ({body.note})' if body.note else ''}"
        case "exited":
            state = "ended" if body.exit_status is None else f"ended with exit status {body.exit_status}"
    level = "warning" if body.status == "exited" and body.exit_status else "info"
    return NoticeBlock(key, f"Job {body.job} {state}: {body.command}", level)


class Reducer:
    """State of the reduction: blocks by id, in display order.

    ``stored`` returns a block whose operation was applied; finished ones are then not kept here.
    """

    def __init__(self, stored: Callable[[str], Block | None] | None = None) -> None:
        self.blocks: dict[str, Block] = {}
        """All blocks; with ``stored`` only live ones and those just put."""
        self.ids: dict[str, None] = {}
        """Ids of all blocks, in order."""
        self._stored = stored
        self._finished: list[str] = []
        """Finished blocks to discard once the current operations are applied, because they are then stored."""
        self.agents: dict[str, str] = {}
        """Item of the call that a subagent works for, by agent."""
        self.requests: dict[str, str] = {}
        """Item of each open question or consent request."""
        self._pieces: dict[tuple[str, str], list[str]] = {}
        """Text not yet in its block, by item and channel."""
        self._operations: list[Operation] = []
        self._places: dict[str, int] = {}
        """Index of the last operation on a block, by id."""
        self.greeting: tuple[tuple[str, str], ...] = ()
        """Labels and texts of the next new session's greeting."""
        self.greeted = ""
        """Id of the newest session's block until a model is connected."""
        self.open: dict[str, None] = {}
        """Ids of live blocks."""

    def reduce(self, events: Iterable[Event]) -> list[Operation]:
        """Apply events and return the resulting operations, at most one ``Put`` for each remaining block."""
        self._operations, self._places = [], {}
        self._hand_over()
        for event in events:
            self._feed(event)
        self._flush()
        return self._operations

    def tick(self, now: float) -> list[Operation]:
        """Operations due to elapsed time (``now`` in Unix seconds): durations of running steps."""
        self._operations, self._places = [], {}
        for block_id in self.open:
            block = self.blocks[block_id]
            if isinstance(block, ToolBlock) and block.status == "running" and block.since:
                seconds = max(0, int(now - block.since))
                if seconds != block.elapsed:
                    self.put(replace(block, elapsed=seconds))
        return self._operations

    @property
    def counts(self) -> bool:
        """Whether a running step needs ``tick``."""
        return any(
            isinstance(block := self.blocks[block_id], ToolBlock) and block.status == "running"
            for block_id in self.open
        )

    def _feed(self, event: Event) -> None:
        body = event.body
        if isinstance(body, ItemDelta) and event.agent == MAIN:
            self._pieces.setdefault((body.item, body.channel), []).append(body.text)
            return
        if event.agent != MAIN:
            _of_agent(self, event)
            return
        handler = _HANDLERS.get(type(body))
        if handler is None:
            return
        self._flush()
        if RETRY in self.ids and not (isinstance(body, RetryScheduled) and not body.unreached):
            self.remove(RETRY)
        handler(self, event, body)

    def advise(self, advice: tuple[TextBlock, ...], *, brief: bool) -> list[Operation]:
        """Operations that put advice on connecting a model into the greeting, if a session without one has been
        greeted."""
        self._operations, self._places = [], {}
        greeting = self.block(self.greeted)
        if isinstance(greeting, SessionBlock):
            self.put(replace(greeting, advice=advice, brief=brief))
        return self._operations

    # --- operations ---

    def block(self, block_id: str) -> Block | None:
        """The current block; None if there is none."""
        block = self.blocks.get(block_id)
        if block is not None or self._stored is None or block_id not in self.ids:
            return block
        return self._stored(block_id)

    def put(self, block: Block) -> None:
        self.blocks[block.id] = block
        self.ids.setdefault(block.id)
        if is_live(block):
            self.open[block.id] = None
        else:
            self.open.pop(block.id, None)
            self._finished.append(block.id)
        index = self._places.get(block.id)
        if index is None:
            self._places[block.id] = len(self._operations)
            self._operations.append(Put(block))
        else:
            self._operations[index] = Put(block)

    def remove(self, block_id: str) -> None:
        del self.ids[block_id]
        self.blocks.pop(block_id, None)
        self.open.pop(block_id, None)
        self._places.pop(block_id, None)
        self._operations.append(Remove(block_id))

    def _hand_over(self) -> None:
        if self._stored is not None:
            for block_id in self._finished:
                if block_id not in self.open:
                    self.blocks.pop(block_id, None)
        self._finished.clear()

    def _flush(self) -> None:
        for (item, channel), pieces in self._pieces.items():
            block = self.block(item)
            text = "".join(pieces)
            match block:
                case UserBlock() | AnswerBlock() | ReasoningBlock() if channel == "text":
                    self.put(replace(block, text=block.text + text))
                case ToolBlock() if channel == "arguments":
                    self.put(replace(block, arguments=block.arguments + text))
                case ToolBlock(agent=None) if channel == "output":
                    self.put(with_output(block, text))
                case _:
                    pass
        if RETRY in self.ids and self._pieces:
            self.remove(RETRY)
        self._pieces.clear()


def _close_open_items(reducer: Reducer) -> None:
    for block_id in [*reducer.open]:
        block = reducer.blocks[block_id]
        match block:
            case AnswerBlock() | ReasoningBlock():
                reducer.put(replace(block, status="interrupted"))
            case ToolBlock():
                reducer.put(replace(block, status="interrupted", output="", output_cut=False, since=0.0, elapsed=0))
            case CompactionBlock():
                reducer.put(replace(block, status="failed", reason="interrupted"))
            case _:
                pass


# --- one function per kind of event ---


def _session(reducer: Reducer, event: Event, body: SessionStarted) -> None:
    _close_open_items(reducer)
    key = f"session-{event.seq}"
    before = reducer.block(next(reversed(reducer.ids), ""))
    if body.resumed and isinstance(before, SessionBlock) and before.resumed:  # nothing happened since
        reducer.remove(before.id)
    lines, reducer.greeting = (() if body.resumed else reducer.greeting), ()
    reducer.put(SessionBlock(key, body.model, body.cwd, body.mode, body.swecli, body.resumed, body.address, lines))
    reducer.greeted = key if lines else ""


def _started(reducer: Reducer, event: Event, body: ItemStarted) -> None:
    match body.kind:
        case "user" if body.name == "shell":
            reducer.put(ToolBlock(body.item, OWN_COMMAND, body.title, "running", since=event.ts))
        case "user":
            reducer.put(UserBlock(body.item, title=body.title if body.name == "command" else ""))
        case "text":
            reducer.put(AnswerBlock(body.item))
        case "reasoning":
            reducer.put(ReasoningBlock(body.item))
        case "tool" | "attachment":
            reducer.put(ToolBlock(body.item, own_name(body.name), body.title))
        case "note" if is_shown(body.name):
            reducer.put(NoticeBlock(body.item, body.title))
        case "compaction":
            if body.item not in reducer.ids:
                reducer.put(CompactionBlock(body.item))


def _checkpoint(reducer: Reducer, event: Event, body: ItemCheckpointed) -> None:
    known = reducer.block(body.item)
    before = known.text if isinstance(known, AnswerBlock | ReasoningBlock) else ""
    block = with_part(known, body.whole_part(before))
    if isinstance(block, ToolBlock):
        block = replace(block, title=body.title or block.title)
        if body.running:
            block = replace(block, status="running", since=block.since or event.ts)
    if block is not None and block != reducer.block(body.item):
        reducer.put(block)


def _hint(block: ToolBlock, body: ItemCompleted) -> tuple[DisplayBlock, ...]:
    """Hint for a user's command that failed without a terminal."""
    from swecli.tui.terminal_programs import missed_a_terminal

    if block.name != OWN_COMMAND or not any(
        isinstance(shown, TerminalBlock) and shown.exit_status and missed_a_terminal(shown.output)
        for shown in body.blocks
    ):
        return ()
    return (TextBlock(f"It had no terminal. !!{block.title} gives it yours.", "dim"),)


def _completed(reducer: Reducer, event: Event, body: ItemCompleted) -> None:
    block = reducer.block(body.item)
    for part in body.parts:
        block = with_part(block, part)
    match block:
        case UserBlock():
            images = tuple(image_of(part) for part in body.parts if isinstance(part, ImagePart))
            reducer.put(replace(block, images=images))
        case AnswerBlock():
            reducer.put(replace(block, status=body.status, detail=body.detail))
        case ReasoningBlock(text="") if not (body.duration or body.detail):
            reducer.remove(block.id)  # a signature or a hidden thought: it stays in the record and in /context
        case ReasoningBlock():
            reducer.put(replace(block, status=body.status, duration=body.duration, detail=body.detail))
        case ToolBlock():
            reducer.put(
                replace(
                    block,
                    title=block.title or body.title,
                    status=body.status,
                    blocks=(*body.blocks, *_hint(block, body)) or (block.preview if body.status == "rejected" else ()),
                    preview=(),
                    detail=body.detail,
                    duration=body.duration,
                    since=0.0,
                    elapsed=0,
                    output="",
                    output_cut=False,
                    note=block.note if body.status == "rejected" else "",
                )
            )
        case CompactionBlock() if block.status == "running" and body.status != "ok":
            reducer.put(replace(block, status="failed", reason=body.detail or body.status))
        case _:
            pass


def _permission_requested(reducer: Reducer, event: Event, body: PermissionRequested) -> None:
    reducer.requests[body.request] = body.item
    block = reducer.block(body.item)
    if isinstance(block, ToolBlock):
        title = block.title or body.title
        reducer.put(replace(block, status="waiting", preview=body.blocks, note=body.reason, title=title))


def _permission_resolved(reducer: Reducer, event: Event, body: PermissionResolved) -> None:
    block = reducer.block(reducer.requests.pop(body.request, ""))
    if isinstance(block, ToolBlock) and block.status == "waiting":
        if body.choice in ("once", "always"):
            reducer.put(replace(block, status="pending", preview=(), note=""))
        else:
            reducer.put(replace(block, status="pending", note=body.note))


def _question_asked(reducer: Reducer, event: Event, body: QuestionAsked) -> None:
    reducer.requests[body.request] = body.item
    block = reducer.block(body.item)
    if isinstance(block, ToolBlock):
        asked = tuple(TextBlock(question.text) for question in body.questions)
        reducer.put(replace(block, status="asking", preview=asked))


def _question_answered(reducer: Reducer, event: Event, body: QuestionAnswered) -> None:
    block = reducer.block(reducer.requests.pop(body.request, ""))
    if isinstance(block, ToolBlock) and block.status == "asking":
        reducer.put(replace(block, status="running", since=event.ts, preview=()))


def _turn_ended(reducer: Reducer, event: Event, body: TurnEnded) -> None:
    _close_open_items(reducer)
    reducer.requests.clear()
    newest = reducer.block(next(reversed(reducer.ids))) if reducer.ids else None
    if body.outcome == "blocked" and isinstance(newest, RewoundBlock):  # one line shows both
        reducer.put(replace(newest, reason=body.reason, not_sent=True))
        return
    reducer.put(
        TurnEndBlock(
            f"turn-{event.seq}", body.outcome, body.reason, body.duration, body.usage, body.waited, body.estimated
        )
    )


def _compaction(
    reducer: Reducer,
    event: Event,
    body: CompactionStarted | CompactionCompleted | CompactionFailed | CompactionUndone | CompactionRedone,
) -> None:
    block = reducer.block(body.item)
    if not isinstance(block, CompactionBlock):
        block = CompactionBlock(body.item)
    match body:
        case CompactionStarted():
            block = replace(block, status="running", tokens_before=body.tokens_before, words=started_words(body))
        case CompactionCompleted():
            block = CompactionBlock(
                body.item,
                "done",
                body.tokens_before,
                completed_line(body),
                body.strategies == CLEARING,
                body.summary,
            )
        case CompactionFailed():
            block = replace(block, status="failed", reason=body.reason)
        case CompactionUndone():
            block = replace(block, status="undone")
        case CompactionRedone():
            block = replace(block, status="redone")
    reducer.put(block)


def _context_edited(reducer: Reducer, event: Event, body: ContextEdited) -> None:
    reducer.put(NoticeBlock(f"notice-{event.seq}", edited_line(body)))


def _rewound(reducer: Reducer, event: Event, body: Rewound) -> None:
    ids = list(reducer.ids)
    if body.scope == "files":
        reducer.put(NoticeBlock(f"notice-{event.seq}", f"Files rewound. {body.reason} /rewind undo restores them."))
        return
    if body.item not in reducer.ids:
        reducer.put(NoticeBlock(f"notice-{event.seq}", f"Rewound. {body.reason}".strip()))
        return
    removed = ids[ids.index(body.item) :]
    taken = tuple(block for block_id in removed if (block := reducer.block(block_id)) is not None)
    for block_id in removed:
        reducer.remove(block_id)
    reducer.put(RewoundBlock(f"rewound-{body.name or event.seq}", taken, body.reason, undoable=bool(body.name)))


def _rewind_undone(reducer: Reducer, event: Event, body: RewindUndone) -> None:
    """Restore the removed messages, and fold the later ones before them."""
    ids = list(reducer.ids)
    folded = f"rewound-{body.name}"
    block = reducer.block(folded)
    if isinstance(block, RewoundBlock):
        removed = ids[ids.index(folded) + 1 :]
        since = tuple(later for block_id in removed if (later := reducer.block(block_id)) is not None)
        for block_id in (folded, *removed):
            reducer.remove(block_id)
        if since:
            reducer.put(RewoundBlock(f"since-{event.seq}", since, "since the rewind"))
        for back in block.blocks:
            reducer.put(back)
    reducer.put(NoticeBlock(f"notice-{event.seq}", f"Rewind undone. {body.reason}".strip()))


def _model(reducer: Reducer, event: Event, body: ModelChanged) -> None:
    greeting, reducer.greeted = reducer.block(reducer.greeted), ""
    if isinstance(greeting, SessionBlock):
        from swecli.tui.greeting import connected  # not needed by the first frame

        lines = connected(greeting.lines, body.model, body.address)
        if lines != greeting.lines:
            told = {"lines": lines, "advice": (), "brief": False}
            reducer.put(replace(greeting, model=body.model, address=body.address, **told))
            if not body.effort:
                return  # the greeting says it all
    _notice(reducer, event, body)


def _notice(reducer: Reducer, event: Event, body: Body) -> None:
    notice = notice_of(event)
    if notice is not None:
        if notice.id in reducer.ids:
            reducer.remove(notice.id)
        reducer.put(notice)


def _agent_started(reducer: Reducer, event: Event, body: AgentStarted) -> None:
    block = reducer.block(body.item)
    if isinstance(block, ToolBlock):
        reducer.agents[body.agent] = body.item
        figures = AgentFigures(body.agent, body.profile, body.background, doing="waiting for a free slot")
        reducer.put(replace(block, agent=figures, output=""))


def _agent_ended(reducer: Reducer, event: Event, body: AgentEnded) -> None:
    block = reducer.block(reducer.agents.pop(body.agent, ""))
    if isinstance(block, ToolBlock) and block.agent is not None:
        cost = None if body.cost is None else Decimal(body.cost)
        figures = replace(
            block.agent,
            outcome=body.outcome,
            reason=body.reason,
            steps=body.steps,
            tokens=body.tokens,
            cost=cost,
            doing="",
            open=(),
        )
        reducer.put(replace(block, agent=figures))


def _of_agent(reducer: Reducer, event: Event) -> None:
    """Update the block of a subagent's call with its event."""
    block = reducer.block(reducer.agents.get(event.agent, ""))
    if not isinstance(block, ToolBlock) or block.agent is None:
        return
    figures = _figures_after(block.agent, event.body)
    if figures != block.agent:
        reducer.put(replace(block, agent=figures))


def _figures_after(figures: AgentFigures, body: Body | Unknown) -> AgentFigures:
    match body:
        case StepStarted():
            doing = figures.calls[-1] if figures.calls else "waiting for the model"
            return replace(figures, steps=figures.steps + 1, doing=doing)
        case StepEnded(usage=usage, cost=cost):
            used = 0 if usage is None else (usage.input_total or 0) + (usage.output_total or 0)
            total = None if figures.cost is None or cost is None else figures.cost + Decimal(cost)
            return replace(figures, tokens=figures.tokens + used, cost=total)
        case ItemStarted(kind="reasoning"):
            return replace(figures, doing="thinking")
        case ItemStarted(kind="text"):
            return replace(figures, doing="writing")
        case ItemCheckpointed(part=ToolCallPart(name=name), title=title, running=False, awaits="") if title:
            return figures.with_call(call_title(name, title))
        case RetryScheduled():
            return replace(figures, doing=retry_line(body))
        case PermissionRequested(request=request, tool=tool, title=title):
            return replace(figures, open=(*figures.open, (request, call_title(tool, title))))
        case QuestionAsked(request=request, questions=questions):
            asked = questions[0].text if questions else ""
            return replace(figures, open=(*figures.open, (request, call_title("ask_user", asked))))
        case PermissionResolved(request=request) | QuestionAnswered(request=request):
            return replace(figures, open=tuple(pair for pair in figures.open if pair[0] != request))
        case _:
            return figures


def _responded(reducer: Reducer, event: Event, body: ModelResponded) -> None:
    """Remove the retry line; the response's items show the rest."""


_HANDLERS: Final[dict[type, Callable[[Reducer, Event, Any], None]]] = {
    SessionStarted: _session,
    ItemStarted: _started,
    ItemCheckpointed: _checkpoint,
    ItemCompleted: _completed,
    PermissionRequested: _permission_requested,
    PermissionResolved: _permission_resolved,
    QuestionAsked: _question_asked,
    QuestionAnswered: _question_answered,
    TurnEnded: _turn_ended,
    CompactionStarted: _compaction,
    CompactionCompleted: _compaction,
    CompactionFailed: _compaction,
    CompactionUndone: _compaction,
    CompactionRedone: _compaction,
    ContextEdited: _context_edited,
    Rewound: _rewound,
    RewindUndone: _rewind_undone,
    **dict.fromkeys(NOTICES, _notice),
    ModelChanged: _model,
    ModelResponded: _responded,
    AgentStarted: _agent_started,
    AgentEnded: _agent_ended,
}
