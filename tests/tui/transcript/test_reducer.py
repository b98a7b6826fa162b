"""Events become blocks, and stored facts become the same blocks as the live stream."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.protocol.blocks import DiffBlock, TerminalBlock, TextBlock
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import (
    AgentStarted,
    ContextMeasured,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    JobChanged,
    ModelChanged,
    Notice,
    PermissionRequested,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    QueueChanged,
    RetryScheduled,
    Rewound,
    SessionStarted,
    StepStarted,
    TodosChanged,
    TurnEnded,
)
from swecli.core.protocol.messages import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from swecli.core.protocol.request_events import Question
from swecli.tui.greeting import MODEL, NO_MODEL
from swecli.tui.transcript.block_rows import render_block
from swecli.tui.transcript.blocks import (
    OUTPUT_TAIL,
    AnswerBlock,
    NoticeBlock,
    Operation,
    Put,
    Remove,
    RewoundBlock,
    SessionBlock,
    ToolBlock,
    is_live,
)
from swecli.tui.transcript.page import Page
from swecli.tui.transcript.palette import DARK
from swecli.tui.transcript.reducer import Reducer, notice_of
from tests.tui.transcript.events import answer, facts, session, stream, tool, user


def shown(operations: list[Operation]) -> Page:
    page = Page()
    for operation in operations:
        page.apply(operation)
    return page


def test_a_command_of_the_user_is_a_step_with_its_output() -> None:
    reducer = Reducer()
    said = TextPart("I ran this command myself: docker exec -t a")
    block = TerminalBlock("docker exec -t a", "the input device is not a TTY\n", 1)
    events = stream(
        ItemStarted("u1", "user", "shell", "docker exec -t a"),
        ItemDelta("u1", "the input", "output"),
        ItemCompleted("u1", "ok", (said,), (block,), "exit 1"),
    )
    (put,) = [operation for operation in reducer.reduce(events[:2]) if isinstance(operation, Put)]
    assert isinstance(put.block, ToolBlock)
    assert (put.block.status, put.block.title, put.block.output) == ("running", "docker exec -t a", "the input")
    (put,) = [operation for operation in reducer.reduce(events[2:]) if isinstance(operation, Put)]
    assert isinstance(put.block, ToolBlock)
    hint = TextBlock("It had no terminal. !!docker exec -t a gives it yours.", "dim")
    assert (put.block.status, put.block.blocks) == ("ok", (block, hint))


def test_replay_of_the_facts_shows_what_the_live_stream_showed() -> None:
    events = session()
    live, replayed = Reducer(), Reducer()
    first = shown(live.reduce(events))
    second = shown(replayed.reduce(facts(events)))
    assert first.blocks == second.blocks == list(live.blocks.values())
    assert not any(is_live(block) for block in first.blocks)
    texts = [[row.text for row in page.rows(n)] for page in (first, second) for n in range(len(page.blocks))]
    assert texts[: len(first.blocks)] == texts[len(first.blocks) :]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 200), max_size=20))
def test_any_cut_of_the_stream_into_batches_gives_the_same(cuts: list[int]) -> None:
    events = session()
    whole = shown(Reducer().reduce(events))
    reducer, page = Reducer(), Page()
    edges = sorted({0, len(events), *(min(cut, len(events)) for cut in cuts)})
    for start, end in pairwise(edges):
        for operation in reducer.reduce(events[start:end]):
            page.apply(operation)
        assert [block.id for block in page.blocks] == list(reducer.blocks)
        for number in range(len(page.blocks)):
            page.measure(number)
    assert page.blocks == whole.blocks
    assert [[row.text for row in page.rows(n)] for n in range(len(page.blocks))] == [
        [row.text for row in whole.rows(n)] for n in range(len(whole.blocks))
    ]


def test_every_prefix_of_the_facts_can_be_shown() -> None:
    events = facts(session())
    for end in range(len(events)):
        page = shown(Reducer().reduce(events[:end]))
        assert all(page.rows(number) is not None for number in range(len(page.blocks)))


def test_a_batch_puts_each_block_once() -> None:
    operations = Reducer().reduce(stream(*answer("a", "word " * 100, pieces=50)))
    assert [type(operation) for operation in operations] == [Put]


def test_text_that_was_only_added_keeps_its_revision_and_other_text_does_not() -> None:
    reducer = Reducer()
    reducer.reduce(stream(ItemStarted("a", "text"), ItemDelta("a", "one "), ItemDelta("a", "two")))
    reducer.reduce(stream(ItemCheckpointed("a", TextPart("one two three"))))
    block = reducer.blocks["a"]
    assert isinstance(block, AnswerBlock)
    assert (block.text, block.revision) == ("one two three", 0)
    reducer.reduce(stream(ItemCompleted("a", "ok", (TextPart("another text"),))))
    block = reducer.blocks["a"]
    assert isinstance(block, AnswerBlock)
    assert (block.text, block.revision, block.status) == ("another text", 1, "ok")


def test_a_session_that_was_only_looked_at_is_continued_once() -> None:
    def started(resumed: bool) -> SessionStarted:
        return SessionStarted("/w", "m", "default", "1", resumed=resumed)

    reducer = Reducer()
    bodies = (started(False), Notice("a"), started(True), started(True), Notice("b"), started(True), started(True))
    for event in stream(*bodies):
        reducer.reduce([event])
    assert [key.partition("-")[0] for key in reducer.ids].count("session") == 3
    assert isinstance(reducer.blocks[next(reversed(reducer.ids))], SessionBlock)


def test_a_call_that_asks_waits_for_an_answer_and_not_for_consent() -> None:
    reducer = Reducer()
    call = ToolCallPart("c", "mcp__hub__ask", "{}")
    reducer.reduce(stream(ItemStarted("t", "tool", "mcp__hub__ask"), ItemCheckpointed("t", call, running=True)))
    reducer.reduce(stream(QuestionAsked("q", "t", (Question("Who are you?"),))))
    block = reducer.blocks["t"]
    assert isinstance(block, ToolBlock)
    assert (block.status, block.preview) == ("asking", (TextBlock("Who are you?"),))
    reducer.reduce(stream(QuestionAnswered("q", (("me",),))))
    block = reducer.blocks["t"]
    assert isinstance(block, ToolBlock)
    assert (block.status, block.preview) == ("running", ())


def test_the_command_of_the_user_is_shown_as_typed_and_not_as_the_model_is_told() -> None:
    reducer = Reducer()
    output = TerminalBlock("git status", "clean\n", 0)
    reducer.reduce(stream(ItemStarted("u1", "user", "shell", "git status")))
    told = TextPart("I ran this command myself: git status\nclean")
    reducer.reduce(stream(ItemCompleted("u1", "ok", (told,), (output,), "exit 0")))
    lines = [row.text for row in render_block(reducer.blocks["u1"], 60, DARK)]
    assert [line.strip() for line in lines] == ["! git status   exit 0", "clean"]


def test_a_tool_that_the_model_calls_by_another_name_is_shown_as_ours() -> None:
    reducer = Reducer()
    reducer.reduce(stream(ItemStarted("t", "tool", "bash"), ItemCheckpointed("t", ToolCallPart("c", "Bash", "{}"))))
    block = reducer.blocks["t"]
    assert isinstance(block, ToolBlock)
    assert block.name == "run_command"


def test_consent_moves_a_call_through_its_states() -> None:
    diff = DiffBlock("a.py", "a\n", "b\n")
    reducer = Reducer()

    def status() -> str:
        block = reducer.blocks["t"]
        assert isinstance(block, ToolBlock)
        return block.status

    call = ToolCallPart("c", "edit_file", "{}")
    reducer.reduce(stream(ItemStarted("t", "tool", "edit_file"), ItemCheckpointed("t", call, "a.py")))
    assert status() == "pending"
    reducer.reduce(stream(PermissionRequested("p", "t", "edit_file", "a.py", (diff,), "writes", "hash")))
    assert status() == "waiting"
    reducer.reduce(stream(PermissionResolved("p", "once")))
    assert status() == "pending"
    reducer.reduce(stream(ItemCheckpointed("t", call, "a.py", running=True)))
    assert status() == "running"
    reducer.reduce(stream(ItemCompleted("t", "ok", (), (diff,), "+1 -1")))
    assert status() == "ok"


def test_a_call_that_never_arrived_completely_has_its_target() -> None:
    reducer = Reducer()
    reducer.reduce(stream(ItemStarted("t", "tool", "write_file"), ItemCompleted("t", "interrupted", title="a.py")))
    block = reducer.blocks["t"]
    assert isinstance(block, ToolBlock)
    assert (block.status, block.title) == ("interrupted", "a.py")


def test_a_rejected_call_keeps_what_was_proposed_and_the_word_to_the_model() -> None:
    diff = DiffBlock("a.py", "a\n", "b\n")
    reducer = Reducer()
    reducer.reduce(
        stream(
            ItemStarted("t", "tool", "edit_file", "a.py"),
            PermissionRequested("p", "t", "edit_file", "a.py", (diff,), "writes", "hash"),
            PermissionResolved("p", "reject", note="no, the other one"),
            ItemCompleted("t", "rejected", (ToolResultPart("c", "edit_file", "rejected"),)),
        )
    )
    block = reducer.blocks["t"]
    assert isinstance(block, ToolBlock)
    assert (block.status, block.blocks, block.note) == ("rejected", (diff,), "no, the other one")


def test_the_line_about_a_retry_goes_when_something_happens() -> None:
    reducer = Reducer()
    retry = RetryScheduled(2, 5, 4.0, "rate_limit", "Too many requests")
    (put,) = reducer.reduce(stream(retry))
    assert isinstance(put, Put)
    assert isinstance(put.block, NoticeBlock)
    assert (put.block.text, put.block.hint) == ("Too many requests", ""), (
        "the line above the prompt has the attempt and the key"
    )
    assert [type(o) for o in reducer.reduce(stream(ItemStarted("a", "text")))] == [Remove, Put]
    assert list(reducer.blocks) == ["a"]


def test_a_server_that_is_not_reached_is_named_by_the_line_above_the_prompt_alone() -> None:
    reducer = Reducer()
    unreached = RetryScheduled(2, 0, 8.0, "network", "no connection", "h:1")
    assert reducer.reduce(stream(unreached)) == []
    reducer.reduce(stream(RetryScheduled(1, 5, 4.0, "rate_limit", "Too many requests")))
    assert [type(o) for o in reducer.reduce(stream(unreached))] == [Remove]


def test_a_subagent_that_waits_for_its_server_says_how_long() -> None:
    reducer = Reducer()
    reducer.reduce(stream(ItemStarted("t", "tool", "task"), AgentStarted("agent-1", "t", "Look", "general", "m")))

    def doing(body: RetryScheduled) -> str:
        reducer.reduce(stream(body, agent="agent-1"))
        block = reducer.blocks["t"]
        assert isinstance(block, ToolBlock)
        assert block.agent is not None
        return block.agent.doing

    assert doing(RetryScheduled(2, 5, 4.0, "overloaded", "Too busy")) == "retry 2 of 5 in 4 s: Too busy"
    gone = RetryScheduled(2, 0, 8.0, "network", "no connection", "h:1")
    assert doing(gone) == "can't reach h:1; next try in 8 s"


def test_an_answer_that_broke_off_says_why() -> None:
    reducer = Reducer()
    why = "nothing more came for 6 s\x1b[31m"
    reducer.reduce(stream(ItemStarted("a", "text"), ItemCompleted("a", "error", (TextPart("It wor"),), detail=why)))
    rows = render_block(reducer.blocks["a"], 60, DARK)
    assert [row.body.rstrip() for row in rows] == ["It wor", "✗ stopped early: nothing more came for 6 s␛[31m"]
    narrow = render_block(reducer.blocks["a"], 30, DARK)
    lines = ["".join(part.text for part in row.gutter) + row.body.rstrip() for row in narrow]
    assert lines == ["It wor", "✗ stopped early: nothing more", "  came for 6 s␛[31m"]


def test_live_output_keeps_its_end_only() -> None:
    reducer = Reducer()
    reducer.reduce(stream(*tool("t", "run_command", "yes", ItemCompleted("t", "ok"))[:5]))
    for number in range(40):
        reducer.reduce(stream(ItemDelta("t", f"line {number} " + "y" * 990 + "\n", "output")))
    block = reducer.blocks["t"]
    assert isinstance(block, ToolBlock)
    assert len(block.output) <= 2 * OUTPUT_TAIL
    assert block.output_cut
    assert block.output.startswith("line ")
    assert block.output.endswith("y\n")
    reducer.reduce(stream(ItemCompleted("t", "ok")))
    block = reducer.blocks["t"]
    assert isinstance(block, ToolBlock)
    assert block.output == ""


def test_what_is_still_open_at_the_end_of_a_turn_was_interrupted() -> None:
    reducer = Reducer()
    reducer.reduce(
        stream(
            *user("u", "x"),
            ItemStarted("a", "text"),
            ItemDelta("a", "part"),
            ItemStarted("t", "tool", "run_command", "sleep 9"),
            TurnEnded("interrupted"),
        )
    )
    assert [getattr(reducer.blocks[key], "status", None) for key in ("a", "t")] == ["interrupted", "interrupted"]


def test_a_continued_session_closes_what_a_kill_left_open() -> None:
    reducer = Reducer()
    reducer.reduce(stream(ItemStarted("t", "tool", "run_command", "x")))
    reducer.reduce(stream(SessionStarted("/w", "m", "default", "1", resumed=True)))
    assert not any(is_live(block) for block in reducer.blocks.values())


def test_the_first_screen_names_the_model_that_is_connected_later() -> None:
    started = SessionStarted("/w", "", "default", "1")
    connected = ModelChanged("a/one", address="http://box:1/v1"), ModelChanged("a/two")
    for first, expected in (((MODEL, NO_MODEL), "a/one at http://box:1/v1"), ((MODEL, "b/chosen"), "b/chosen")):
        reducer = Reducer()
        reducer.greeting = (("Folder", "/w"), first, ("", "hint"))
        operations = reducer.reduce(stream(started))
        operations += reducer.reduce(stream(connected[0], first=20))
        operations += reducer.reduce(stream(connected[1], first=30))
        block, *notices = shown(operations).blocks
        assert isinstance(block, SessionBlock)
        assert block.lines == (("Folder", "/w"), (MODEL, expected), ("", "hint"))
        assert len(notices) == 1 + (expected == "b/chosen")  # what the first line says needs no second one


def test_a_rewind_folds_what_it_takes_back() -> None:
    reducer = Reducer()
    page = shown(reducer.reduce(stream(*user("u1", "first"), *answer("a1", "one"), *user("u2", "second"))))
    for operation in reducer.reduce(stream(*answer("a2", "two"), Rewound("u2"), *user("u3", "third"), first=50)):
        page.apply(operation)
    assert [type(block).__name__ for block in page.blocks] == ["UserBlock", "AnswerBlock", "RewoundBlock", "UserBlock"]
    folded = page.blocks[2]
    assert isinstance(folded, RewoundBlock)
    assert [block.id for block in folded.blocks] == ["u2", "a2"]
    page.toggle(2)
    assert any("second" in row.text for row in page.rows(2))


def test_events_that_show_nothing_change_nothing() -> None:
    budget = Budget((), 1, 1, 10, 12, 2, "ok")
    more_is_known = ModelChanged("a/model", window=9, switched=False)
    quiet = stream(ContextMeasured(budget), StepStarted(1, budget), QueueChanged(()), TodosChanged(()), more_is_known)
    assert Reducer().reduce(quiet) == []


def test_a_blocked_message_is_one_line() -> None:
    bodies = (*user("u1", "much too long"), Rewound("u1", "the message was not sent"), TurnEnded("blocked", "No room."))
    page = shown(Reducer().reduce(stream(*bodies)))
    assert [type(block) for block in page.blocks] == [RewoundBlock]
    lines = [row.text.strip() for row in page.rows(0)]
    assert lines == ["■ Not sent; your message is back in the prompt. No room. · Ctrl+O shows all"]


def test_an_interrupt_is_told_once_and_waiting_is_no_work() -> None:
    begun = ItemStarted("a1", "text"), ItemDelta("a1", "Half an")
    end = TurnEnded("interrupted", duration=189.2, waited=165.0)
    page = shown(Reducer().reduce(stream(*user("u1", "go"), *begun, end)))
    text = "\n".join(row.text for number in range(len(page.blocks)) for row in page.rows(number))
    assert text.count("interrupted") == 1
    assert "⊘ interrupted after 24 s (waited 2m45s for you)" in text


def test_the_time_of_a_step_is_counted_while_it_runs() -> None:
    reducer = Reducer()
    events = stream(*tool("t", "run_command", "make", ItemCompleted("t", "ok")))
    reducer.reduce(events[:-2])
    assert not reducer.counts
    reducer.reduce(events[-2:-1])
    assert reducer.counts
    started = events[-2].ts
    [put] = reducer.tick(started + 75.5)
    assert isinstance(put, Put)
    assert "1m15s" in render_block(put.block, 80, DARK)[0].text
    assert reducer.tick(started + 75.9) == [], "nothing is drawn twice for the same second"
    reducer.reduce(events[-1:])
    assert not reducer.counts
    assert reducer.tick(started + 99) == []


def test_a_call_of_a_command_shows_what_was_typed_and_on_request_what_was_sent() -> None:
    reducer = Reducer()
    reducer.reduce(
        stream(
            ItemStarted("u1", "user", "command", "/git:say hi"),
            ItemCompleted("u1", "ok", (TextPart("Say hi\nto all"),)),
        )
    )
    block = reducer.blocks["u1"]
    folded, whole = (render_block(block, 60, DARK, expanded=expanded) for expanded in (False, True))
    assert [row.text.strip() for row in folded] == ["› /git:say hi"]
    assert [row.text.strip() for row in whole] == ["› /git:say hi", "Say hi", "to all"]


@pytest.mark.parametrize(
    ("body", "words", "level"),
    [
        (JobChanged("j1", "make", "running"), "runs in the background", "info"),
        (JobChanged("j1", "make", "exited", 0), "ended with exit status 0", "info"),
        (JobChanged("j1", "make", "exited", 2), "ended with exit status 2", "warning"),
        (JobChanged("j1", "make", "killed", -15), "was stopped", "info"),
        (JobChanged("j1", "make", "killed", 0, note="swecli was ended"), "was stopped (swecli was ended)", "info"),
    ],
)
def test_the_line_of_a_job_tells_how_it_ended(body: JobChanged, words: str, level: str) -> None:
    notice = notice_of(Event(1, 0.0, "s", 1, body))
    assert notice is not None
    assert (notice.text, notice.level) == (f"Job j1 {words}: make", level)


def test_a_thought_without_text_leaves_no_row() -> None:
    reducer = Reducer()
    reducer.reduce(stream(ItemStarted("r1", "reasoning")))
    assert "r1" in reducer.ids
    reducer.reduce(stream(ItemCompleted("r1", "ok", (ReasoningPart(""),))))
    reducer.reduce(stream(ItemStarted("r2", "reasoning"), ItemCompleted("r2", "ok", (ReasoningPart("Why?"),))))
    reducer.reduce(stream(ItemStarted("r3", "reasoning"), ItemCompleted("r3", "interrupted", detail="stopped")))
    assert list(reducer.blocks) == ["r2", "r3"]
