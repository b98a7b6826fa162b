"""The system prompt of a session in its record: stored when it changes, and used again on resume, with notes of what
has changed since."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence

from swecli.core.context_management.cache import BUILT_ANEW
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.memory_section import memory_section
from swecli.core.context_management.note_topics import LESSONS, MEMORY_NEWS
from swecli.core.context_management.prompt import EarlierPrompt, Prompt, tools_digest
from swecli.core.context_management.stored_prompt import restored, sent_prompt, why_built_anew, with_texts
from swecli.core.engine.companion import Companion
from swecli.core.engine.notes import Notes, Statement
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Connection, Services
from swecli.core.llm.types import ModelInfo
from swecli.core.memory.places import MemoryFile
from swecli.core.protocol.budget import MEMORY, PLAYBOOK
from swecli.core.protocol.events import Notice, PromptPart
from swecli.figures import plural

LEAST_TOKENS = 100
"""Enough to name a memory."""
CHARACTERS = 3
"""Characters of a token, at least."""


class PromptRecord(Companion):
    """Stores the system prompt of each model before its first request. Says what has changed in the memories and the
    playbook since an earlier run whose prompt goes on; instruction files and skills have their own companions."""

    def __init__(self, services: Services, recorder: Recorder, connection: Connection, notes: Notes) -> None:
        self._services = services
        self._context: ContextManager = services.context
        self._recorder = recorder
        self._connection = connection
        self._notes = notes
        self._stored: dict[str, Prompt] = {}
        """The prompt of each model as the record has it."""
        self._told_of: Prompt | None = None
        self._statements: Sequence[Statement] = ()
        """The differences of files from ``_told_of``."""
        self._counts_lost = False
        self.built_anew = ""
        """Why the earlier system prompt of the session's model is not used, as a clause."""

    def adopt(self) -> None:
        """Continue the session with its system prompts, as far as nothing speaks against it."""
        prompts, texts = self._recorder.state.prompts, self._context.texts
        earlier: dict[str, EarlierPrompt] = {}
        for model, sent in prompts.items():
            why = why_built_anew(sent, self._services.prompt_conditions, texts.sources)
            prompt = restored(sent) if not why else None
            if prompt is not None:
                earlier[model] = EarlierPrompt(prompt, sent.window, sent.tools)
            elif model == self._recorder.state.model:
                self.built_anew = why or "its stored text is not whole"
        self._context.adopt_prompts(earlier)
        self._counts_lost = True

    @property
    def earlier(self) -> Prompt | None:
        """The system prompt of the session's model, if it is that of an earlier run."""
        client = self._connection.client
        return self._context.earlier_prompt(client.info) if client is not None else None

    async def before_request(self) -> None:
        client = self._connection.client
        if client is None:
            return
        info = client.info
        prompt = self._context.prompt_of(info)
        if self._stored.get(info.ref) is not prompt:
            self._store(info, prompt)
        if self._counts_lost:
            self._counts_lost = False
            self._tell_lost(info)
        earlier = self.earlier
        if earlier is not self._told_of:
            self._told_of = earlier
            self._statements = await self._differences(earlier)
        for statement in self._statements:
            self._notes.state(statement)

    def _store(self, info: ModelInfo, prompt: Prompt) -> None:
        self._stored[info.ref] = prompt
        state, conditions = self._recorder.state, self._services.prompt_conditions
        tools = tools_digest(self._context.own_tools(info))
        window = self._context.window_of(info)
        sent = sent_prompt(info.ref, prompt, window, tools, conditions, state.prompts.values())
        if with_texts(sent, state.prompts.values()) != state.prompts.get(info.ref):
            self._recorder.emit(sent)

    def _tell_lost(self, info: ModelInfo) -> None:
        """Tell the user how many thoughts a changed beginning of the requests costs."""
        lost = self._context.lost_by_beginning(self._recorder.ledger, info)
        if lost or self.built_anew:
            cause = f"{BUILT_ANEW}: {self.built_anew}" if self.built_anew else "the system prompt or the tools changed"
            cost = f"{plural(lost, 'earlier thought')} of the model {'is' if lost == 1 else 'are'} lost"
            text = f"{cost}, because {cause}." if lost else f"{cause[:1].upper()}{cause[1:]}."
            self._recorder.emit(Notice(text, "warning" if lost else "info", "context"))

    async def _differences(self, earlier: Prompt | None) -> Sequence[Statement]:
        """What the model must be told beside an earlier run's prompt, and what it was told."""
        lessons, now = "", self._context.texts.playbook
        before = {part.name: part for part in earlier.sources if part.source == MEMORY} if earlier is not None else {}
        if earlier is not None:
            lessons = _lessons("".join(one.content for one in earlier.sections if one.name == PLAYBOOK), now)
        present = {part.name: part for part in self._context.texts.memory.sources} if earlier is not None else {}
        changed = {name for name, part in present.items() if before.get(name) != part and not self._wrote(part)}
        files = await self._memory_files(changed) if changed else ()
        told = [topic.removeprefix(MEMORY_NEWS) for topic in self._notes.topics(MEMORY_NEWS)]
        gone = [name for name in (*before, *told) if name not in present and not self._removed(name)]
        return (
            *memory_news(files, dict.fromkeys(gone), self._services.memory.tokens),
            *(_as_before(name) for name in told if name in present and name not in changed),
            Statement(LESSONS, "Lessons changed", lessons, "The lessons are those of the system prompt again."),
        )

    async def _memory_files(self, names: Collection[str]) -> Sequence[MemoryFile]:
        options = self._services.memory
        files = await asyncio.to_thread(options.places.files, options.max_file_bytes)
        return [file for file in files if file.place.path in names]

    def _wrote(self, part: PromptPart) -> bool:
        """Whether the model wrote this text itself in this session."""
        return any(change.after == part.digest for change in self._recorder.ledger.changes)

    def _removed(self, name: str) -> bool:
        """Whether the model removed this memory itself."""
        path = str(self._services.memory.places.place(name).file)
        return any(change.path == path and change.after is None for change in self._recorder.ledger.changes)


def memory_news(files: Sequence[MemoryFile], gone: Iterable[str], tokens: int) -> Iterator[Statement]:
    """What the model must be told of new, changed and removed memories, in about so many tokens: what does not fit is
    named."""
    left = tokens
    for file in files:
        name = file.place.path
        section = memory_section([file], max(left, LEAST_TOKENS))
        left -= len(section) // CHARACTERS
        text = f"{name} has changed since this conversation began. This holds in place of what you know of it.\n\n"
        yield Statement(MEMORY_NEWS + name, f"Memory changed: {name}", text + section if section else "")
    for name in gone:
        yield Statement(MEMORY_NEWS + name, f"Memory removed: {name}", f"{name} no longer exists.")


def _as_before(name: str) -> Statement:
    return Statement(MEMORY_NEWS + name, f"Memory changed: {name}", "", f"{name} is as in the system prompt again.")


def _lessons(before: str, now: str) -> str:
    if before == now:
        return ""
    if not now:
        return "The lessons in the system prompt no longer apply."
    return f"The lessons changed since this conversation began; these hold in place of earlier ones.\n\n{now}"
