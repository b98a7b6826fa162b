"""One request to the model: sent within its limits, its stream turned into items, its usage accounted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.context_management.context_manager import ContextManager, PreparedRequest
from swecli.core.context_management.gateway import RequestGateway
from swecli.core.context_management.ledger import INTERRUPTED
from swecli.core.context_management.monitor import GrowingBudget
from swecli.core.context_management.prefix_guard import PrefixGuard
from swecli.core.engine.model_access import ModelAccess
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Time
from swecli.core.engine.settings import Settings, TurnLimits
from swecli.core.engine.state import SessionState
from swecli.core.llm.catalog import shown_ref
from swecli.core.llm.errors import says_overloaded
from swecli.core.llm.types import (
    WEB_SEARCH,
    CallText,
    Failed,
    Finished,
    HasSlots,
    ModelClient,
    ModelInfo,
    PromptRead,
    ProviderError,
    ReasoningDelta,
    SearchCited,
    SearchEnded,
    SearchStarted,
    StreamEvent,
    StreamNotice,
    TextDelta,
    ToolArgsDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageUpdate,
    WebSource,
)
from swecli.core.permissions.types import Rule
from swecli.core.protocol.blocks import TableBlock
from swecli.core.protocol.events import (
    CITED_SOURCES,
    CacheBreak,
    CallProgress,
    ContextMeasured,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemKind,
    ItemStarted,
    ItemStatus,
    ModelResponded,
    Notice,
    PromptProgress,
    RetryScheduled,
    StepEnded,
    UntrustedContent,
)
from swecli.core.protocol.messages import (
    Message,
    Origin,
    Part,
    ReasoningPart,
    Response,
    Stop,
    TextPart,
    ToolCallPart,
    Usage,
    added,
    target_of,
)
from swecli.figures import plural
from swecli.steady_clock import SteadyClock

SEARCH_ORIGIN = "the provider's web search"
"""Origin of the untrusted text of results that the provider gives the model."""
CHECKPOINT_SECONDS = 0.5
"""Longest time for which displayed text stays unstored."""
PAUSE_SECONDS = 0.08
"""Silence of the stream after which displayed text is stored at once."""
_CLOCK = 0.001
"""Seconds by which a timer may fire early."""
_TITLE = 1_000
"""Characters of the target of an incomplete call that are stored."""


class _Running(Struct):
    """One part of a streaming answer."""

    item: str
    kind: ItemKind
    pieces: list[str] = field(default_factory=list)
    call: ToolCallPart | None = None
    reasoning_kind: str = "raw"
    kept: int = 0
    """Pieces that checkpoints have, and their characters."""
    kept_size: int = 0
    ended: bool = False


class _Held(Struct):
    """Text of a part that probably is a call, not shown yet. ``reported``: as in ``Answer``."""

    pieces: list[str] = field(default_factory=list)
    size: int = 0
    reported: int = 0


Outdated: TypeAlias = "Callable[[], Awaitable[str]]"
"""Why an approval no longer covers what the call would do, as a sentence; empty if it does. For state beyond the files
that the call itself names."""


class Call(Struct, frozen=True):
    """A complete call of a complete answer, ready for the scheduler."""

    item: str
    part: ToolCallPart
    note: str = ""
    """Line before the result that names the origin of the call; empty for the model's own."""
    rules: tuple[Rule, ...] = ()
    """Additional permission rules for this call."""
    typed: bool = False
    """Whether the user typed the content or question."""
    outdated: Outdated | None = None


class Answer:
    """Follows one stream. Exactly one of ``complete`` and ``cut`` ends it; both leave every item terminal except the
    tool calls of a complete answer, which belong to the scheduler."""

    def __init__(
        self,
        recorder: Recorder,
        origin: Origin,
        monotonic: Callable[[], float],
        grown: Callable[[Mapping[ItemKind, str]], None] = lambda _texts: None,
        own_name: Callable[[str], str] = str,
    ) -> None:
        """``grown`` is called now and then with the new text of each kind. ``own_name`` translates the model's name of
        a tool into swecli's."""
        self._recorder = recorder
        self._grown = grown
        self._own_name = own_name
        self._reported: dict[int, int] = {}
        """Number of reported pieces of each part."""
        self._origin = origin
        self._monotonic = monotonic
        self._started = monotonic()
        self._first: float | None = None
        self._parts: dict[int, _Running] = {}
        self._held: dict[int, _Held] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._unstored_since = self._newest = 0.0
        """Arrival of the oldest and the newest unstored text, in the loop's time."""
        self._usage: Usage | None = None
        self._searches: dict[int, str] = {}
        """Items of the provider's running searches, by part."""
        self._searched = False

    @property
    def visible(self) -> bool:
        return bool(self._parts or self._held) or self._searched

    @property
    def usage(self) -> Usage | None:
        return self._usage

    @property
    def written_for(self) -> float:
        """Seconds since its first word."""
        return self._monotonic() - self._first if self._first is not None else 0.0

    @property
    def written(self) -> int:
        """Characters received so far, in all parts."""
        shown = sum(len(piece) for running in self._parts.values() for piece in running.pieces)
        return shown + sum(held.size for held in self._held.values())

    def feed(self, event: StreamEvent) -> None:
        match event:
            case TextDelta(part=part, text=text):
                was_held = self._release(part)
                running = self._grow(part, "text", text)
                if was_held:
                    self._reported[part] = len(running.pieces)
            case CallText(part=part, text=text, name=name):
                self._hold(part, text, name)
            case ReasoningDelta(part=part, text=text, kind=kind):
                self._grow(part, "reasoning", text).reasoning_kind = kind
            case ToolCallStarted(part=part, name=name):
                self._part(part, "tool", name)
            case ToolArgsDelta(part=part, text=text) if part in self._parts:
                running = self._parts[part]
                running.pieces.append(text)
                self._recorder.emit(ItemDelta(running.item, text, "arguments"))
                self._look_soon()
            case ToolCallDone(part=part, call=call):
                running = self._part(part, "tool", call.name)
                running.call = call
            case SearchStarted(part=part, query=query):
                self._search(part, query)
            case SearchEnded(part=part, sources=sources, problem=problem):
                self._end_search(part, sources, problem)
            case SearchCited(sources=sources):
                self._cite(sources)
            case UsageUpdate(usage=usage):
                self._usage = usage
            case PromptRead(read=read, total=total):
                self._recorder.emit(PromptProgress(read, total))
            case _:
                pass

    def _hold(self, part: int, text: str, name: str) -> None:
        """Follow a call that the model writes as text."""
        if self._first is None:
            self._first = self._monotonic()
        held = self._held.setdefault(part, _Held())
        held.pieces.append(text)
        held.size += len(text)
        self._recorder.emit(CallProgress(self._own_name(name) if name else "", held.size))
        self._look_soon()

    def _release(self, part: int) -> bool:
        """Forget what is held of a part, because it arrives again. Returns whether something was."""
        if part not in self._held:
            return False
        self._report_growth()
        del self._held[part]
        return True

    def _search(self, part: int, query: str) -> str:
        """Show a search of the provider like a call, which is no part of the conversation: the provider's own record
        of it, which is kept for later requests, is."""
        item = self._recorder.new_item("t")
        self._searches[part], self._searched = item, True
        self._recorder.emit(ItemStarted(item, "tool", WEB_SEARCH, query))
        return item

    def _end_search(self, part: int, sources: Sequence[WebSource], problem: str) -> None:
        item = self._searches.pop(part, "") or self._search(part, "")
        self._searches.pop(part, None)
        blocks = (_sources_table(sources),) if sources else ()
        detail = problem or (plural(len(sources), "source") if sources else "")
        if not problem:
            self._recorder.emit(UntrustedContent(item, SEARCH_ORIGIN))
        self._recorder.emit(ItemCompleted(item, "error" if problem else "ok", (), blocks, detail))

    def _cite(self, sources: Sequence[WebSource]) -> None:
        item = self._recorder.new_item("t")
        self._recorder.emit(ItemStarted(item, "tool", CITED_SOURCES, "of the answer"))
        self._recorder.emit(ItemCompleted(item, "ok", (), (_sources_table(sources),), plural(len(sources), "page")))

    def _close_searches(self, status: ItemStatus) -> None:
        for item in self._searches.values():
            self._recorder.emit(ItemCompleted(item, status))
        self._searches.clear()

    def complete(self, message: Message) -> tuple[Call, ...]:
        """End a successful stream: close its items and commit the response. Returns the calls to run."""
        self._stop_timer()
        self._held.clear()
        self._close_searches("ok")
        items: list[str] = []
        calls: list[Call] = []
        for index, part in enumerate(message.parts):
            running = self._part(index, _kind(part), part.name if isinstance(part, ToolCallPart) else "")
            items.append(running.item)
            running.ended = True
            if isinstance(part, ToolCallPart):
                self._recorder.emit(ItemCheckpointed(running.item, part))
                calls.append(Call(running.item, part))
            else:
                self._recorder.emit(ItemCompleted(running.item, "ok", (part,)))
        for running in self._parts.values():
            if not running.ended:  # shown while streaming, but not part of the final message
                self._recorder.emit(ItemCompleted(running.item, "ok"))
        response = message.response or Response(self._origin)
        self._respond(items, response)
        return tuple(calls)

    def cut(self, status: ItemStatus, detail: str, message: Message | None = None, reason: str = "") -> None:
        """End a failed or interrupted stream: keep and mark what has arrived, run nothing. ``detail`` goes to the stop
        of the response, ``reason`` is a sentence for the user."""
        self._stop_timer()
        for index, held in tuple(self._held.items()):
            self._release(index)
            self._grow(index, "text", "".join(held.pieces))
        self._stop_timer()
        self._close_searches("interrupted")
        final = dict(enumerate(message.parts)) if message else {}
        for index in sorted(final.keys() - self._parts.keys()):
            part = final[index]
            self._part(index, _kind(part), part.name if isinstance(part, ToolCallPart) else "")
        items: list[str] = []
        newest = max(self._parts, default=-1)
        for index, running in sorted(self._parts.items()):
            part = final.get(index) or _partial(running)
            if isinstance(part, ToolCallPart):
                why = f": {reason}" if reason and index == newest else ""
                self._recorder.emit(ItemCheckpointed(running.item, part))
                self._recorder.emit(ItemCompleted(running.item, "interrupted", detail=f"not executed{why}"))
            else:
                whole = index != newest and status == "error"  # a later part proves that it is complete
                title = target_of("".join(running.pieces))[:_TITLE] if running.kind == "tool" else ""
                parts = (part,) if part else ()
                ended = ItemCompleted(running.item, "ok" if whole else status, parts, title=title)
                self._recorder.emit(ended if whole else replace(ended, detail=reason))
            if part is not None:
                items.append(running.item)
        if items:
            response = message.response if message and message.response else Response(self._origin)
            stop = Stop(response.stop.kind, response.stop.raw, detail)
            usage = response.usage or self._usage
            self._respond(items, replace(response, stop=stop, usage=usage, complete=False))

    def _respond(self, items: list[str], response: Response) -> None:
        self._recorder.emit(
            ModelResponded(
                message=f"m{self._recorder.state.seq + 1}",
                items=tuple(items),
                origin=response.origin,
                stop=response.stop,
                usage=response.usage or self._usage,
                response_id=response.response_id,
                complete=response.complete,
                first_token_ms=self._since_start(self._first) if self._first is not None else None,
                duration_ms=self._since_start(self._monotonic()),
                report=response.report,
                effort=response.effort,
            )
        )

    def _since_start(self, moment: float) -> int:
        return round((moment - self._started) * 1000)

    def _part(self, index: int, kind: ItemKind, name: str = "") -> _Running:
        running = self._parts.get(index)
        if running is None:
            if self._first is None:
                self._first = self._monotonic()
            item = self._recorder.new_item(_PREFIX[kind])
            running = self._parts[index] = _Running(item, kind)
            self._recorder.emit(ItemStarted(item, kind, self._own_name(name) if name else ""))
        return running

    def _grow(self, index: int, kind: ItemKind, text: str) -> _Running:
        running = self._part(index, kind)
        if text:
            running.pieces.append(text)
            self._recorder.emit(ItemDelta(running.item, text))
            self._look_soon()
        return running

    def _look_soon(self) -> None:
        self._newest = self._loop.time()
        if self._timer is None:
            self._unstored_since = self._newest
            self._timer = self._loop.call_later(PAUSE_SECONDS, self._checkpoint)

    def _checkpoint(self) -> None:
        """Store displayed text once the stream pauses or the time is over."""
        due = min(self._newest + PAUSE_SECONDS, self._unstored_since + CHECKPOINT_SECONDS)
        if self._loop.time() < due - _CLOCK:
            self._timer = self._loop.call_at(due, self._checkpoint)
            return
        self._timer = None
        self._report_growth()
        for running in self._parts.values():
            if running.kind != "tool" and not running.ended and running.kept < len(running.pieces):
                begins, part = running.kept_size, _text_part(running, running.kept)
                running.kept, running.kept_size = len(running.pieces), begins + len(part.text)
                self._recorder.emit(ItemCheckpointed(running.item, part, begins=begins))

    def _report_growth(self) -> None:
        texts: dict[ItemKind, str] = {}
        for index, running in self._parts.items():
            new = "".join(running.pieces[self._reported.get(index, 0) :])
            self._reported[index] = len(running.pieces)
            if new:
                texts[running.kind] = texts.get(running.kind, "") + new
        for held in self._held.values():
            new = "".join(held.pieces[held.reported :])
            held.reported = len(held.pieces)
            if new:
                texts["tool"] = texts.get("tool", "") + new
        if texts:
            self._grown(texts)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _sources_table(sources: Sequence[WebSource]) -> TableBlock:
    return TableBlock(("page", "address"), tuple((source.title or source.url, source.url) for source in sources))


_PREFIX: dict[ItemKind, str] = {"text": "a", "reasoning": "r", "tool": "t", "opaque": "o"}


def _kind(part: Part) -> ItemKind:
    match part:
        case ReasoningPart():
            return "reasoning"
        case ToolCallPart():
            return "tool"
        case TextPart(text=""):  # only data that the provider wants back
            return "opaque"
        case TextPart():
            return "text"
        case _:
            return "opaque"


def _partial(running: _Running) -> Part | None:
    """The arrived portion of a part. An incomplete call is dropped."""
    if running.kind == "tool":
        return running.call
    part = _text_part(running)
    return part if part.text else None


def _text_part(running: _Running, first: int = 0) -> TextPart | ReasoningPart:
    """The text of a part from piece number ``first`` on."""
    text = "".join(running.pieces[first:])
    if running.kind == "reasoning":
        return ReasoningPart(text, "summary" if running.reasoning_kind == "summary" else "raw")
    return TextPart(text)


def tokens_left(settings: Settings, state: SessionState, of_parents: Callable[[], int | None] | None) -> int | None:
    """Tokens left under the session's cap and, in a subagent, those of its parents, negative if an answer exceeded it;
    None = no cap."""
    cap = settings.now.limits.max_tokens
    own = None if cap is None else cap - state.tokens
    parents = of_parents() if of_parents is not None else None
    return own if parents is None else parents if own is None else min(own, parents)


def cap_reached(limits: TurnLimits, state: SessionState) -> tuple[str, str] | None:
    """Reason and error kind of a reached cap, which forbids further requests; None if no cap is reached."""
    if limits.max_tokens is not None and state.tokens >= limits.max_tokens:
        return f"stopped after {state.tokens:,} tokens; the cap is {limits.max_tokens:,}", "max_tokens"
    if limits.max_price is not None and (state.cost is None or state.cost >= limits.max_price):
        cost = f"${state.cost:.4f}" if state.cost is not None else "an unknown price"
        return f"stopped after {cost}; the cap is ${limits.max_price}", "max_price"
    return None


BASE = 0.5
CAP = 8.0
RATE_LIMIT_SECONDS = 90.0
"""Seconds of retries against a rate limit. Limits are per minute, so a number of attempts is meaningless."""
BUSY_SECONDS = 180.0
"""Seconds of retries against an overloaded server, or a gateway without its server, which usually last minutes."""
GATEWAY_ERRORS = (502, 504, 520, 521, 522, 523, 524)
"""Statuses of a gateway that gets no answer from the server behind it; those above 504 are Cloudflare's."""
LONGEST_PAUSE = 20.0
"""Longest pause between two attempts at a busy server, if it names no duration."""
QUEUED_SECONDS = 3.0
"""Time without a word of a server that tells its progress, after which it is busy."""
LONGEST_ASKED = 60.0
"""Longest wait in seconds that a server may ask for; above it the user decides."""


def retry_delay(error: ProviderError, attempt: int, limit: int, jitter: float) -> float | None:
    """Seconds to wait before attempt ``attempt + 1``, or None to give up.

    A ``Retry-After`` of the server is honoured up to a minute; otherwise the delay is random up to a bound that doubles
    (``jitter``, 0..1, is its share), so that programs that failed together do not retry together.
    """
    if not error.retryable or attempt > limit:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= LONGEST_ASKED else None
    return min(CAP, BASE * 2.0 ** (attempt - 1)) * jitter


def busy_delay(error: ProviderError, attempt: int, spent: float, jitter: float) -> float | None:
    """Seconds to wait before attempt ``attempt + 1`` at a server that has too much to do: a rate limit, an overload, or
    a gateway without its server. None to give up: after ``RATE_LIMIT_SECONDS`` or ``BUSY_SECONDS`` (``spent``), or if
    the server asks for more than ``LONGEST_ASKED``.

    Pauses double; ``jitter`` (0..1) is spread over the second half of each. A server that repeatedly asks for almost no
    wait is treated like one that asks for none.
    """
    if not error.retryable or spent >= (RATE_LIMIT_SECONDS if error.kind == "rate_limit" else BUSY_SECONDS):
        return None
    pause = min(LONGEST_PAUSE, 2.0 ** (attempt - 1)) * (1 + jitter) / 2
    if error.retry_after is None:
        return pause
    if error.retry_after > LONGEST_ASKED:
        return None
    return error.retry_after if attempt <= TRUSTED else max(error.retry_after, pause)


def passes_with_time(error: ProviderError, answered: bool) -> bool:
    """Whether waiting helps against a server that refuses to answer. ``answered``: it gave an answer before. Otherwise
    a bare 503 may as well be a wrong address, for which waiting is useless."""
    if error.kind == "overloaded":
        return answered or error.status != 503 or error.retry_after is not None or says_overloaded(error)
    return error.kind == "rate_limit" or (answered and error.status in GATEWAY_ERRORS and error.kind == "server")


TRUSTED = 3
"""Attempts for which the server's requested wait is taken literally."""


OUTAGE_SECONDS = 120.0
"""Seconds of retries to reach a server that answered before, because networks recover."""
LONGEST_OUTAGE_PAUSE = 15.0
"""Longest pause between two attempts to reach it, in seconds."""


def outage_delay(error: ProviderError, attempt: int, gone: float, jitter: float) -> float | None:
    """Seconds to wait before attempt ``attempt + 1`` to reach a server that answered before. None to give up: it has
    been unreachable for ``OUTAGE_SECONDS`` (``gone``). Pauses double; ``jitter`` (0..1) is spread over the second half
    of each."""
    if not error.retryable or gone >= OUTAGE_SECONDS:
        return None
    return min(LONGEST_OUTAGE_PAUSE, 2.0 ** (attempt - 1)) * (1 + jitter) / 2


def speaker(error: ProviderError, info: ModelInfo) -> str:
    """The server whose words an error contains, with its status; empty if the words are swecli's own."""
    if error.status is None:
        return ""
    told = error.status == 200 or str(error.status) in error.message
    return f"{info.provider}{'' if told else f' (HTTP {error.status})'}: "


def why_not_again(error: ProviderError) -> str:
    """Explanation for the user if the server asks for too long a wait, or says when a quota resets; otherwise empty."""
    if error.kind == "quota" and (error.retry_after or 0) > LONGEST_ASKED:
        return f"The quota resets in {duration(error.retry_after or 0)}."
    if not error.retryable or error.retry_after is None or error.retry_after <= LONGEST_ASKED:
        return ""
    return f"The server asks you to wait {duration(error.retry_after)}."


def duration(seconds: float) -> str:
    """Duration in the largest unit that fits, rounded up."""
    for unit, size in (("years", 365 * 86_400), ("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{-(-seconds // size):.0f} {unit}"
    return f"{-(-seconds // 1):.0f} s"


CHARACTERS_PER_TOKEN = 4
"""Ratio for the length of an answer that broke off before its usage was reported."""


class Fragment(Struct, frozen=True):
    """Remains of an answer that broke off: the usage reported so far, and the number of characters of all parts."""

    usage: Usage | None
    written: int


CUT_HINT = (
    "Raise the window at the server (Ollama: num_ctx or OLLAMA_CONTEXT_LENGTH), or tell swecli what it has: "
    "`swecli config set models.window.PROVIDER/NAME TOKENS`."
)


class StepAccount:
    """Emits one StepEnded for each step that requested an answer."""

    def __init__(self, context: ContextManager, price: Callable[[str, Usage], str | None], recorder: Recorder) -> None:
        self._context = context
        self._price = price
        self._recorder = recorder
        self._open: tuple[int, PreparedRequest, ModelInfo] | None = None
        self._reported: Usage | None = None
        self.usage: Usage | None = None
        """Sum over the turn."""
        self.estimated = False
        """Whether a part of ``usage`` is an estimate."""

    def begin(self, step: int, prepared: PreparedRequest, info: ModelInfo) -> None:
        self._open, self._reported = (step, prepared, info), None

    def answered(self, usage: Usage | None) -> None:
        """Account for a complete answer; its tools may still run."""
        self._reported = usage

    def end(self) -> None:
        if self._open is not None:
            step, prepared, info = self._open
            if self._reported is not None:
                cleared = self._context.update_usage(prepared.request, self._reported, info)
                if cleared:
                    text = f"The provider removed about {cleared:,} tokens of old tool results."
                    self._recorder.emit(Notice(text, "info", "context", "The session's record keeps them."))
                self._report_disbelief(prepared, info)
            self._emit(step, info, self._reported)

    def _report_disbelief(self, prepared: PreparedRequest, info: ModelInfo) -> None:
        disbelieved, self._context.disbelieved = self._context.disbelieved, None
        if disbelieved is None:
            return
        reported, doubt = disbelieved
        if doubt == "cut":
            text = (
                f"{shown_ref(info.ref)} read only {reported:,} of about {prepared.budget.used:,} tokens: its server "
                "silently cuts the conversation to its own context window, so the model misses a part of it."
            )
            self._recorder.tell_once(Notice(text, "warning", "context", CUT_HINT, about=f"cut: {info.ref}"))
            return
        text = (
            f"{shown_ref(info.ref)} reported a prompt of {reported:,} tokens; swecli counted about "
            f"{prepared.budget.used:,}. It uses its own count from now on."
        )
        hint = "Tokens and costs are shown as reported."
        self._recorder.tell_once(Notice(text, "warning", "context", hint, about=f"too much: {info.ref}"))

    def refused(self) -> None:
        """End a step without an answer, at no cost."""
        if self._open is not None:
            self._recorder.emit(StepEnded(self._open[0], None, "0"))
            self._open = None

    def broke_off(self, fragment: Fragment) -> None:
        """Account for a partial answer, which is billed all the same."""
        if self._open is None:
            return
        step, prepared, info = self._open
        usage = fragment.usage or Usage()
        if usage.input_total is None:
            usage = replace(usage, input_total=prepared.budget.used)
        # Output counts that providers report during the stream are only lower bounds.
        written = max(usage.output_total or 0, fragment.written // CHARACTERS_PER_TOKEN)
        self._emit(step, info, replace(usage, output_total=written), estimated=True)

    def interrupted(self, fragment: Fragment | None) -> None:
        """Account for the received part of a step that the end of the turn cut off."""
        if self._reported is not None:
            self.end()
        elif fragment is not None:
            self.broke_off(fragment)

    def _emit(self, step: int, info: ModelInfo, usage: Usage | None, *, estimated: bool = False) -> None:
        self._open = None
        cost = None
        if usage is not None:
            self.usage = added(self.usage, usage) if self.usage else usage
            self.estimated |= estimated
            cost = self._price(info.ref, usage)
        self._recorder.emit(StepEnded(step, usage, cost, estimated=estimated))


class AnswerCompleted(Struct, frozen=True):
    """A complete answer and the calls to run."""

    message: Message
    calls: tuple[Call, ...]


class AnswerInterrupted(Struct, frozen=True):
    """An answer that broke off after part of it was shown. That part is in the history; none of its calls ran."""

    error: ProviderError
    fragment: Fragment


class AnswerFailed(Struct, frozen=True):
    """A missing answer for which soon retrying the same model is useless."""

    error: ProviderError


Delay: TypeAlias = "Callable[[ProviderError, int, float, float], float | None]"
"""Seconds until the next attempt, from the error, the attempt, the seconds spent and the jitter; None to give up."""


class _Stretch(Struct):
    """Failures in a row of the same kind: the start on the monotonic clock, and the seconds of pauses since."""

    attempts: int = 0
    since: float = 0.0
    paused: float = 0.0


class _Failures(Struct):
    """Failures of one request so far: refusals of a busy server, attempts to reach one, and all others."""

    busy: _Stretch = field(default_factory=_Stretch)
    unreached: _Stretch = field(default_factory=_Stretch)
    others: int = 0


class Asking:
    """Requests with retries. Cancelled, it keeps the displayed text and marks it as interrupted."""

    def __init__(
        self,
        gateway: RequestGateway,
        access: ModelAccess,
        settings: Settings,
        time: Time,
        own_name: Callable[[str], str],
        recorder: Recorder,
    ) -> None:
        """``own_name`` as in ``Answer``."""
        self._access = access
        self._settings = settings
        self._time = time
        self._own_name = own_name
        self._recorder = recorder
        self._clock = SteadyClock(time.monotonic)
        guard = PrefixGuard(recorder.ledger, self._report_change)
        self._gateway = RequestGateway(gateway.context, gateway.left, guard)
        self.fragment: Fragment | None = None
        """Remains of an interrupted answer."""
        self.trouble = ""
        """Why the newest attempt failed, until the server begins with another one."""

    def _report_change(self, change: str) -> None:
        budget = self._recorder.state.budget
        cause = f"{change} without a cause, which is a defect of swecli"
        self._recorder.emit(CacheBreak(cause, budget.used if budget is not None else 0, "defect"))

    async def ask(
        self, client: ModelClient, prepared: PreparedRequest, others: Callable[[], bool] = lambda: False
    ) -> AnswerCompleted | AnswerInterrupted | AnswerFailed:
        """Get one answer, with as many attempts as needed. ``others`` is whether a fallback model is left."""
        failures, self.fragment, self.trouble = _Failures(), None, ""
        while True:
            growing: list[GrowingBudget] = []

            def meter(texts: Mapping[ItemKind, str], growing: list[GrowingBudget] = growing) -> None:
                if not growing:
                    growing.append(self._gateway.context.growing(prepared.budget, client.info))
                self._recorder.emit(ContextMeasured(growing[0].add(texts)))

            origin = Origin("", "", client.info.ref)
            answer = Answer(self._recorder, origin, self._time.monotonic, meter, self._own_name)
            try:
                result = await self._stream(client, prepared, answer)
            except asyncio.CancelledError:
                if answer.visible:
                    self._access.reached.add(_server_of(client.info))
                    self._access.answered.add(_server_of(client.info))
                    self.fragment, self.trouble = Fragment(answer.usage, answer.written), ""
                answer.cut("interrupted", INTERRUPTED)
                raise
            self.trouble = "" if isinstance(result, Message) or answer.visible else result.error.message
            if isinstance(result, Message) or answer.visible or result.error.status is not None:
                self._access.reached.add(_server_of(client.info))
            if isinstance(result, Message) or answer.visible:
                self._access.answered.add(_server_of(client.info))
            if isinstance(result, Message):
                used = result.response.usage if result.response is not None else None
                written = (used.output_total if used is not None else None) or answer.written // CHARACTERS_PER_TOKEN
                self._gateway.context.monitor.wrote(client.info, written, answer.written_for)
                return AnswerCompleted(result, answer.complete(result))
            error = result.error
            if error.kind in ("network", "truncated"):
                self._access.windows.doubt(client)
            if answer.visible or has_content(result.message):
                answer.cut("error", error.kind, result.message, error.message)
                return AnswerInterrupted(error, Fragment(answer.usage, answer.written))
            if not await self._again(error, failures, client.info, others):
                answer.cut("error", error.kind, result.message)
                return AnswerFailed(error)

    async def _again(
        self, error: ProviderError, failures: _Failures, info: ModelInfo, others: Callable[[], bool]
    ) -> bool:
        """Wait before the next attempt of a request. Retries end after a time, not a number of attempts, if a known
        server is unreachable, or if a server is busy and no fallback model is left."""
        may = self._settings.now.limits.max_retries > 0
        if may and error.unreached and _server_of(info) in self._access.reached:
            return await self._outlast(error, info, failures.unreached, outage_delay)
        failures.unreached = _Stretch()  # a server that answers with an error is reachable again
        passes = passes_with_time(error, _server_of(info) in self._access.answered)
        if not passes or not may or others():
            failures.others += 1
            return await self.wait(error, info, failures.others)
        return await self._outlast(error, info, failures.busy, busy_delay)

    async def _outlast(self, error: ProviderError, info: ModelInfo, stretch: _Stretch, delay_of: Delay) -> bool:
        """Wait before the next attempt at a server that is busy or out of reach; False after too long a time."""
        now = self._clock()
        if not stretch.attempts:
            stretch.since = now
        stretch.attempts += 1
        spent = max(stretch.paused, now - stretch.since)  # attempts take time, too
        delay = delay_of(error, stretch.attempts, spent, self._time.jitter())
        if delay is None:
            return False
        stretch.paused += delay
        reason = f"{speaker(error, info)}{error.message}"
        self._recorder.emit(RetryScheduled(stretch.attempts, 0, delay, error.kind, reason, error.unreached))
        await self._time.sleep(delay)
        return True

    async def wait(self, error: ProviderError, info: ModelInfo, attempt: int, most: int | None = None) -> bool:
        """Wait visibly before attempt ``attempt + 1``; False to give up, after ``most`` attempts at the latest."""
        limit = self._settings.now.limits.max_retries
        limit = limit if most is None else min(limit, most)
        delay = retry_delay(error, attempt, limit, self._time.jitter())
        if delay is None:
            return False
        reason = f"{speaker(error, info)}{error.message}"
        self._recorder.emit(RetryScheduled(attempt, limit, delay, error.kind, reason))
        await self._time.sleep(delay)
        return True

    async def _stream(self, client: ModelClient, prepared: PreparedRequest, answer: Answer) -> Message | Failed:
        queued = asyncio.create_task(self._report_queue(client)) if client.info.tells_progress else None
        try:
            async with aclosing(self._gateway.send(client, prepared.request, budget=prepared.budget)) as events:
                async for event in events:
                    if queued is not None:
                        queued.cancel()
                    match event:
                        case Finished(message=message):
                            return message
                        case Failed():
                            return event
                        case StreamNotice(text=text):
                            self._recorder.emit(Notice(text, "info", "model"))
                        case _:
                            self.trouble = ""
                            answer.feed(event)
            return Failed(ProviderError("truncated", "the answer ended without its end marker"))
        finally:
            if queued is not None:
                queued.cancel()

    async def _report_queue(self, client: ModelClient) -> None:
        """Such a server tells its progress as soon as it begins; until then it works on earlier requests, unless it
        says that it has a free slot, or has stopped, which nothing tells apart if it says nothing."""
        await self._time.sleep(QUEUED_SECONDS)
        busy, slots = (await client.busy_slots() if isinstance(client, HasSlots) else None) or (0, 0)
        if busy == slots:
            self._recorder.emit(PromptProgress(slots=slots))


def _server_of(info: ModelInfo) -> str:
    return info.address or info.provider


def has_content(message: Message | None) -> bool:
    return message is not None and bool(message.text.strip() or message.tool_calls)
