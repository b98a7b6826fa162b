"""The session's state as a reduction of its events: everything except messages and ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from decimal import Decimal, InvalidOperation

from msgspec import Struct, field, structs
from msgspec.structs import replace

from swecli.core.context_management.ledger import number_of
from swecli.core.context_management.stored_prompt import with_texts
from swecli.core.permissions.types import Rule
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import (
    CITED_SOURCES,
    MAIN,
    AgentEnded,
    AgentStarted,
    Body,
    CompactionCompleted,
    CompactionRedone,
    CompactionUndone,
    ContextEdited,
    ContextEditPlanned,
    ContextMeasured,
    ContextRestored,
    ContextSuggested,
    Event,
    FileChanged,
    FilesRestored,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    JobChanged,
    MemoryLoaded,
    Mode,
    ModeChanged,
    ModelChanged,
    ModelPlanned,
    ModelResponded,
    Notice,
    PermissionRequested,
    PermissionResolved,
    PlanChanged,
    Price,
    PriceSet,
    QuestionAnswered,
    QuestionAsked,
    QueueChanged,
    Queued,
    RewindScope,
    RewindUndone,
    Rewound,
    RuleRevoked,
    SandboxChanged,
    ScratchpadChanged,
    SessionStarted,
    SideAnswered,
    StepEnded,
    StepStarted,
    SystemPromptSent,
    TodosChanged,
    ToolDefinition,
    ToolsChanged,
    TurnEnded,
    TurnOutcome,
    TurnStarted,
    Unknown,
    UntrustedContent,
)
from swecli.core.protocol.messages import Usage, added

FOR_THIS_TURN = "for this turn"


class Tally(Struct, frozen=True):
    """A sum over responses. ``estimated``: a response broke off before it reported its usage, so a part is a guess."""

    responses: int = 0
    usage: Usage = Usage()
    known: Decimal = Decimal(0)
    """US dollars of the responses whose price is known."""
    unpriced: int = 0
    """Number of responses with an unknown price."""
    estimated: bool = False

    @property
    def cost(self) -> Decimal | None:
        """US dollars; None if any price is unknown, because a partial sum would look like the whole."""
        return None if self.unpriced else self.known

    def plus(self, usage: Usage | None, cost: Decimal | None, estimated: bool = False) -> Tally:
        return Tally(
            self.responses + 1,
            structs.replace(added(self.usage, usage), cost=None) if usage is not None else self.usage,
            self.known + (cost or 0),
            self.unpriced + (cost is None),
            self.estimated or estimated,
        )

    def priced(self, cost: Decimal) -> Tally:
        """The tally with the price of one response that was unknown so far."""
        return replace(self, known=self.known + cost, unpriced=self.unpriced - 1)


class Spending(Struct):
    """Tallies by ``provider/name``, turn number (0 outside turns) and agent id, each in order of the first response."""

    total: Tally = Tally()
    by_model: dict[str, Tally] = field(default_factory=dict)
    by_turn: dict[int, Tally] = field(default_factory=dict)
    by_agent: dict[str, Tally] = field(default_factory=dict)
    _open: list[tuple[str, int, str, Usage]] = field(default_factory=list[tuple[str, int, str, Usage]])
    """Responses with an unknown price, by model, turn and agent."""

    def add(
        self,
        model: str,
        turn: int,
        usage: Usage | None,
        cost: str | None,
        estimated: bool = False,
        *,
        agent: str = MAIN,
    ) -> None:
        dollars = _decimal(cost)
        self.total = self.total.plus(usage, dollars, estimated)
        self.by_model[model] = self.by_model.get(model, Tally()).plus(usage, dollars, estimated)
        self.by_turn[turn] = self.by_turn.get(turn, Tally()).plus(usage, dollars, estimated)
        self.by_agent[agent] = self.by_agent.get(agent, Tally()).plus(usage, dollars, estimated)
        if dollars is None and usage is not None:
            self._open.append((model, turn, agent, usage))

    def settle(self, model: str, price: Price) -> None:
        """Apply a newly known price of a model to its unpriced responses."""
        left: list[tuple[str, int, str, Usage]] = []
        for name, turn, agent, usage in self._open:
            cost = price.of(usage) if name == model else None
            if cost is None:
                left.append((name, turn, agent, usage))
                continue
            self.total = self.total.priced(cost)
            self.by_model[name] = self.by_model[name].priced(cost)
            self.by_turn[turn] = self.by_turn[turn].priced(cost)
            self.by_agent[agent] = self.by_agent[agent].priced(cost)
        self._open = left


def _without(change: ToolsChanged, names: Collection[str]) -> ToolsChanged:
    """The change without what it says of these tools."""
    return replace(
        change,
        withdrawn=tuple(name for name in change.withdrawn if name not in names),
        redefined=tuple(tool for tool in change.redefined if tool.name not in names),
    )


def _decimal(cost: str | None) -> Decimal | None:
    try:
        return None if cost is None else Decimal(cost)
    except InvalidOperation:
        return None


class Totals(Struct, frozen=True):
    """Sums over the session. ``cost`` is US dollars, None while any price is unknown."""

    turns: int = 0
    steps: int = 0
    tools: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read: int = 0
    cost: Decimal | None = None
    by_tool: Mapping[str, int] = field(default_factory=lambda: {})
    estimated: bool = False
    """Whether a part of tokens and cost is a guess, because an answer broke off before it reported its usage."""


class AgentRecord(Struct):
    """State of a subagent. ``outcome`` is None while it works; ``began`` and ``ended`` are Unix seconds; ``budget`` is
    the newest measure of its own context."""

    started: AgentStarted
    turn: int
    began: float
    model: str
    steps: int = 0
    tally: Tally = Tally()
    outcome: TurnOutcome | None = None
    reason: str = ""
    ended: float | None = None
    folder: str = ""
    budget: Budget | None = None

    @property
    def id(self) -> str:
        return self.started.agent

    @property
    def tokens(self) -> int:
        return (self.tally.usage.input_total or 0) + (self.tally.usage.output_total or 0)

    @property
    def cost(self) -> str | None:
        return None if self.tally.cost is None else str(self.tally.cost)


class DoneRewind(Struct, frozen=True):
    """An undoable rewind; ``turn`` is the newest turn before it, ``todos`` the list then."""

    name: str
    item: str
    scope: RewindScope
    turn: int
    todos: tuple[Todo, ...] = ()


class SessionState(Struct):
    """Current values. ``turn_open`` is True between TurnStarted and TurnEnded, ``step_open`` while a model request has
    no final answer yet."""

    seq: int = 0
    items: int = 0
    started_seq: int = 0
    turn: int = 0
    steps: int = 0
    turn_open: bool = False
    outcome: TurnOutcome | None = None
    """How the newest turn ended."""
    waited: float = 0.0
    """Seconds that the newest turn has waited for the user."""
    waits_since: float | None = None
    """Time of the oldest open request, in Unix seconds."""
    step_open: bool = False
    asked_at: float | None = None
    """Time of the conversation's newest request, in Unix seconds, in any process."""
    mode: Mode = "default"
    model: str = ""
    models: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])
    """Models used in sequence: first event, name, and address if it is not the provider's own."""
    effort: str | None = None
    replaced: str = ""
    """The user's model while another one answers in its place."""
    own_effort: str | None = None
    """Effort of the user's model."""
    budget: Budget | None = None
    last_usage: Usage | None = None
    queue: tuple[Queued, ...] = ()
    todos: tuple[Todo, ...] = ()
    told: set[str] = field(default_factory=set[str])
    """What notices were about that are given once in a session."""
    scratchpad: str = ""
    """The model's notes for itself."""
    memory: MemoryLoaded | None = None
    """Memories of earlier sessions in the system prompt; None until the session has recorded them."""
    prompts: dict[str, SystemPromptSent] = field(default_factory=dict[str, SystemPromptSent])
    """The newest system prompt sent to each model, with all of its texts."""
    plan: PlanChanged | None = None
    """The newest plan."""
    permissions: dict[str, PermissionRequested] = field(default_factory=dict)
    questions: dict[str, QuestionAsked] = field(default_factory=dict)
    jobs: dict[str, JobChanged] = field(default_factory=dict[str, JobChanged])
    """Background jobs, running and ended, by id."""
    asked: dict[str, int] = field(default_factory=dict[str, int])
    """Messages that began turns, in order, with their turns."""
    titles: dict[str, str] = field(default_factory=dict[str, str])
    """Typed text of those messages whose content differs from it."""
    todos_before: dict[str, tuple[Todo, ...]] = field(default_factory=dict[str, tuple[Todo, ...]])
    """Todo list at the time of each of those messages, if there was one."""
    rewinds: list[DoneRewind] = field(default_factory=list[DoneRewind])
    """Undoable rewinds, newest last."""
    rewound: int = 0
    """Number of all rewinds."""
    sandbox: SandboxChanged | None = None
    """Sandbox state as far as known in this run."""
    undone: set[str] = field(default_factory=set[str])
    """Files in which the user undid changes of the model."""
    changed: dict[str, int] = field(default_factory=dict[str, int])
    """Newest turn that changed each file."""
    untrusted: tuple[str, ...] = ()
    """Origins of untrusted text since the user last consented to a call."""
    rules: tuple[Rule, ...] = ()
    """Rules from "always" answers in this session, or in this turn if limited to it."""
    tools: Counter[str] = field(default_factory=Counter)
    last_used: dict[str, int] = field(default_factory=dict[str, int])
    """Sequence number of the newest call of each tool."""
    offered: dict[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])
    """Tools that the model sees besides swecli's own, in the order of its list. Not to be changed."""
    retold: dict[str, ToolsChanged] = field(default_factory=dict[str, ToolsChanged])
    """Changes of offered tools that a note told instead of the list, by the note."""
    planned: tuple[ContextChange, ...] = ()
    """Changes of the context that wait for the next compaction."""
    planned_model: str = ""
    """The model that waits for it; empty if none does."""
    announced: dict[str, str] = field(default_factory=dict[str, str])
    """The note that announced each offered tool in the conversation, if one did."""
    spending: Spending = field(default_factory=Spending)
    """Spending of the session and its subagents."""
    agents: dict[str, AgentRecord] = field(default_factory=dict[str, AgentRecord])
    """Subagents by id, in order of their start."""
    suggestion: ContextSuggested | None = None
    """Suggestion for the context, until something is done about it."""
    suggested: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """Severity of earlier suggestions by kind and cause, without accepted ones."""
    taken_up: ContextSuggested | None = None
    """The newest suggestion carried out by changes of single items."""

    def apply(self, event: Event) -> None:
        self.seq = max(self.seq, event.seq)
        if event.agent == MAIN:
            self._of_session(event)
            if self.suggestion is not None or isinstance(event.body, ContextSuggested):
                self._of_suggestions(event.body)
        else:
            self._apply_agent(event)
        if self.permissions or self.questions or self.waits_since is not None:
            self._count_waiting(event.ts)

    def _of_session(self, event: Event) -> None:
        match event.body:  # most frequent first: a long session has tens of thousands of events
            case ItemDelta() | ItemCheckpointed():
                pass
            case ItemCompleted(item=item):
                self.items = max(self.items, number_of(item))
            case ItemStarted(item=item, kind=kind, name=name) as body:
                self.items = max(self.items + 1, number_of(item))
                if name and item in self.asked and body.typed:
                    self.titles[item] = body.typed
                if kind == "tool" and name != CITED_SOURCES:
                    self.tools[name] += 1
                    self.last_used[name] = event.seq
            case SessionStarted(mode=mode, model=model, address=address):
                self.mode, self.model, self.started_seq = mode, model, event.seq
                self._asks(event.seq, model, address)
                self.sandbox = None
            case TurnStarted(item=item, allowed=allowed):
                self.turn, self.turn_open = event.turn, True
                self.asked[item] = event.turn
                if self.todos:
                    self.todos_before[item] = self.todos
                self.rules += tuple(Rule("allow", text, "command", FOR_THIS_TURN) for text in allowed)
                self.waited, self.waits_since = 0.0, None
            case TurnEnded(outcome=outcome):
                self.turn_open, self.step_open, self.outcome = False, False, outcome
                self.rules = tuple(rule for rule in self.rules if rule.origin != FOR_THIS_TURN)
            case RuleRevoked(rule=text):
                self.rules = tuple(rule for rule in self.rules if rule.text != text)
            case StepStarted(budget=budget):
                self.steps += 1
                self.step_open = True
                self.budget = budget
                self.asked_at = event.ts
            case ModelResponded(usage=usage):
                self.step_open = False
                self.last_usage = usage
            case StepEnded(usage=usage, cost=cost, estimated=estimated):
                self.spending.add(self.model, event.turn, usage, cost, estimated)
            case CompactionCompleted(usage=usage, cost=cost) if usage is not None:
                self.spending.add(self.model, event.turn, usage, cost)
            case SideAnswered(model=model, usage=usage, cost=cost):
                self.spending.add(model, event.turn, usage, cost)
            case PriceSet(model=model, price=price):
                self.spending.settle(model, price)
            case ModeChanged(mode=mode):
                self.mode = mode
            case ModelChanged(model=model, effort=effort, address=address, replaces=replaces):
                if not replaces or not self.replaced:
                    self.own_effort = effort if not replaces else self.effort
                elif model == self.model and effort != self.effort:
                    self.own_effort = effort  # chosen meanwhile
                self.model, self.effort, self.replaced = model, effort, replaces
                self._asks(event.seq, model, address)
            case ContextMeasured(budget=budget):
                self.budget = budget
            case QueueChanged(queue=queue):
                self.queue = queue
            case JobChanged(job=job) as changed:
                self.jobs[job] = changed
            case SandboxChanged() as sandbox:
                self.sandbox = sandbox
            case ToolsChanged() as change:
                self._change_tools(change)
            case PermissionResolved(by="user", choice="once" | "always") as resolved:
                self._resolve(resolved, event)
                self.untrusted = ()
            case AgentStarted(agent=agent, model=model) as began:
                self.agents[agent] = AgentRecord(began, event.turn, event.ts, model, folder=began.folder)
            case AgentEnded(agent=agent, outcome=ended, reason=reason, folder=folder) if agent in self.agents:
                record = self.agents[agent]
                record.outcome, record.reason, record.ended, record.folder = ended, reason, event.ts, folder
            case FilesRestored(direction=direction, files=files):
                paths = {file.path for file in files}
                self.undone = self.undone | paths if direction == "undo" else self.undone - paths
            case _:
                self._apply_work(event)

    def _change_tools(self, change: ToolsChanged) -> None:
        kept = {name: tool for name, tool in self.offered.items() if name not in change.removed}
        self.offered = kept | {tool.name: tool for tool in change.added}
        places = {name: place for name, place in self.announced.items() if name in self.offered}
        self.announced = places | {tool.name: change.note for tool in change.added}
        listed = {*change.removed, *(tool.name for tool in change.added)}
        if listed:
            self.retold = {note: _without(told, listed) for note, told in self.retold.items()}
        if change.withdrawn or change.redefined:
            self.retold[change.note] = change

    def _asks(self, seq: int, model: str, address: str) -> None:
        if not self.models or self.models[-1][1:] != (model, address):
            self.models.append((seq, model, address))

    def address_of(self, model: str) -> str:
        """Last address of a model; empty for its provider's own."""
        return next((address for _, name, address in reversed(self.models) if name == model), "")

    def _apply_work(self, event: Event) -> None:
        """Apply an event about recorded work or a rewind."""
        match event.body:
            case TodosChanged(todos=todos):
                self.todos = todos
            case ScratchpadChanged(text=text):
                self.scratchpad = text
            case MemoryLoaded() as loaded:
                self.memory = loaded
            case SystemPromptSent() as sent:
                self.prompts = self.prompts | {sent.model: with_texts(sent, self.prompts.values())}
            case Notice(about=about) if about:
                self.told.add(about)
            case PlanChanged() as plan:
                self.plan = plan
            case ContextEditPlanned(changes=changes):
                self.planned = changes
            case ModelPlanned(model=model):
                self.planned_model = model
            case Rewound(item=item, scope=scope, name=name) if name:
                self._rewound(DoneRewind(name, item, scope, self.turn, self.todos))
            case RewindUndone(name=name):
                done = next((one for one in self.rewinds if one.name == name), None)
                if done is not None:
                    del self.rewinds[self.rewinds.index(done) :]
                    self.todos = done.todos if done.scope != "files" else self.todos
            case _:
                self._apply_shared(event)

    def _of_suggestions(self, body: Body | Unknown) -> None:
        now = self.suggestion
        match body:
            case ContextSuggested():
                self.suggestion = body
                self.suggested.setdefault(body.kind, {})[body.cause] = body.count
            case ContextEdited(changes=changes):
                if now is not None and now.changes == changes:
                    self.taken_up = now
                    self.suggested.get(now.kind, {}).pop(now.cause, None)
                self.suggestion = None
            case SessionStarted() | TurnStarted() | CompactionCompleted() | CompactionUndone() | CompactionRedone():
                self.suggestion = None
            case ContextRestored() | Rewound() | RewindUndone():
                self.suggestion = None
            case _:
                pass

    def _rewound(self, done: DoneRewind) -> None:
        self.rewinds.append(done)
        self.rewound += 1
        if done.scope != "files" and done.item in self.asked:
            self.todos = self.todos_before.get(done.item, ())

    def _apply_shared(self, event: Event) -> None:
        """Apply an event about questions to the user or the workspace, from any agent."""
        match event.body:
            case PermissionRequested() as request:
                self.permissions[request.request] = request
            case PermissionResolved() as resolved:
                self._resolve(resolved, event)
            case UntrustedContent(origin=origin):
                self.untrusted = tuple(dict.fromkeys((*self.untrusted, origin)))
            case QuestionAsked() as asked:
                self.questions[asked.request] = asked
            case QuestionAnswered(request=request):
                self.questions.pop(request, None)
            case FileChanged(path=path):
                self.undone.discard(path)
                self.changed[path] = event.turn
            case _:
                pass

    def _apply_agent(self, event: Event) -> None:
        record = self.agents.get(event.agent)
        match event.body:
            case StepStarted(budget=budget) if record is not None:
                record.steps += 1
                record.budget = budget
            case ContextMeasured(budget=budget) if record is not None:
                record.budget = budget
            case SessionStarted(model=model) | ModelChanged(model=model) if record is not None:
                record.model = model
            case StepEnded(usage=usage, cost=cost, estimated=estimated):
                self._spend(record, "", event.turn, usage, cost, estimated)
            case CompactionCompleted(usage=usage, cost=cost) if usage is not None:
                self._spend(record, "", event.turn, usage, cost)
            case PriceSet(model=model, price=price):
                self.spending.settle(model, price)
            case SideAnswered(model=model, usage=usage, cost=cost):
                self._spend(record, model, event.turn, usage, cost)
            case _:
                self._apply_shared(event)

    def _spend(
        self,
        record: AgentRecord | None,
        model: str,
        turn: int,
        usage: Usage | None,
        cost: str | None,
        estimated: bool = False,
    ) -> None:
        name, agent = (record.model, record.id) if record is not None else ("", MAIN)
        if record is not None:
            record.tally = record.tally.plus(usage, _decimal(cost), estimated)
        self.spending.add(model or name, turn, usage, cost, estimated, agent=agent)

    def _count_waiting(self, now: float) -> None:
        if self.permissions or self.questions:
            self.waits_since = now if self.waits_since is None else self.waits_since
        elif self.waits_since is not None:
            self.waited += max(0.0, now - self.waits_since)
            self.waits_since = None

    def _resolve(self, resolved: PermissionResolved, event: Event) -> None:
        request = self.permissions.pop(resolved.request, None)
        if request and request.rule and resolved.choice == "always" and resolved.span in ("turn", "session"):
            origin = FOR_THIS_TURN if resolved.span == "turn" else f"always, turn {event.turn}"
            known = {rule.text for rule in self.rules}
            added = (Rule("allow", text, "session", origin) for text in request.offered if text not in known)
            self.rules = (*self.rules, *added)

    @property
    def cost(self) -> Decimal | None:
        """US dollars of the session; None while any price is unknown."""
        return self.spending.total.cost

    @property
    def tokens(self) -> int:
        usage = self.spending.total.usage
        return (usage.input_total or 0) + (usage.output_total or 0)

    @property
    def totals(self) -> Totals:
        total = self.spending.total
        return Totals(
            turns=self.turn,
            steps=self.steps,
            tools=self.tools.total(),
            input_tokens=total.usage.input_total or 0,
            output_tokens=total.usage.output_total or 0,
            cache_read=total.usage.cache_read or 0,
            cost=total.cost if total.usage != Usage() else None,  # a request that failed has no price to show
            estimated=total.estimated,
            by_tool=dict(self.tools),
        )
