"""Whole sessions in front of a provider with a real prefix cache and a clock: each break is made by what makes it in
life, and is told once, with its cause; what breaks nothing is never blamed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.config.settings import RetentionSettings
from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.instructions import Instructions, load_instructions
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.context_management.stored_prompt import Conditions
from swecli.core.engine.services import ExtensionHost, InstructionFiles
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.protocol.commands import (
    ChangeContext,
    Compact,
    Interrupt,
    Rewind,
    SetEffort,
    SetMode,
    SetModel,
    Steer,
    Submit,
    UndoCompaction,
)
from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import (
    CacheBreak,
    CompactionCompleted,
    CompactionUndone,
    ContextEdited,
    Event,
    Rewound,
    TurnEnded,
)
from swecli.core.tools.registry import ToolRegistry
from swecli.features.lab.prefix_cache import PrefixCache, Style, provider_tokens
from tests.core.engine.support import Bench, Gates, Peek, Poke, Shell, bench, call, until
from tests.core.engine.test_offered_tools import Source, echo
from tests.core.engine.test_prompt_cache import SUMMARY, Clock
from tests.support.prefix_cache import CachedModel

LINES = "\n".join(f"line {number} of a file with some words in it" for number in range(200))
FILE = "OPENCLI.md"
TURN = f'[[step]]\ncall = [{call("read_file", "NAME")}]\n[[step]]\ntext = "Read."\n'
FIRST, LATER = 5, 4
"""Turns before a break and after it."""


def script(*more: str, turns: int = FIRST + LATER, first: int = FIRST, name: str = "test") -> str:
    """Turns that read a file each; ``more`` is said between the first ones and the others."""
    texts = [TURN.replace("NAME", f"f{number}") for number in range(turns)]
    head = f'name = "{name}"\nwindow = 400000\nmax_output = 4000\n'
    return head + "\n".join([*texts[:first], *more, *texts[first:]])


@dataclass
class World:
    """A folder with an instruction file, a provider and its cache, and sessions of one conversation."""

    folder: Path
    style: Style
    script: str = field(default_factory=script)
    clock: Clock = field(default_factory=Clock)
    hosts: list[ExtensionHost] = field(default_factory=list[ExtensionHost])
    facts: list[Event] = field(default_factory=list[Event])
    turns: int = 0

    def __post_init__(self) -> None:
        self.write("Never push.")
        # Tools and prompt of a test are short: whatever was sent before counts.
        self.cache = PrefixCache(provider_tokens(1.2), self.clock, self.style, minimum=256)
        self.models = {
            f"scripted/{name}": CachedModel(ScriptedModel(parse_script(text)), self.cache)
            for name, text in (("test", self.script), ("other", script(name="other")))
        }

    def write(self, text: str) -> None:
        (self.folder / FILE).write_text(f"# Rules\n{text}\n", encoding="utf-8")

    @property
    def model(self) -> CachedModel:
        return self.models["scripted/test"]

    def read(self) -> Instructions:
        return load_instructions(self.folder)

    @asynccontextmanager
    async def session(self, **changes: Any) -> AsyncIterator[Bench]:
        """Begin, or go on with what was said so far, as a new process would."""
        loaded, gates = self.read(), Gates()
        schemas = ToolRegistry([Peek(gates), Poke(gates), Shell(gates)]).schemas()
        given: dict[str, Any] = {
            "context": ContextManager(schemas, PromptTexts(files=loaded)),
            "instruction_files": InstructionFiles(
                loaded, self.read, self.folder, self.folder, (self.folder,), watch=True
            ),
            "make_client": self.models.__getitem__,
            "clock": self.clock,
            "extensions": (Source(self.hosts.append),),
            **changes,
        }
        async with bench('[[step]]\ntext = "x"', self.folder, history=self.facts, **given) as b:
            for number in range(300):
                b.gates.outputs[f"f{number}"] = f"file {number}\n{LINES}"
            yield b
            self.facts = list(b.facts)

    async def work(self, b: Bench, turns: int) -> None:
        for _ in range(turns):
            self.turns += 1
            end = await b.say(f"Read the next file, please, round {self.turns}.")
            assert end.outcome == "done", end
            self.clock.now += 20


@dataclass(frozen=True)
class Broken:
    """What a break must be told as; ``cause`` is a part of it. ``part`` may be left to the session."""

    kind: str
    cause: str
    component: str = ""
    part: str = ""


Break = Callable[[World, Bench], Awaitable[Broken]]


async def settled(b: Bench, kind: type[Any]) -> None:
    await until(lambda: bool(b.bodies(kind)) and not b.session.view.busy, kind.__name__)


async def a_server_brings_a_tool(world: World, b: Bench) -> Broken:
    world.hosts[-1].tools.settle("hub", [echo("mcp__hub__say")])
    return Broken("tools", "added mcp__hub__say", "tool descriptions of hub", "mcp__hub__say")


async def the_model_is_switched(world: World, b: Bench) -> Broken:
    b.send(SetModel("scripted/other"))
    return Broken("model", "from scripted/test to scripted/other")


async def the_user_compacts(world: World, b: Bench) -> Broken:
    b.send(Compact())
    await settled(b, CompactionCompleted)
    return Broken("compaction", "the conversation was compacted", "user messages", "u1")


async def time_passes(world: World, b: Bench) -> Broken:
    world.clock.now += 720
    return Broken("expired", "12 minutes between two requests")


async def an_item_is_dropped(world: World, b: Bench) -> Broken:
    picture = b.session.inspection.picture()
    assert picture is not None
    item = next(item.id for item in picture.items if item.kind == "result")
    b.send(ChangeContext((ContextChange("drop", item),)))
    await settled(b, ContextEdited)
    return Broken("edit", "you dropped", "tool calls", item.removesuffix(".result"))  # the call goes with it


async def the_provider_forgets(world: World, b: Bench) -> Broken:
    world.cache.forget()
    return Broken("provider", "cause unknown")


BREAKS: dict[str, tuple[Break, Sequence[str]]] = {
    "tools": (a_server_brings_a_tool, ()),
    "model": (the_model_is_switched, ()),
    "compaction": (the_user_compacts, (f'[[step]]\ntext = "{SUMMARY}"',)),
    "expired": (time_passes, ()),
    "edit": (an_item_is_dropped, ()),
    "provider": (the_provider_forgets, ()),
}
STYLES: tuple[Style, ...] = ("marked", "automatic")


def told(b: Bench, broken: Broken, charge: Any) -> None:
    (body,) = b.bodies(CacheBreak)
    assert broken.cause in body.cause
    assert (body.kind, body.component, body.part) == (broken.kind, broken.component, broken.part)
    assert 0 < body.tokens <= charge.total - charge.read
    (miss,) = b.session.view.cache.misses
    assert (miss.kind, miss.component, miss.part, miss.tokens) == (body.kind, body.component, body.part, body.tokens)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", BREAKS)
async def test_a_break_is_told_once_with_its_cause(name: str, style: Style, tmp_path: Path) -> None:
    make, more = BREAKS[name]
    world = World(tmp_path, style, script(*more))
    async with world.session() as b:
        await world.work(b, FIRST)
        assert b.bodies(CacheBreak) == []
        broken = await make(world, b)
        model = world.models["scripted/other"] if broken.kind == "model" else world.model
        asked = len(model.charges)
        await world.work(b, LATER)
        told(b, broken, model.charges[asked])


@pytest.mark.parametrize("style", STYLES)
async def test_a_clearing_pass_is_told_as_such(style: Style, tmp_path: Path) -> None:
    """What the user's rule takes away is worth its break at once."""
    rule = RetentionSettings(tool="read_file", keep_turns=2)
    world = World(tmp_path, style, script(turns=20))
    async with world.session(compaction=CompactionOptions(retention=(rule,))) as b:
        await world.work(b, 18)
        causes = [(body.kind, body.component) for body in b.bodies(CacheBreak)]
        passes = b.bodies(CompactionCompleted)
        assert passes, "no pass was worth it"
        assert causes == [("clearing", "tool results")] * len(passes)


@pytest.mark.parametrize("style", STYLES)
async def test_an_instruction_file_breaks_nothing_until_the_prompt_is_built_anew(style: Style, tmp_path: Path) -> None:
    world = World(tmp_path, style)
    async with world.session() as b:
        await world.work(b, FIRST)
        world.write("Never push. Never commit either.")
        await world.work(b, 2)
        assert b.bodies(CacheBreak) == []
    async with world.session() as b:
        await world.work(b, 2)
        assert b.bodies(CacheBreak) == []
    asked = len(world.model.charges)
    async with world.session(prompt_conditions=Conditions(safe_mode=True)) as b:
        await world.work(b, 2)
        cause = "the system prompt was built anew: safe mode leaves out all texts of files"
        told(b, Broken("instructions", cause, "project instructions"), world.model.charges[asked])


@pytest.mark.parametrize("style", STYLES)
async def test_a_session_that_goes_on_in_time_misses_nothing(style: Style, tmp_path: Path) -> None:
    world = World(tmp_path, style)
    async with world.session() as b:
        await world.work(b, FIRST)
    async with world.session() as b:
        await world.work(b, LATER)
        assert b.bodies(CacheBreak) == []


@pytest.mark.parametrize("style", STYLES)
async def test_what_was_done_before_a_session_was_left_is_told_when_it_goes_on(style: Style, tmp_path: Path) -> None:
    world = World(tmp_path, style, script(f'[[step]]\ntext = "{SUMMARY}"'))
    async with world.session() as b:
        await world.work(b, FIRST)
        b.send(Compact())
        await settled(b, CompactionCompleted)
    async with world.session() as b:
        await world.work(b, 1)
        assert [body.kind for body in b.bodies(CacheBreak)] == ["compaction"]
    world.clock.now += 3_600
    async with world.session() as b:
        await world.work(b, 1)
        assert [body.cause for body in b.bodies(CacheBreak)] == ["the cache expired: 60 minutes between two requests"]


async def test_another_effort_breaks_where_it_is_part_of_the_prompt(tmp_path: Path) -> None:
    world = World(tmp_path, "marked")
    async with world.session() as b:
        await world.work(b, FIRST)
        b.send(SetEffort("high"))
        await world.work(b, LATER)
        (body,) = b.bodies(CacheBreak)
        assert (body.kind, body.cause) == ("settings", "the effort changed from default to high")


@pytest.mark.parametrize("style", STYLES)
async def test_an_undone_compaction_is_told_if_the_cache_has_lost_it(style: Style, tmp_path: Path) -> None:
    world = World(tmp_path, style, script(f'[[step]]\ntext = "{SUMMARY}"'))
    async with world.session() as b:
        await world.work(b, FIRST)
        b.send(Compact())
        await settled(b, CompactionCompleted)
        await world.work(b, 1)
        b.send(UndoCompaction())
        await settled(b, CompactionUndone)
        await world.work(b, 1)
        assert [body.kind for body in b.bodies(CacheBreak)] == ["compaction"]  # what came back was still there


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("lost", [False, True])
async def test_a_rewind_costs_nothing_while_what_is_left_is_cached(lost: bool, style: Style, tmp_path: Path) -> None:
    world = World(tmp_path, style)
    async with world.session() as b:
        await world.work(b, FIRST)
        users = [message.id for message in b.session.view.messages if message.role == "user"]
        b.send(Rewind(users[2]))
        await settled(b, Rewound)
        if lost:
            world.cache.forget()
        assert (await b.say(f"Something else, which takes long to say. {LINES}")).outcome == "done"
        told = [(body.kind, body.component, body.part) for body in b.bodies(CacheBreak)]
        assert told == ([("rewind", "user messages", users[2])] if lost else [])


CLEAN = 100


async def harmless(world: World, b: Bench, turn: int) -> None:
    """What people do between two messages, and what breaks nothing."""
    match turn % 10:
        case 1:
            b.send(SetMode("plan" if turn % 20 == 1 else "default"))
        case 3:
            world.write(f"Never push. Not in round {turn} either.")
        case 5:
            world.clock.now += 270
        case 7:
            (world.folder / f"sub{turn}").mkdir()
            (world.folder / f"sub{turn}" / FILE).write_text(f"Rules of sub{turn}.", encoding="utf-8")
        case 8:
            b.send(SetModel("scripted/other"))
            b.send(SetModel("scripted/test"))
        case 9:
            await an_interrupted_turn(b, turn)
        case _:
            pass


async def an_interrupted_turn(b: Bench, turn: int) -> None:
    target = f"held{turn}"
    b.gates.held.add(target)
    ends = len(b.bodies(TurnEnded))
    b.send(Submit("Read the held file."))
    await until(lambda: target in b.gates.started)
    b.send(Steer("Rather not."))
    b.send(Interrupt())
    await until(lambda: len(b.bodies(TurnEnded)) > ends and not b.session.view.busy)
    assert b.bodies(TurnEnded)[-1].outcome == "interrupted"


@pytest.mark.parametrize("style", STYLES)
async def test_a_clean_run_of_a_hundred_turns_has_no_false_cause(style: Style, tmp_path: Path) -> None:
    parts: list[str] = []
    for turn in range(CLEAN):
        if turn % 10 == 9:
            parts.append(f"[[step]]\ncall = [{call('read_file', f'held{turn}')}]")
        target = "broken" if turn % 10 == 4 else f"f{turn}"
        second = f"[[step]]\ncall = [{call('read_file', target)}, {call('read_file', f'f{turn + 100}')}]\n"
        parts.append(second + '[[step]]\ntext = "Read."')
    head = "window = 1000000\nmax_output = 4000\n"
    world = World(tmp_path, style, head + "\n".join(parts))
    async with world.session(compaction=replace(CompactionOptions(), auto=False)) as b:
        for turn in range(CLEAN):
            await harmless(world, b, turn)
            await world.work(b, 1)
        assert b.bodies(CacheBreak) == []
        totals = b.session.view.cache.totals
        assert (totals.misses, totals.requests) == (0, len(world.model.charges))
        assert totals.share >= 0.95
