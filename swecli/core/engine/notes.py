"""Notes to the model: queued by whoever has something to say, appended to the conversation before the next request."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from swecli.core.context_management.context_manager import COMPACT_TOOL, ContextManager, PreparedRequest
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.note_topics import (
    MODE,
    PRESENCE,
    PRESENT,
    SCRATCHPAD,
    TODOS,
    USAGE,
    USUAL_MODE,
    form_of,
    todo_text,
    usage_text,
)
from swecli.core.context_management.prompts import mode_note, note, read_prompt, unmarked, without_notes
from swecli.core.engine.companion import Companion
from swecli.core.engine.recorder import Recorder
from swecli.core.llm.json_values import JsonObject, as_list, as_object, as_text, parse_object
from swecli.core.protocol.blocks import Todo, TodoStatus
from swecli.core.protocol.events import ItemCompleted, ItemStarted
from swecli.core.protocol.messages import Message, TextPart
from swecli.core.tools.session_tools import Scratchpad, UpdateTodos

USAGE_ROOM = 150
"""Tokens that the note on a filling context needs at the most."""


def add_note(recorder: Recorder, title: str, text: str, topic: str = "") -> str:
    """Append a note to the conversation at once: ``text`` for the model, ``title`` for the user. Returns its id."""
    item = recorder.new_item("n")
    recorder.emit(ItemStarted(item, "note", topic, title))
    recorder.emit(ItemCompleted(item, "ok", (TextPart(_marked(text)),)))
    return item


class Statement(Struct, frozen=True):
    """A standing fact: ``text`` is empty if it does not hold, ``ended`` says that it holds no longer (empty: its end
    needs no words). ``title`` is for the user."""

    topic: str
    title: str
    text: str
    ended: str = ""


def standing_facts(recorder: Recorder, *, unattended: bool) -> tuple[Statement, ...]:
    """What holds now and any model must know: the mode, whether the user can answer, and the todo list and the
    scratchpad if the call that wrote them is no longer in view."""
    state, ledger = recorder.state, recorder.ledger
    todos = todo_text(state.todos) if state.todos else ""
    if todos and state.todos == _todos_in(_newest_arguments(ledger, UpdateTodos.name)):
        todos = ""
    pad = state.scratchpad
    if pad and as_text(_newest_arguments(ledger, Scratchpad.name).get("text")).strip() == pad:
        pad = ""
    return (
        Statement(MODE, "Mode", mode_note(state.mode), USUAL_MODE),
        Statement(PRESENCE, "Presence", read_prompt("headless") if unattended else "", PRESENT),
        Statement(TODOS, "Todo list", todos),
        Statement(SCRATCHPAD, "Scratchpad", f"Your scratchpad:\n{pad}" if pad else ""),
    )


def _newest_arguments(ledger: Ledger, tool: str) -> JsonObject:
    """Arguments of the newest call of a tool that the model sees word for word; empty without one."""
    call = ledger.newest_call(tool)
    return parse_object(call.arguments) or {} if call is not None else {}


def _todos_in(arguments: JsonObject) -> tuple[Todo, ...]:
    listed = map(as_object, as_list(arguments.get("todos")))
    return tuple(Todo(as_text(todo.get("text")), _status(todo.get("status"))) for todo in listed)


def _status(value: object) -> TodoStatus:
    return "completed" if value == "completed" else "in_progress" if value == "in_progress" else "pending"


class Notes:
    """The notes of one session. What was stated is read from the model's view, so that resuming, rewinding and undoing
    need no state of their own; a note that the user dropped counts as stated."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._queued: list[tuple[str, str, str]] = []
        """Topic, title and text of each."""
        self._stated: dict[str, str] = {}
        """The newest text of each topic."""
        self._read = -1
        """``rewrites`` of the ledger when the view was read; its growth since then is known."""

    def add(self, title: str, text: str, topic: str = "") -> None:
        """Say something once, before the next request: ``text`` to the model, ``title`` to the user."""
        self._queued.append((topic, title, text))

    def withdraw(self, topic: str) -> None:
        """Forget what is queued on a topic."""
        self._queued = [queued for queued in self._queued if queued[0] != topic]

    def topics(self, prefix: str) -> list[str]:
        """Topics that begin so and of which the model was told."""
        return [topic for topic in self._told() if topic.startswith(prefix)]

    def state(self, statement: Statement) -> None:
        """Say a standing fact before the next request if the model does not know it: its text has changed, or a
        compaction or a rewind removed it."""
        told = self._told()
        known = told.get(statement.topic, "")
        text = self._news(statement, known)
        if text:
            self.add(statement.title, text, statement.topic)
        if text or not statement.text:  # without words for its end it can be said again
            told[statement.topic] = text

    def state_usage(self, prepared: PreparedRequest) -> bool:
        """Say that this request passed the warning level, and once more that it passed the one of compaction. Whether
        there is something to say. Where the note itself could block the request, nothing is said."""
        budget = prepared.budget
        if budget.upper + USAGE_ROOM >= budget.block_at:
            return False
        can_compact = any(tool.name == COMPACT_TOOL for tool in prepared.request.tools)
        levels = [level for level in (budget.warn_at, budget.compact_at) if level <= budget.used]
        levels = sorted(levels) or [budget.warn_at]
        texts = [usage_text(level / budget.effective, can_compact=can_compact) for level in levels]
        higher = usage_text(budget.compact_at / budget.effective, can_compact=can_compact)
        if self._told().get(USAGE, "") in (texts[-1], higher):
            return False
        self.state(Statement(USAGE, "Filling context", texts[-1]))
        return True

    def preview(self, statements: Iterable[Statement]) -> tuple[Message, ...]:
        """Notes that the next request would have in addition."""
        told = self._told()
        queued = [(topic, text) for topic, _, text in self._queued]
        news = [(one.topic, self._news(one, told.get(one.topic, ""))) for one in statements]
        return tuple(
            Message("user", (TextPart(_marked(text)),), f"note {topic}", note=form_of(topic))
            for topic, text in (*queued, *news)
            if text
        )

    def _news(self, statement: Statement, known: str) -> str:
        if statement.text:
            return statement.text if statement.text != known else ""
        return statement.ended if known and known != statement.ended else ""

    def flush(self) -> None:
        """Append what is queued. A paused answer is continued unchanged, so nothing may follow it."""
        if not self._queued or _is_paused(self._recorder.ledger):
            return
        queued, self._queued = self._queued, []
        for topic, title, text in queued:
            add_note(self._recorder, title, text, topic)

    def _told(self) -> dict[str, str]:
        ledger = self._recorder.ledger
        if self._read != ledger.rewrites:
            self._read = ledger.rewrites
            self._stated = {topic: text for topic, _, text in self._queued if topic}
            for shown in reversed(ledger.view):
                entry = ledger.entries.get(shown.id)
                if entry is not None and entry.kind == "note" and entry.source and entry.source not in self._stated:
                    text = "".join(part.text for part in entry.parts if isinstance(part, TextPart))
                    self._stated[entry.source] = unmarked(text)
        return self._stated


class StandingFacts(Companion):
    """States before each request what holds now and any model must know."""

    def __init__(self, recorder: Recorder, notes: Notes, context: ContextManager) -> None:
        self._recorder = recorder
        self._notes = notes
        self._context = context

    async def before_request(self) -> None:
        for statement in standing_facts(self._recorder, unattended=self._context.unattended):
            self._notes.state(statement)


def _marked(text: str) -> str:
    """A note as the model gets it; text from outside in it can't end it early."""
    return note(without_notes(text))


def _is_paused(ledger: Ledger) -> bool:
    newest = ledger.entries.get(ledger.view[-1].id) if ledger.view else None
    response = ledger.responses.get(newest.message) if newest is not None else None
    return response is not None and response.stop.kind == "pause"
