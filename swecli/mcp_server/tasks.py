"""One session as a client of the server sees it: a task that works, asks, and ends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from swecli.block_text import block_lines
from swecli.core.protocol.commands import Answer, Interrupt, ReplyPermission, SetMode, Submit
from swecli.core.protocol.events import (
    MAIN,
    Event,
    FileChanged,
    ItemCheckpointed,
    Mode,
    Notice,
    PermissionRequested,
    QuestionAsked,
    StepStarted,
    TurnEnded,
)
from swecli.core.protocol.request_events import FOR_SESSION, grounds, rule_words
from swecli.core.protocol.turns import Item, Request, Turns
from swecli.mcp_server.tools import Report, state_of
from swecli.output import safe
from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

ALLOW, REJECT = "Allow once", "Reject"
LONGEST: Final = 20_000
"""Characters of a permission question. A longer one is refused: the user must see the whole command or change."""

NO_FORMS: Final = "The client can't ask its user (it offers no elicitation)"
IN_BACKGROUND: Final = "Tasks in the background cannot ask the user"
UNANSWERED: Final = "The user did not answer in time"
TOO_LONG: Final = f"The call is longer than {LONGEST:,} characters, too long to show in a question"


def permission_message(request: PermissionRequested) -> str:
    """Everything that the user must see: danger and reasons first, then exactly the command or the changes."""
    warnings = [f"Warning: {line}" for line in (request.danger, *request.warnings) if line]
    lines = [
        f"swecli asks: {request.tool} {request.title}".rstrip(),
        *warnings,
        *grounds(request),
        *request.facts,
        *filter(None, (rule_words(request, FOR_SESSION),)),
    ]
    for block in request.blocks:
        lines += ["", *block_lines(block)]
    return safe("\n".join(lines))


def permission_form(request: PermissionRequested) -> dict[str, Any]:
    choices = [ALLOW, *([_always(request)] if request.offered else []), REJECT]
    return {
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "Decision", "enum": choices},
            "note": {"type": "string", "title": "Note for swecli", "description": "Optional: what to do instead"},
        },
        "required": ["decision"],
    }


def _always(request: PermissionRequested) -> str:
    return safe(f"Allow {', '.join(request.offered)} in this session")


def permission_reply(request: PermissionRequested, action: str, content: Mapping[str, Any] | None) -> ReplyPermission:
    """Meaning of an answer; an unknown one approves nothing."""
    decision = (content or {}).get("decision")
    written = (content or {}).get("note")
    note = written.strip() if isinstance(written, str) else ""
    if action == "accept" and decision == ALLOW:
        return ReplyPermission(request.request, "once")
    if action == "accept" and request.offered and decision == _always(request):
        return ReplyPermission(request.request, "always")
    return ReplyPermission(request.request, "reject", note)


def refusal(request: PermissionRequested, why: str) -> ReplyPermission:
    """Rejection because the user can't be asked."""
    note = f"{why}. Do not retry it; continue without it and report what you left undone."
    return ReplyPermission(request.request, "reject", note, by="headless")


def question_message(asked: QuestionAsked) -> str:
    return safe("\n".join(question.text for question in asked.questions))


def question_form(asked: QuestionAsked) -> dict[str, Any]:
    """All questions of a request as one form."""
    properties: dict[str, Any] = {}
    for number, question in enumerate(asked.questions, 1):
        about = [f"{option.label}: {option.description}" for option in question.options if option.description]
        field: dict[str, Any] = {
            "title": safe(question.header or question.text)[:200],
            "description": safe("\n".join([question.text, *about])),
        }
        labels = [option.label for option in question.options]
        if labels and question.multiple:
            field |= {"type": "array", "items": {"type": "string", "enum": labels}}
        else:
            field |= {"type": "string", **({"enum": labels} if labels else {})}
        properties[f"question_{number}"] = field
    return {"type": "object", "properties": properties, "required": list(properties)}


def question_answers(asked: QuestionAsked, action: str, content: Mapping[str, Any] | None) -> Answer:
    """The answers of a form; dismissed if one is missing or unknown."""
    answers: list[tuple[str, ...]] = []
    for number, question in enumerate(asked.questions, 1):
        value = (content or {}).get(f"question_{number}") if action == "accept" else None
        given = cast("list[Any]", value) if isinstance(value, list) else [value]
        labels = {option.label for option in question.options}
        chosen = tuple(text for text in given if isinstance(text, str) and (text in labels if labels else text.strip()))
        if not chosen or len(chosen) < len(given):
            return Answer(asked.request, ())
        answers.append(chosen)
    return Answer(asked.request, tuple(answers))


LOOK_SECONDS = 1.0
MOST_QUIET = 5
"""Idle checks without any event after which a task counts as failed silently."""
CLOSE_SECONDS = 10.0
MOST_UNTOLD = 100
"""Activities that wait for a slow client; the oldest give way."""


class Task:
    """Follows a session. ``unasked`` is why the user can't be asked now, empty if they can."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.id = session.view.session_id
        self.mode: Mode = session.view.mode
        """Mode from the settings."""
        self.ended: TurnEnded | None = None
        self.working = False
        self.unasked = ""
        self.untold: deque[tuple[int, str]] = deque(maxlen=MOST_UNTOLD)
        """Activities not yet reported to the client, each on one line and with its number, oldest first."""
        self.steps = 0
        self._happened = 0
        self._trouble = ""
        self._changed: dict[str, None] = {}
        self._turns = Turns()
        self._rejected_before = 0
        """Rejected calls of earlier tasks."""
        self._reasons: dict[str, str] = {}
        """Reasons for refusing calls without asking the user."""
        self._taken_seq = session.view.published_seq
        self._news = asyncio.Event()
        """Set and replaced at each event."""
        self._events = session.subscribe()
        self._follower = asyncio.create_task(self._follow(), name=f"task {self.id}")

    def begin(self, prompt: str, mode: Mode) -> None:
        """Start a task in the session, in this mode."""
        self.ended, self.working, self._trouble = None, True, ""
        self.untold.clear()
        self._changed.clear()
        self._rejected_before = len(self._turns.rejected)
        self.steps = 0
        if self.session.view.mode != mode:
            self.session.send(SetMode(mode))
        self.session.send(Submit(prompt, mentions=()))

    @property
    def open(self) -> Mapping[str, Request]:
        """The unanswered requests, the oldest first."""
        return self._turns.requests

    async def moved(self) -> None:
        """Wait for the next event, or a short time."""
        news = self._news
        if not self.working or self._follower.done():
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(news.wait(), LOOK_SECONDS)

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def finished(self) -> None:
        """Wait for the end of the task."""
        seen, quiet = -1, 0
        while self.working:
            await self.moved()
            view = self.session.view
            idle = not view.busy and seen == self._taken_seq == view.newest_seq
            quiet, seen = (quiet + 1 if idle else 0), self._taken_seq
            if self.working and (quiet >= MOST_QUIET or self._follower.done()):
                self.fail(self._trouble or "the task ended without a result; the log has details")

    async def settled(self, request: str) -> None:
        """Wait until this request is no longer open."""
        while request in self.open and self.working and not self._follower.done():
            await self.moved()

    def fail(self, reason: str) -> None:
        self.ended, self.working = TurnEnded("error", reason), False
        self._tell()

    async def stop(self) -> None:
        """Interrupt it, and wait until it has stopped."""
        if self.working:
            self.session.send(Interrupt())
            await self.finished()

    def refuse(self, request: Request, why: str) -> None:
        """Reject a request because the user can't be asked."""
        self._reasons[request.item] = why
        if isinstance(request, PermissionRequested):
            self.session.send(refusal(request, why))
        else:
            self.session.send(Answer(request.request, (), by="headless"))

    async def close(self) -> None:
        await self.session.close()
        await asyncio.wait((self._follower,), timeout=CLOSE_SECONDS)
        self._follower.cancel()

    @property
    def report(self) -> Report:
        """The present state."""
        if self.ended is None:
            state = ("asking" if self.open else "working") if self.working else "idle"
            return Report(self.id, state, "" if self.working else self.session.answer)
        cwd = self.session.view.cwd
        changed = tuple(path.removeprefix(f"{cwd}/") for path in self._changed)
        cost = self.session.view.totals.cost
        return Report(
            self.id,
            state_of(self.ended),
            self.session.answer,
            self.ended.reason,
            changed,
            tuple(map(self._denial, self._turns.rejected[self._rejected_before :])),
            self.ended.usage,
            str(cost) if cost is not None else None,
        )

    def _denial(self, item: Item) -> tuple[str, str]:
        detail = item.ended.detail if item.ended is not None else ""
        return str(safe_line(f"{item.name} {item.title}".rstrip()))[:300], self._reasons.get(item.id, detail)

    async def _follow(self) -> None:
        async for event in self._events:
            self._take(event)
            self._taken_seq = max(self._taken_seq, event.seq)
            self._tell()
        if self.working:
            self.fail("the session was closed")

    def _does(self, what: str) -> None:
        self._happened += 1
        self.untold.append((self._happened, str(safe_line(what))[:200]))

    def _take(self, event: Event) -> None:
        item = self._turns.apply(event)
        match event.body:
            case TurnEnded() as ended if event.agent == MAIN:
                self.ended, self.working = ended, False
                for request in tuple(self.open):
                    self._turns.answered(request)
            case StepStarted() if event.agent == MAIN:
                self.steps += 1
                self._does(f"step {self.steps}")
            case ItemCheckpointed(title=title) if title and item is not None and item.kind == "tool":
                self._does(f"step {self.steps}: {item.name} {title}")
            case FileChanged(path=path):
                self._changed[path] = None
            case Notice(level="error") as notice:
                self._trouble = notice.line
            case PermissionRequested() | QuestionAsked() as request if self.unasked or not self.working:
                self._turns.answered(request.request)
                self.refuse(request, self.unasked or "No task is running")
            case _:
                pass
