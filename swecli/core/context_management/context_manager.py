"""The context manager: builds the next request from the conversation, measures and gates it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.budget import (
    BLOCK_ADVICE,
    COMPACT_ADVICE,
    Limits,
    clamp_output,
    gate_reason,
    window_of,
)
from swecli.core.context_management.cache import CacheMiss, CacheWatch, SentPrompt, WatchedRequest, prefix_of
from swecli.core.context_management.calibration import Doubt
from swecli.core.context_management.counter import IMAGE_TOKENS, texts_of
from swecli.core.context_management.ledger import Entry, Ledger
from swecli.core.context_management.monitor import (
    GrowingBudget,
    TokenMonitor,
    Weighed,
    is_vague,
)
from swecli.core.context_management.projection import project
from swecli.core.context_management.prompt import (
    EarlierPrompt,
    MemoryText,
    Prompt,
    PromptTexts,
    SystemPrompt,
    build_request,
    room_for_instructions,
)
from swecli.core.context_management.thoughts import chains, dead_in, root_of
from swecli.core.llm.types import (
    Announcement,
    AnswerFormat,
    ModelClient,
    ModelInfo,
    ModelRequest,
    Profile,
    ToolSchema,
    WebSearch,
)
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import PromptPrefix
from swecli.core.protocol.messages import ImagePart, Message, ToolResultPart, Usage

NEAR = 0.9
"""Share of the warning level from which on counts are exact, because notes add to them."""


COMPACT_TOOL = "compact_context"
"""The tool with which a model compacts its context itself."""
EXACT_FROM = 0.5
"""Share of the effective window from which on exact counts may be worth the vocabulary's memory: no decision falls
below it. Above it they serve measures with many unreported tokens. Usage reports usually suffice, so most sessions
never load it."""


class PreparedRequest(Struct, frozen=True):
    """One request with its measure and the gate's verdict.

    ``reason`` explains a block; ``warning`` is set once when the context passes the warning level, and again after it
    has fallen below it.
    """

    request: ModelRequest
    budget: Budget
    reason: str = ""
    warning: str = ""

    @property
    def blocked(self) -> bool:
        return self.budget.level == "block"

    @property
    def fits(self) -> bool:
        """Whether it may be sent without a compaction before."""
        return self.budget.level in ("ok", "warn")


class ContextManager:
    """Measures and builds one session's context. Its initial tools are frozen for the session; ``added_tools`` follow
    them."""

    def __init__(
        self,
        tools: Sequence[ToolSchema],
        texts: PromptTexts | None = None,
        limits: Limits | None = None,
        monitor: TokenMonitor | None = None,
        advice: Sequence[str] = (COMPACT_ADVICE, *BLOCK_ADVICE),
        small_tools: Mapping[Profile, Sequence[ToolSchema]] = MappingProxyType({}),
        *,
        special_tools: Callable[[str], Sequence[ToolSchema]] = lambda model: (),
    ) -> None:
        """``advice`` is what the user can do about a full context, as clauses. A model with a smaller profile
        sees its ``small_tools`` in place of ``tools``; ``special_tools`` adds tools by the name of the model."""
        texts = texts or PromptTexts()
        self.limits = limits or Limits()
        self.texts = texts
        """What a system prompt built in this run is made of."""
        self._prompt = SystemPrompt(tools, small_tools, special_tools, texts, self.limits)
        self.earlier_prompt = self._prompt.earlier
        self._fixed: tuple[ModelInfo, Prompt, tuple[ToolSchema, ...]] | None = None
        """What every request to this model has: prompt and tools."""
        self._root: tuple[object, object, int] | None = None
        """The number that identifies the fixed part with these tools added to it."""
        self.unattended = texts.headless
        """Whether nobody can answer in this run."""
        self.web_search: WebSearch | None = None
        """The provider's web search, from the first request on, as the tools; None = off."""
        self.answer_format: AnswerFormat | None = None
        """Format of the answers in the conversation."""
        self.added_tools: tuple[ToolSchema, ...] = ()
        """Tools added during the session, in order of their announcement to the model."""
        self.announced: tuple[Announcement, ...] = ()
        """Where the conversation announces some of them."""
        self.monitor = monitor or TokenMonitor()
        self._advice = tuple(advice)
        self._warned = False
        self._settled = 0
        self._cleared: tuple[tuple[Message, ...], int] = ((), 0)
        """The messages of the newest request, and the tokens that the provider cleared in it by itself."""
        self._watch = CacheWatch()
        self.measured_for: ModelInfo | None = None
        """The model of the newest measure."""
        self._newest_measure: Budget | None = None
        """Measure of a request or of the conversation alone."""
        self.measured_messages = 0
        """Number of messages in it."""
        self.newest: Budget | None = None
        """The measure of the newest request."""
        self.disbelieved: tuple[int, Doubt] | None = None
        """An implausible size reported by a model, and why; the reader that reports it resets it to None."""

    @property
    def memory(self) -> MemoryText:
        """Memories of earlier sessions in the system prompt."""
        return self._prompt.memory

    def adopt_memory(self, memory: MemoryText) -> None:
        """Continue a session with the memories of its prompt, byte for byte. Only before its first request."""
        self._prompt_to_change().memory = memory

    def adopt_prompts(self, earlier: Mapping[str, EarlierPrompt]) -> None:
        """Continue a session with its system prompts, byte for byte. Only before its first request."""
        self._prompt_to_change().adopt_prompts(earlier)

    def prompt_of(self, info: ModelInfo) -> Prompt:
        """The system prompt of requests to this model."""
        return self._fixed_for(info)[1]

    def adopt_tools(self, tools: Sequence[ToolSchema], small_tools: Mapping[Profile, Sequence[ToolSchema]]) -> None:
        """Continue a session with its earlier tools. Only before its first request."""
        self._prompt_to_change().adopt_tools(tools, small_tools)

    def adjust(self, limits: Limits, advice: Sequence[str]) -> None:
        """Change the limits; ``advice`` as in the constructor."""
        self.limits = self._prompt_to_change().limits = limits
        self._advice = tuple(advice)

    def _prompt_to_change(self) -> SystemPrompt:
        """The system prompt, after forgetting what was built from it."""
        self._fixed = None
        return self._prompt

    def own_tools(self, info: ModelInfo) -> tuple[ToolSchema, ...]:
        """The initial tools, as this model sees them."""
        return self._prompt.tools(info)

    @property
    def newest_request(self) -> ModelRequest | None:
        """The newest answered request of this run."""
        return self._watch.newest

    def component_names(self, info: ModelInfo) -> Mapping[str, str]:
        """The component of each text of the system prompt."""
        return self._prompt.prompt(info).components

    def cut_instructions(self, info: ModelInfo) -> tuple[str, ...]:
        """A sentence about each instruction file that is not whole in this model's prompt."""
        return self._prompt.cut_instructions(info)

    @property
    def room_for_instructions(self) -> int | None:
        """Most tokens of instructions at once for the model measured last; None before the first measure."""
        info = self.measured_for
        return None if info is None else room_for_instructions(window_of(info, self.limits))

    def tool_tokens(self, tools: Iterable[ToolSchema], info: ModelInfo) -> int:
        """Estimated tokens of tool descriptions in this model's units."""
        return self.monitor.tool_tokens(tools, info)

    async def settle(self, ledger: Ledger, info: ModelInfo | None = None) -> None:
        """Count new entries of the ledger, long texts in a thread, so that measuring never blocks the event loop.

        With ``info``, counts the conversation exactly if it may be close to a limit and the provider has not reported
        the size of most of it: the vocabulary takes 50 MB.
        """
        new = tuple(islice(reversed(ledger.entries.values()), max(0, len(ledger.entries) - self._settled)))
        texts = [text for entry in new for part in entry.body.parts for text in texts_of(part)]
        self._settled = len(ledger.entries)
        newest = self.newest
        matters = newest is not None and newest.share >= EXACT_FROM and is_vague(newest)
        await self.monitor.count_ahead(texts, exact=matters)
        if info is not None and self._may_be_near(new, texts, info):
            messages = project(ledger)
            budget = self.measure(messages, info)
            if budget.upper >= NEAR * min(budget.warn_at, budget.compact_at) and is_vague(budget):
                await self.count_exactly(messages, info)

    async def count_at_server(self, ledger: Ledger, client: ModelClient) -> None:
        """Count what is new in the conversation with the tokenizer of the model's server, if it has one."""
        await self.monitor.count_at_server(project(ledger), client)

    def _may_be_near(self, new: Sequence[Entry], texts: Iterable[str], info: ModelInfo) -> bool:
        """Whether the conversation can be near a limit, given the entries added since its newest measure, whatever they
        contain."""
        measured = self._newest_measure
        if measured is None or (self.measured_for is not info and self.measured_for != info):
            return True
        parts = [part for entry in new for part in entry.body.parts]
        images = sum(isinstance(part, ImagePart) for part in parts)
        for part in parts:
            if isinstance(part, ToolResultPart):
                images += len(part.images) + sum(document.pages for document in part.documents)
        grown = 2 * sum(len(text.encode("utf-8", "replace")) for text in texts) * max(1.0, self.monitor.ratio(info))
        return measured.upper + grown + IMAGE_TOKENS * images >= NEAR * min(measured.warn_at, measured.compact_at)

    async def count_exactly(self, messages: Sequence[Message], info: ModelInfo) -> bool:
        """Replace all estimates in the measure of a request with these messages. True if the measure may have
        changed."""
        return await self.monitor.count_exactly(self._request(messages, info))

    def prepare(
        self,
        messages: Sequence[Message],
        *,
        info: ModelInfo,
        effort: str | None = None,
        session: str = "",
        watermarks: Sequence[int] = (),
    ) -> PreparedRequest:
        """Build the next request and measure it: the same number serves gate, meter and ``/context``. ``watermarks``
        see ``build_request``."""
        request = self._request(messages, info, effort=effort, session=session, watermarks=watermarks)
        budget = self._measure(request, info)
        self.newest = budget
        reason = warning = ""
        if budget.level == "ok":
            self._warned = False
        elif budget.level == "block":
            reason = gate_reason(budget, self._advice)
        elif not self._warned:
            self._warned = True
            warning = gate_reason(budget, self._advice)
        limit = clamp_output(info, self.limits, budget.upper)  # the rest of the window
        request = replace(request, answer_format=self.answer_format, max_output_tokens=limit)
        return PreparedRequest(request, budget, reason, warning)

    def aside(self, messages: Sequence[Message], info: ModelInfo, session: str) -> ModelRequest:
        """A side request about the conversation, not part of it. Prompt and tools are the same, so that the provider's
        cache still matches; the web is not searched where that needs no other tools."""
        request = self._request(messages, info, session=session)
        wish = request.web_search
        return request if wish is None else replace(request, web_search=replace(wish, left=0))

    def why_blocked(self, budget: Budget) -> str:
        """Reason for a block after a failed compaction."""
        return gate_reason(budget, [advice for advice in self._advice if not advice.startswith("/compact")])

    def measure(self, messages: Sequence[Message], info: ModelInfo) -> Budget:
        """Measure of a request made now."""
        return self._measure(self._request(messages, info), info)

    def weighed(self, messages: Sequence[Message], info: ModelInfo) -> Weighed:
        """Sizes of a request with these messages, which do not become the conversation's."""
        request = self._request(messages, info)
        cleared = _left_out(request, *self._cleared) if self._cleared[1] else 0
        return self.monitor.weighed(request, info, self._fixed_for(info)[1].components, cleared, beside=True)

    def weigh(self, request: ModelRequest, info: ModelInfo) -> Budget:
        """Measure of any request, unchanged, against its model's window. Leaves the measure of the conversation
        unchanged."""
        return self.monitor.measure(request, self.limits, info, cleared=_left_out(request, *self._cleared), beside=True)

    def growing(self, budget: Budget, info: ModelInfo) -> GrowingBudget:
        """Tracks the size of the context while the answer to a request of this size streams in."""
        return GrowingBudget(
            budget, self.limits, lambda text: self.monitor.count_tokens(text) * self.monitor.ratio(info)
        )

    def continue_warned(self, warned: bool) -> None:
        """Whether the session was warned of a filling context in an earlier run: then only after it has been smaller
        again."""
        self._warned = warned

    def resume_cache(self, sent: SentPrompt, ledger: Ledger, built_anew: str = "") -> None:
        """Continue the cache watch of a session after this request. ``built_anew`` is why its system prompt can't be
        kept, as a clause."""
        self._watch.resume(sent, tuple(project(ledger)), ledger.view, built_anew)

    @property
    def sent_prefix(self) -> PromptPrefix | None:
        """Prefix of the request compared last."""
        return self._watch.prefix

    def cache_miss(
        self,
        request: ModelRequest,
        usage: Usage | None,
        info: ModelInfo,
        view: tuple[ViewEntry, ...],
        at: float,
        reduced: str = "",
    ) -> CacheMiss | None:
        """Compare an answered request with the one before. ``at`` is when it was sent, in Unix seconds; ``reduced`` as
        in the provider's report."""
        names = self._prompt.prompt(info).components
        watched = WatchedRequest(info.ref, request, view, at, names, info.cache_seconds)
        return self._watch.observe(watched, usage, reduced)

    def update_usage(self, request: ModelRequest, usage: Usage, info: ModelInfo) -> int:
        """Record the provider's reported usage for a request. Returns the tokens that the provider cleared by itself,
        if more than before."""
        if doubt := self.monitor.observe(request, usage, info):
            self.disbelieved = (usage.prompt, doubt)
        before, now = self._cleared[1], usage.cleared or 0
        self._cleared = (request.messages, now)
        return now if now > before else 0

    def adopt_size(self, messages: Sequence[Message], usage: Usage, info: ModelInfo) -> None:
        """Adopt the known size of an earlier request with these messages. The sizes of its answers are known as well,
        so the difference to our count belongs to the other parts."""
        self.monitor.adopt_answers(messages, info)
        self.monitor.observe(self._request(messages, info), usage, info)

    def _request(
        self,
        messages: Sequence[Message],
        info: ModelInfo,
        *,
        effort: str | None = None,
        session: str = "",
        watermarks: Sequence[int] = (),
    ) -> ModelRequest:
        _, prompt, tools = self._fixed_for(info)
        request = build_request(
            prompt,
            tools,
            messages,
            info=info,
            limits=self.limits,
            session=session,
            effort=effort,
            watermarks=watermarks,
            added_tools=self.added_tools,
        )
        if self.announced and info.capabilities.tool_changes:
            present = {message.id for message in messages if message.note}
            request = replace(
                request,
                announced=tuple(announcement for announcement in self.announced if announcement.note in present),
            )
        return request if self.web_search is None else replace(request, web_search=self.web_search)

    def bind(self, ledger: Ledger, info: ModelInfo) -> None:
        """Leave out thoughts that this model would refuse, if it binds them to what preceded them."""
        root = self._root_for(ledger, info) if info.capabilities.binding else None
        if root != ledger.bound:
            ledger.bind(root)

    def project_for(self, ledger: Ledger, info: ModelInfo) -> tuple[Message, ...]:
        """The conversation as a model that does not answer at present would get it."""
        view, dead = ledger.view, frozenset[str]()
        if info.capabilities.binding:
            numbers = chains(view, ledger.entries)
            dead = dead_in(view, ledger.entries, numbers, ledger.thoughts, self._root_for(ledger, info))
        return project(ledger, view, dead)

    def lost_by_beginning(self, ledger: Ledger, info: ModelInfo) -> int:
        """Thoughts that are invalid only because requests begin with another system prompt or other tools than the
        newest answered one."""
        if not info.capabilities.binding or not ledger.thoughts.root:
            return 0
        view, entries, thoughts = ledger.view, ledger.entries, ledger.thoughts
        numbers, root = chains(view, entries), self._root_for(ledger, info)
        before = dead_in(view, entries, numbers, thoughts, thoughts.root)
        return len(dead_in(view, entries, numbers, thoughts, root) - before)

    def window_of(self, info: ModelInfo) -> int:
        """The model's context window in tokens, as far as the limits leave it."""
        return window_of(info, self.limits).total

    def _root_for(self, ledger: Ledger, info: ModelInfo) -> int:
        """Identifies what every request to this model begins with, as the record does."""
        fixed = self._fixed_for(info)
        first = self._first_added(ledger, info)
        if self._root is None or self._root[0] is not fixed or self._root[1] != first:
            request = replace(self._request((), info), announced=(), tools=(*fixed[2], *first))
            self._root = (fixed, first, root_of(prefix_of(request, fixed[1].components)))
        return self._root[2]

    def _first_added(self, ledger: Ledger, info: ModelInfo) -> tuple[ToolSchema, ...]:
        """The added tools that are part of a request's beginning: no note in the view announces them."""
        if not self.announced or not info.capabilities.tool_changes:
            return self.added_tools
        live = {shown.id for shown in ledger.view if shown.kind == "live"}
        later = {name for announcement in self.announced if announcement.note in live for name in announcement.tools}
        return tuple(tool for tool in self.added_tools if tool.name not in later)

    def _fixed_for(self, info: ModelInfo) -> tuple[ModelInfo, Prompt, tuple[ToolSchema, ...]]:
        if self._fixed is None or self._fixed[0] is not info:
            self._fixed = (info, self._prompt.prompt(info), self._prompt.tools(info))
        return self._fixed

    def _measure(self, request: ModelRequest, info: ModelInfo) -> Budget:
        names = self._fixed_for(info)[1].components
        cleared = _left_out(request, *self._cleared) if self._cleared[1] else 0
        budget = self.monitor.measure(request, self.limits, info, names, cleared)
        self.measured_for, self._newest_measure = info, budget
        self.measured_messages = len(request.messages)
        return budget


def _left_out(request: ModelRequest, before: tuple[Message, ...], cleared: int) -> int:
    """Known number of tokens that the provider clears in the request by itself: it cleared ``cleared`` of the messages
    ``before``."""
    return cleared if cleared and request.messages[: len(before)] == before else 0
