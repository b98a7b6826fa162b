"""Events as lines of text, each written once and never changed: all events in words, for headless and plain output."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from swecli.block_text import block_lines
from swecli.core.context_management.note_topics import is_shown
from swecli.core.llm.catalog import shown_ref
from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, TerminalBlock
from swecli.core.protocol.events import (
    CHOICE,
    CHOSEN,
    MAIN,
    Body,
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ContextEdited,
    ContextSuggested,
    Event,
    FilesRestored,
    HookRan,
    HooksRunning,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    ModeChanged,
    ModelChanged,
    Notice,
    PermissionRequested,
    PlanChanged,
    QueueChanged,
    RetryScheduled,
    RewindUndone,
    Rewound,
    ScratchpadChanged,
    SessionStarted,
    TodosChanged,
    TurnEnded,
    Unknown,
)
from swecli.core.protocol.hook_words import hook_line, running_words
from swecli.core.protocol.messages import ToolCallPart, usage_words
from swecli.core.protocol.request_events import grounds
from swecli.core.protocol.turns import Item, Turns
from swecli.core.workspace.text_file import shown_path
from swecli.figures import duration, plural, tokens
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import printable_line, sanitise
from swecli.steady_clock import TICK, SteadyClock

MAX_LINES = 60
"""Lines of a diff or of a command's output if blocks are cut; a longer one is cut in the middle."""
MAX_OTHER_LINES = 12
"""The same for all other blocks."""
MAX_EARLIER_LINES = 8
"""The same for blocks from before a session was continued."""
_BAR = lazy_pattern(r"[\u2580-\u259f]+")
_DRAWN = lazy_pattern(r"\s*[\u2500-\u259f][\s\u2500-\u259f]*")
"""A line of only box-drawing characters and blocks."""
_SOURCES = lazy_pattern(r"\s*\[[a-z]+\d+(?:\.result)?(?:, [a-z]+\d+(?:\.result)?)*\]")
"""Sources of a line of a summary."""
_MARKS = {"pending": "to do", "in_progress": "in progress", "completed": "done"}


class Silence:
    """Tells how long the model of the main agent has been silent, while nothing else is waited for."""

    def __init__(self, patience: Sequence[float], turns: Turns) -> None:
        """``patience`` are seconds of silence to tell; from the last one on, it is told as often as that. ``turns``
        have taken all events."""
        self._patience = patience
        self._turns = turns
        self._clock = SteadyClock()
        self._since, self._told = self._clock(), 0
        """The newest event, and how often silence was told since then."""

    def broken(self) -> None:
        """There was an event."""
        self._since, self._told = self._clock(), 0

    async def watch(self, tell: Callable[[float], None]) -> None:
        """Call ``tell`` with the seconds; runs until it is cancelled."""
        while True:
            more = max(0, self._told - len(self._patience) + 1)
            limit = self._patience[min(self._told, len(self._patience) - 1)] + more * self._patience[-1]
            left = self._since + limit - self._clock()
            if left > 0:
                await asyncio.sleep(min(left, self._patience[0], TICK))  # an event meanwhile begins the silence anew
                continue
            self._told += 1
            turns = self._turns
            waits = turns.requests or any(item.running for item in turns.items.values())
            if turns.turn_open and not waits:
                tell(limit)


class EventLines:
    """Writes the lines of a session with ``write``, which takes one line without its end. Answers and reasoning are
    written line by line while they stream, everything else when it is complete. ``cut``: only the ends of long blocks.
    ``past``: also output that commands showed themselves when they ran, and what only the model read."""

    def __init__(self, write: Callable[[str], None], *, cut: bool = False, past: bool = False) -> None:
        self._write = write
        self._cut = cut
        self._past = past
        self.earlier = False
        """Whether the events are from before the session was continued: blocks are then short."""
        self._restored: FilesRestored | None = None
        """Not reported yet: a rewind reports its restored files itself."""
        self._cwd = ""
        self._turns = Turns()
        self._streams: dict[str, str] = {}
        """Unwritten parts of running answers."""
        self._shown: dict[str, tuple[DisplayBlock, ...]] = {}
        self._typed: list[str] = []
        self._replacing: set[str] = set()
        """Texts that the model reads in place of others, each written once."""

    def typed(self, text: str) -> None:
        """Note a message that is already on the screen because the user typed it."""
        self._typed.append(text)

    def say(self, lines: Iterable[str]) -> None:
        for line in lines:
            for part in sanitise(line).split("\n"):
                self._write(part.rstrip())

    def blocks(self, blocks: Sequence[DisplayBlock], *, drawings: bool = True) -> None:
        """Write output of a slash command or a tool. Without ``drawings``, omits lines of only bars and boxes, which a
        screen reader would spell out."""
        for block in blocks:
            lines = list(block_lines(block))
            if not drawings:
                lines = [_BAR.sub("", line) for line in lines if not _DRAWN.fullmatch(line)]
            limit = MAX_LINES if isinstance(block, DiffBlock | TerminalBlock) else MAX_OTHER_LINES
            limit = MAX_EARLIER_LINES if self.earlier else limit
            if (self._cut or self.earlier) and len(lines) > limit:
                half = limit // 2
                lines = [*lines[:half], f"... {len(lines) - 2 * half} lines ...", *lines[-half:]]
            self.say(lines)

    def event(self, event: Event) -> None:
        if event.agent != MAIN:
            self._of_agent(event)
            return
        item = self._turns.apply(event)
        self._tell_restored(event.body)
        if isinstance(event.body, SessionStarted):
            self._cwd = event.body.cwd
        match event.body:
            case ItemStarted():
                self._finish_lines()
            case ItemDelta(text=text, channel="text") if item is not None:
                self._stream(item, text)
            case ItemCheckpointed(running=True) if item is not None and item.kind == "tool":
                self.say([f"Started: {_call(item)}"])
            case ItemCompleted() as completed if item is not None:
                self._complete(item, completed)
            case PermissionRequested() as request:
                self._ask(request)
            case FilesRestored() as restored if self._past:
                self._restored = restored
            case _:
                self.say(_other_lines(event))
        if self._past:
            self._read_by_model(event.body)

    def _read_by_model(self, body: Body | Unknown) -> None:
        match body:
            case SessionStarted(resumed=False, environment=text) if text:
                self._to_model("Environment", text)
            case ScratchpadChanged(text=text) if text:
                self._to_model("Scratchpad", text)
            case ContextEdited(entries=view) | CompactionCompleted(view=view):
                texts = [entry.text for entry in view if entry.kind in ("summary", "stub") and entry.text]
                for text in dict.fromkeys(texts):
                    if text not in self._replacing:
                        self._replacing.add(text)
                        self._to_model("In place of earlier items", text)
            case _:
                pass

    def _to_model(self, title: str, text: str) -> None:
        self.say([f"{title}, for the model:", *(f"  {line}" for line in text.strip("\n").split("\n"))])

    def end(self) -> None:
        """No event follows."""
        self._tell_restored(None)

    def _tell_restored(self, then: Body | Unknown | None) -> None:
        restored, self._restored = self._restored, None
        if restored is not None and not isinstance(then, Rewound | RewindUndone):
            self.say([line for line in (restored_line(restored, self._cwd),) if line])

    def _of_agent(self, event: Event) -> None:
        """A subagent's questions and steps; the rest is in its report."""
        match event.body:
            case PermissionRequested() as request:
                self._ask(request)
                self._shown.pop(request.item, None)
            case ItemCheckpointed(part=ToolCallPart(name=name), title=title, running=True):
                self.say([f"{event.agent}: {name.replace('_', ' ')} {title}".rstrip()])
            case Notice(level="warning" | "error"):
                self.say([f"{event.agent}: {trouble_line(event)}"])
            case _:
                pass

    def _stream(self, item: Item, text: str) -> None:
        if item.kind not in _STREAMED:
            return
        if item.id not in self._streams:
            self._finish_lines()
            self.say([_STREAMED[item.kind]])
        *lines, rest = (self._streams.get(item.id, "") + text).split("\n")
        self.say(lines)
        self._streams[item.id] = rest

    def _finish_lines(self) -> None:
        """Write open lines before something else begins."""
        for item, rest in self._streams.items():
            if rest:
                self.say([rest])
                self._streams[item] = ""

    def _complete(self, item: Item, completed: ItemCompleted) -> None:
        ending = "" if completed.status == "ok" else f" ({completed.status})"
        match item.kind:
            case "text" | "reasoning":
                self._end_text(item, ending)
            case "note" if self._past:
                self._to_model(item.title or "Note", item.text)
            case "note" if is_shown(item.name):
                self.say([item.title])
            case "user":
                self._user(item, completed)
            case "tool" | "attachment":
                ended = _ENDED[completed.status]
                detail = completed.detail
                if detail.partition(": ")[0] == ended.lower():  # said once
                    detail = detail.partition(": ")[2]
                self.say([f"{ended}: {_call(item)}{f': {detail}' if detail else ''}"])
                if completed.blocks != self._shown.pop(completed.item, None):
                    self.blocks(completed.blocks)
            case _:
                pass

    def _end_text(self, item: Item, ending: str) -> None:
        if item.id in self._streams:
            rest = self._streams.pop(item.id)
            self.say([line for line in (rest, ending.strip()) if line])
        elif item.text.strip():
            self.say([_STREAMED[item.kind], item.text.strip("\n") + ending])

    def _user(self, item: Item, completed: ItemCompleted) -> None:
        if item.name == "shell":
            self.blocks(completed.blocks)
            if completed.status == "interrupted":
                self.say(["interrupted"])
        elif item.name == "command":
            self.say([f"You: {item.title}"])
        elif item.text in self._typed:
            self._typed.remove(item.text)
        else:
            self.say([f"You: {item.text}"])

    def _ask(self, request: PermissionRequested) -> None:
        self._shown[request.item] = request.blocks
        target = f" {request.title}" if request.title else ""
        self.say([f"Permission needed: {request.tool.replace('_', ' ')}{target}"])
        self.say(
            [*(f"Warning: {warning}" for warning in (request.danger, *request.warnings) if warning), *request.facts]
        )
        self.say(grounds(request))
        self.blocks(request.blocks)


_STREAMED = {"text": "Answer:", "reasoning": "Reasoning:"}
_ENDED = {"ok": "Done", "error": "Failed", "rejected": "Rejected", "interrupted": "Interrupted"}


def _call(item: Item) -> str:
    return f"{item.name.replace('_', ' ')} {item.title}".strip()


def _at(address: str) -> str:
    """Address of a model, if its name does not imply it."""
    return f" at {address}" if address else ""


def _other_lines(event: Event) -> list[str]:
    match event.body:
        case SessionStarted() as body:
            start = "Session continued" if body.resumed else "New session"
            model = f"{body.model or 'none'}{_at(body.address)}"
            return [f"{start}. swecli {body.swecli}, model {model}, mode {body.mode}, in {body.cwd}."]
        case Notice(level="info") as notice:
            return [f"Note: {notice.line}"]
        case Notice() | RetryScheduled():
            line = trouble_line(event)
            return [f"{line[0].upper()}{line[1:]}"]
        case ModeChanged(reason=reason) if reason == CHOSEN:  # the command reports it
            return []
        case ModeChanged(mode=mode):
            return [f"Mode: {mode}"]
        case ModelChanged(model=model, switched=True, address=address, effort=effort):
            return [f"Model: {shown_ref(model)}{_at(address)}{f', effort {effort}' if effort else ''}"]
        case QueueChanged(queue=queue):
            return [f"Waiting: {entry.text}" for entry in queue]
        case TodosChanged(todos=todos):
            return [
                "Plan:" if todos else "Plan: cleared",
                *(f"{_MARKS[todo.status]}: {todo.text}" for todo in todos),
            ]
        case PlanChanged(path=path, accepted=False):
            where = f"The plan is in {path}, where you can edit it. " if path else ""
            return [f"{where}/plan go carries it out; or say what to change."]
        case CompactionStarted(strategy=strategy) if (strategy,) != CLEARING:
            return [f"Compacting the context: {started_words(event.body)}."]
        case CompactionCompleted():
            return [completed_line(event.body)]
        case CompactionFailed(reason=reason):
            return [f"Could not compact: {reason}"]
        case Rewound() | RewindUndone():
            return rewind_lines(event.body)
        case ContextEdited():
            return [edited_line(event.body)]
        case ContextSuggested():
            return [suggested_line(event.body)]
        case HooksRunning(event=name, commands=commands) if commands:
            return [f"{running_words(name, commands)}."]
        case HookRan():
            line = hook_line(event.body)
            return [line] if line else []
        case TurnEnded(outcome=outcome, reason=reason, usage=usage, waited=waited) as ended:
            tokens = usage_words(usage, estimated=ended.estimated)
            wait = f" (waited {duration(waited)} for you)" if waited >= 1 else ""
            took = f" in {duration(ended.duration - waited)}" if ended.duration else ""  # of a killed run it is unknown
            took += f"{wait}{f', {tokens}' if tokens else ''}"
            why = f": {reason.rstrip('.')}" if reason else ""
            return [f"Turn {outcome}{took}{why}."]
        case _:
            return []


def trouble_line(event: Event) -> str:
    """One line for a warning, an error, a retry or an automatic choice; empty for everything else."""
    match event.body:
        case Notice(level="info") as notice if notice.topic == CHOICE:
            return f"note: {notice.line}"
        case Notice(level=level) as notice if level != "info":
            return f"{level}: {notice.line}"
        case HookRan(outcome="problem"):
            return f"warning: {hook_line(event.body)}"
        case RetryScheduled() as retry:
            return retry_line(retry)
        case _:
            return ""


_SOON: Final = 0.1
"""Shortest delay in seconds that is worth stating."""


def unreached_words(retry: RetryScheduled) -> str:
    """That the server is out of reach, with the reason if it is known: "Can't reach host (no such host)"."""
    why = retry.reason.partition(f"{retry.unreached}: ")[2].rstrip(".")
    if not why and retry.reason.endswith(" in time"):
        why = "no answer in time"
    return f"Can't reach {retry.unreached}{f' ({why})' if why else ''}"


def retry_line(retry: RetryScheduled) -> str:
    """What the model's server is waited for, and how long, as of the beginning of the wait."""
    delay = duration(retry.delay)
    if retry.unreached:
        words = unreached_words(retry)
        return f"{words[:1].lower()}{words[1:]}; next try in {delay}"
    number = f"{retry.attempt} of {retry.limit}" if retry.limit else f"{retry.attempt}"
    return f"retry {number} {f'in {delay}' if retry.delay >= _SOON else 'now'}: {retry.reason}"


# --- undo and rewind, equal in every front-end -----------------------------------------------------------------

_NAMED_FILES: Final = 3
"""Files of an undo to name."""


def rewind_lines(body: Rewound | RewindUndone) -> list[str]:
    """Result of the user's rewind or its undo; empty for a rewind by swecli itself, which has a message of its own."""
    if isinstance(body, RewindUndone):
        return [f"Rewind undone. {body.reason}".strip()]
    if not body.name:
        return []
    what = "Files rewound." if body.scope == "files" else "Rewound to before that message."
    back = [f"Your message was: {body.text}"] if body.text else []
    return [f"{what} {body.reason}".strip(), *back, "/rewind undo reverses it."]


def restored_line(body: FilesRestored, cwd: str) -> str:
    """Result of /undo or /redo for files; empty without any. Paths inside ``cwd`` are relative to it."""
    if not body.files:
        return ""
    verb = "undone" if body.direction == "undo" else "redone"
    named = ", ".join(shown_path(file.path, cwd) if cwd else file.path for file in body.files[:_NAMED_FILES])
    more = f" and {len(body.files) - _NAMED_FILES:,} more" if len(body.files) > _NAMED_FILES else ""
    left = f"; {len(body.conflicts):,} left alone" if body.conflicts else ""
    return f"File changes {verb}: {named}{more}{left}."


# --- compactions, equal in every front-end --------------------------------------------------------------------

CLEARING: Final = ("clearing",)
"""The strategies of a batch that only cleared old results: not a compaction, because everything is still in place."""

EXCERPT: Final = 80
"""Characters of a summary on the line about its compaction."""
UNDONE: Final = "Compaction undone."
REDONE: Final = "Compaction redone."
"""Fallback for a missing notice with figures."""

_MEANS: Final = {
    "chain": "old results first, then a summary",
    "summarization": "a summary",
    "summary": "a summary",
    "provider": "a summary of the provider",
    "hook": "a hook's summary",
    "record": "the record",
    "clearing": "clearing old results",
    "truncation": "dropping the oldest messages",
    "importance": "dropping the least important messages",
    "shrinking": "shortening long entries",
    "fold": "folding a stretch into a few lines",
}


def started_words(body: CompactionStarted) -> str:
    """Fill of the context and the strategy, after "Compacting the context: "."""
    full = f"{_percent(body.tokens_before, body.effective)} full, " if body.effective else ""
    return f"{full}{body.tokens_before:,} tokens; {_means((body.strategy,))}"


def completed_line(body: CompactionCompleted) -> str:
    """Result on one line, and how to undo it."""
    size = f"{body.tokens_before:,} to {body.tokens_after:,} tokens"
    saved = f"{max(0, body.tokens_before - body.tokens_after):,} saved"
    share = ""
    if body.effective:
        before, after = (_percent(tokens, body.effective) for tokens in (body.tokens_before, body.tokens_after))
        share = f" ({before} to {after} of the window)"
    if body.strategies == CLEARING:
        cleared = "1 result or argument" if body.cleared == 1 else f"{body.cleared:,} results and arguments"
        what = f"{cleared}, " if body.cleared else ""
        undo = body.undo or "restores them"
        return f"Old results cleared: {what}{size}, {saved}{share}{_costs(body)}. /compact undo {undo}."
    messages = f"{body.messages_before:,} to {plural(body.messages_after, 'message')}"
    placed = next((entry for entry in body.view if entry.id == body.item), None)
    replaced = f"{plural(len(placed.sources), 'item')} replaced, " if placed is not None and placed.sources else ""
    by = f" by {_means(body.strategies)}" if body.strategies else ""
    undo = body.undo or "restores it"
    return (
        f"Context compacted{by}: {size}, {saved}{share}; {replaced}{messages}{_costs(body)}.{_excerpt(body.summary)} "
        f"/compact undo {undo}."
    )


def _excerpt(summary: str) -> str:
    """The first words of a summary, without its headings and the sources of its lines."""
    lines = (_SOURCES.sub("", line).strip() for line in summary.splitlines())
    first = next(
        (printable_line(line.lstrip("-*> ")) for line in lines if line and not line.startswith(("#", "<", "```"))), ""
    )
    if len(first) > EXCERPT:
        first = f"{first[:EXCERPT].rpartition(' ')[0] or first[:EXCERPT]} …"
    return f" Summary: “{first.rstrip('.')}”." if first else ""


def _costs(body: CompactionCompleted) -> str:
    """What a compaction cost, as clauses that follow its figures."""
    cache = f"; {tokens(body.rewritten)} tokens leave the cache" if body.rewritten else ""
    verb = "is" if body.thoughts == 1 else "are"
    return cache + (f"; {plural(body.thoughts, 'thought')} of the model {verb} lost" if body.thoughts else "")


_CHANGED: Final = {
    "pin": "pinned",
    "unpin": "unpinned",
    "drop": "dropped",
    "offload": "offloaded",
    "restore": "restored",
}


def edited_line(body: ContextEdited) -> str:
    """The user's change of the context on one line, and how to undo it."""
    counts = Counter(_CHANGED[change.action] for change in body.changes)
    what = ", ".join(f"{count:,} {verb}" for verb, count in counts.items())
    size = (
        "" if body.tokens_before == body.tokens_after else f": {body.tokens_before:,} to {body.tokens_after:,} tokens"
    )
    left = any(entry.kind != "live" for entry in body.entries)
    return f"Context changed, {what}{size}.{' /context restores them.' if left else ''}"


def suggested_line(body: ContextSuggested) -> str:
    """A suggestion for the context on one line, and how to accept or silence it."""
    freed = f", -{tokens(body.freed)} token{'' if body.freed == 1 else 's'}" if body.freed else ""
    return (
        f"Suggestion: {body.reason}. /sentinel take: {body.action}{freed}; /sentinel silence: never suggest this again."
    )


def _means(strategies: tuple[str, ...]) -> str:
    return " and ".join(_MEANS.get(name, name) for name in strategies)


def _percent(tokens: int, effective: int) -> str:
    return f"{round(100 * tokens / effective)}%"
