"""Each rule about what leaves the context, and what passes have in common."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.config.settings import RetentionSettings as Rule
from swecli.core.context_management.compaction.clearing import protected, report, retain, tidy
from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.events import (
    Body,
    CompactionCompleted,
    Event,
    FileChanged,
    FileRead,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    ModelResponded,
)
from swecli.core.protocol.messages import Origin, Stop, TextPart, ToolCallPart, ToolResultPart

ORIGIN = Origin("openai-chat", "h", "m")
SIZES = EntrySizes(TokenMonitor(), ModelInfo("fake", "m", 200_000, 4_000))
LONG = "\n".join(f"line {number} of what a tool said, with some words" for number in range(200))


class Session:
    """Builds a ledger turn by turn."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.seq = self.turn = 0

    def emit(self, body: Body) -> None:
        self.seq += 1
        self.ledger.apply(Event(self.seq, float(self.seq), "s", self.turn, body))

    def say(self) -> None:
        self.turn += 1
        item = f"u{self.turn}"
        self.emit(ItemStarted(item, "user"))
        self.emit(ItemCompleted(item, "ok", (TextPart("Go on."),)))

    def call(self, tool: str, path: str, text: str = LONG, **arguments: str) -> str:
        item = f"t{self.seq}"
        call = ToolCallPart(item, tool, json.dumps({"path": path, **arguments}))
        self.emit(ItemStarted(item, "tool", tool))
        self.emit(ItemCheckpointed(item, part=call))
        self.emit(ModelResponded(f"m{item}", (item,), ORIGIN, Stop("tool_use"), None))
        self.emit(ItemCompleted(item, "ok", (ToolResultPart(item, tool, text),)))
        return item

    def gone(self, *rules: Rule) -> list[str]:
        return list(retain(self.ledger, self.ledger.view, SIZES, rules).cleared)

    def take(self, *rules: Rule) -> None:
        view = retain(self.ledger, self.ledger.view, SIZES, rules).view
        self.emit(CompactionCompleted(f"k{self.seq}", view, 0, 0, 0, 0, ("clearing",)))


@pytest.fixture
def session() -> Session:
    """Four turns with a search and a read each, and an edit in the first; the fourth is the current one."""
    made = Session()
    for number in range(4):
        made.say()
        made.call("search", f"q{number}")
        made.call("read_file", f"src/f{number}.py")
        if number == 0:
            made.call("edit_file", "src/f0.py", "done", new_string=LONG)
    return made


def results(session: Session, tool: str) -> list[str]:
    return [entry.id for entry in session.ledger.entries.values() if entry.kind == "result" and entry.source == tool]


@pytest.mark.parametrize(
    ("rule", "tool", "expected"),
    [
        (Rule(tool="search", keep_turns=1), "search", [0, 1, 2]),
        (Rule(tool="search", keep_turns=2), "search", [0, 1]),
        (Rule(tool="search", keep_turns=9), "search", []),
        (Rule(tool="search", keep_last=1), "search", [0, 1, 2]),
        (Rule(tool="search", keep_last=3), "search", [0]),
        (Rule(tool="read_*", path="src/f[01].py", keep_last=1), "read_file", [0]),
        (Rule(tool="search", offload_over=100), "search", [0, 1, 2]),
        (Rule(tool="search", offload_over=1_000_000), "search", []),
        (Rule(tool="read_file", head_tail=60), "read_file", [0, 1, 2]),
        (Rule(tool="search", never_drop=True), "search", []),
        (Rule(tool="read_file", until_file_changes=True), "read_file", []),
    ],
)
def test_what_goes(session: Session, rule: Rule, tool: str, expected: list[int]) -> None:
    assert session.gone(rule) == [results(session, tool)[number] for number in expected]


def test_arguments_of_finished_edits(session: Session) -> None:
    rule = Rule(tool="edit_file", kind="arguments", keep_turns=1)
    (gone,) = session.gone(rule)
    stub = next(entry for entry in retain(session.ledger, session.ledger.view, SIZES, [rule]).view if entry.id == gone)
    assert json.loads(stub.text)
    assert session.ledger.entries[gone].kind == "call"


def test_a_reading_goes_when_its_file_was_changed() -> None:
    made, rule = Session(), Rule(tool="read_file", until_file_changes=True)
    made.say()
    for path in ("a.py", "b.py"):
        item = made.call("read_file", path)
        made.emit(FileRead(path, "1" * 64, 1, 200, item))
    edit = made.call("edit_file", "a.py", "done")
    made.emit(FileChanged("a.py", "1" * 64, "2" * 64, edit))
    assert made.gone(rule) == []  # the current turn
    made.say()
    assert made.gone(rule) == [results(made, "read_file")[0]]


def test_head_and_tail_stay(session: Session) -> None:
    rule = Rule(tool="read_file", head_tail=60)
    done = retain(session.ledger, session.ledger.view, SIZES, [rule])
    stub = next(entry for entry in done.view if entry.id == done.cleared[0])
    assert stub.text.startswith("line 0 of")
    assert stub.text.endswith(LONG[-20:])
    assert "read_file: head_tail 60" in stub.text
    assert SIZES.text(stub.text) < 160


def test_the_first_rule_that_matches_decides(session: Session) -> None:
    keep, drop = Rule(path="q0", never_drop=True), Rule(tool="search", keep_turns=1)
    assert session.gone(keep, drop) == results(session, "search")[1:3]
    assert results(session, "search")[0] in session.gone(drop, keep)


def test_what_is_kept_is_not_cleared_either(session: Session) -> None:
    rules = [Rule(tool="search", never_drop=True)]
    kept = protected(session.ledger, session.ledger.view, rules)
    assert kept == set(results(session, "search"))
    done = tidy(session.ledger, session.ledger.view, SIZES, rules, 100)
    assert not kept & set(done.cleared)
    assert results(session, "read_file")[0] in done.cleared


def test_every_removal_names_its_rule_and_the_report_counts_what_was_asked_for_again(session: Session) -> None:
    rule = Rule(tool="search", keep_last=2)
    session.take(rule)
    gone = [entry for entry in session.ledger.view if entry.rule]
    assert [entry.rule for entry in gone] == ["search: keep_last 2"] * 2
    (before,) = report(session.ledger, SIZES, [rule])
    assert (before.removed, before.recalled) == (2, 0)
    assert before.saved > 1_000
    item = "t999"
    session.emit(ItemStarted(item, "tool", "recall"))
    session.emit(ItemCheckpointed(item, part=ToolCallPart(item, "recall", json.dumps({"id": gone[0].id}))))
    session.emit(ItemCompleted(item, "ok", (ToolResultPart(item, "recall", LONG),)))
    (after,) = report(session.ledger, SIZES, [rule])
    assert after.recalled == 1


rules = st.one_of(
    *(
        st.builds(Rule, tool=st.sampled_from(["search", "read_file", "*"]), **{action: st.integers(1, 300)})
        for action in ("keep_turns", "keep_last", "head_tail", "offload_over")
    ),
    st.builds(Rule, tool=st.sampled_from(["search", "*"]), never_drop=st.just(True)),
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["search", "read_file"]), max_size=3), min_size=1, max_size=6),
    st.lists(rules, min_size=1, max_size=3),
)
def test_a_second_pass_changes_nothing_and_nothing_is_lost(turns: list[list[str]], given_rules: list[Rule]) -> None:
    made = Session()
    for tools in turns:
        made.say()
        for tool in tools:
            made.call(tool, "x")
    before = [entry.id for entry in made.ledger.view]
    first = retain(made.ledger, made.ledger.view, SIZES, given_rules)
    assert [entry.id for entry in first.view] == before
    assert first.freed == sum(
        SIZES.viewed(old, made.ledger) - SIZES.viewed(new, made.ledger)
        for old, new in zip(made.ledger.view, first.view, strict=True)
    )
    made.take(*given_rules)
    assert made.gone(*given_rules) == []
