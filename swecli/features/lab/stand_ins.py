"""What a replay has in place of the program around a session: the model, the system prompt and tools, the services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from swecli.core.context_management.budget import Limits, fixed_tokens, is_tools
from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import CountsTokens, PieceEstimator, RanksError, o200k
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.engine.model_access import ModelAccess
from swecli.core.engine.recorder import EventLog
from swecli.core.engine.services import Permissions, Services, Time, Toolset, Workspace
from swecli.core.engine.settings import Adjustable, Settings
from swecli.core.llm.types import (
    Failed,
    Finished,
    ModelClient,
    ModelInfo,
    ModelRequest,
    ProviderError,
    StreamEvent,
    ToolSchema,
)
from swecli.core.permissions.types import Decision
from swecli.core.protocol.events import (
    Event,
)
from swecli.core.protocol.messages import Message, Origin, Response, Stop, TextPart, Usage
from swecli.core.protocol.request_events import Question
from swecli.core.tools.registry import ToolRegistry
from swecli.features.lab.recording import Recording

CHARACTERS_PER_TOKEN = 4
"""Assumed characters per token of an extract."""
FILLER = "swecli "
"""Replaces system prompt, tools and instructions, which are in no event, at their recorded size."""
LINES = 8
"""Lines of each kind in an extract."""


class CountedOnce:
    """Tokens of texts, each counted once, exactly if the vocabulary is available; texts are known by length and hash,
    so that none is kept."""

    def __init__(self) -> None:
        try:
            self._counter: CountsTokens = o200k()
        except (ImportError, OSError, RanksError):
            self._counter = PieceEstimator()
        self._known: dict[tuple[int, int], int] = {}

    def count(self, text: str) -> int:
        key = len(text), hash(text)
        if key not in self._known:
            self._known[key] = self._counter.count(text)
        return self._known[key]


class _NoLog:
    """Discards events."""

    def append(self, event: Event) -> None:
        """Discards the event."""

    async def barrier(self) -> None:
        """Nothing is pending."""

    async def close(self) -> None:
        """Nothing is open."""


def no_log(_publish: Callable[[Sequence[Event]], None]) -> EventLog:
    return _NoLog()


async def _at_once(_seconds: float) -> None:
    """Returns at once."""


class Nobody:
    """Answers no question: a replay needs no approval."""

    async def ask(self, item: str, questions: Sequence[Question]) -> tuple[tuple[str, ...], ...] | None:
        return None


class Summaries:
    """The model client of a replay: returns recorded or extracted summaries, and nothing else."""

    def __init__(self, info: ModelInfo, ledger: Ledger, charge: Callable[[ModelRequest, int], None]) -> None:
        self._info = info
        self._ledger = ledger
        self._charge = charge
        self.recorded: str | None = None
        """The summary of the recorded compaction at this place, empty if it failed; None: there was none."""

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        text = extract(self._ledger) if self.recorded is None else self.recorded
        if not text:
            yield Failed(ProviderError("auth", "the recorded model wrote no summary either"))
            return
        tokens = len(text) // CHARACTERS_PER_TOKEN
        self._charge(request, tokens)
        response = Response(Origin("lab", "lab", self._info.name), Stop("end"), Usage(output_total=tokens))
        yield Finished(Message("assistant", (TextPart(text),), response=response))

    async def close(self) -> None:
        """Nothing is open."""


def extract(ledger: Ledger) -> str:
    """A summary by code: the user's requests, changed files, the model's last words."""
    requests, answers = _texts(ledger, "user"), _texts(ledger, "text")
    changed = dict.fromkeys(change.path for change in ledger.changes)
    sections = {
        "Goal": requests[:1],
        "Done": [f"changed {path}" for path in [*changed][-LINES:]],
        "Findings": answers[-LINES:-1],
        "Next": [*requests[-1:], *answers[-1:]],
    }
    return "\n".join(f"## {name}\n" + "\n".join(f"- {line}" for line in lines) for name, lines in sections.items())


def _texts(ledger: Ledger, kind: str) -> list[str]:
    parts = (part for entry in ledger.entries.values() if entry.kind == kind for part in entry.parts)
    return [" ".join(part.text.split())[:200] for part in parts if isinstance(part, TextPart)]


def services_of(
    recording: Recording,
    context: ContextManager,
    make_client: Callable[[str], ModelClient],
    compaction: CompactionOptions,
    clock: Callable[[], float],
) -> Services:
    """Services without tools and permissions, that wait for nothing."""
    return Services(
        workspace=Workspace(recording.folder, (recording.folder,), {}),
        toolset=Toolset(ToolRegistry(()), context),
        access=ModelAccess(make_client),
        permissions=Permissions(lambda policy, call: Decision("deny", "a replay runs nothing")),
        settings=Settings(Adjustable(compaction=compaction)),
        time=Time(clock, clock, _at_once),
    )


def context_of(recording: Recording, limits: Limits, monitor: TokenMonitor) -> ContextManager:
    """A context with system prompt and tools of the recorded sizes; neither is in any event."""

    def made(text: str, schema: str) -> ContextManager:
        tools = (ToolSchema("tools", schema, {}),) if schema else ()
        return ContextManager(tools, PromptTexts(base=text), limits, monitor)

    empty = fixed_tokens(made("", "").measure((), recording.info))

    def times(wanted: int, placed: Callable[[str], tuple[str, str]]) -> int:
        """Repetitions of the filler at a place for this number of tokens."""
        low, high = 0, wanted * 4
        while low < high:
            middle = (low + high) // 2
            measured = fixed_tokens(made(*placed(FILLER * middle)).measure((), recording.info))
            low, high = (middle + 1, high) if measured - empty < wanted else (low, middle)
        return low

    tools = sum(part.tokens for part in recording.first.components if is_tools(part.name))
    text = FILLER * times(fixed_tokens(recording.first) - tools, lambda filler: (filler, ""))
    return made(text, FILLER * times(tools, lambda filler: ("", filler)))
