"""Processing of tool results: bounded, offloaded, and shortened if the model has seen them.

Two questions decide whether a result enters the context whole or is stored with a reference in its place: is it the
kind of output that is better read in parts (by size), and does it fit into the rest of the window. Sizes are bytes of
UTF-8, everything else is tokens.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.budget import Limits, edge
from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.compaction.transaction import Compaction, Job
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import IMAGE_TOKENS, document_tokens
from swecli.core.context_management.ledger import RESULT, Entry, Ledger
from swecli.core.engine.compaction_plans import session_facts
from swecli.core.engine.model_access import Connection
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.settings import Settings
from swecli.core.llm.types import ModelRequest
from swecli.core.ports import BlobError, BlobRef, BlobStore
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.context_events import Offloaded
from swecli.core.protocol.events import FileRead, ItemsOffloaded, Notice, ResultKind
from swecli.core.protocol.messages import DocumentPart, ImagePart, ToolResultPart, Usage
from swecli.core.sessions.results import Excerpt, encodable, reference_text, usual_excerpt
from swecli.core.tools.base import SeenFile, ToolOutcome
from swecli.core.tools.bounding import MAX_BYTES, bound_result

GUARD = 1.1
"""Safety factor, because estimates may be a tenth too low."""
RESERVED = 200
"""Tokens kept for the result of each unfinished call: a reference without an excerpt."""
MOST_CORRECTION = 2.0
ADMITTED, ADMITTED_SMALL = 0.25, 0.12
"""Largest share of the window for a result that the conversation is compacted for, and that in a small window."""
SMALL = 8_192


class OffloadRules(Struct, frozen=True):
    """Size limits in bytes: ``threshold`` for output; ``failed`` for output of a failed command, which the model needs;
    ``longest`` for everything."""

    threshold: int = 4_096
    failed: int = 16_384
    longest: int = 48_000


class ResultFacts(Struct, frozen=True):
    """A finished result. ``tokens`` is an estimate in the current model's unit; None = not estimated, because its size
    is decisive already."""

    kind: ResultKind
    size: int
    failed: bool = False
    tokens: int | None = None


def too_large(result: ResultFacts, rules: OffloadRules) -> str:
    """Reason to store the result because of its size alone; empty if it may stay."""
    if result.kind == "stored":
        return ""
    threshold = max(rules.threshold, rules.failed) if result.failed else rules.threshold
    if result.kind == "output" and result.size > threshold:
        return f"larger than {threshold:,} bytes"
    if result.size > max(rules.longest, rules.threshold):
        return f"larger than {max(rules.longest, rules.threshold):,} bytes"
    return ""


def does_not_fit(result: ResultFacts, room: int | None) -> str:
    """Reason to store the result for lack of space; empty if it fits. ``room`` is None if unknown."""
    if room is None or result.tokens is None or result.tokens * GUARD <= room:
        return ""
    return f"about {result.tokens:,} tokens do not fit in the {max(0, room):,} left"


def correction(budget: Budget, usage: Usage | None) -> float:
    """Ratio of the newest request's reported size to its measure, at least 1; later measures are assumed to have the
    same error."""
    reported = believed(budget, usage)
    return max(1.0, reported / budget.used) if reported and budget.used > 0 else 1.0


def believed(budget: Budget, usage: Usage | None) -> int:
    """Reported size of the newest request if it is plausible; else 0."""
    reported = usage.input_total if usage is not None else None
    return reported if reported and reported <= MOST_CORRECTION * budget.used else 0


def room_left(
    budget: Budget, limits: Limits, *, usage: Usage | None, answer: int, results: int, open_calls: int
) -> int:
    """Tokens that one more result may take before the next request would reach the block level.

    ``budget`` measured the request that the running calls belong to, ``usage`` is the provider's report on it.
    ``answer`` and ``results`` are estimates of the content since then, ``open_calls`` counts the other unfinished
    calls. May be negative.
    """
    request = budget.upper
    reported = believed(budget, usage)
    if reported:
        request = max(request, reported + budget.upper - budget.used)
    said = usage.output_total if usage is not None and usage.output_total else math.ceil(answer * GUARD)
    since = said + math.ceil(results * GUARD) + open_calls * RESERVED
    return edge(limits.block, budget.effective) - 1 - request - since


def excerpt_bytes(room: int | None) -> int | None:
    """Bytes of a stored result that may be shown in this many tokens; None = the usual number.

    Text can take a token for every two bytes, and the reference itself takes some.
    """
    return None if room is None else max(0, (room - RESERVED) * 2)


UNCHANGED = ": unchanged since you read it; the text is above,"


def is_pointer(result: str) -> bool:
    """Whether the text refers to an earlier read of the same lines."""
    return UNCHANGED in result and "\n" not in result


class SeenFiles:
    """Keeps the read set in step with the calls of one session."""

    def __init__(self, recorder: Recorder, cwd: Path) -> None:
        self._recorder = recorder
        self._cwd = cwd

    def last_seen(self, path: str) -> str | None:
        """Hash of the file as the model last saw it; None if it never saw it or saw that it was gone."""
        ledger = self._recorder.ledger
        touch = ledger.files.last(path, ledger.present_items())
        return touch.sha256 if touch is not None else None

    def shortened(self, outcome: ToolOutcome) -> ToolOutcome:
        """The outcome with a re-read of unchanged lines that are still in the context shortened to one line.

        A file restored to an earlier form is not shortened, because the model last saw a different one.
        """
        ledger = self._recorder.ledger
        if outcome.is_error or len(outcome.seen) != 1:
            return outcome
        (seen,) = outcome.seen
        if self.last_seen(seen.path) != seen.sha256:
            return outcome
        live = ledger.live_items()
        touch = ledger.files.same_reading(seen.path, seen.first, seen.last, seen.sha256, live)
        entry, text = _visible_text(ledger, touch.item) if touch else ("", None)
        place = f"in the earlier result of this call (id {entry})"
        if text != outcome.text:
            summaries = ledger.summary_items()
            touch = ledger.files.attached(seen.path, seen.first, seen.last, seen.sha256, summaries)
            place = "in the file block of the compacted part"
        if touch is None:
            return outcome
        lines = f"lines {seen.first}-{seen.last}" if seen.last > seen.first else f"line {seen.first}"
        text = f"[{display_name(seen.path, self._cwd)}, {lines}{UNCHANGED} {place}.]"
        return replace(outcome, text=text, detail="unchanged", seen=()) if len(text) < len(outcome.text) else outcome

    def record(self, item: str, seen: Sequence[SeenFile]) -> None:
        """Record the lines that the result of ``item``, already recorded, shows."""
        for file in seen:
            self._recorder.emit(FileRead(file.path, file.sha256, file.first, file.last, item))


def display_name(path: str, cwd: Path) -> str:
    """The path as the model writes it, on one line."""
    file = Path(path)
    return " ".join((str(file.relative_to(cwd)) if file.is_relative_to(cwd) else path).split())


def _visible_text(ledger: Ledger, item: str) -> tuple[str, str | None]:
    """Id and text of a result that is in the view verbatim; of an attached file without the line above it."""
    known = ledger.entries.get(item)
    attached = known is not None and known.kind == "attachment"
    name = item if attached else item + RESULT
    if not any(entry.id == name and entry.kind == "live" for entry in ledger.view):
        return name, None
    text = next((part.text for part in ledger.entries[name].parts if isinstance(part, ToolResultPart)), None)
    return name, text.partition("\n")[2] if attached and text is not None else text


OUTPUT_BYTES = 24_000
OUTPUT_LINES = 1_200
"""Limits of output that can't be stored, in bytes and lines."""
SAMPLE = 32_768
"""Characters of a large text that are counted; the rest is extrapolated."""


class _Measure(Struct, frozen=True):
    """``room`` is the result's limit in tokens; ``factor`` converts the counter's tokens into the model's; ``added`` is
    the tokens of the conversation since the newest request."""

    room: int
    factor: float
    added: int = 0


class _Simulated(Struct, frozen=True):
    """The space that a compaction would make, before the further results of an answer; its moment in the ledger."""

    room: int
    added: int
    moment: tuple[int, int]


GROWTH = 0.5, 1.5
"""Least and most tokens that one more token in the conversation takes from the space after a compaction: sizes are
estimates."""


class Results:
    """Admits the results of one session one after the other. The space left is unknown without a model client in
    ``connection``."""

    def __init__(
        self,
        context: ContextManager,
        settings: Settings,
        blobs: BlobStore | None,
        recorder: Recorder,
        connection: Connection,
    ) -> None:
        """Without ``blobs`` results too large for the context are cut."""
        self._context = context
        self._settings = settings
        self._blobs = blobs
        self._recorder = recorder
        self._connection = connection
        self._turn = asyncio.Lock()
        self._reported = False
        self._simulated: _Simulated | None = None

    @property
    def reads_documents(self) -> bool:
        """Whether the model reads PDF files."""
        client = self._connection.client
        return client is not None and client.info.capabilities.documents

    @property
    def _rules(self) -> OffloadRules:
        return OffloadRules(self._settings.now.offload_threshold)

    async def admit(self, item: str, tool: str, kind: ResultKind, outcome: ToolOutcome) -> ToolOutcome:
        """The outcome with its text for the context. The caller must record it before awaiting anything else, so that
        the next result sees the space left."""
        async with self._turn:
            measure = self._measure(item)
            room = measure.room if measure else None
            images, documents = outcome.images, outcome.documents
            outcome = replace(outcome, images=(), documents=())
            if documents and (reason := self._no_room(outcome, images, documents, measure)):
                outcome, documents = _as_text(outcome, documents, reason), ()
            facts = self._facts(kind, outcome, measure)
            reason = too_large(facts, self._rules)
            if not reason and measure is not None and does_not_fit(facts, room):
                room = self._room_with_compaction(item, measure, facts)
                reason = does_not_fit(facts, room)
            if reason and (kind == "stored" or self._blobs is None or not self._belongs(item)):
                outcome = self.bounded(kind, outcome, room)
            elif reason and self._blobs is not None:
                outcome = await self._offloaded(self._blobs, item, tool, kind, outcome, reason, measure)
            outcome = self._with_images(outcome, images, measure) if images else outcome
            return replace(outcome, documents=documents) if documents else outcome

    def _with_images(
        self, outcome: ToolOutcome, images: tuple[ImagePart, ...], measure: _Measure | None
    ) -> ToolOutcome:
        """The outcome, its text admitted, with its images if they fit beside it."""
        reason = self._no_room(outcome, images, (), measure)
        if not reason:
            return replace(outcome, images=images)
        what = "image was" if len(images) == 1 else "images were"
        return replace(outcome, text=f"{outcome.text}\n[The {what} left out: {reason}.]")

    def _no_room(
        self,
        outcome: ToolOutcome,
        images: Sequence[ImagePart],
        documents: Sequence[DocumentPart],
        measure: _Measure | None,
    ) -> str:
        """Why the outcome with its images and documents does not fit into the context; empty if it does."""
        if measure is None:
            return ""
        tokens = self._tokens(outcome.text, measure.factor) + IMAGE_TOKENS * len(images)
        for document in documents:
            tokens += document_tokens(self._tokens(document.text, measure.factor), document.pages)
        return does_not_fit(ResultFacts("page", 0, tokens=tokens), measure.room)

    def bounded(self, kind: ResultKind, outcome: ToolOutcome, room: int | None = None) -> ToolOutcome:
        """The outcome cut to the context's limits if it can't be stored."""
        limit = OUTPUT_BYTES if kind == "output" else max(MAX_BYTES, self._rules.threshold)
        fitting = excerpt_bytes(room)
        if fitting is not None and fitting < limit and not self._fits(outcome, room):
            limit = max(fitting, 200)
            outcome = replace(outcome, images=())
        lines = OUTPUT_LINES if kind == "output" else limit
        text = bound_result(outcome.text, limit, lines)
        return outcome if text == outcome.text else replace(outcome, text=text, seen=())

    async def _offloaded(
        self,
        blobs: BlobStore,
        item: str,
        tool: str,
        kind: ResultKind,
        outcome: ToolOutcome,
        reason: str,
        measure: _Measure | None,
    ) -> ToolOutcome:
        room = measure.room if measure else None
        text = encodable(outcome.text)
        try:
            ref = await asyncio.to_thread(blobs.put, tool, text.encode("utf-8"))
        except BlobError as error:
            self._report_once(error)
            return self.bounded(kind, outcome, room)
        excerpt = _fitting(usual_excerpt(ref.size, failed=outcome.is_error), excerpt_bytes(room))
        shown = await asyncio.to_thread(_reference, ref, text, excerpt, outcome, reason)
        if len(shown) >= len(text):
            return outcome
        tokens = self._tokens(text, measure.factor if measure else 1.0)
        self._recorder.emit(ItemsOffloaded((Offloaded(item, ref.id, tokens, reason),)))
        return replace(outcome, text=shown, seen=())

    # --- sizes ------------------------------------------------------------------------------------------------

    def _belongs(self, item: str) -> bool:
        """Whether the result joins the conversation: that of a slash command's tool does not."""
        opened = self._recorder.ledger.open.get(item)
        return item in self._recorder.ledger.entries or (opened is not None and opened.kind in ("user", "attachment"))

    def _facts(self, kind: ResultKind, outcome: ToolOutcome, measure: _Measure | None) -> ResultFacts:
        size = len(outcome.text.encode("utf-8", "replace"))
        facts = ResultFacts(kind, size, outcome.is_error)
        if measure is None or too_large(facts, self._rules):
            return facts
        if 2 * size * measure.factor <= measure.room:  # fits regardless of its content
            return facts
        return replace(facts, tokens=self._tokens(outcome.text, measure.factor))

    def _fits(self, outcome: ToolOutcome, room: int | None) -> bool:
        return room is None or 2 * len(outcome.text.encode("utf-8", "replace")) <= room

    def _tokens(self, text: str, factor: float) -> int:
        sample = self._context.monitor.count_tokens(text[:SAMPLE])
        return math.ceil(sample * factor * max(1.0, len(text) / SAMPLE))

    def _measure(self, item: str) -> _Measure | None:
        """Space for this result, from the newest measured request and the content since then."""
        state, ledger, client = self._recorder.state, self._recorder.ledger, self._connection.client
        budget = state.budget
        if client is None or budget is None or not self._belongs(item):
            return None
        info = client.info
        monitor = self._context.monitor
        sizes = EntrySizes(monitor, info)
        usage = state.last_usage
        scale = correction(budget, usage)
        answer = results = 0
        for entry in _since_request(ledger):
            if entry.kind in ("result", "user", "attachment"):
                results += sizes.entry(entry)
            else:
                answer += sizes.entry(entry)
        others = sum(1 for opened in ledger.open.values() if opened.kind == "tool" and opened.id != item)
        room = room_left(
            budget,
            self._context.limits,
            usage=usage,
            answer=math.ceil(answer * scale),
            results=math.ceil(results * scale),
            open_calls=others,
        )
        own = self._context.limits.components.of_result(budget.effective)
        room = room if own is None else min(room, own)
        return _Measure(room, monitor.ratio(info) * scale, math.ceil((answer + results) * scale))

    def _room_with_compaction(self, item: str, measure: _Measure, facts: ResultFacts) -> int:
        """Space for this result if the conversation is compacted before the next request.

        An answer may have hundreds of calls, and simulating a compaction takes time in proportion to the conversation:
        it is simulated again only if what is left of the space found before does not decide.
        """
        budget, client = self._recorder.state.budget, self._connection.client
        ledger, options = self._recorder.ledger, self._settings.now.compaction
        if budget is None or client is None or not options.auto:
            return measure.room
        reserved = RESERVED * sum(1 for opened in ledger.open.values() if opened.kind == "tool" and opened.id != item)
        # The share is one of the likely size, the space found one of the largest.
        likely = GUARD * (measure.factor if self._recorder.state.last_usage is None else 1.0)
        most = int((ADMITTED if budget.window > SMALL else ADMITTED_SMALL) * budget.window * max(1.0, likely))
        if (own := self._context.limits.components.of_result(budget.effective)) is not None:
            most = min(most, own)
        moment = (len(ledger.responses), ledger.rewrites)
        known = self._simulated
        if known is not None and known.moment == moment:
            added = max(0, measure.added - known.added)
            best, worst = (
                max(measure.room, min(known.room - math.ceil(each * added) - reserved, most)) for each in GROWTH
            )
            if does_not_fit(facts, best) or not does_not_fit(facts, worst):
                return worst
        job = Job("auto", "room", ModelRequest((), (), ()), client, session_facts(self._recorder))
        room = Compaction(self._context, ledger, job, options).room_for_results()
        self._simulated = _Simulated(room, measure.added, moment)
        return max(measure.room, min(room - reserved, most))

    def _report_once(self, error: BlobError) -> None:
        if not self._reported:
            self._reported = True
            self._recorder.emit(
                Notice(
                    f"{error} Long results remain in the context, shortened in the middle.",
                    "warning",
                    "context",
                    "Free disk space, or close the program that locks the database.",
                )
            )


def _as_text(outcome: ToolOutcome, documents: Sequence[DocumentPart], reason: str) -> ToolOutcome:
    """The outcome with the text of its documents in their place."""
    said = "\n\n".join(document.text for document in documents)
    return replace(outcome, text=f"{outcome.text}\n[As text only: {reason}.]\n\n{said}")


def _since_request(ledger: Ledger) -> Iterator[Entry]:
    """Entries of the view since the newest request: its answer and everything after it."""
    newest = next(reversed(ledger.responses), None)
    reached = False
    for viewed in reversed(ledger.view):
        entry = ledger.entries.get(viewed.id)
        if entry is None or (reached and entry.message != newest):
            return
        reached = entry.message == newest
        yield entry


def _fitting(usual: Excerpt, limit: int | None) -> Excerpt:
    """The usual excerpt, reduced in proportion if there is no space for it."""
    total = usual.head + usual.tail + usual.errors
    if limit is None or total <= limit:
        return usual
    return Excerpt(usual.head * limit // total, usual.tail * limit // total, usual.errors * limit // total)


def _reference(ref: BlobRef, text: str, excerpt: Excerpt, outcome: ToolOutcome, reason: str) -> str:
    note = f"Not kept here: {reason}"
    return reference_text(ref, text, excerpt, exit_status=outcome.exit_status, note=note)
