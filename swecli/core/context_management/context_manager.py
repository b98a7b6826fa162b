"""The context manager: from the conversation to the next request, measured and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from swecli.core.context_management.budget import Limits, window_of
from swecli.core.context_management.cache_watch import CacheMiss, CacheWatch, WatchedRequest
from swecli.core.context_management.components import PROJECT_INSTRUCTIONS
from swecli.core.context_management.gate import decide
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.message_size import texts_of
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.prompt_builder import BASE, Prompt, PromptBuilder, PromptSection
from swecli.core.context_management.prompts import read_prompt, system_prompt
from swecli.core.context_management.requests import build_request, fit_output
from swecli.core.context_management.tail import tail_text
from swecli.core.llm.types import ModelInfo, ModelRequest, ToolSchema
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import Budget, Mode, ViewEntry
from swecli.core.protocol.messages import Message
from swecli.core.protocol.usage import Usage


@dataclass(frozen=True, slots=True)
class PromptTexts:
    """What goes into the system prompt besides swecli's own words. ``base`` replaces these; None keeps them.
    ``headless`` tells the model that nobody watches."""

    base: str | None = None
    append: str = ""
    instructions: str = ""
    headless: bool = False


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """One request with its measure and the gate's verdict.

    ``reason`` says why it is blocked; ``warning`` is set once when the context passes the warning level, and
    again after it has fallen below it.
    """

    request: ModelRequest
    budget: Budget
    reason: str = ""
    warning: str = ""

    @property
    def blocked(self) -> bool:
        return self.budget.level == "block"


class ContextManager:
    """Owns the measure of one session's context. The tools are frozen for the session."""

    def __init__(
        self,
        tools: Sequence[ToolSchema],
        texts: PromptTexts | None = None,
        limits: Limits | None = None,
        monitor: TokenMonitor | None = None,
    ) -> None:
        self._tools = tuple(tools)
        self._texts = texts or PromptTexts()
        self.limits = limits or Limits()
        self.monitor = monitor or TokenMonitor()
        self._prompts: dict[tuple[str, str], Prompt] = {}
        self._warned = False
        self._settled = 0
        self._watch = CacheWatch()

    async def settle(self, ledger: Ledger) -> None:
        """Count what is new in the ledger, long texts in a thread, so that measuring never holds up the event loop."""
        new = islice(reversed(ledger.entries.values()), max(0, len(ledger.entries) - self._settled))
        texts = [text for entry in new for part in entry.parts for text in texts_of(part)]
        self._settled = len(ledger.entries)
        await self.monitor.count_ahead(texts)

    def prepare(
        self,
        messages: Sequence[Message],
        *,
        info: ModelInfo,
        mode: Mode = "default",
        todos: Sequence[Todo] = (),
        effort: str | None = None,
        session: str = "",
        notes: Sequence[str] = (),
    ) -> PreparedRequest:
        """Build the next request and measure it: the same number serves gate, meter and ``/context``.

        The tail tells the model about a filling context, so a request at the warning level is measured with
        that note in it. ``notes`` are told in the tail too.
        """
        request, budget = self._measured(messages, info, mode, todos, effort, session, None, notes)
        if budget.level != "ok":
            request, budget = self._measured(messages, info, mode, todos, effort, session, budget, notes)
        decision = decide(budget)
        warning = ""
        if budget.level == "ok":
            self._warned = False
        elif not self._warned and budget.level != "block":
            self._warned = True
            warning = decision.reason
        fitted = fit_output(request, budget, info, self.limits)
        return PreparedRequest(fitted, budget, decision.reason if budget.level == "block" else "", warning)

    def measure(self, messages: Sequence[Message], info: ModelInfo) -> Budget:
        """The measure of a request that would be made now, without its tail."""
        return self._measured(messages, info, "default", (), None, "", None)[1]

    def cache_miss(
        self, request: ModelRequest, usage: Usage | None, info: ModelInfo, view: tuple[ViewEntry, ...], at: float
    ) -> CacheMiss | None:
        """Compare a request that was answered with the one before it. ``at`` is when it was sent, in Unix seconds."""
        names = self._prompt(info).components
        return self._watch.observe(WatchedRequest(info.ref, request, view, at, names), usage)

    def observe(self, request: ModelRequest, usage: Usage, info: ModelInfo) -> None:
        """Take in what the provider reported for a request."""
        self.monitor.observe(request, usage, info)

    def _measured(
        self,
        messages: Sequence[Message],
        info: ModelInfo,
        mode: Mode,
        todos: Sequence[Todo],
        effort: str | None,
        session: str,
        known: Budget | None,
        notes: Sequence[str] = (),
    ) -> tuple[ModelRequest, Budget]:
        prompt = self._prompt(info)
        notes = [read_prompt("headless"), *notes] if self._texts.headless else notes
        request = build_request(
            prompt,
            self._tools,
            messages,
            info=info,
            limits=self.limits,
            session=session,
            tail=tail_text(mode=mode, todos=todos, budget=known, notes=notes),
            effort=effort,
        )
        return request, self.monitor.measure(request, self.limits, info, prompt.components)

    def _prompt(self, info: ModelInfo) -> Prompt:
        """Built once per model: equal bytes for the whole session, unless the window turns out to be of another
        class."""
        texts = self._texts
        base = texts.base if texts.base is not None else system_prompt(window_of(info, self.limits).total)
        prompt = self._prompts.get((info.ref, base))
        if prompt is None:
            sections = [
                PromptSection(BASE, base),
                PromptSection("appended", texts.append),
                PromptSection(PROJECT_INSTRUCTIONS, texts.instructions),
            ]
            prompt = self._prompts[info.ref, base] = PromptBuilder(sections).build()
        return prompt
