"""Facts of long sessions after three compactions: in the request with any summary, and found by recall.

Sets of facts of six kinds (names, numbers, decisions, rejected ways, causes, constraints) in
``data/planted-facts.tsv`` stand in messages of the user, of the model and in results, between much that doesn't matter.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from swecli.core.llm.scripted import Script as Parsed
from swecli.core.llm.scripted import ScriptedModel
from swecli.core.llm.types import Finished, ModelRequest, StreamEvent
from swecli.core.protocol.commands import Compact
from swecli.core.protocol.context_events import CompactionCompleted, CompactionFailed
from swecli.core.protocol.messages import Message, Origin, Response, Stop, TextPart
from swecli.core.tools.read_result import Recall
from tests.core.engine.support import Bench, bench, call, until

DATA = Path(__file__).with_name("data") / "planted-facts.tsv"
COLLECTIONS = ("first", "second", "third", "fourth")
"""Of 30, 30, 40 and 30 facts. The third has more in results, and less formal sentences."""
WINDOWS = (16_000, 32_000, 200_000)
SUMMARIES = ("good", "lazy", "empty", "another language", "invented")
COMPACTIONS = 3
STEPS = 10
"""Calls of one part."""
RESULT_SHARE = 0.04
"""Share of the window that one result takes, about."""
MOST_RESULT = 24_000
"""Characters of one result."""


class Fact(NamedTuple):
    """``keys`` are the parts, in lower case, that a line must have to state the fact; ``question`` asks in its words,
    ``paraphrase`` in others."""

    collection: str
    kind: str
    by: str
    sentence: str
    keys: tuple[str, ...]
    question: str
    paraphrase: str

    def stated(self, text: str) -> bool:
        return any(all(key in line for key in self.keys) for line in text.casefold().splitlines())


def planted(collection: str) -> list[Fact]:
    facts: list[Fact] = []
    for line in DATA.read_text(encoding="utf-8").splitlines()[1:]:
        group, kind, by, sentence, keys, question, paraphrase = line.split("\t")
        facts.append(Fact(group, kind, by, sentence, tuple(keys.split("|")), question, paraphrase))
    return [fact for fact in facts if fact.collection == collection]


NAMES = ("parser", "cache", "router", "importer", "client", "worker", "report", "session", "filter", "editor", "mailer")
NARRATION = (
    "Let me look at the {a} first, because the {b} imports it.",
    "The {a} reads its options from the {b}, so I open that next.",
    "Now the tests of the {a}.",
    "That is as expected; on to the {b}.",
    "I will check how the {a} calls the {b} before I change anything.",
    "It turns out the {a} has two entry points, I need the second one.",
    "The {b} looks fine, therefore the {a} is next.",
    "Reading the {a} instead of the {b}, which is generated.",
    "There is a helper in the {a} that I can reuse.",
    "Good, the {a} is small. Next file.",
)
REQUESTS = (
    "Please go through the {a} and tidy up what you find.",
    "Now have a look at the {b}, the names there are odd.",
    "Thanks. The {a} next, same as before.",
    "Can you also go over the {b}? It has grown a lot.",
)
LAZY = "## Goal\nHelp the user with the code.\n## Done\nSeveral files were read and discussed.\n## Next\nGo on."
FOREIGN = (
    "## Ziel\nDem Nutzer helfen.\n## Erledigt\nMehrere Dateien wurden gelesen, einiges wurde besprochen.\n"
    "## Weiter\nMit der Arbeit fortfahren."
)
INVENTED = (
    "## Goal\nPort everything to Rust.\n## Done\nThe cluster is called osprey-2. The limit is 9,999 ms. Decided to use "
    "Kafka.\nThe cause was a race in src/none.rs:14.\nThe user said that the API may change.\n## Next\nRelease 9.9."
)


def summary_of(kind: str, told: Sequence[Fact]) -> str:
    """What the model writes; a good summary has two of three facts, in other words where it can."""
    match kind:
        case "good":
            lines = [f"- {fact.kind}: {', '.join(fact.keys)}" for at, fact in enumerate(told) if at % 3]
            return "\n".join(("## Goal\nTidy up the code.\n## Done", *lines, "## Next\nGo on with the next file."))
        case "another language":
            return FOREIGN
        case "invented":
            return INVENTED
        case "empty":
            return ""
        case _:
            return LAZY


class Session:
    """A scripted session with the facts of one set: three parts, each followed by a compaction."""

    def __init__(self, collection: str, window: int) -> None:
        self._random = random.Random(f"{collection} {window}")
        self.window = window
        self.outputs: dict[str, str] = {}
        self.steps: list[str] = [f"window = {window}\nmax_output = 2000"]
        self.facts = planted(collection)
        self._random.shuffle(self.facts)
        size = -(-len(self.facts) // COMPACTIONS)
        self.parts = [self.facts[at : at + size] for at in range(0, len(self.facts), size)]
        self.messages = [list(self._part(part)) for part in self.parts]

    def _noise(self, templates: Sequence[str]) -> str:
        a, b = self._random.sample(NAMES, 2)
        return self._random.choice(templates).format(a=f"{a} {self._random.randrange(900)}", b=b)

    def _part(self, facts: Sequence[Fact]) -> Iterator[str]:
        """The user's messages; adds the steps that answer them."""
        by = {who: [fact.sentence for fact in facts if fact.by == who] for who in ("user", "assistant", "result")}
        turns = max(2, len(by["user"]))
        for turn in range(turns):
            for _ in range(STEPS // turns):
                said = [self._noise(NARRATION)]
                if by["assistant"]:
                    said.append(by["assistant"].pop(0))
                self._read(" ".join(said), by["result"].pop(0) if by["result"] else "")
            rest = by["assistant"] if turn == turns - 1 else []
            self.steps.append(f"[[step]]\ntext = {json.dumps(' '.join([*rest, self._noise(NARRATION)]))}")
            told = by["user"].pop(0) if by["user"] else ""
            yield " ".join(filter(None, (self._noise(REQUESTS), told, self._noise(REQUESTS))))

    def _read(self, text: str, fact: str) -> None:
        name = f"f{len(self.outputs)}"
        size = min(MOST_RESULT, int(self.window * RESULT_SHARE * 4))
        lines = [f"    {self._noise(NAMES)}_{n} = load({self._random.randrange(9_999)})" for n in range(size // 30)]
        lines.insert(len(lines) // 2, fact)
        self.outputs[name] = "\n".join(lines)
        self.steps.append(f"[[step]]\ntext = {json.dumps(text)}\ncall = [{call('read_file', name)}]")


async def played(collection: str, window: int, kind: str) -> Figures:
    session = Session(collection, window)
    told: list[Fact] = []

    class Summarising(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
            if "Write the summary" not in request.messages[-1].text:
                async for event in super().stream(request):
                    yield event
                return
            text = summary_of(kind, told)
            response = Response(Origin("scripted", "scripted", "test"), Stop("end"))
            yield Finished(Message("assistant", (TextPart(text),) if text else (), response=response))

    def make(script: Parsed) -> ScriptedModel:
        return Summarising(script)

    with tempfile.TemporaryDirectory() as folder:
        async with bench("\n".join(session.steps), Path(folder), tools=[Recall()], make_model=make) as b:
            b.gates.outputs.update(session.outputs)
            for facts, messages in zip(session.parts, session.messages, strict=True):
                told += facts
                for text in messages:
                    await b.say(text)
                await _compact(b)
            return await _figures(b, session.facts)


class Figures(NamedTuple):
    """Facts in the request, found by their words and by a paraphrase; and what was lost, by kind."""

    present: int
    words: int
    paraphrase: int
    lost: Counter[str]
    unfound: list[str]


async def _compact(b: Bench) -> None:
    def ended() -> int:
        return len(b.bodies(CompactionCompleted)) + len(b.bodies(CompactionFailed))

    before = ended()
    b.send(Compact())
    await until(lambda: ended() > before and not b.session.view.busy, "compaction")


async def _figures(b: Bench, facts: Sequence[Fact]) -> Figures:
    request = "\n".join(
        part for message in b.session.view.messages for part in (message.text, *(r.text for r in message.tool_results))
    )
    lost = Counter(fact.kind for fact in facts if not fact.stated(request))
    counts = {"question": 0, "paraphrase": 0}
    unfound: list[str] = []
    live = "\n".join(message.text for message in b.session.view.messages if "<compacted" not in message.text)
    for fact in facts:
        for way in counts:
            run = await b.session.command_tools.run("recall", {"query": getattr(fact, way)})
            found = fact.stated(run.text) or fact.stated(live)
            counts[way] += found
            if not found:
                unfound.append(f"{way}: {getattr(fact, way)}")
    return Figures(len(facts) - sum(lost.values()), counts["question"], counts["paraphrase"], lost, unfound)


def run() -> Iterator[tuple[str, float, str]]:
    for collection in COLLECTIONS:
        count = len(planted(collection))
        for window in WINDOWS:
            for kind in SUMMARIES:
                figures = asyncio.run(played(collection, window, kind))
                found = f"of {count}; recalled by words {figures.words}, by a paraphrase {figures.paraphrase}"
                yield f"{collection} set, window {window:,}, {kind} summary", figures.present, found
