"""Rewind to before a user message: the conversation, the files, or both; and its undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.checkpoints.generated import is_usual
from swecli.core.context_management.compaction.package import branch_note
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.edit_effects import price_words
from swecli.core.context_management.edits import Effect
from swecli.core.context_management.projection import project
from swecli.core.engine.compaction_plans import session_facts
from swecli.core.engine.files import OFF
from swecli.core.engine.notes import add_note
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Workspace
from swecli.core.engine.work import Work
from swecli.core.protocol.commands import Rewind
from swecli.core.protocol.events import (
    FilesRestored,
    LeftFile,
    Notice,
    RestoredFile,
    RewindUndone,
    Rewound,
    TodosChanged,
)
from swecli.core.protocol.messages import ImagePart, TextPart
from swecli.core.workspace.text_file import shown_path
from swecli.figures import plural

LISTED = 200
"""Messages whose changes are looked up, newest first; older ones can still be named."""
UNRECORDED = "no record of its earlier state"
HANDED_OVER = "Handoff: work done since, from the record"
_NAMED = 3


class RewindPoint(Struct, frozen=True):
    """A message to rewind to before. ``number`` counts messages from 1, oldest first; ``tokens`` is the context size of
    the message and everything after it; ``files``, ``added`` and ``removed`` describe the changes since, None if
    unknown. ``at`` is Unix seconds."""

    number: int
    item: str
    text: str
    at: float
    tokens: int
    files: int | None = None
    added: int = 0
    removed: int = 0


class Rewinds:
    """Rewinds of one session. ``changed`` is called after a change of the view; ``price`` is what a rewind to before a
    message costs."""

    def __init__(
        self,
        context: ContextManager,
        workspace: Workspace,
        recorder: Recorder,
        work: Work,
        changed: Callable[[], None],
        price: Callable[[str], Effect | None],
    ) -> None:
        self._context = context
        self._workspace = workspace
        self._recorder = recorder
        self._work = work
        self._changed = changed
        self._price = price

    @property
    def undoable(self) -> bool:
        """Whether a rewind can be undone."""
        return bool(self._recorder.state.rewinds)

    async def points(self) -> Sequence[RewindPoint]:
        """Messages to choose from, oldest first, with the changes since each."""
        ledger, state = self._recorder.ledger, self._recorder.state
        there = ledger.rewindable()
        items = [item for item in state.asked if item in there]
        after = self._tokens_after()
        checkpoints = self._workspace.checkpoints
        turns = [state.asked[item] for item in items[-LISTED:]]
        changes = await checkpoints.changed_since(turns) if checkpoints is not None and turns else {}
        recorded = any(one.files for one in changes.values())
        points: list[RewindPoint] = []
        for number, item in enumerate(items, 1):
            entry, since = ledger.entries[item], changes.get(state.asked[item])
            tokens = after.get(item, next(iter(after.values()), 0))
            known = since is not None and (recorded or not self._changed_since(state.asked[item]))
            figures = (since.files, since.added, since.removed) if since is not None and known else (None, 0, 0)
            points.append(RewindPoint(number, item, self._text_of(item), entry.created, tokens, *figures))
        return points

    async def preview(self, item: str) -> FilesRestored:
        """Preview of restoring files to before a message."""
        turn, checkpoints = self._recorder.state.asked.get(item), self._workspace.checkpoints
        if turn is None or checkpoints is None:
            return FilesRestored("undo", reason=OFF if checkpoints is None else "")
        return self._with_unrecorded(await checkpoints.preview(turn), turn)

    def begin(self, command: Rewind) -> None:
        """Start a rewind; its result arrives as ``Rewound``, or as a ``Notice`` that says why it failed."""
        state, ledger = self._recorder.state, self._recorder.ledger
        if not ledger.can_rewind(command.item):
            self._notice(f"Unknown message {command.item!r}.")
        elif command.scope == "conversation":
            self._rewound(command, "")
        elif command.item not in state.asked:
            self._notice(f"Files can only go back to a message that started a turn, and {command.item!r} did not.")
        elif self._workspace.checkpoints is None:
            self._notice(f"{OFF} /rewind can restore the conversation alone.")
        else:
            self._work.begin(self._with_files(command))

    def begin_undo(self) -> None:
        """Start to undo the newest rewind; its result arrives as ``RewindUndone`` or a ``Notice``."""
        if not self.undoable:
            self._notice("There is no rewind to undo.")
        else:
            self._work.begin(self._undo())

    async def _with_files(self, command: Rewind) -> None:
        checkpoints, turn = self._workspace.checkpoints, self._recorder.state.asked[command.item]
        assert checkpoints is not None
        done = self._with_unrecorded(await checkpoints.rewind(turn, self._next_name()), turn)
        self._recorder.emit(done)
        if done.reason and not done.files:
            self._notice(f"{done.reason} The conversation is unchanged.")
        else:
            self._rewound(command, files_words(done, self._workspace.cwd))
            if done.reason:
                self._notice(done.reason)

    def _changed_since(self, turn: int) -> list[str]:
        """Files that the model changed from that turn on, without those restored since."""
        state = self._recorder.state
        return sorted(path for path, last in state.changed.items() if last >= turn and path not in state.undone)

    def _with_unrecorded(self, found: FilesRestored, turn: int) -> FilesRestored:
        """The files with those changes added that have no checkpoint, as in an imported session."""
        if found.operations or found.reason:
            return found
        left = tuple(LeftFile(path, UNRECORDED) for path in self._changed_since(turn))
        return replace(found, not_covered=(*found.not_covered, *left))

    async def _undo(self) -> None:
        done, checkpoints = self._recorder.state.rewinds[-1], self._workspace.checkpoints
        words = ""
        if done.scope != "conversation":
            if checkpoints is None:
                self._notice(f"{OFF} The rewind was not undone.")
                return
            restored = await checkpoints.unwind(done.name, done.turn)
            self._recorder.emit(restored)
            words = files_words(restored, self._workspace.cwd)
            if restored.reason and restored.files:
                self._notice(restored.reason)
        lost = _compactions_words(len(self._recorder.ledger.compactions_since(done.name)))
        self._record(RewindUndone(done.name, " ".join(part for part in (words, lost) if part)))

    def _rewound(self, command: Rewind, reason: str) -> None:
        text = self._text_of(command.item) if command.scope != "files" else ""
        effect = self._price(command.item) if command.scope != "files" else None
        reason = " ".join(filter(None, (reason, f"{price_words(effect)}." if effect is not None else "")))
        ledger, facts = self._recorder.ledger, session_facts(self._recorder)
        handoff = branch_note(ledger, command.item, facts) if command.handoff and command.scope != "files" else ""
        self._record(Rewound(command.item, reason, text, command.scope, self._next_name()), handoff)

    def _record(self, body: Rewound | RewindUndone, handoff: str = "") -> None:
        """Record a rewind or its undo with a note for the model, and the todo list if it changed."""
        before = self._recorder.state.todos
        self._recorder.emit(body)
        if handoff:
            add_note(self._recorder, HANDED_OVER, handoff)
        if self._recorder.state.todos != before:
            self._recorder.emit(TodosChanged(self._recorder.state.todos))
        self._changed()

    def _next_name(self) -> str:
        return f"w{self._recorder.state.rewound + 1}"

    def _text_of(self, item: str) -> str:
        title, entry = self._recorder.state.titles.get(item), self._recorder.ledger.entries.get(item)
        if title:
            return title
        parts = entry.parts if entry is not None else ()
        return "\n".join(part.text for part in parts if isinstance(part, TextPart))

    def images_of(self, item: str) -> tuple[ImagePart, ...]:
        """Images of a user message, even of one that was rewound."""
        entry = self._recorder.ledger.entries.get(item)
        return tuple(part for part in entry.parts if isinstance(part, ImagePart)) if entry is not None else ()

    def _tokens_after(self) -> dict[str, int]:
        """Estimated tokens of the context from each user message on, oldest first."""
        messages, context = project(self._recorder.ledger), self._context
        ratio = context.monitor.ratio(context.measured_for) if context.measured_for is not None else 1.0
        sizes = [round(ratio * sum(tokens for _, tokens in one)) for one in context.monitor.sizes(messages)]
        after: dict[str, int] = {}
        total = sum(sizes)
        for message, size in zip(messages, sizes, strict=True):
            if message.role == "user" and not message.note:
                after[message.id] = total
            total -= size
        return after

    def _notice(self, text: str) -> None:
        self._recorder.emit(Notice(text, "warning", "session"))


def files_words(done: FilesRestored, cwd: Path) -> str:
    """Result of restoring files, as a short sentence. Paths inside ``cwd`` are relative to it."""
    uncovered = [file for file in done.not_covered if not is_usual(file.why)]
    none = "No file restored" if done.conflicts or uncovered else "No file had to change"
    parts = [counted(files_alone(done)) if done.files else none]
    for what, files in (("left alone", done.conflicts), ("not tracked", uncovered)):
        if files:
            parts.append(_left(files, what, cwd))
    return "; ".join(parts) + "."


def _compactions_words(count: int) -> str:
    """What the undo of a rewind does to the compactions made since; empty without any."""
    if not count:
        return ""
    made = "The compaction" if count == 1 else f"The {count:,} compactions"
    return f"{made} made since the rewind {'is' if count == 1 else 'are'} undone too."


def counted(files: Sequence[RestoredFile]) -> str:
    """What happened to how many files: "2 files restored, 1 removed"."""
    removed = sum(file.how == "removed" for file in files)
    restored = len(files) - removed
    first = plural(restored or removed, "file")
    if not restored:
        return f"{first} removed"
    return f"{first} restored" + (f", {removed:,} removed" if removed else "")


def files_alone(done: FilesRestored) -> Sequence[RestoredFile]:
    """Files without the folders created or removed for them."""
    folders = {parent for file in done.files for parent in PurePath(file.path).parents}
    return [file for file in done.files if PurePath(file.path) not in folders]


def _left(files: Sequence[LeftFile], what: str, cwd: Path) -> str:
    """Clause on skipped files; a shared reason appears once."""
    shared = files[0].why if len({file.why for file in files}) == 1 else ""
    named = [shown_path(file.path, cwd) + ("" if shared else f" ({file.why})") for file in files[:_NAMED]]
    more = f" and {len(files) - _NAMED:,} more" if len(files) > _NAMED else ""
    return f"{', '.join(named)}{more} {what}{f' ({shared})' if shared else ''}"
