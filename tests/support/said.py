"""A conversation for tests of what is done with it: said line by line, kept as a session keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from msgspec import structs

from swecli.core.context_management.ledger import Ledger
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.codec import decode_body, encode_body
from swecli.core.protocol.events import Body, Event, ItemCheckpointed, ItemCompleted, ItemStarted, ModelResponded
from swecli.core.protocol.messages import Origin, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart


class Said:
    """A ledger that grows by what user, model and tools say; ids are u1, a2, t3, ... in order."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.events: list[Event] = []
        self._items = 0

    def tell(self, *bodies: Body) -> None:
        """Events."""
        for body in bodies:
            number = len(self.events) + 1
            self.events.append(Event(number, float(number), "s", 1, body))
            self.ledger.apply(self.events[-1])
            self.ledger.evict()

    def again(self, events: Sequence[Event]) -> Said:
        """The conversation as a session that is continued takes it in: these events, as they are stored."""
        said = Said()
        said._items = self._items
        for event in events:
            said.events.append(structs.replace(event, body=decode_body(encode_body(event.body))))
            said.ledger.apply(said.events[-1])
        return said

    def user(self, text: str) -> str:
        """A message of the user."""
        item = self._item("u")
        self.tell(ItemStarted(item, "user"), ItemCompleted(item, "ok", (TextPart(text),)))
        return item

    def answer(self, text: str, reasoning: str = "") -> str:
        """An answer without calls."""
        parts: list[Part] = [ReasoningPart(reasoning)] if reasoning else []
        items: list[str] = []
        for part in (*parts, TextPart(text)):
            items.append(self._item("a"))
            kind = "reasoning" if isinstance(part, ReasoningPart) else "text"
            self.tell(ItemStarted(items[-1], kind), ItemCompleted(items[-1], "ok", (part,)))
        self.tell(ModelResponded(f"m{items[-1]}", tuple(items), Origin("", "", "m")))
        return items[-1]

    def call(self, name: str, arguments: Mapping[str, object], result: str, exit_status: int = 0) -> str:
        """A call and its result."""
        item = self._item("t")
        return self.call_as(item, ToolCallPart(f"c{item}", name, json.dumps(arguments)), result, exit_status)

    def call_as(self, item: str, part: ToolCallPart, result: str, exit_status: int = 0) -> str:
        """This call as this item, and its result."""
        blocks = (TerminalBlock("", result, exit_status),) if part.name == "run_command" else ()
        self.tell(
            ItemStarted(item, "tool", part.name),
            ItemCheckpointed(item, part),
            ModelResponded(f"m{item}", (item,), Origin("", "", "m")),
            ItemCompleted(item, "ok", (ToolResultPart(part.call_id, part.name, result),), blocks),
        )
        return item

    def next_id(self) -> int:
        """A number that no item has."""
        self._items += 1
        return self._items

    def _item(self, prefix: str) -> str:
        return f"{prefix}{self.next_id()}"
