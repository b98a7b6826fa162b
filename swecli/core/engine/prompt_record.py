"""The system prompt of a session in its record: stored when it changes, and used again on resume, with notes of what
has changed since."""

from __future__ import annotations

from swecli.core.context_management.cache import BUILT_ANEW
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.note_topics import LESSONS
from swecli.core.context_management.prompt import EarlierPrompt, Prompt, tools_digest
from swecli.core.context_management.stored_prompt import Conditions, restored, sent_prompt, why_built_anew, with_texts
from swecli.core.engine.companion import Companion
from swecli.core.engine.model_access import Connection
from swecli.core.engine.notes import Notes, Statement
from swecli.core.engine.recorder import Recorder
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.budget import PLAYBOOK
from swecli.core.protocol.events import Notice
from swecli.figures import plural


class PromptRecord(Companion):
    """Stores the system prompt of each model before its first request. Says what has changed in the lessons since an
    earlier run whose prompt goes on; instruction files, skills and memories have their own companions."""

    def __init__(
        self,
        context: ContextManager,
        conditions: Conditions,
        recorder: Recorder,
        connection: Connection,
        notes: Notes,
    ) -> None:
        self._context = context
        self._conditions = conditions
        self._recorder = recorder
        self._connection = connection
        self._notes = notes
        self._stored: dict[str, Prompt] = {}
        """The prompt of each model as the record has it."""
        self._adopted = self._counts_lost = False
        self.earlier: Prompt | None = None
        """The system prompt of the newest request's model, if it is that of an earlier run."""
        self.built_anew = ""
        """Why the earlier system prompt of the session's model is not used, as a clause."""

    def adopt(self) -> None:
        """Continue the session with its system prompts, as far as nothing speaks against it."""
        prompts, texts = self._recorder.state.prompts, self._context.texts
        earlier: dict[str, EarlierPrompt] = {}
        for model, sent in prompts.items():
            why = why_built_anew(sent, self._conditions, texts.sources)
            prompt = restored(sent) if not why else None
            if prompt is not None:
                earlier[model] = EarlierPrompt(prompt, sent.window, sent.tools)
            elif model == self._recorder.state.model:
                self.built_anew = why or "its stored text is not whole"
        self._context.adopt_prompts(earlier)
        self._adopted = self._counts_lost = True

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
        if self._adopted:
            self.earlier = self._context.earlier_prompt(info)
            self._notes.state(self._lessons())

    def _store(self, info: ModelInfo, prompt: Prompt) -> None:
        self._stored[info.ref] = prompt
        state, conditions = self._recorder.state, self._conditions
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

    def _lessons(self) -> Statement:
        """What the model must be told of the lessons beside an earlier run's prompt."""
        text, now, earlier = "", self._context.texts.playbook, self.earlier
        before = (
            "".join(one.content for one in earlier.sections if one.name == PLAYBOOK) if earlier is not None else now
        )
        if before != now:
            text = (
                f"The lessons changed since this conversation began; these hold in place of earlier ones.\n\n{now}"
                if now
                else "The lessons in the system prompt no longer apply."
            )
        return Statement(LESSONS, "Lessons changed", text, "The lessons are those of the system prompt again.")
