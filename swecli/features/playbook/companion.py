"""The playbook in a session: tells the model which lessons apply, watches events, and learns.

A thin shell: ``swecli/core/playbook``, loaded with the first turn, decides what to learn, what applies and what helped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Literal, TypeVar

from msgspec import Struct

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.engine.companion import CallCompanion, EndReason, Joined, Step
from swecli.core.engine.notes import add_note
from swecli.core.engine.recorder import Recorder
from swecli.core.protocol.events import (
    BulletLearned,
    BulletsTold,
    Event,
    FileChanged,
    FilesRestored,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    Notice,
    PermissionRequested,
    PermissionResolved,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart
from swecli.features.playbook.reading import Loaded, drafts_of, happenings_of, load, read_again, usable_bullets

if TYPE_CHECKING:
    from swecli.core.playbook.bullet import Bullet
    from swecli.core.playbook.changes import Change
    from swecli.core.playbook.evidence import Evidence
    from swecli.core.playbook.learning import Learned
    from swecli.core.playbook.novelty import Known
    from swecli.core.playbook.playbook import Playbook
    from swecli.core.playbook.store import PlaybookFile, Playbooks
    from swecli.core.playbook.trials import Count

TOPIC = "playbook"
MOST_WAITING = 5_000
"""Most events buffered until the playbook is loaded."""
REFLECTION_SECONDS = 20.0
LEAST_CALLS = 4
"""Calls since the last reflection below which a reflection is pointless."""
T = TypeVar("T")
Ask = Callable[[str, str], Awaitable[str | None]]


class ShownBullet(Struct, frozen=True):
    """A bullet in a list: whether it is the user's own, and why it is hidden, if it is."""

    bullet: Bullet
    own: bool = False
    stale: str = ""


class SessionPlaybook(CallCompanion):
    """The playbook of one session."""

    watches = (
        *(TurnStarted, TurnEnded, ItemStarted, ItemCheckpointed, ItemCompleted),
        *(FileChanged, FilesRestored, PermissionRequested, PermissionResolved),
    )
    """Events that may contain lessons."""

    def __init__(
        self,
        open_books: Callable[[], Playbooks],
        recorder: Recorder,
        own_name: Callable[[str], str],
        context: ContextManager,
        ask: Ask,
    ) -> None:
        """``open_books`` is called in a thread; ``own_name`` returns a tool's own name for an alias; ``ask`` sends a
        system prompt and a question to a model."""
        self._open = open_books
        self._books: Playbooks | None = None
        self._recorder = recorder
        self._own_name = own_name
        self._context = context
        self._ask = ask
        self._loaded: Loaded | None = None
        self._waiting: list[Event] = []
        """Events not yet processed."""
        self._evidence: list[Evidence] = []
        self._counts: list[Count] = []
        self._told: set[str] = set()
        """Bullets already passed to the model in this session."""
        self._after_failure: dict[str, Sequence[Bullet]] = {}
        """Bullets passed with a failed result; their trial begins with the next event."""
        self._calls = 0
        """Calls since the last reflection."""
        self._reflected = 0
        """Number of recorded items covered by reflections."""
        self._idle: asyncio.TimerHandle | None = None
        self._reflecting: asyncio.Task[str] | None = None
        self._known: Known | None = None
        self._broken = ""
        self._unwritable = False
        self._taken_back = False
        self.paused = False
        """Whether the user disabled it for this session."""
        self.learned: list[Bullet] = []
        """Bullets learned in this session, in their original form, newest last."""

    def watch(self, event: Event) -> None:
        """Process an event. The start of a turn or item is buffered until the next event, so that no request waits for
        its lessons."""
        body = event.body
        if isinstance(body, TurnStarted):
            if self._waiting:  # events between two turns
                self._take_in()
            if self._idle is not None:
                self._wait(idle=False)
        self._waiting.append(event)
        if isinstance(body, TurnEnded):
            self._take_in()
            self._wait(idle=True)
        elif self._loaded is None:
            del self._waiting[:-MOST_WAITING]
        elif not isinstance(body, TurnStarted | ItemStarted):
            before = self._waiting[-2].body if len(self._waiting) > 1 else None
            is_message = isinstance(body, ItemCompleted) and isinstance(before, ItemStarted) and before.kind == "user"
            if not is_message:
                self._take_in()

    def _take_in(self) -> None:
        """Search the buffered events for evidence and for outcomes of bullets on trial."""
        if self._loaded is None or not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        watch = self._loaded.watch
        for event in waiting:
            self._evidence = [*watch.standing(self._evidence, event), *watch.observe(event)]
            for step in watch.steps:
                self._counts += self._loaded.trials.observe(step)
            watch.steps.clear()
            if isinstance(event.body, ItemCompleted):
                self._calls += any(isinstance(part, ToolResultPart) for part in event.body.parts)
                if chosen := self._after_failure.pop(event.body.item, None):
                    self._begin_trials("result", chosen, event.body.item)

    # --- passing bullets to the model ---

    async def joined(self, message: Joined) -> None:
        """Pass the model the bullets that apply to this message; before the first of a turn, settle the events since
        the last turn."""
        if not message.first:
            await self._tell(message.text)
            return
        if not await self._ready():
            return
        assert self._loaded is not None
        if self._loaded.trials.open:
            self._counts += self._loaded.trials.end_turn()
        if self._evidence:
            await self._settle()
        if self._counts:
            await self._keep_counts()
        if self._loaded.usable:
            await self._tell(message.text)

    async def after_step(self, step: Step) -> None:
        await self._settle()

    async def _tell(self, message: str) -> None:
        """Append the bullets that apply to a user message behind it."""
        loaded = self._loaded
        if loaded is None or self.paused or not loaded.usable:
            return
        from swecli.features.playbook.telling import for_message

        lesson = for_message(loaded.usable, message, self._told, {bullet.id for bullet in self.learned})
        if lesson.bullets:
            add_note(self._recorder, lesson.title, lesson.text, lesson.topic)
        self._begin_trials("message", lesson.bullets)

    def on_failure(self, call: ToolCallPart, item: str, text: str) -> str:
        """Text of the bullets on a call that has just failed."""
        loaded = self._loaded
        if loaded is None or self.paused:
            return ""
        from swecli.features.playbook.telling import for_failure

        lesson = for_failure(loaded, call, self._own_name(call.name), text)
        if lesson is None:
            return ""
        self._after_failure[item] = lesson.bullets
        return lesson.text

    def _begin_trials(
        self,
        origin: Literal["prompt", "message", "result"],
        told: Sequence[Bullet],
        item: str = "",
    ) -> None:
        if self._loaded is None or not told:
            return
        self._told |= {bullet.id for bullet in told}
        self._counts += self._loaded.trials.begin(told)
        self._recorder.emit(BulletsTold(origin, tuple(bullet.id for bullet in told), item=item))

    # --- loading ---

    async def _ready(self) -> bool:
        """Make sure the playbook is loaded and current. It is read again after changes by another session, git or an
        editor. False if it is unavailable."""
        if self._broken:
            return False
        if self._loaded is not None:
            await self._read_news()
            return True
        try:
            books, loaded = await asyncio.to_thread(load, self._open)
        except OSError as error:
            self._broken = (
                f"Cannot read the playbook ({error.strerror or error}); this session neither uses nor learns lessons."
            )
            self._say(self._broken, "warning")
            return False
        self._books, self._loaded = books, loaded
        for problem in (*books.project.problems, *books.own.problems):
            self._say(f"{problem}. swecli sets the file aside before it writes a new one.", "warning")
        turn = next((at for at, event in enumerate(self._waiting) if isinstance(event.body, TurnStarted)), 0)
        if turn:  # events before the first turn
            waiting, self._waiting = self._waiting[turn:], self._waiting[:turn]
            self._take_in()
            self._waiting += waiting
        if core := [bullet for bullet in loaded.usable if bullet.id in books.core]:
            self._begin_trials("prompt", core)
        return True

    async def _read_news(self) -> None:
        """Read changed files again; after a failed read the earlier copy stays."""
        books, loaded = self._books, self._loaded
        if books is None or loaded is None:
            return
        told = {*books.project.problems, *books.own.problems}
        try:
            project, own, stale = await asyncio.to_thread(read_again, books, loaded)
        except OSError as error:
            why = error.strerror or error
            self._say(f"Cannot read the playbook again ({why}); this session keeps its earlier version.")
            return
        if project is not loaded.project:
            loaded.project, loaded.own, loaded.stale = project, own, stale
            loaded.usable = usable_bullets(project, own, stale)
        for problem in (*books.project.problems, *books.own.problems):
            if problem not in told:
                self._say(f"{problem}. swecli sets the file aside before it writes a new one.", "warning")

    def _say(self, text: str, level: Literal["info", "warning"] = "info", hint: str = "") -> None:
        self._recorder.emit(Notice(text, level, TOPIC, hint))

    # --- learning ---

    async def _settle(self) -> None:
        """Learn from the evidence since the last call."""
        self._take_in()
        books, loaded = self._books, self._loaded
        evidence, self._evidence = self._evidence, []
        if books is None or loaded is None or not evidence or self.paused or not books.options.learn:
            return
        known = await self._what_is_known(books)
        session = self._recorder.session
        candidates = await asyncio.to_thread(drafts_of, evidence, session, books.root)
        if not candidates:
            return
        from swecli.core.playbook.learning import learn

        results = await self._change(books.project, lambda playbook: learn(playbook, candidates, known, books.clock()))
        self._announce(results or ())

    def _announce(self, results: Sequence[Learned]) -> None:
        for result in results:
            if result.new and result.bullet.status == "offered":
                keep = f"/playbook on {result.bullet.id} keeps it for later sessions"
                self._say(f"A lesson? {result.bullet.content}", hint=keep)
            elif result.new:
                bullet = result.bullet
                events = bullet.evidence[-1].events if bullet.evidence else ()
                self.learned.append(copy(bullet))
                self._recorder.emit(BulletLearned(bullet.id, bullet.section, bullet.content, events))
                self._say(f"Learned: {bullet.content}", hint="/playbook undo undoes it")

    async def _what_is_known(self, books: Playbooks) -> Known:
        from swecli.core.playbook.novelty import Known

        if self._known is None:
            self._known = Known(await asyncio.to_thread(books.known), (), books.masked)
        return self._known

    async def _change(self, file: PlaybookFile, change: Callable[[Playbook], T]) -> T | None:
        """Change the playbook on disk and adopt the result. None after a failure, which a notice reports."""
        loaded, books = self._loaded, self._books
        if loaded is None or books is None:
            return None
        try:
            playbook, result, told = await asyncio.to_thread(file.change, change)
        except OSError as error:
            if not self._unwritable:  # report it only once, not every turn
                self._say(
                    f"Could not write the playbook ({error.strerror or error}); it was not changed.",
                    "warning",
                )
            self._unwritable = True
            return None
        if file is books.project:
            loaded.project = playbook
        else:
            loaded.own = playbook
        loaded.usable = usable_bullets(loaded.project, loaded.own, loaded.stale)
        if told:
            self._say(told, "warning")
        return result

    async def _keep_counts(self) -> None:
        loaded, books = self._loaded, self._books
        counts, self._counts = self._counts, []
        if loaded is None or books is None or not counts or not books.options.learn:
            return
        from swecli.core.playbook.learning import count

        for file, playbook in ((books.project, loaded.project), (books.own, loaded.own)):
            mine = [outcome for outcome in counts if playbook.get_bullet(outcome.bullet) is not None]
            if mine:
                await self._change(file, lambda there, mine=mine: count(there, mine, books.clock()))

    async def close(self, reason: EndReason) -> None:
        """Store pending changes. Never raises disk errors. Only an unattended session, which is never idle, asks for a
        reflection now: a user who leaves doesn't wait for a model."""
        self._wait(idle=False)
        attended = not self._context.unattended
        if self._reflecting is not None and attended:
            self._reflecting.cancel()
            await asyncio.gather(self._reflecting, return_exceptions=True)
        if self._loaded is None:
            return
        self._take_in()
        self._counts += self._loaded.trials.end_turn()
        await self._settle()
        await self._keep_counts()
        if self._reflecting is not None and not attended:
            await self._reflecting
        if self._has_news and not attended:
            await self.reflect()

    @property
    def _has_news(self) -> bool:
        """Whether enough has happened since the last reflection for another one."""
        wanted = self._books is not None and self._books.options.reflect and not self.paused
        return wanted and self._calls >= LEAST_CALLS

    def _wait(self, *, idle: bool) -> None:
        """Start or stop the timer for a reflection during the user's absence."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if idle and self._books is not None and self._has_news:
            self._idle = asyncio.get_running_loop().call_later(self._books.options.idle, self._reflect_beside)

    def _reflect_beside(self) -> None:
        self._idle = None
        self._reflecting = asyncio.create_task(self.reflect())

    async def reflect(self) -> str:
        """Let a model propose changes based on events since the last reflection. Returns the result as a sentence."""
        books, loaded = self._books, self._loaded
        if books is None or loaded is None:
            return "This session has nothing to reflect on yet."
        from swecli.core.playbook import reflection
        from swecli.core.playbook.bullet import Source

        happenings = happenings_of(self._recorder, self._reflected)
        self._reflected, self._calls = len(self._recorder.ledger.items), 0
        text = reflection.question(happenings, loaded.project.live())
        try:
            answer = await asyncio.wait_for(self._ask(reflection.SYSTEM, text), REFLECTION_SECONDS)
        except TimeoutError:
            return f"The model did not answer within {REFLECTION_SECONDS:g} s; the playbook is unchanged."
        deltas = reflection.deltas_of(answer or "")
        if not deltas:
            return "The model proposes no change to the playbook."
        known, source = await self._what_is_known(books), Source(self._recorder.session)
        results = await self._change(
            books.project,
            lambda playbook: reflection.apply(playbook, deltas, happenings, source, known, books.clock()),
        )
        done = [applied for applied in results or () if applied.bullet]
        for applied in done:
            if applied.delta.op == "ADD" and (bullet := loaded.project.get_bullet(applied.bullet)) is not None:
                self.learned.append(copy(bullet))
                self._recorder.emit(BulletLearned(bullet.id, bullet.section, bullet.content, applied.delta.evidence))
                self._say(f"Learned: {bullet.content}", hint="/playbook undo undoes it")
        refused = "; ".join(dict.fromkeys(applied.reason for applied in results or () if applied.reason))
        return f"{len(done)} of {len(deltas)} proposed changes were made.{f' Refused: {refused}.' if refused else ''}"

    # --- user actions ---

    async def shown(self) -> list[ShownBullet]:
        """All existing bullets, archived ones last; empty without a playbook."""
        if not await self._ready() or self._loaded is None:
            return []
        loaded = self._loaded
        both = ((loaded.project, False), (loaded.own, True))
        return [
            ShownBullet(bullet, own, loaded.stale.get(bullet.id, ""))
            for playbook, own in both
            for bullet in playbook.all()
            if bullet.status != "deleted"
        ]

    @property
    def trouble(self) -> str:
        """Failure that explains an empty list; otherwise empty."""
        return self._broken

    @property
    def places(self) -> tuple[str, ...]:
        """Paths of the playbook files."""
        return (str(self._books.project.path), str(self._books.own.path)) if self._books is not None else ()

    async def change(self, bullet_id: str, change: Change) -> str:
        """Change a bullet. Returns the result as a sentence.

        Raises:
            ChangeRefused: no such bullet exists, or the change is not possible.
        """
        from swecli.core.playbook.changes import ChangeRefused

        await self._ready()
        books, loaded = self._books, self._loaded
        if books is None or loaded is None:
            raise ChangeRefused(self._broken or "This session has no playbook.")
        own = loaded.own.get_bullet(bullet_id) is not None
        file = books.own if own else books.project

        def apply(playbook: Playbook) -> str | ChangeRefused:
            bullet = playbook.get_bullet(bullet_id)
            if bullet is None or bullet.status == "deleted":
                return ChangeRefused(f"Unknown bullet {bullet_id!r}. /playbook lists them.")
            try:
                return change(playbook, bullet, books.clock())
            except ChangeRefused as refused:
                return refused

        done = await self._change(file, apply)
        if isinstance(done, ChangeRefused):
            raise done
        if loaded.stale.pop(bullet_id, ""):
            loaded.usable = usable_bullets(loaded.project, loaded.own, loaded.stale)
        return done or "Nothing was changed."

    async def do(self, bullet_id: str, action: str) -> str:
        """Change a bullet by keyword: up, down, freeze, off, on or delete. Raises like ``change``."""
        from swecli.core.playbook.changes import ACTIONS, ChangeRefused

        known = ACTIONS.get(action)
        if known is None:
            raise ChangeRefused(f"Unknown action {action!r}; choose one of {', '.join(ACTIONS)}.")
        return await self.change(bullet_id, known)

    async def edit(self, bullet_id: str, text: str, *, anyway: bool = False) -> str:
        """Replace the text of a bullet, with ``anyway`` even if it is not specific to the project. Raises like
        ``change``."""
        from swecli.core.playbook.changes import edit_to

        masked = self._books.masked if self._books is not None else str
        return await self.change(bullet_id, edit_to(text, masked, anyway=anyway))

    async def write_down(self, content: str, *, own: bool, anyway: bool = False) -> str:
        """Add a preference of the user, for this project or for all, with ``anyway`` even if it is not specific to the
        project. Raises like ``change``."""
        from swecli.core.playbook.changes import ChangeRefused, written_down

        await self._ready()
        books = self._books
        if books is None or self._loaded is None:
            raise ChangeRefused(self._broken or "This session has no playbook.")

        def apply(playbook: Playbook) -> str | ChangeRefused:
            try:
                bullet = written_down(playbook, content, books.clock(), books.masked, anyway=anyway)
            except ChangeRefused as refused:
                return refused
            return f"Added {bullet.id}: {bullet.content}"

        done = await self._change(books.own if own else books.project, apply)
        if isinstance(done, ChangeRefused):
            raise done
        return done or "Nothing was added."

    async def undo(self) -> str:
        """Undo the newest lesson of this session that still exists. Raises like ``change``, and if the user has adopted
        it since."""
        from swecli.core.playbook.changes import ChangeRefused, take_back

        present = {shown_bullet.bullet.id for shown_bullet in await self.shown()}
        while self.learned and self.learned[-1].id not in present:
            self._taken_back = bool(self.learned.pop())
        if not self.learned:
            raise ChangeRefused(
                "This session's lessons are already undone." if self._taken_back else "No lessons from this session."
            )
        outcome = await self.change(self.learned[-1].id, take_back(self.learned[-1]))
        self.learned.pop()
        self._taken_back = True
        return outcome
