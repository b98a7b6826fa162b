"""Each miss of the prompt cache is told with its real cause, and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from msgspec import structs
from msgspec.structs import replace

from swecli.core.context_management.cache import CacheMiss, CacheWatch, WatchedRequest, _edited, first_difference
from swecli.core.context_management.prompt import message_breakpoints
from swecli.core.llm.types import ModelRequest, SystemBlock, ToolSchema
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart, ToolResultPart, Usage
from swecli.features.lab.prefix_cache import Charge, Framed, PrefixCache

RULES = "Never commit.".ljust(3_000)
BASE = "You are a coding agent.".ljust(3_000)
READ = ToolSchema("read_file", "Read.", {})


def tokens(block: object) -> int:
    match block:
        case Framed(part=TextPart(text=text)) | Framed(part=ToolResultPart(text=text)):
            return len(text)
        case SystemBlock(text=text):
            return len(text)
        case _:
            return 50


@dataclass
class Talk:
    """A session as the watch sees it, in front of a simulated provider."""

    watch: CacheWatch = field(default_factory=CacheWatch)
    now: float = 0.0
    model: str = "anthropic/claude"
    rules: str = RULES
    tools: tuple[ToolSchema, ...] = (READ,)
    messages: list[Message] = field(default_factory=lambda: [Message("user", (TextPart("q" * 2_000),), "u0")])
    view: list[ViewEntry] = field(default_factory=lambda: [ViewEntry("live", "u0")])
    caches: bool = True
    cleared: int | None = None
    reduced: str = ""
    steps: int = 0
    misses: list[CacheMiss] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cache = PrefixCache(tokens, lambda: self.now)

    def grow(self, size: int = 400) -> None:
        self.steps += 1
        name = f"s{self.steps}"
        call = ToolCallPart(f"c{name}", "read_file", "{}")
        self.messages.append(Message("assistant", (TextPart("a" * 30), call), name))
        result = (ToolResultPart(call.call_id, "read_file", name + "r" * size),)
        self.messages.append(Message("tool", result, f"{name}.results"))
        self.view += [ViewEntry("live", name), ViewEntry("live", f"{name}.result")]

    def ask(self) -> Charge:
        base = SystemBlock(BASE)
        rules = SystemBlock(self.rules, breakpoint=True)
        messages = tuple(self.messages)
        request = ModelRequest((base, rules), self.tools, messages, message_breakpoints(messages))
        charge = self.cache.charge(request, self.model)
        usage = Usage(charge.total, charge.read if self.caches else None, charge.written, 30, cleared=self.cleared)
        watched = WatchedRequest(self.model, request, tuple(self.view), self.now, {self.rules: "project instructions"})
        miss = self.watch.observe(watched, usage, self.reduced)
        if miss is not None:
            self.misses.append(miss)
        return charge

    def step(self, seconds: float = 20.0) -> Charge:
        self.now += seconds
        self.grow()
        return self.ask()

    def run(self, steps: int) -> None:
        self.ask()
        for _ in range(steps):
            self.step()


def compact(talk: Talk) -> None:
    talk.messages = [Message("user", (TextPart("<compacted>" + "s" * 900),), "k9"), *talk.messages[-2:]]
    talk.view = [ViewEntry("summary", "k9", "...", ("u0",)), *talk.view[-2:]]


def clear(talk: Talk) -> None:
    part = structs.replace(talk.messages[2].tool_results[0], text="[cleared]")
    talk.messages[2] = structs.replace(talk.messages[2], parts=(part,))
    talk.view[2] = ViewEntry("stub", talk.view[2].id, "[cleared]")


def undo(talk: Talk) -> None:
    messages, view = list(talk.messages), list(talk.view)
    compact(talk)
    talk.ask()
    talk.misses.clear()
    talk.messages, talk.view = messages, view
    talk.cache.forget()


def test_an_undo_whose_bytes_are_still_cached_is_no_miss() -> None:
    talk = Talk()
    talk.run(20)
    messages, view = list(talk.messages), list(talk.view)
    compact(talk)
    talk.step()
    talk.messages, talk.view, talk.misses = messages, view, []
    talk.step()
    assert talk.misses == []


def rewind(talk: Talk) -> None:
    talk.messages = [*talk.messages[:5], Message("user", (TextPart("other"),), "u99")]
    talk.view = [*talk.view[:5], ViewEntry("live", "u99")]


def drop(talk: Talk) -> None:
    del talk.messages[3:5]
    del talk.view[3:5]


def switch(talk: Talk) -> None:
    talk.model = "openai/gpt"


def add_tool(talk: Talk) -> None:
    talk.tools = (READ, ToolSchema("mcp__db__query", "Query.", {}))


def change_tool(talk: Talk) -> None:
    talk.tools = (replace(READ, description="Reads a file."),)


def edit_rules(talk: Talk) -> None:
    talk.rules = "Never push.".ljust(3_000)


def wait(talk: Talk) -> None:
    talk.now += 420.0


def lose(talk: Talk) -> None:
    talk.cache.forget()


BREAKS: dict[str, tuple[Callable[[Talk], None], str, str]] = {
    "tool added": (add_tool, "tools", "added mcp__db__query"),
    "tool changed": (change_tool, "tools", "changed read_file"),
    "instructions edited": (edit_rules, "instructions", "the project instructions changed"),
    "model switched": (switch, "model", "from anthropic/claude to openai/gpt"),
    "compacted": (compact, "compaction", "compacted"),
    "cleared": (clear, "clearing", "1 old results"),
    "compaction undone": (undo, "undo", "undone"),
    "rewound": (rewind, "rewind", "rewound"),
    "item dropped": (drop, "edit", "edited"),
    "expired": (wait, "expired", "7 minutes"),
    "lost by the provider": (lose, "provider", "cause unknown"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_told_with_its_cause_and_once(name: str) -> None:
    action, kind, words = BREAKS[name]
    talk = Talk()
    talk.run(20)
    assert talk.misses == []
    action(talk)
    before = len(talk.misses)
    charge = talk.step()
    assert [miss.kind for miss in talk.misses[before:]] == [kind]
    assert words in talk.misses[-1].cause
    assert 0 < talk.misses[-1].tokens <= charge.total - charge.read
    talk.misses.clear()
    for _ in range(20):
        talk.step()
    assert talk.misses == []


def test_a_clean_run_of_a_hundred_turns_has_no_miss() -> None:
    talk = Talk()
    talk.run(100)
    assert talk.misses == []


def test_a_pause_within_the_time_to_live_is_no_miss() -> None:
    talk = Talk()
    talk.run(20)
    talk.step(seconds=290)
    assert talk.misses == []


def test_a_clock_that_goes_back_does_no_harm() -> None:
    talk = Talk()
    talk.run(20)
    talk.step(seconds=-5_000)
    assert talk.misses == []


def test_a_provider_that_keeps_nothing_is_never_blamed() -> None:
    talk = Talk()
    talk.cache = PrefixCache(tokens, lambda: talk.now, minimum=10**9)
    talk.run(40)
    assert talk.misses == []


def test_a_provider_that_reports_nothing_is_blamed_for_what_changed_only() -> None:
    talk = Talk(caches=False)
    talk.run(20)
    lose(talk)
    talk.step()
    assert talk.misses == []
    compact(talk)
    talk.step()
    assert [miss.kind for miss in talk.misses] == ["compaction"]


def test_a_redone_compaction_is_told_from_a_new_one() -> None:
    talk = Talk()
    talk.run(20)
    messages, view = list(talk.messages), list(talk.view)
    compact(talk)
    talk.step()
    compacted = list(talk.messages), list(talk.view)
    talk.messages, talk.view = messages, view
    talk.cache.forget()
    talk.step()
    talk.messages, talk.view = compacted
    talk.cache.forget()
    talk.step()
    assert [miss.cause.rpartition(" ")[2] for miss in talk.misses] == ["compacted", "undone", "redone"]


def test_what_the_provider_removes_by_itself_is_no_unknown_reason() -> None:
    talk = Talk()
    talk.run(20)
    talk.cleared = 900
    lose(talk)
    talk.step()
    assert [(miss.kind, miss.change.component) for miss in talk.misses] == [("clearing", "tool results")]


def test_what_swecli_leaves_out_of_earlier_messages_is_no_unknown_reason() -> None:
    talk = Talk()
    talk.run(20)
    talk.reduced = "swecli no longer sends the image a.png"
    lose(talk)
    talk.step()
    assert [(miss.kind, miss.cause) for miss in talk.misses] == [("refused", talk.reduced)]


def test_a_provider_that_was_only_seen_to_write_its_cache_is_known_to_have_one() -> None:
    talk = Talk()
    talk.grow(4_000)
    talk.ask()
    talk.step(seconds=600)
    assert [miss.kind for miss in talk.misses] == ["expired"]


def test_a_message_that_grows_at_its_end_is_no_change() -> None:
    first, more = TextPart("a"), TextPart("b")
    said, other = Message("user", (first,), "u1"), Message("user", (more,), "u1")
    grown = Message("user", (first, more), "u1")
    assert first_difference((said,), (grown,)) is None
    assert first_difference((said, said), (grown, said)) == (0, 1)
    assert first_difference((said, said), (said, other)) == (1, 0)
    assert first_difference((said, said), (said,)) == (1, 0)


def test_requests_without_usage_are_passed_over() -> None:
    talk = Talk()
    talk.run(20)
    request = ModelRequest((), (), tuple(talk.messages))
    watched = WatchedRequest(talk.model, request, tuple(talk.view), talk.now, {})
    assert CacheWatch().observe(watched, None) is None
    assert CacheWatch().observe(watched, Usage(input_total=0)) is None


def test_an_undo_that_left_a_part_summarised_is_one() -> None:
    part = (ViewEntry("summary", "k1", "text", ("u1", "a1")), ViewEntry("live", "a2"))
    whole = (ViewEntry("summary", "k1", "text", ("u1", "a1", "u2")), ViewEntry("live", "a2"))
    restored = (part[0], ViewEntry("live", "u2"), part[1])
    assert _edited(whole, restored, {"k1"}) == ("undo", "a compaction was undone")
    assert _edited(restored, whole, {"k1"}) == ("undo", "a compaction was redone")
