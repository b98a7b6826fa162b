"""Compaction as a transaction: candidates are built beside the view and measured; only a good one is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.context_management.budget import roomy_part
from swecli.core.context_management.compaction.clearing import kept_whole, tidy
from swecli.core.context_management.compaction.options import (
    CompactionOptions,
    CompactResult,
    EntrySizes,
    HookOutcome,
    Trigger,
    run_pre_hook,
)
from swecli.core.context_management.compaction.package import Attachment, SessionFacts, build_package
from swecli.core.context_management.compaction.policy import (
    ACCEPTED_FILL,
    LEAST_BATCH,
    PROGRESS,
    ChainPlan,
    acceptable,
    adjusted,
    ample,
    conversation_room,
    conversation_tokens,
    signals_of,
    wants_summary,
)
from swecli.core.context_management.compaction.provider_summary import EXPECTED, Written, ask, cut_points, with_summary
from swecli.core.context_management.compaction.quality import Quality, anchors_of, cited, graded
from swecli.core.context_management.compaction.selection import (
    covered,
    current_request,
    important,
    is_answered,
    message_starts,
    recent_start,
    replaced,
    shrunk,
    tail_allowance,
    tail_start,
    unread,
)
from swecli.core.context_management.compaction.summary import CALLS, CALLS_BESIDES, Summarizer, Summary, checked_summary
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.gateway import RequestGateway
from swecli.core.context_management.items import items_of
from swecli.core.context_management.ledger import APART, Ledger
from swecli.core.context_management.monitor import is_vague
from swecli.core.context_management.projection import project
from swecli.core.llm.types import ModelClient, ModelRequest
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.messages import Message, Usage
from swecli.figures import plural

View = tuple[ViewEntry, ...]
PROVIDER = "provider"
"""Strategy of a summary that the provider wrote."""
SUMMARY_SHARE = 0.10
"""Expected upper limit of a summary, as a share of the request to shrink."""
_WORDS = (
    "what was done and what was found is said here in a sentence of usual length, with a path/to/file.py:12 in it\n"
)


class Job(Struct, frozen=True):
    """One compaction to do. ``request`` is the agent's newest request, with a prefix cached by the provider."""

    trigger: Trigger
    summary_id: str
    request: ModelRequest
    client: ModelClient
    facts: SessionFacts
    focus: str = ""
    forced: bool = False
    """No request fits any more, so a hook can't cancel it."""
    without_model: bool = False
    """Use only strategies without a model."""
    when: str = ""
    summary_client: ModelClient | None = None
    """Writes the summary in place of ``client``."""
    attachments: tuple[Attachment, ...] = ()
    by_provider: bool = False
    """Whether the provider writes the summary."""
    sealed: bool = False
    """Whether only the provider can read the summaries that it writes."""
    cover: Callable[[str], str] = str
    """Covers keys and passwords in what the model wrote."""


class Compacted(Struct, frozen=True):
    """An accepted candidate."""

    view: View
    result: CompactResult
    notes: tuple[str, ...] = ()
    summary: Summary | None = None
    quality: Quality = field(default_factory=lambda: Quality(0, 0, 0))


class NotCompacted(Struct, frozen=True):
    """A compaction without a change, and the reason."""

    reason: str
    cancelled: bool = False
    """Cancelled by a hook, so unrelated to the possible gain."""
    notes: tuple[str, ...] = ()


class _Candidate(Struct, frozen=True):
    """``strategy`` is the one that built it, empty if already listed."""

    view: View
    strategy: str


class _Measured(Struct, frozen=True):
    """``view`` is kept with its measure, which is looked up by the view's identity."""

    view: View
    messages: tuple[Message, ...]
    budget: Budget


class _Attempt(Struct):
    """Intermediate results of one search for a view."""

    strategies: list[str] = field(default_factory=list[str])
    """Strategies behind the view, in order."""
    notes: list[str] = field(default_factory=list[str])
    """Notes for the user."""
    cleared: View = ()
    """The view with as much cleared as possible, in case the summary fails."""
    loose: bool = False
    """Accept any room that lets a request fit again."""

    def take(self, candidate: _Candidate | None) -> View | None:
        if candidate is None:
            return None
        if candidate.strategy and candidate.strategy not in self.strategies:
            self.strategies.append(candidate.strategy)
        return candidate.view


class Compaction:
    """One compaction of one view. It changes nothing itself: the caller records the result.

    Each candidate is built, projected and measured once, however often it is judged.
    """

    def __init__(
        self,
        context: ContextManager,
        ledger: Ledger,
        job: Job,
        options: CompactionOptions | None = None,
        gateway: RequestGateway | None = None,
    ) -> None:
        self._context = context
        self._gateway = gateway or RequestGateway(context)
        self.ledger = ledger
        self.job = job
        self.options = options or CompactionOptions()
        self._automatic = job.trigger in ("auto", "overflow")
        self._view: View = tuple(ledger.view)
        self._keep = kept_whole(ledger, self._view, self.options.retention)
        """Entries kept word for word by the user's rules."""
        self._request = ""
        """The user's newest message, which stays word for word."""
        self._whole: frozenset[str] = frozenset()
        """Results that the model has not read, with their calls, and tokens of them; they stay word for word."""
        self._unread = 0
        self._latest_start = 0
        """Index of the view before which the verbatim tail begins at the latest."""
        self._start()

    def _start(self) -> None:
        self._packages: dict[tuple[int, str], View] = {}
        self._measures: dict[int, _Measured] = {}
        self._messages = project(self.ledger)
        self.before = self._context.measure(self._messages, self.job.client.info)
        """The measure of the present view."""
        self.sizes = EntrySizes(self._context.monitor, self.job.client.info)
        usual = self.options.allowances(roomy_part(self.before))
        self._request = self._request_to_keep(usual.user_messages)
        fresh = unread(self.ledger, self._view)
        self._whole, self._latest_start = fresh.ids, fresh.start
        self._unread = self.sizes.view((entry for entry in self._view if entry.id in fresh.ids), self.ledger)
        if self.job.trigger == "overflow" and 2 * self._unread > conversation_tokens(self.before):
            self._cut_unread()  # they are what the provider has no room for
        recent, tail_is_set = self.options.recent_messages, self.options.keep_recent_tokens is not None
        self._plan = ChainPlan(usual, recent)
        if self.options.strategy == "chain":
            signals = signals_of(self.ledger, self._view, self.sizes)
            self._plan = adjusted(signals, usual, recent, fixed_tail=tail_is_set)

    def _request_to_keep(self, most: int) -> str:
        """The user's newest message; none if it has its answer, the user compacts by hand and it has more than ``most``
        tokens: the record then quotes its beginning, as an automatic compaction behind the next message would."""
        request = current_request(self.ledger, self._view)
        if request is None:
            return ""
        large = self.sizes.viewed(request, self.ledger) > most
        if large and self.job.trigger == "manual" and is_answered(self.ledger, self._view, request.id):
            return ""
        return request.id

    @property
    def item_tokens(self) -> Mapping[str, int]:
        """Tokens of each entry of the present view, consistent with all displays."""
        items = items_of(self.ledger, self.before, self._context.monitor, self.job.client.info)
        return {item.id: item.tokens for item in items}

    async def run(self) -> Compacted | NotCompacted:
        """Find a small enough view. Cancelling leaves everything unchanged."""
        info = self.job.client.info
        if is_vague(self.before) and await self._context.count_exactly(self._messages, info):
            self._start()  # no decision rests on estimates alone
        wishes = await self._hook_outcome()
        if wishes.declined:
            return NotCompacted(wishes.declined, cancelled=True)
        attempt = _Attempt(notes=[*wishes.notes, *self._plan.reasons])
        view, summary = self._with_given_summary(attempt, wishes.summary)
        spent: tuple[Usage, ...] = ()
        if view is None and self.job.by_provider and not self.job.without_model:
            view, summary = await self._by_provider(attempt, wishes.focus)
            spent = summary.usage if view is None and summary is not None else ()
        view = view or self._without_model(attempt)
        if view is None and not attempt.cleared and not self._possible():
            return self._hopeless(attempt)
        if view is None and not self.job.without_model and wants_summary(self.options, self.ledger):
            view = self._without_place(attempt)
        if view is None and not self.job.without_model and wants_summary(self.options, self.ledger):
            summary = await self._summary(attempt, wishes.focus)
            attempt.notes += summary.notes
            summary = await self._better(attempt, summary, wishes.focus)
            named = await asyncio.to_thread(cited, summary.text, self.ledger, covered(self._view))
            summary = replace(summary, text=named, usage=(*spent, *summary.usage))
        text = summary.text if summary else ""
        if view is None and attempt.cleared and not text:
            view = attempt.take(_Candidate(attempt.cleared, "clearing"))
        view = view or self._last_resort(attempt, text)
        if view is None and summary is not None and text:
            attempt.strategies.clear()
            attempt.notes.append("the model's summary is too long to free enough space, so the record replaces it")
            summary, text = replace(summary, text=""), ""
            view = self._last_resort(attempt, text)
        doubtful = view is not None and self._is_doubtful(self._measured(view).budget, loose=attempt.loose)
        if view is not None and doubtful and await self._context.count_exactly(self._measured(view).messages, info):
            self._measures.clear()
            if not self._accepts(self._measured(view).budget, loose=attempt.loose):
                view = self._last_resort(attempt, text)  # the long new text is counted by now
        if view is None:
            return self._hopeless(attempt)
        after = self._measured(view)
        result = CompactResult(
            self.before.used,
            after.budget.used,
            len(self._messages),
            len(after.messages),
            tuple(attempt.strategies),
            text,
        )
        return Compacted(view, result, tuple(attempt.notes), summary, self._quality(view, text))

    def preview(self, summary: str) -> View | None:
        """The final view if the model wrote this summary; None if nothing frees enough room. Makes no request."""
        if summary and self.job.by_provider and (view := self._expected_by_provider(Written(summary))) is not None:
            return view[1]
        view = self._without_model(_Attempt())
        return self._last_resort(_Attempt(), summary) if view is None else view

    @property
    def expected_summary(self) -> int:
        """Tokens of a summary that is as long as a model may be expected to write it."""
        return min(self.options.allowances(roomy_part(self.before)).summary, int(self.before.used * SUMMARY_SHARE))

    @property
    def stand_in(self) -> str:
        """A text as long as the expected summary."""
        sample = _WORDS * 64
        characters = round(self.expected_summary * len(sample) / max(1, self.sizes.text(sample)))
        return (_WORDS * (characters // len(_WORDS) + 1))[: max(1, characters)]

    def room_for_results(self) -> int:
        """Most tokens that further results may have if an automatic compaction is to keep them whole; negative if there
        is no room."""
        rooms: list[int] = []
        attempt, candidate = _Attempt(), self._resort("")
        views = self._without_model(attempt), attempt.cleared, candidate.view if candidate else None
        for view in filter(None, views):
            after = self._measured(view).budget
            room = after.compact_at - 1 - after.upper
            if any(entry.id == self.job.summary_id for entry in view):  # still without texts of the model and of files
                room -= self._plan.allowances.summary + self._plan.allowances.attached
            rooms.append(room)
        return max(rooms, default=0)

    def tokens(self, view: View) -> int:
        return self._measured(view).budget.used

    # --- asking -------------------------------------------------------------------------------------------

    async def _hook_outcome(self) -> HookOutcome:
        accepted = self.before.effective - int(conversation_room(self.before) * (1 - ACCEPTED_FILL))
        target = min(accepted, self.before.compact_at)  # the settings may ask for less than a share of the window
        forced = self._hard_pressed
        job = self.job
        messages = len(self._messages)
        return await run_pre_hook(self.options, job.trigger, job.focus, self.before, messages, target, forced=forced)

    async def _summary(self, attempt: _Attempt, focus: str) -> Summary:
        job = self.job
        summarizer = Summarizer(self._gateway, job.client, self.options.summarization, job.summary_client)
        calls = CALLS_BESIDES if attempt.cleared else CALLS
        most = min(self._plan.allowances.summary, self.before.reserve or 500)
        summary = await summarizer.summarize(self._read_part(), focus, most, self.before.effective, calls)
        summary = checked_summary(summary, self.ledger, job.cover)
        if summary.text:
            attempt.strategies.append("summary")
        return summary

    def _read_part(self) -> ModelRequest:
        """The request to summarise: without the newest answer if the model has not read the results of its calls. Both
        stay, and the rest was short enough to be sent."""
        request = self.job.request
        answers = [at for at, message in enumerate(request.messages) if message.role == "assistant"]
        if not self._whole or not answers or not request.messages[answers[-1]].tool_calls:
            return request
        end = answers[-1]
        earlier = [at for at in request.breakpoints if at < end - 1]
        marks = (*earlier[-1:], end - 1)  # the last is where the newest request ended, and so did its cache
        return replace(request, messages=request.messages[:end], breakpoints=marks)

    async def _by_provider(self, attempt: _Attempt, focus: str) -> tuple[View | None, Summary | None]:
        """The view with a summary by the provider, and that summary; nothing, with a note, if it can't be had."""
        ledger, allowances = self.ledger, self._plan.allowances
        likely = Written("word " * min(allowances.summary, self.before.used // 10))
        expected = self._expected_by_provider(likely)
        if expected is None:
            attempt.notes.append("the provider's summary would free too little space, so swecli's own is used")
            return None, None
        start = expected[0]
        messages = project(ledger, self._view[:start], ledger.dead_thoughts())
        written = await ask(self._gateway, self.job.client, self.job.request, messages, focus)
        usages = (written.usage,) if written.usage is not None else ()
        if written.trouble:
            attempt.notes.append(f"no summary by the provider: {written.trouble}; swecli's own is used")
            return None, Summary("", usage=usages)
        written = replace(written, text=self.job.cover(written.text))  # the block goes back as it came
        view = self._summarised(start, written)
        if not self._accepts(self._measured(view).budget):
            attempt.notes.append("the provider's summary is too long to free enough space, so swecli's own is used")
            return None, Summary("", usage=usages)
        attempt.strategies.append(PROVIDER)
        return view, Summary(written.text, usage=usages)

    def _expected_by_provider(self, likely: Written) -> tuple[int, View] | None:
        """Where the kept turns begin, and the view with this summary before them; None if it frees too little."""
        for start in self._provider_cuts():
            view = self._summarised(start, replace(likely, opaque=EXPECTED, sealed=self.job.sealed))
            if self._accepts(self._measured(view).budget):
                return start, view
        return None

    def _provider_cuts(self) -> Iterator[int]:
        """Places before which the provider may summarise, the longest tail first. Nothing of what it replaces can stay
        word for word."""
        starts = cut_points(self.ledger, self._view, message_starts(self.ledger, self._view))
        tail = tail_allowance(self.options, self._plan.allowances, self.before.used)
        for share in (1.0, 0.5, 0.25, 0.0):
            wanted = tail_start(self.ledger, self._view, self.sizes, max(1, int(tail * share)))
            start = next((start for start in starts if wanted <= start <= self._latest_start), None)
            if start is not None and not any(entry.id in self._keep for entry in self._view[:start]):
                yield start

    def _summarised(self, start: int, written: Written) -> View:
        ledger, job, allowances = self.ledger, self.job, self._plan.allowances
        removed = covered(self._view[:start])
        record = build_package(ledger, removed, "", job.facts, self.sizes, allowances, job.attachments, job.when).text
        record = f"{ledger.environment}{APART}{record}" if ledger.environment else record
        return with_summary(self._view, start, job.summary_id, written, ledger.identified(start), record)

    def _quality(self, view: View, summary: str) -> Quality:
        """Share of the facts to preserve in the replacement of the removed content."""
        placed = next((entry for entry in view if entry.id == self.job.summary_id), None)
        if placed is None:
            return Quality(0, 0, 0)
        return graded(anchors_of(self.ledger, placed.sources, self.job.facts), placed.text, summary)

    async def _better(self, attempt: _Attempt, summary: Summary, focus: str) -> Summary:
        """The summary; written once more if it lacks facts to preserve that the record lacks, too."""
        candidate = self._resort(summary.text) if summary.text else None
        if candidate is None:
            return summary
        missing = self._quality(candidate.view, summary.text).missing
        if not missing:
            return summary
        named = "\n".join(f"- {text}" for text in missing)
        wish = f"{focus}\nThe summary must name each of these word for word:\n{named}".strip()
        attempt.strategies.remove("summary")
        again = await self._summary(attempt, wish)
        spent = (*summary.usage, *again.usage)
        lacked = f"{plural(len(missing), 'thing')} to keep"
        if not again.text:
            attempt.notes.append(f"the summary lacks {lacked}, and the model wrote no better one")
            attempt.strategies.append("summary")
            return replace(summary, usage=spent)
        attempt.notes.append(f"the summary was written again because it lacked {lacked}")
        return replace(again, usage=spent)

    # --- candidates ---------------------------------------------------------------------------------------

    def _with_given_summary(self, attempt: _Attempt, text: str) -> tuple[View | None, Summary | None]:
        """The view with a hook's summary, and that summary; nothing if it is too long to be of use."""
        if not text:
            return None, None
        attempt.strategies.append("hook")
        short = self.sizes.text(text) < conversation_room(self.before)
        view = attempt.take(self._resort(text)) if short else None
        if view is not None and any(entry.id == self.job.summary_id for entry in view):
            return view, Summary(text)
        attempt.strategies.clear()
        attempt.notes.append("a hook's summary was too long and was ignored")
        return None, None

    def _without_model(self, attempt: _Attempt) -> View | None:
        """Clearing, truncation, importance: the strategies without a model."""
        options, job = self.options, self.job
        if options.strategy == "truncation":
            start = recent_start(self.ledger, self._view, options.truncation.keep_recent)
            return self._if_small_enough(attempt, self._package(start, ""), "truncation") if start else None
        if options.strategy == "importance":
            views = important(self.ledger, self._view, options.importance, self._keep)
            fitting = (view for view in views if self._measured(view).budget.level in ("ok", "warn"))
            small = (self._if_small_enough(attempt, view, "importance") for view in fitting)
            return next((view for view in small if view is not None), None)
        if options.strategy == "chain" and (self._automatic or job.without_model):
            if self._plan.no_clearing and not job.without_model:
                attempt.notes.append(self._plan.no_clearing)
                return None
            return self._clear(attempt)
        return None

    def _clear(self, attempt: _Attempt) -> View | None:
        """Stub old results and arguments, if necessary all except those that a summary would keep word for word.

        Accepted if it frees as much room as a summary would. In a large window that is mostly full of content that
        can't be cleared, a batch that pays is accepted as well: the summary, which loses more and costs a call, can
        wait.
        """
        allowances = self._plan.allowances
        for newest in (allowances.protected, allowances.tail):
            cleared = tidy(self.ledger, self._view, self.sizes, self.options.retention, newest, self._whole)
            if not cleared.cleared:
                continue
            after = self._measured(cleared.view).budget
            if ample(self.before, after, self._unread) or self.job.without_model:
                return self._if_small_enough(attempt, cleared.view, "clearing")
            if acceptable(self.before, after, self._unread, manual=False):
                attempt.cleared = cleared.view
                continue
            least = max(LEAST_BATCH, allowances.worthwhile // 2, round(PROGRESS * self.before.used))
            below = after.level in ("ok", "warn") and self.job.trigger == "auto"
            if newest == allowances.tail and below and cleared.pays(least):
                attempt.strategies.append("clearing")
                return cleared.view
        return None

    def _possible(self) -> bool:
        """Whether a summary would help: at least an empty one must free enough room."""
        return self._last_resort(_Attempt(), "") is not None

    def _without_place(self, attempt: _Attempt) -> View | None:
        """The view that makes enough room where one with a summary of the expected length would not: then no summary
        is asked for, as the plan says. None if the summary has its place, or nothing is enough."""
        text, loose = self.stand_in, False
        candidate = self._resort(text)
        if candidate is None and (self._hard_pressed or self._whole):
            candidate, loose = self._resort(text, loose=True), True
        if candidate is None or any(entry.id == self.job.summary_id for entry in candidate.view):
            return None
        attempt.loose = loose
        return attempt.take(candidate)

    def _last_resort(self, attempt: _Attempt, summary: str) -> View | None:
        """Summary or record in front of a tail; if no request fits any more, or results would be cut that the model has
        not read, anything that lets one fit again."""
        candidate = self._resort(summary, loose=attempt.loose)
        if candidate is None and (self._hard_pressed or self._whole) and not attempt.loose:
            attempt.loose = True
            candidate = self._resort(summary, loose=True)
        if candidate is None and self._whole:
            self._cut_unread()
            attempt.loose = False
            return self._last_resort(attempt, summary)
        return attempt.take(candidate)

    def _cut_unread(self) -> None:
        self._whole, self._unread, self._latest_start = frozenset(), 0, len(self._view)
        self._packages.clear()

    def _resort(self, summary: str, *, loose: bool = False) -> _Candidate | None:
        """Summary or record in front of ever shorter tails, until one frees ample room, or else just enough."""
        for demanding in (True, False) if self._automatic else (False,):
            for candidate in self._candidates(summary, demanding=demanding):
                if self._accepts(self._measured(candidate.view).budget, demanding=demanding, loose=loose):
                    return candidate
        return None

    def _candidates(self, summary: str, *, demanding: bool) -> Iterator[_Candidate]:
        tail = tail_allowance(self.options, self._plan.allowances, self.before.used)
        for share in (1.0, 0.5, 0.25, 0.0):
            allowance, recent = max(1, int(tail * share)), max(1, int(self._plan.recent * share))
            start = min(tail_start(self.ledger, self._view, self.sizes, allowance, recent), self._latest_start)
            if start:
                name = "record" if not summary and share == 1.0 else "truncation" if share < 1.0 else ""
                yield _Candidate(self._package(start, summary), name)
        if self._latest_start:
            yield _Candidate(self._package(self._latest_start, summary), "truncation")
        if not demanding:
            largest = max(200, self._plan.allowances.tail // 4)
            view = self._packages.get((-1, ""))
            if view is None:
                view = shrunk(self.ledger, self._view, self.sizes, largest, self._keep | self._whole)
                self._packages[(-1, "")] = view
            yield _Candidate(view, "shrinking")

    def _package(self, start: int, summary: str) -> View:
        """The view with one text in place of everything before ``start``, and old results of the rest cleared."""
        known = self._packages.get((start, summary))
        if known is not None:
            return known
        ledger, job, allowances = self.ledger, self.job, self._plan.allowances
        removed = [source for source in covered(self._view[:start]) if source not in self._keep]
        package = build_package(ledger, removed, summary, job.facts, self.sizes, allowances, job.attachments, job.when)
        view = replaced(self._view, start, job.summary_id, package.text, self._request, self._keep)
        cleared = tidy(ledger, view, self.sizes, self.options.retention, allowances.tail, self._whole)
        made = self._packages[(start, summary)] = cleared.view if cleared.cleared else view
        return made

    # --- judging ------------------------------------------------------------------------------------------

    @property
    def _hard_pressed(self) -> bool:
        return self.job.forced or self.before.level == "block"

    def _if_small_enough(self, attempt: _Attempt, view: View, strategy: str) -> View | None:
        small = self._accepts(self._measured(view).budget, loose=attempt.loose)
        return attempt.take(_Candidate(view, strategy)) if small else None

    def _accepts(self, after: Budget, *, demanding: bool = False, loose: bool = False) -> bool:
        if demanding and not ample(self.before, after, self._unread):
            return False
        if loose:
            return after.level in ("ok", "warn") and acceptable(self.before, after, self._unread, manual=True)
        return acceptable(self.before, after, self._unread, manual=self.job.trigger in ("manual", "model"))

    def _is_doubtful(self, after: Budget, *, loose: bool) -> bool:
        """Whether exact counts could show a view to be too large. The vocabulary for them takes 50 MB."""
        return is_vague(after) and not self._accepts(replace(after, used=after.upper), loose=loose)

    def _measured(self, view: View) -> _Measured:
        known = self._measures.get(id(view))
        if known is None:
            messages = project(self.ledger, view)
            known = _Measured(view, messages, self._context.measure(messages, self.job.client.info))
            self._measures[id(view)] = known
        return known

    def _hopeless(self, attempt: _Attempt) -> NotCompacted:
        largest = max(self.before.components, key=lambda part: part.tokens, default=None)
        name = f"; the largest part is {largest.name} with {largest.tokens:,} tokens" if largest else ""
        if self._keep:
            tokens = self.sizes.view((entry for entry in self._view if entry.id in self._keep), self.ledger)
            name += f"; your pins and never-drop rules keep {tokens:,}"
        reason = (
            f"too little can be removed ({self.before.used:,} of {self.before.effective:,} tokens are in use{name})"
        )
        return NotCompacted(reason, notes=tuple(attempt.notes))
