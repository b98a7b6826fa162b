"""Long random sessions through every wire form: servers as strict with requests as the real ones, and unkind in their
answers; a user who interrupts, sends images, changes models and comes back another day."""

from __future__ import annotations

import asyncio
import json
import random
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from swecli.core.engine.settings import TurnLimits
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.providers import ProviderConfig, resolve
from swecli.core.llm.scripted import BYTES_PER_TOKEN, Fault, RequestFacts, Step, parse_script
from swecli.core.protocol.commands import Compact, Interrupt, SetModel, Submit
from swecli.core.protocol.events import CompactionCompleted, CompactionFailed, Event, ItemCompleted, Rewound, TurnEnded
from swecli.core.protocol.messages import ImagePart, Message, OpaquePart, TextPart
from tests.core.context_management.test_projection import check_valid
from tests.core.engine.support import Bench, bench, until
from tests.core.llm.wire_cases import all_cases
from tests.properties.random_sessions import SUMMARY, ledger_of
from tests.support.loopback import LoopbackServer, Manners, Received, _send, _serves
from tests.support.wire import Refusal, Wire
from tests.support.wire_anthropic import AnthropicMessages
from tests.support.wire_gemini import GeminiGenerate
from tests.support.wire_ollama import OllamaChat
from tests.support.wire_openai import OpenAIChat
from tests.support.wire_responses import OpenAIResponses

MODELS = ("openai/m", "anthropic/claude-sonnet-5-5", "resp/gpt-5.6", "gemini/gemini-3.8-flash", "ollama/qwen3")
WINDOW, LONGEST_ANSWER = 24_000, 2_000
PIXEL = ImagePart(
    "image/png", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WORDS = "some words that mean nothing in particular but take room\n"
TOOLS = ("read_file", "write_file", "run_command")
STEPS_PER_TURN = 14
RECORDED = 0.15
"""Share of answers that are recorded ones."""
OF_OTHERS = re.compile("could not be verified|came back without its phase|missing a thought_signature")
SUMMARISE = "Write the summary that will take the place"
FAULTS = (
    '{ kind = "cut", after = 0 }',
    '{ kind = "cut", after = 25 }',
    '{ kind = "cut", after = 12, in_arguments = true }',
    '{ kind = "server", after = 20 }',
    '{ kind = "server" }',
    '{ kind = "overloaded" }',
    '{ kind = "rate_limit", retry_after = 0.0 }',
    '{ kind = "garbage" }',
    '{ kind = "garbage", after = 15 }',
    '{ kind = "network" }',
    '{ kind = "network", after = 10 }',
    '{ kind = "empty" }',
    '{ kind = "overflow", tokens = 30000, window = 20000 }',
    '{ kind = "quota" }',
)
STOPS = ("length", "pause", "refusal", "content_filter", "context_full")


def random_step(chance: random.Random, number: int) -> str:
    """A step in the script's format. Each has words of its own, and each of its calls a target of its own."""
    lines = ["[[step]]"]
    if chance.random() < 0.4:
        lines.append(f'reasoning = "thought-{number}. Where is it?"')
    calls = chance.choice([0, 0, 1, 1, 2, 3])
    if not calls or chance.random() < 0.5:
        lines.append(f'text = "word-{number}. {"Größe → ok 🎉 " * chance.choice([1, 1, 60])}"')
    if calls:
        made = (
            f'{{ tool = "{chance.choice(TOOLS)}", arguments = {{ target = "t{number}-{place}" }} }}'
            for place in range(calls)
        )
        lines.append(f"call = [{', '.join(made)}]")
    if chance.random() < 0.2:
        lines.append(f"fault = {chance.choice(FAULTS)}")
    elif chance.random() < 0.08:
        lines.append(f'stop = "{chance.choice(STOPS)}"')
    return "\n".join(lines)


class Server(LoopbackServer):
    """Notes which steps were given as answers of the conversation, and now and then answers as recorded elsewhere."""

    def __init__(self, script: str, manners: Manners, chance: random.Random) -> None:
        super().__init__(parse_script(script), "any", manners)
        self.given: list[Step] = []
        self._chance = chance
        take = self._player.take

        def noted(facts: RequestFacts) -> Step:
            step = take(facts)
            if SUMMARISE not in facts.last_user:
                self.given.append(step)
            return step

        self._player.take = noted  # type: ignore[method-assign]

    async def _answer(self, received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = next((made for made in self._wires() if _serves(made, received.path)), None)
        if wire is None or self._chance.random() >= RECORDED:
            await super()._answer(received, reader, writer)
        elif refused := self._refused(wire, received):
            await _send(received, writer, wire.refusal(refused))
        else:
            case = self._chance.choice([case for case in all_cases() if case.protocol == FORMS[type(wire)]])
            await _send(received, writer, Refusal(case.status, case.body, case.headers))

    def _refused(self, wire: Wire, received: Received) -> Fault | None:
        """As usual, but for what this server knows only of its own answers."""
        fault = super()._refused(wire, received)
        if fault is None or not OF_OTHERS.search(fault.message) or _has_unsigned_call(received.body):
            return fault
        self.failures.pop()
        return None


def _is_data(message: Message) -> bool:
    """Whether an answer has nothing but data of its provider, such as a search of its own."""
    return any(isinstance(part, OpaquePart) for part in message.parts) and not (message.text or message.tool_calls)


def _has_unsigned_call(body: Mapping[str, Any]) -> bool:
    """Whether the first call of a content for Gemini lacks its signature."""
    calls = [[part for part in content["parts"] if "functionCall" in part] for content in body.get("contents", ())]
    return any(group and not group[0].get("thoughtSignature") for group in calls)


FORMS: Mapping[type[Wire], str] = {
    OpenAIChat: "openai-chat",
    AnthropicMessages: "anthropic-messages",
    OpenAIResponses: "openai-responses",
    GeminiGenerate: "gemini-generate",
    OllamaChat: "ollama-chat",
}


@dataclass
class Journey:
    """One session, through processes and models."""

    chance: random.Random
    server: Server
    folder: Path
    facts: list[Event] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    model: str = MODELS[0]
    compactions: int = 0
    checked: int = 0
    rewinds: int = 0
    rewound: set[str] = field(default_factory=set)

    def client(self, name: str) -> HttpModelClient:
        custom = [ProviderConfig("resp", "openai-responses", f"{self.server.url}/v1", local=True)]
        client = HttpModelClient(resolve(name, self.server.environment(), custom))
        known = replace(client.info, window=WINDOW, max_output=LONGEST_ANSWER, window_source="user", images=True)
        client.compatibility.know(known)
        return client

    async def day(self, turns: int) -> None:
        """The turns of one process."""
        async with bench(
            '[[step]]\ntext = "unused"',
            self.folder,
            history=self.facts,
            name=self.model,
            make_client=self.client,
            jitter=lambda: 0.0,
            limits=TurnLimits(max_steps=40),
        ) as b:
            b.allow_all, self.rewinds = True, 0
            b.gates.outputs = self.outputs
            for _ in range(turns):
                await self._turn(b)
                self._check(b)
            self.facts = list(b.facts)
        self.started += b.gates.started

    async def _turn(self, b: Bench) -> None:
        act = self.chance.random()
        if act < 0.2:
            self.model = self.chance.choice(MODELS)
            b.send(SetModel(self.model))
        elif act < 0.25:
            ends = (CompactionCompleted, CompactionFailed)
            before = sum(len(b.bodies(kind)) for kind in ends)
            b.send(Compact())
            await until(lambda: sum(len(b.bodies(kind)) for kind in ends) > before and not b.session.view.busy)
        text = f"wish-{len(self.said)}. " + WORDS * self.chance.choice([1, 1, 10, 100])
        self.said.append(text)
        ended, asked = len(b.bodies(TurnEnded)), len(self.server.asked)
        b.send(Submit(text, (PIXEL,) if self.chance.random() < 0.15 else ()))
        if self.chance.random() < 0.15:
            later = asked + self.chance.choice([1, 2, 3])
            await until(lambda: len(self.server.asked) >= later or len(b.bodies(TurnEnded)) > ended)
            b.send(Interrupt())
        await until(lambda: len(b.bodies(TurnEnded)) > ended and not b.session.view.busy, "end of turn")

    def _check(self, b: Bench) -> None:
        """Nothing was sent that a provider would refuse, nothing ran twice, nothing of the conversation is lost."""
        assert not self.server.failures, self.server.failures
        for received in self.server.asked[self.checked :]:
            size = len(json.dumps(received.body, ensure_ascii=False).replace(PIXEL.data, "")) / BYTES_PER_TOKEN
            assert size < WINDOW, (received.path, size)
        self.checked = len(self.server.asked)
        check_valid(tuple(message for message in b.session.view.messages if not _is_data(message)))
        ledger = ledger_of(b)
        shown = {entry.id for entry in ledger.view} | {source for entry in ledger.view for source in entry.sources}
        entries = list(ledger.entries)
        for back in b.bodies(Rewound)[self.rewinds :]:  # a message that was blocked before any answer
            self.rewinds += 1
            self.rewound |= set(entries[entries.index(back.item) :])
        assert not set(entries) - shown - self.rewound
        targets = [*self.started, *b.gates.started]
        assert len(targets) == len(set(targets)), "a call ran twice"

    def check_record(self) -> None:
        """All that was said and answered is in the record."""
        parts = [part for event in self.facts if isinstance(event.body, ItemCompleted) for part in event.body.parts]
        texts = "\n".join(part.text for part in parts if isinstance(part, TextPart))
        assert not [text for text in self.said if text.split()[0] not in texts]
        whole = [step for step in self.server.given if step.fault is None and step.text.startswith("word-")]
        lost = [step.text.split()[0] for step in whole if step.text.split()[0] not in texts]
        ends = [event.body.outcome for event in self.facts if isinstance(event.body, TurnEnded)]
        assert len(lost) <= ends.count("interrupted"), lost
        self.compactions = sum(isinstance(event.body, CompactionCompleted) for event in self.facts)


async def travel(seed: int, turns: Sequence[int]) -> Journey:
    """A session of some processes with so many turns each; raises AssertionError where something does not hold."""
    chance = random.Random(seed)
    steps = [random_step(chance, number) for number in range(sum(turns) * STEPS_PER_TURN)]
    aside = json.dumps(SUMMARY)
    script = "\n".join((f'chunk = "words"\naside = {aside}\n', *steps))
    manners: dict[str, Any] = chance.choice([{}, {"crlf": True}, {"keep_alives": True}, {"clean_cut": True}])
    outputs: dict[str, str] = {}
    for number in range(len(steps)):
        for place in range(3):
            outputs[f"t{number}-{place}"] = f"result {number}\n" + WORDS * chance.choice([0, 1, 20, 150])
    with tempfile.TemporaryDirectory() as name, Server(script, Manners(**manners), random.Random(seed)) as server:
        journey = Journey(chance, server, Path(name), outputs=outputs, model=chance.choice(MODELS))
        for count in turns:
            await journey.day(count)
        journey.check_record()
    return journey
