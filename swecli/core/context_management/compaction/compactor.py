"""Compaction as a transaction: candidates are built beside the view, measured, and only a good one is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from swecli.core.context_management.budget import fixed_tokens, roomy_part
from swecli.core.context_management.compaction.clearing import (
    covered,
    current_request,
    important,
    kept_whole,
    recent_start,
    replaced,
    shrunk,
    tidy,
)
from swecli.core.context_management.compaction.options import (
    PROGRESS,
    Allowances,
    CompactionOptions,
    CompactResult,
    EntrySizes,
    Trigger,
    ask_before,
    tail_allowance,
    tail_start,
)
from swecli.core.context_management.compaction.signals import ChainPlan, adjusted, signals_of
from swecli.core.context_management.compaction.state_block import SessionFacts, state_block, user_texts
from swecli.core.context_management.compaction.summary import (
    CALLS,
    CALLS_BESIDES,
    Summarizer,
    Summary,
    constraints,
    missing,
)
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.gateway import RequestGateway
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.marks import harmless
from swecli.core.context_management.projection import project
from swecli.core.llm.types import ModelClient, ModelInfo, ModelRequest
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import ViewEntry

OPENING = (
    "The older part of this conversation was compacted to make room. What follows replaces it. The requests in it "
    "are history: what was done is done, do not do it again. The newest messages follow word for word."
)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of the working set as it is on disk now: ``path`` as the model wrote it, ``file`` with all links followed,
    ``sha256`` of its bytes."""

    path: str
    text: str
    file: str = ""
    sha256: str = ""

    @property
    def lines(self) -> int:
        """Lines of the file, the last one counted although it may have no end."""
        return self.text.count("\n") + (not self.text.endswith("\n"))


@dataclass(frozen=True, slots=True)
class Package:
    """``kept`` and ``shortened`` are ids of user messages quoted whole or only by their beginning."""

    text: str
    kept: tuple[str, ...]
    shortened: tuple[str, ...]


def build_package(
    ledger: Ledger,
    removed: Sequence[str],
    summary: str,
    facts: SessionFacts,
    sizes: EntrySizes,
    allowances: Allowances,
    attachments: Sequence[Attachment] = (),
    when: str = "",
) -> Package:
    """Earlier user messages word for word, the summary, the state block, the working set.

    ``removed`` are the ids of the ledger entries that the package stands for.
    """
    quoted, kept, shortened = _user_messages(ledger, set(removed), sizes, allowances.user_messages)
    body = f"{quoted}\n\n{summary}"
    lost = missing(constraints(ledger), body)
    rules = "\n".join(f"- {anchor.text} [{anchor.source}]" for anchor in lost)
    parts = [
        f"<compacted entries={len(removed)}{f' at={when!r}' if when else ''}>",
        OPENING,
        f"# Earlier messages of the user\n\n{quoted}" if quoted else "",
        f"# Summary\n\n{harmless(summary)}" if summary else "",
        f"# What the user asked to be kept to\n\n{harmless(rules)}" if rules else "",
        f"# State, from the record\n\n{harmless(state)}" if (state := state_block(ledger, facts)) else "",
        *map(_attached, attachments),
        "</compacted>",
    ]
    return Package("\n\n".join(part for part in parts if part), kept, shortened)


def _attached(file: Attachment) -> str:
    path = harmless(file.path.replace('"', "'"))
    return f'<file path="{path}" note="as it is on disk now">\n{harmless(file.text)}\n</file>'


def _user_messages(
    ledger: Ledger, removed: set[str], sizes: EntrySizes, allowance: int
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Newest first until the allowance is used; older ones are quoted by their first line."""
    quotes: list[str] = []
    kept: list[str] = []
    shortened: list[str] = []
    left = allowance
    for source, text in reversed([(source, text) for source, text in user_texts(ledger) if source in removed]):
        quote = f"[{source}] {harmless(text.strip())}"
        size = sizes.text(quote)
        if size <= left:
            kept.append(source)
        else:
            line = " ".join(text.split())
            quote = f"[{source}] {harmless(line[:120])}… (cut)"
            size = sizes.text(quote)
            shortened.append(source)
            if size > left:
                continue
        left -= size
        quotes.append(quote)
    return "\n\n".join(reversed(quotes)), tuple(reversed(kept)), tuple(reversed(shortened))


ACCEPTED_SHARE = 0.70
"""The conversation must shrink to this share of what it was. What is in every request (system prompt, tools,
instructions) counts neither here nor below: no compaction makes it smaller."""
ACCEPTED_FILL = 0.50
"""And to less than this share of what the effective window leaves for it."""
LEAST_BATCH = 8_000
"""Tokens that a batch of clearing frees at least when it takes the place of a summary."""
WANTED_SHARE, WANTED_FILL = 0.35, 0.30
"""The same for what is looked for: clearing that makes less room gives way to a summary."""


@dataclass(frozen=True, slots=True)
class Job:
    """One compaction to do. ``request`` is the agent's newest request, whose prefix the provider has cached."""

    trigger: Trigger
    summary_id: str
    request: ModelRequest
    client: ModelClient
    facts: SessionFacts
    focus: str = ""
    forced: bool = False
    """No request fits any more: a hook can't cancel it."""
    without_model: bool = False
    """Only steps that ask no model."""
    when: str = ""
    summary_client: ModelClient | None = None
    """Writes the summary in place of ``client``."""
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class Compacted:
    """A candidate that was accepted."""

    view: tuple[ViewEntry, ...]
    result: CompactResult
    notes: tuple[str, ...] = ()
    summary: Summary | None = None


@dataclass(frozen=True, slots=True)
class NotCompacted:
    """Nothing changes, and why."""

    reason: str
    cancelled: bool = False
    """By a hook, so that it says nothing about whether there is anything to gain."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Attempt:
    """One run of the ladder."""

    ledger: Ledger
    job: Job
    sizes: EntrySizes
    plan: ChainPlan
    before: Budget
    keep: frozenset[str] = frozenset()
    """Entries that stay word for word by the user's rules."""
    cleared: tuple[ViewEntry, ...] = ()
    """The view with as much cleared as can be, for the case that no summary comes."""
    demanding: bool = False
    """Only ample room counts."""
    loose: bool = False
    """Any room counts that lets a request fit again."""
    strategies: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Compactor:
    """Builds, measures and judges candidates. It changes nothing itself: the caller records the result."""

    def __init__(
        self, context: ContextManager, options: CompactionOptions | None = None, gateway: RequestGateway | None = None
    ) -> None:
        self._context = context
        self._gateway = gateway or RequestGateway(context)
        self.options = options or CompactionOptions()

    async def compact(
        self, ledger: Ledger, job: Job, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> Compacted | NotCompacted:
        """Find a view that is small enough. Cancelling leaves everything as it was."""
        info = job.client.info
        await self._context.count_exactly(project(ledger), info)  # no decision rests on an estimate
        before = self._measure(ledger, ledger.view, info)
        wishes = await ask_before(
            self.options,
            job.trigger,
            job.focus,
            before,
            len(project(ledger)),
            before.effective - int(_room(before) * (1 - ACCEPTED_FILL)),
            forced=job.forced or before.level == "block",
        )
        if wishes.declined:
            return NotCompacted(wishes.declined, cancelled=True)
        attempt = self._attempt(ledger, job, before)
        attempt.notes.extend((*wishes.notes, *attempt.plan.reasons))
        view, summary = self._with_given_summary(attempt, wishes.summary)
        if view is None:
            view = self._without_model(attempt)
        if view is None and not attempt.cleared and self._last_resort(replace(attempt, strategies=[]), "") is None:
            # Not even an empty summary would make enough room: none is asked for.
            return NotCompacted(self._hopeless(attempt), notes=tuple(attempt.notes))
        if view is None and not job.without_model and wants_summary(self.options, ledger):
            summarizer = Summarizer(self._gateway, job.client, self.options.summarization, sleep, job.summary_client)
            calls = CALLS_BESIDES if attempt.cleared else CALLS
            summary = await summarizer.summarize(
                job.request, wishes.focus, self._summary_tokens(attempt), before.effective, calls
            )
            attempt.notes.extend(summary.notes)
            if summary.text:
                attempt.strategies.append("summary")
        if view is None and attempt.cleared and not (summary and summary.text):
            view = self._taken(attempt, attempt.cleared, "clearing")
        text = summary.text if summary else ""
        if view is None:
            view = self._last_resort(attempt, text)
        if view is not None and await self._context.count_exactly(project(ledger, view), info):
            after = self._measure(ledger, view, info)
            if not self._accepts(attempt, after):
                view = self._last_resort(attempt, text)  # the size of a long new text is known now
        if view is None:
            return NotCompacted(self._hopeless(attempt), notes=tuple(attempt.notes))
        after = self._measure(ledger, view, info)
        result = CompactResult(
            before.used,
            after.used,
            len(project(ledger)),
            len(project(ledger, view)),
            tuple(attempt.strategies),
            summary.text if summary else "",
        )
        return Compacted(view, result, tuple(attempt.notes), summary)

    def preview(self, ledger: Ledger, job: Job, summary: str) -> tuple[ViewEntry, ...] | None:
        """The view that a compaction would end with if the model wrote this summary; None if nothing makes enough
        room. Asks nobody."""
        attempt = self._attempt(ledger, job, self._measure(ledger, ledger.view, job.client.info))
        return self._without_model(attempt) or self._packaged(attempt, summary)

    def measure(self, ledger: Ledger, view: Sequence[ViewEntry], info: ModelInfo) -> int:
        """Tokens of a whole request over this view."""
        return self._measure(ledger, view, info).used

    # --- the rungs ----------------------------------------------------------------------------------------

    def _with_given_summary(self, attempt: _Attempt, text: str) -> tuple[tuple[ViewEntry, ...] | None, Summary | None]:
        """The view with a summary that a hook wrote, and that summary; nothing where it is too long to be of use."""
        if not text:
            return None, None
        attempt.strategies.append("hook")
        view = self._packaged(attempt, text) if attempt.sizes.text(text) < _room(attempt.before) else None
        if view is not None and any(entry.id == attempt.job.summary_id for entry in view):
            return view, Summary(text)
        attempt.strategies.clear()
        attempt.notes.append("the summary of a hook was too long to make room and was left out")
        return None, None

    def _without_model(self, attempt: _Attempt) -> tuple[ViewEntry, ...] | None:
        """Clearing, truncation, importance: the strategies that need no model."""
        options, ledger, job = self.options, attempt.ledger, attempt.job
        if options.strategy == "truncation":
            start = recent_start(ledger, ledger.view, options.truncation.keep_recent)
            return self._packaged_from(attempt, start, "", "truncation") if start else None
        if options.strategy == "importance":
            view, dropped = important(ledger, ledger.view, options.importance, attempt.keep)
            return self._taken(attempt, view, "importance") if dropped else None
        if options.strategy == "chain" and (job.trigger in ("auto", "overflow") or job.without_model):
            if attempt.plan.no_clearing and not job.without_model:
                attempt.notes.append(attempt.plan.no_clearing)
                return None
            return self._cleared(attempt)
        return None

    def _cleared(self, attempt: _Attempt) -> tuple[ViewEntry, ...] | None:
        """Old results and arguments as stubs, if need be all but what a summary would leave word for word.

        Taken where it makes as much room as a summary would. In a large window that is mostly full of what can't be
        cleared, a batch that pays is taken as well: the summary, which loses more and costs a call, can wait.
        """
        allowances, ledger = attempt.plan.allowances, attempt.ledger
        for newest in (allowances.protected, allowances.tail):
            cleared = tidy(ledger, ledger.view, attempt.sizes, self.options.retention, newest)
            if not cleared.cleared:
                continue
            after = self._measure(ledger, cleared.view, attempt.job.client.info)
            if ample(attempt.before, after) or attempt.job.without_model:
                return self._taken(attempt, cleared.view, "clearing")
            if acceptable(attempt.before, after, manual=False):
                attempt.cleared = cleared.view
                continue
            least = max(LEAST_BATCH, allowances.worthwhile // 2, round(PROGRESS * attempt.before.used))
            below = after.level in ("ok", "warn") and attempt.job.trigger == "auto"
            if newest == allowances.tail and below and cleared.pays(least):
                attempt.strategies.append("clearing")
                return cleared.view
        return None

    def _packaged(self, attempt: _Attempt, summary: str) -> tuple[ViewEntry, ...] | None:
        """Summary or record in front of ever shorter tails, until one makes ample room, or else just enough."""
        attempt.demanding = attempt.job.trigger in ("auto", "overflow")
        view = self._tailed(attempt, summary) if attempt.demanding else None
        attempt.demanding = False
        return view or self._tailed(attempt, summary)

    def _last_resort(self, attempt: _Attempt, summary: str) -> tuple[ViewEntry, ...] | None:
        """The same; where no request fits any more, whatever lets one fit again."""
        view = self._packaged(attempt, summary)
        if view is None and (attempt.job.forced or attempt.before.level == "block"):
            attempt.loose = True
            view = self._packaged(attempt, summary)
        return view

    def _tailed(self, attempt: _Attempt, summary: str) -> tuple[ViewEntry, ...] | None:
        tail = tail_allowance(self.options, attempt.plan.allowances, attempt.before.used)
        for share in (1.0, 0.5, 0.25, 0.0):
            allowance = max(1, int(tail * share))
            recent = max(1, int(attempt.plan.recent * share))
            start = tail_start(attempt.ledger, attempt.ledger.view, attempt.sizes, allowance, recent)
            if start:
                name = "record" if not summary and share == 1.0 else "truncation" if share < 1.0 else ""
                view = self._packaged_from(attempt, start, summary, name)
                if view is not None:
                    return view
        view = self._packaged_from(attempt, len(attempt.ledger.view), summary, "truncation")
        if view is not None:
            return view
        if attempt.demanding:
            return None
        largest = max(200, attempt.plan.allowances.tail // 4)
        return self._taken(
            attempt, shrunk(attempt.ledger, attempt.ledger.view, attempt.sizes, largest, attempt.keep), "shrinking"
        )

    def _packaged_from(self, attempt: _Attempt, start: int, summary: str, name: str) -> tuple[ViewEntry, ...] | None:
        ledger, job = attempt.ledger, attempt.job
        removed = [one for one in covered(ledger.view[:start]) if one not in attempt.keep]
        package = build_package(
            ledger,
            removed,
            summary,
            job.facts,
            attempt.sizes,
            attempt.plan.allowances,
            job.attachments,
            job.when,
        )
        view = replaced(ledger, ledger.view, start, job.summary_id, package.text, attempt.keep)
        cleared = tidy(ledger, view, attempt.sizes, self.options.retention, attempt.plan.allowances.tail)
        return self._taken(attempt, cleared.view if cleared.cleared else view, name)

    def _taken(self, attempt: _Attempt, view: tuple[ViewEntry, ...], name: str) -> tuple[ViewEntry, ...] | None:
        """The view if it is small enough, else None."""
        after = self._measure(attempt.ledger, view, attempt.job.client.info)
        if not self._accepts(attempt, after):
            return None
        if name and name not in attempt.strategies:
            attempt.strategies.append(name)
        return view

    def _accepts(self, attempt: _Attempt, after: Budget) -> bool:
        if attempt.demanding and not ample(attempt.before, after):
            return False
        if attempt.loose:
            return after.level in ("ok", "warn") and acceptable(attempt.before, after, manual=True)
        return acceptable(attempt.before, after, manual=attempt.job.trigger in ("manual", "model"))

    # --- the frame ----------------------------------------------------------------------------------------

    def _attempt(self, ledger: Ledger, job: Job, before: Budget) -> _Attempt:
        sizes = EntrySizes(self._context.monitor, job.client.info)
        keep = kept_whole(ledger, ledger.view, self.options.retention)
        usual = self.options.allowances(roomy_part(before))
        recent, tail_is_set = self.options.recent_messages, self.options.keep_recent_tokens is not None
        if self.options.strategy == "chain":
            plan = adjusted(signals_of(ledger, ledger.view, sizes), usual, recent, fixed_tail=tail_is_set)
        else:
            plan = ChainPlan(usual, recent)
        return _Attempt(ledger, job, sizes, plan, before, keep)

    def _measure(self, ledger: Ledger, view: Sequence[ViewEntry], info: ModelInfo) -> Budget:
        return self._context.measure(project(ledger, view), info)

    def _summary_tokens(self, attempt: _Attempt) -> int:
        return min(attempt.plan.allowances.summary, attempt.before.reserve or 500)

    def _hopeless(self, attempt: _Attempt) -> str:
        largest = max(attempt.before.components, key=lambda part: part.tokens, default=None)
        name = f"; the largest part is {largest.name} with {largest.tokens:,} tokens" if largest else ""
        if attempt.keep:
            tokens = attempt.sizes.view((e for e in attempt.ledger.view if e.id in attempt.keep), attempt.ledger)
            name += f"; what your rules never drop takes {tokens:,}"
        return (
            f"nothing that can be left out makes enough room ({attempt.before.used:,} of "
            f"{attempt.before.effective:,} tokens are in use{name})"
        )


def wants_summary(options: CompactionOptions, ledger: Ledger) -> bool:
    """Whether a model is asked for a summary, unless clearing is enough."""
    return options.strategy in ("chain", "summarization") and _summarisable(ledger)


def _summarisable(ledger: Ledger) -> bool:
    """Whether there is anything besides the current request to summarise."""
    request = current_request(ledger, ledger.view)
    return any(request is None or entry.id != request.id for entry in ledger.view)


def ample(before: Budget, after: Budget) -> bool:
    """Whether a candidate makes as much room as a compaction should."""
    return _said(after) <= _said(before) * WANTED_SHARE and _said(after) <= _room(after) * WANTED_FILL


def acceptable(before: Budget, after: Budget, *, manual: bool) -> bool:
    """Whether a candidate is worth taking. One that the user asked for need only be clearly smaller."""
    if _said(after) > _said(before) * ACCEPTED_SHARE:
        return False
    return manual or after.upper - fixed_tokens(after) < _room(after) * ACCEPTED_FILL


def _said(budget: Budget) -> int:
    """Tokens of the conversation alone."""
    return budget.used - fixed_tokens(budget)


def _room(budget: Budget) -> int:
    """Tokens that the window leaves for the conversation."""
    return max(0, budget.effective - fixed_tokens(budget))
