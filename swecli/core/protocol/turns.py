"""A session's turns as its surfaces show them: one reduction of the events, live or read again. Pure.

What snapshots store is reduced apart from this: the session's state, and the conversation for the model."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from msgspec import Struct, field

from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import (
    MAIN,
    ContextMeasured,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemKind,
    ItemStarted,
    ModelChanged,
    ModelResponded,
    Notice,
    PermissionRequested,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    SessionStarted,
    StepEnded,
    StepStarted,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import ReasoningPart, Stop, TextPart, ToolCallPart, Usage, added

Request = PermissionRequested | QuestionAsked


class Item(Struct):
    """An item from its beginning to its end. ``number`` counts the items as they began, from 1."""

    id: str
    kind: ItemKind
    name: str
    title: str
    agent: str
    number: int
    call: ToolCallPart | None = None
    running: bool = False
    """Whether a call has begun to run."""
    resolved: PermissionResolved | None = None
    """The answer to the question that a call asked last."""
    ended: ItemCompleted | None = None
    pieces: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """Text of an answer, a thought or a message, so far."""
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


class Turns:
    """Takes all events of a session in order. Items and requests that have ended are let go."""

    def __init__(self) -> None:
        self.session = self.model = ""
        self.budget: Budget | None = None
        """The newest measure of the context."""
        self.turns = 0
        self.steps = 0
        """Steps that sent a request."""
        self.turn_open = False
        self.ended: TurnEnded | None = None
        """End of the newest turn; None while it runs."""
        self.stop: Stop | None = None
        """Reason why the model stopped the turn's newest answer; None before the first one."""
        self.error_notice: Notice | None = None
        """The first error outside a turn: later ones are its consequences."""
        self.items: dict[str, Item] = {}
        """Items of all agents that have not ended, by id."""
        self.requests: dict[str, Request] = {}
        """Requests of all agents that wait for the user, the oldest first."""
        self.rejected: list[Item] = []
        """Calls of all agents that were not allowed to run."""
        self.usage = Usage()
        """Usage of all agents."""
        self.estimated = False
        """Whether a part of the usage is an estimate, because an answer broke off."""
        self._cost: Decimal | None = Decimal(0)
        self._ended_steps = self._begun = 0
        self._of_agents: set[str] = set()
        """Ids of the requests of subagents."""
        self._step_texts: list[str] = []
        self._cut = False
        """Whether the newest text was cut off, so that the model's next text continues it."""
        self._earlier_text = ""

    @property
    def idle(self) -> bool:
        return not self.turn_open and all(item.agent != MAIN for item in self.items.values())

    @property
    def text(self) -> str:
        """The turn's newest answer: the text of the last step with text, complete or not."""
        return "\n\n".join(self._texts_so_far()) or self._earlier_text

    @property
    def cost(self) -> Decimal | None:
        """US dollars of all agents; None if the price of a step is unknown, or no step was completed."""
        return self._cost if self._ended_steps == self.steps > 0 else None

    def answered(self, request: str) -> None:
        """Close a request; the event of its answer may still follow."""
        self.requests.pop(request, None)
        self._of_agents.discard(request)

    def apply(self, event: Event) -> Item | None:
        """Take the next event. Returns the item that it is about, as it is now."""
        self.session = event.session
        match event.body:
            case ItemStarted() | ItemDelta() | ItemCheckpointed() | ItemCompleted() as body:
                return self._item(body, event.agent)
            case PermissionRequested() | QuestionAsked() as request:
                self.requests[request.request] = request
                if event.agent != MAIN:
                    self._of_agents.add(request.request)
            case PermissionResolved(request=request) | QuestionAnswered(request=request) as body:
                asked = self.requests.get(request)
                self.answered(request)
                item = self.items.get(asked.item) if asked is not None else None
                if item is not None and isinstance(body, PermissionResolved):
                    item.resolved = body
                return item
            case StepEnded() as ended:
                self._ended_steps += event.agent == MAIN
                self._add(ended)
            case _ if event.agent == MAIN:
                self._main(event)
            case _:
                pass
        return None

    def _item(self, body: ItemStarted | ItemDelta | ItemCheckpointed | ItemCompleted, agent: str) -> Item | None:
        if isinstance(body, ItemStarted):
            self._begun += 1
            self.items[body.item] = Item(body.item, body.kind, body.name, body.title, agent, self._begun)
        item = self.items.get(body.item)
        if item is None:
            return None
        match body:
            case ItemDelta(channel="text", text=text):
                item.pieces.append(text)
            case ItemCheckpointed():
                item.title = body.title or item.title
                item.running = item.running or body.running
                part = body.whole_part(item.text)
                if isinstance(part, ToolCallPart):
                    item.call = part
                elif isinstance(part, TextPart | ReasoningPart):
                    item.pieces[:] = [part.text]
            case ItemCompleted():
                item.ended = body
                item.pieces[:] = [part.text for part in body.parts if isinstance(part, TextPart | ReasoningPart)]
                del self.items[body.item]
                if item.kind == "text" and agent == MAIN and item.text.strip():
                    _join(self._step_texts, item.text, self._cut)
                    self._cut = body.status == "error"
                if body.status == "rejected":
                    self.rejected.append(item)
            case _:
                pass
        return item

    def _main(self, event: Event) -> None:
        match event.body:
            case TurnStarted():
                self.turn_open, self.ended, self.stop = True, None, None
                self.turns += 1
                self._earlier_text, self._cut = "", False
                self._begin_step()
            case SessionStarted(model=model) | ModelChanged(model=model):
                self.model = model
            case ContextMeasured(budget=budget):
                self.budget = budget
            case StepStarted(budget=budget):
                self.budget = budget
                self.steps += budget.level != "block"  # a blocked step sent no request
                self._begin_step()
            case ModelResponded(stop=stop):
                self.stop = stop
            case TurnEnded() as ended:
                self.turn_open, self.ended = False, ended
                self._step_texts = self._texts_so_far()
                self.items = {id: item for id, item in self.items.items() if item.agent != MAIN}
                for id in [id for id, asked in self.requests.items() if asked.item and id not in self._of_agents]:
                    self.answered(id)
            case Notice(level="error") as notice:
                self.error_notice = self.error_notice or notice
            case _:
                pass

    def _texts_so_far(self) -> list[str]:
        texts = [*self._step_texts]
        for item in self.items.values():
            if item.kind == "text" and item.agent == MAIN and item.text:
                _join(texts, item.text, self._cut and len(texts) == len(self._step_texts))
        return texts

    def _begin_step(self) -> None:
        self._earlier_text = self.text
        self._step_texts = self._step_texts if self._cut else []

    def _add(self, step: StepEnded) -> None:
        self.estimated |= step.estimated
        if step.usage is not None:
            self.usage = added(self.usage, step.usage)
        try:
            self._cost = self._cost + Decimal(step.cost) if step.cost is not None and self._cost is not None else None
        except InvalidOperation:
            self._cost = None


def _join(texts: list[str], text: str, goes_on: bool) -> None:
    if goes_on and texts:
        texts[-1] += text
    else:
        texts.append(text)
