"""Additions behind a user message: files that it names, and pointers to relevant files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from swecli.core.context_management.budget import window_of
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import texts_of
from swecli.core.context_management.prompts import POINTERS, profile_for, read_prompt
from swecli.core.engine.attachments import Passage, attach_passages
from swecli.core.engine.companion import Companion, EndReason, Joined
from swecli.core.engine.model_access import Connection
from swecli.core.engine.notes import add_note
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.tool_calls import Scheduler
from swecli.core.permissions.rules import ReadRules
from swecli.core.protocol.events import ContextRetrieved
from swecli.core.retrieval.project import FIRST_WAIT, UNATTENDED_WAIT, ProjectIndex

if TYPE_CHECKING:
    from swecli.core.retrieval.named import Named
    from swecli.core.retrieval.retrieve import Ranked, Retrieval

MOST_FILES: Final = 4
"""Most files that one message attaches by naming them without ``@``."""
WHOLE: Final = 16_384
"""Most bytes of a file that is attached whole; of a larger one only lines around a named line are attached."""
AROUND: Final = 40
"""Lines before and after a named line."""
LEAST_WINDOW: Final = 8_192
"""Largest context window in tokens that has no space for pointers."""
_LEAN_POINTERS: Final = 4
_ASKED: Final = 4
"""Least words of a message about which a model is asked, if the user enabled that."""
_LONGEST: Final = 8_000
"""Most characters of a message that this model sees."""
_SHOWN: Final = 3
"""Most names in the line for the user."""


class PromptRetrieval(Companion):
    """Retrieval for the messages of one session."""

    def __init__(
        self,
        project: ProjectIndex,
        context: ContextManager,
        read_rules: Callable[[], ReadRules],
        recorder: Recorder,
        scheduler: Scheduler,
        connection: Connection,
        ask: Callable[[str, str], Awaitable[str | None]] | None = None,
    ) -> None:
        """``ask`` sends a system prompt and a question to the small model, which then suggests search words; it returns
        None after a failure."""
        self.project = project
        self._connection = connection
        self._ask = ask
        self._context = context
        self._read_rules = read_rules
        self._recorder = recorder
        self._scheduler = scheduler

    def start(self, *, resumed: bool) -> None:
        self.project.begin_soon()

    async def close(self, reason: EndReason) -> None:
        await self.project.close(finish=self._context.unattended)

    async def joined(self, message: Joined) -> None:
        """Add files and pointers for a message as items behind it. Returns when all of them are added."""
        client, project, text = self._connection.client, self.project, message.typed
        window = window_of(client.info, self._context.limits).total if client is not None else 0
        if window <= LEAST_WINDOW or not text.strip():
            return
        unattended = self._context.unattended
        wait = UNATTENDED_WAIT if unattended else FIRST_WAIT
        retrieval = await project.retrieval(text, first_wait=wait, if_ready=unattended)
        if retrieval is None:
            from swecli.core.retrieval.retrieve import Retrieval

            retrieval = Retrieval(await project.named(text))
        if self._ask is not None and not any(file.sure for file in retrieval.named) and len(text.split()) >= _ASKED:
            words = await self._ask(read_prompt("retrieval"), text[:_LONGEST])
            retrieval = await project.retrieval(f"{text}\n\n{words}") or retrieval if words else retrieval
        if retrieval.named or retrieval.pointers:
            retrieval = without(retrieval, self._hidden(retrieval, project.root))
        if not retrieval.named and not retrieval.pointers:
            return
        lean = profile_for(window) != "full"
        known = self._known(project.root)
        passages = [] if lean else passages_of(retrieval.named, project.root, known)
        before = len(self._recorder.ledger.entries)
        attached = await attach_passages(self._recorder, self._scheduler, passages)
        actions = [f"read {passage.path}" for passage in passages if passage.path in attached]
        pointers = pointers_of(retrieval, {*attached, *known}, _LEAN_POINTERS if lean else None)
        if pointers:
            actions += [f"point to {pointer}" for pointer in pointers]
            add_note(self._recorder, title_of(pointers), note_of(pointers))
        if actions:
            self._recorder.emit(ContextRetrieved(tuple(actions), self._tokens_since(before)))

    def _hidden(self, retrieval: Retrieval, root: Path) -> set[str]:
        """The paths of what was found whose lines a rule about reading keeps from the model."""
        rules = self._read_rules()
        paths = (
            {file.path for file in (*retrieval.named, *retrieval.ranked, *retrieval.pointers)} if rules.rules else ()
        )
        return {path for path in paths if rules.hidden((str(root / path),), str(root))}

    def _known(self, root: Path) -> frozenset[str]:
        """Files whose text is in the model's context."""
        ledger = self._recorder.ledger
        visible = ledger.files.visible(ledger.live_items(), ledger.present_items())
        paths = (Path(path) for path, _ in visible)
        return frozenset(path.relative_to(root).as_posix() for path in paths if path.is_relative_to(root))

    def _tokens_since(self, before: int) -> int:
        entries = list(self._recorder.ledger.entries.values())[before:]
        texts = (text for entry in entries for part in entry.parts for text in texts_of(part))
        return sum(map(self._context.monitor.count_tokens, texts))


def without(found: Retrieval, hidden: set[str]) -> Retrieval:
    """What was found in files other than the hidden ones."""
    if not hidden:
        return found
    return replace(
        found,
        named=tuple(file for file in found.named if file.path not in hidden),
        ranked=tuple(file for file in found.ranked if file.path not in hidden),
        pointers=tuple(file for file in found.pointers if file.path not in hidden),
    )


def passages_of(named: Sequence[Named], root: Path, known: frozenset[str]) -> list[Passage]:
    """Passages worth attaching from files that a text names unambiguously. Frames of a trace count from its end, where
    they matter most."""
    sure = [file for file in named if file.sure and file.path not in known]
    frames = [file for file in reversed(sure) if file.frame]
    passages: list[Passage] = []
    for file in (*(file for file in sure if not file.frame), *frames):
        try:
            size = (root / file.path).stat().st_size
        except OSError:
            continue
        if size <= WHOLE:
            passages.append(Passage(file.path, file.word))
        elif file.line:
            first = max(1, file.line - AROUND)
            passages.append(Passage(file.path, file.word, first, file.line + AROUND))
    return passages[:MOST_FILES]


def pointers_of(found: Retrieval, known: set[str], most: int | None) -> list[Ranked]:
    """Pointers without files that are already in the context, named files first. A text that names files unambiguously
    gets no others, because it states its subject itself."""
    from swecli.core.retrieval.retrieve import MOST_POINTERS, Ranked

    ranked = {file.path: file for file in found.ranked}
    named = [
        Ranked(file.path, 1.0, ranked[file.path].symbol if file.path in ranked and not file.line else "", file.line)
        for file in found.named
        if file.path not in known
    ]
    paths = {*known, *(file.path for file in named)}
    sure = any(file.sure for file in found.named)
    others = [] if sure else [file for file in found.pointers if file.path not in paths]
    return [*named[:MOST_POINTERS], *others][: most or MOST_POINTERS]


def note_of(pointers: Sequence[Ranked]) -> str:
    """Text for the model."""
    return "\n".join((POINTERS, *map(str, pointers)))


def title_of(pointers: Sequence[Ranked]) -> str:
    """Line for the user."""
    paths = [*dict.fromkeys(pointer.path for pointer in pointers)]
    names = [_name_among(path, paths) for path in paths[:_SHOWN]]
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"Pointed the model to {', '.join(names)}{more}"


def _name_among(path: str, paths: Sequence[str]) -> str:
    """Shortest unique end of the path: the file name, with as many folders as needed."""
    parts = path.split("/")
    ends = ("/".join(parts[at:]) for at in range(len(parts) - 1, -1, -1))
    others = [f"/{other}" for other in paths if other != path]
    return next((end for end in ends if not any(other.endswith(f"/{end}") for other in others)), path)
