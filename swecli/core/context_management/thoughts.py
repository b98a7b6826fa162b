"""Which thoughts of the model are still valid: the newest models sign each together with everything before it.

A thought is *alive* in a view of the conversation if exactly what preceded it when it was made precedes it again: the
system prompt, the tools, and every earlier entry in the same form. This depends on the view alone, so that an undo
brings thoughts back, and on no other thought: which ones a request has follows from the rest of it.

Source: platform.claude.com, preserved-thinking/prefix-checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Protocol

from msgspec import Struct, field

from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import PromptPrefix
from swecli.core.protocol.messages import Message, ReasoningPart

INVALID = -1
"""Birth of a thought that no request can bring back: what preceded it was taken away again."""


class Birth(Struct, frozen=True):
    """What preceded a thought: the fixed part of its request, and the entries of the view. 0 = unknown."""

    root: int
    before: int


class Thoughts(Struct):
    """Births of a session's thoughts, by the ids of their entries. A reduction of its events."""

    births: dict[str, Birth] = field(default_factory=dict[str, Birth])
    root: int = 0
    """Fixed part of the newest answered request; 0 if unknown."""
    newest: list[str] = field(default_factory=list[str])
    """The thoughts of the newest answer: the fixed part of its request is recorded behind it."""
    vanishing: bool = False
    """Whether the newest request had text at its end that later ones do not repeat, as those of earlier versions."""

    def born(self, names: Iterable[str], before: Mapping[str, int]) -> None:
        """Record the thoughts of an answer; ``before`` tells what precedes each."""
        self.newest = list(names)
        for name in self.newest:
            self.births[name] = Birth(self.root, INVALID if self.vanishing else before[name])

    def learn_root(self, root: int) -> None:
        """Take over the fixed part of the newest answer's request."""
        self.root = root
        for name in self.newest:
            self.births[name] = Birth(root, self.births[name].before)


def root_of(prefix: PromptPrefix) -> int:
    """Identifies the fixed part of a request; never 0."""
    parts = (f"{part.name}\0{part.digest}\0" for part in (*prefix.tools, *prefix.system))
    return _number(blake2b("".join(parts).encode("utf-8", "surrogatepass"), digest_size=7).digest())


class Kinds(Protocol):
    """An entry of the ledger, as far as it matters here."""

    @property
    def kind(self) -> str: ...


Chain = list[int]


def chain(view: Sequence[ViewEntry], entries: Mapping[str, Kinds], known: Sequence[int] = ()) -> Chain:
    """For each entry of the view a number that identifies everything up to it, thoughts aside. ``known`` are the
    numbers of its beginning."""
    numbers = list(known)
    number = numbers[-1] if numbers else 0
    for shown in view[len(numbers) :]:
        if not is_thought(shown, entries):
            words = shown.id if shown.kind == "live" else f"{shown.id}\0{shown.kind}\0{shown.text}"
            before = number.to_bytes(8, "big")
            number = _number(blake2b(before + words.encode("utf-8", "surrogatepass"), digest_size=7).digest())
        numbers.append(number)
    return numbers


def chains(view: Sequence[ViewEntry], entries: Mapping[str, Kinds], known: Sequence[Chain] = ()) -> list[Chain]:
    """The ``chain`` of the view; if it begins with a summary by the provider, also those with what that stands for in
    its place: the provider takes one for the other (platform.claude.com, compaction-thinking-blocks). ``known`` are
    those of the view's beginning."""
    if known:
        return [chain(view, entries, numbers) for numbers in known]
    first = view[0].provider if view else None
    replaced = first.stands_for if first is not None else ()
    return [chain(view, entries), *(chain(view, entries, [number]) for number in replaced)]


def is_thought(shown: ViewEntry, entries: Mapping[str, Kinds]) -> bool:
    entry = entries.get(shown.id)
    return shown.kind == "live" and entry is not None and entry.kind == "reasoning"


def dead_in(
    view: Sequence[ViewEntry],
    entries: Mapping[str, Kinds],
    numbers: Sequence[Chain],
    thoughts: Thoughts,
    root: int,
    first: int = 0,
) -> frozenset[str]:
    """The thoughts in a view, from the entry ``first`` on, that a request with this fixed part would make invalid.
    ``numbers`` are its ``chains``; those of unknown birth count as alive."""
    dead: list[str] = []
    for index in range(first, len(view)):
        shown = view[index]
        birth = thoughts.births.get(shown.id)
        if birth is None or not is_thought(shown, entries):
            continue
        same = any(birth.before == (each[index - 1] if index else 0) for each in numbers)
        if not same or (birth.root and root and birth.root != root):
            dead.append(shown.id)
    return frozenset(dead)


def sent_thoughts(messages: Iterable[Message], model: str) -> dict[int, str]:
    """The thoughts of this model in a conversation that go back to it, each with its message's id. The keys identify
    them while the messages are in memory."""
    return {
        id(part.opaque): message.id
        for message in messages
        if message.role == "assistant"
        for part in message.parts
        if isinstance(part, ReasoningPart) and part.opaque is not None and part.opaque.origin.model == model
        if part.opaque.data is not None
    }


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "big") or 1
