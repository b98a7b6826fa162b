"""What is sent is always valid, whatever the history looks like."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.context_management.ledger import (
    APART,
    CUT_NOTE,
    INTERRUPTED,
    INTERRUPTION_NOTE,
    MISSING_RESULT,
    Ledger,
    without_added,
)
from swecli.core.context_management.projection import project, repair
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import (
    Body,
    CompactionCompleted,
    CompactionRedone,
    CompactionUndone,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    ModelResponded,
    Rewound,
    SessionStarted,
)
from swecli.core.protocol.messages import (
    Message,
    Opaque,
    Origin,
    Part,
    ReasoningPart,
    Stop,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from tests.support.said import Said
from tests.support.thorough import examples

ORIGIN = Origin("openai-chat", "h", "m")
ids = st.sampled_from(["c1", "c2", "c3", ""])
parts = st.one_of(
    st.builds(TextPart, st.sampled_from(["", " ", "text", "more"])),
    st.builds(ReasoningPart, st.sampled_from(["", "because"])),
    st.builds(ToolCallPart, ids, st.just("search"), st.just("{}")),
    st.builds(ToolResultPart, ids, st.just("search"), st.text(max_size=3)),
)
messages = st.lists(
    st.builds(
        Message,
        st.sampled_from(["user", "assistant", "tool"]),
        st.lists(parts, max_size=5).map(tuple),
        st.text(max_size=3),
    ),
    max_size=12,
)


def check_valid(history: tuple[Message, ...]) -> None:
    """The rules that strict providers enforce."""
    seen: set[str] = set()
    for index, message in enumerate(history):
        assert message.parts
        if index == 0:
            assert message.role == "user"
        if message.role == "user":
            assert any(not isinstance(part, ToolCallPart | ToolResultPart) for part in message.parts)
        if message.role == "assistant":
            calls = [call.call_id for call in message.tool_calls]
            assert message.text.strip() or calls
            assert all(calls)
            assert not seen & set(calls)
            assert len(set(calls)) == len(calls)
            seen |= set(calls)
            if calls:
                results = history[index + 1]
                assert results.role == "tool"
                assert [result.call_id for result in results.tool_results] == calls
                assert len(results.parts) == len(calls)
        if message.role == "tool":
            assert history[index - 1].tool_calls


@settings(max_examples=examples(150, 800), deadline=None)
@given(messages)
def test_any_history_becomes_valid_stays_as_it_is_then_and_keeps_what_the_user_said(history: list[Message]) -> None:
    repaired = repair(history)
    check_valid(repaired)
    assert repair(repaired) == repaired
    said = [m.text for m in history if m.role == "user" and m.text.strip()]
    kept = [m.text for m in repaired if m.role == "user" and m.id != "continuation"]
    assert [text.replace(" ", "") for text in kept] == [text.replace(" ", "") for text in said]


class Story:
    """Feeds a ledger with events."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.seq = 0

    def tell(self, *bodies: Body) -> "Story":
        for body in bodies:
            self.seq += 1
            self.ledger.apply(Event(self.seq, float(self.seq), "s", 1, body))
        return self

    def user(self, item: str, text: str) -> "Story":
        return self.tell(ItemStarted(item, "user"), ItemCompleted(item, "ok", (TextPart(text),)))

    def answer(self, message: str, *, complete: bool = True, detail: str | None = None, **items: Part) -> "Story":
        for item, part in items.items():
            if isinstance(part, ToolCallPart):
                self.tell(ItemStarted(item, "tool", part.name), ItemCheckpointed(item, part))
            else:
                kind = "reasoning" if isinstance(part, ReasoningPart) else "text"
                self.tell(ItemStarted(item, kind), ItemCompleted(item, "ok", (part,)))
        return self.tell(ModelResponded(message, tuple(items), ORIGIN, Stop(detail=detail), complete=complete))

    def result(self, item: str, call_id: str, text: str) -> "Story":
        return self.tell(ItemCompleted(item, "ok", (ToolResultPart(call_id, "search", text),)))


def test_results_come_in_call_order_however_they_ended() -> None:
    story = (
        Story()
        .user("u1", "find")
        .answer("m1", t1=ToolCallPart("a", "search", "{}"), t2=ToolCallPart("b", "search", "{}"))
    )
    story.result("t2", "b", "second").result("t1", "a", "first")
    history = project(story.ledger)
    assert [m.role for m in history] == ["user", "assistant", "tool"]
    assert [r.text for r in history[2].tool_results] == ["first", "second"]
    check_valid(history)


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    story = Story().user("u1", "find").answer("m1", t1=ToolCallPart("a", "search", "{}"))
    assert project(story.ledger)[2].tool_results[0].text == MISSING_RESULT


def test_the_environment_stands_before_the_first_user_message_only() -> None:
    story = Story().tell(SessionStarted("/p", "m", "default", "1", environment="Date: today"))
    story.user("u1", "one").answer("m1", a1=TextPart("ok")).user("u2", "two")
    history = project(story.ledger)
    assert [m.text for m in history] == ["Date: today\n\none", "ok", "two"]


def test_the_model_is_told_why_its_answer_ended_early() -> None:
    story = Story().user("u1", "go").answer("m1", complete=False, detail=INTERRUPTED, a1=TextPart("I wi"))
    assert project(story.user("u2", "continue").ledger)[-1].parts == (
        TextPart(INTERRUPTION_NOTE + APART),
        TextPart("continue"),
    )
    story = Story().user("u1", "go").answer("m1", complete=False, detail="network", a1=TextPart("I wi"))
    assert project(story.user("u2", "continue").ledger)[-1].parts[0] == TextPart(CUT_NOTE + APART)


@pytest.mark.parametrize("after", ["", APART], ids=["of an earlier version", "as now"])
def test_what_was_put_before_the_words_of_the_user_is_taken_away_again(after: str) -> None:
    added = (TextPart(f"Date: today{after}"), TextPart(f"{INTERRUPTION_NOTE}{after}"))
    said = Message("user", (*added, TextPart("one")), "u1")
    assert without_added(said, "Date: today").parts == (TextPart("one"),)


def test_rewinding_leaves_the_ledger_and_shortens_the_view() -> None:
    story = Story().user("u1", "one").answer("m1", a1=TextPart("ok")).user("u2", "two")
    story.tell(Rewound("u2"))
    assert [m.text for m in project(story.ledger)] == ["one", "ok"]
    assert "u2" in story.ledger.entries


def test_undo_and_redo_of_a_compaction_give_the_same_messages_again() -> None:
    story = Story().user("u1", "one").answer("m1", a1=TextPart("ok")).user("u2", "two")
    before = project(story.ledger)
    view = (ViewEntry("summary", "s1", "They said one.", ("u1", "a1")), ViewEntry("live", "u2"))
    story.tell(CompactionCompleted("k1", view, 10, 5, 3, 2, ("summary",)))
    after = project(story.ledger)
    assert [m.text for m in after] == ["They said one.", "two"]
    story.tell(CompactionUndone("k1"))
    assert project(story.ledger) == before
    story.tell(CompactionRedone("k1"))
    assert project(story.ledger) == after
    story.answer("m2", a2=TextPart("three")).tell(CompactionUndone("k1"))
    assert project(story.ledger)[:3] == before
    assert project(story.ledger)[3].text == "three"


def test_a_stub_replaces_a_result_and_keeps_its_pair() -> None:
    story = Story().user("u1", "find").answer("m1", t1=ToolCallPart("a", "search", "{}"))
    story.result("t1", "a", "long " * 100)
    view = (ViewEntry("live", "u1"), ViewEntry("live", "t1"), ViewEntry("stub", "t1.result", "[cleared]"))
    history = project(story.tell(CompactionCompleted("k", view, 9, 1, 3, 3, ("clear",))).ledger)
    assert history[2].tool_results == (ToolResultPart("a", "search", "[cleared]"),)


def test_an_empty_text_that_the_provider_wants_back_stays() -> None:
    signed = TextPart("", Opaque(ORIGIN, {"thoughtSignature": "s"}))
    answer = Message("assistant", (TextPart("yes"), TextPart(" "), signed), "m1")
    only = Message("assistant", (signed,), "m2")
    history = repair(
        [Message("user", (TextPart("hi"),), "u1"), answer, Message("user", (TextPart("more"),), "u2"), only]
    )
    assert history[1].parts == (TextPart("yes"), signed)
    assert [message.id for message in history] == ["u1", "m1", "u2"]


TURNS = st.lists(
    st.tuples(
        st.sampled_from(["user", "answer", "cut", "interrupted", "result", "late", "clear", "undo", "start"]),
        st.integers(0, 3),
        st.booleans(),
    ),
    max_size=25,
)


@settings(max_examples=examples(160, 800), deadline=None)
@given(TURNS)
def test_step_by_step_the_messages_are_those_of_the_whole_view(turns: list[tuple[str, int, bool]]) -> None:
    story = Story()
    waiting: list[tuple[str, str]] = []
    for number, (what, size, looked_at) in enumerate(turns):
        if what == "user":
            story.user(f"u{number}", "words" * size)
        elif what in ("answer", "cut", "interrupted"):
            calls = {f"t{number}_{n}": ToolCallPart(f"c{n}", "search", "{}") for n in range(size)}
            detail = {"answer": None, "cut": "cut", "interrupted": INTERRUPTED}[what]
            said: dict[str, Part] = {f"a{number}": TextPart("I look." if looked_at else " ")}
            story.answer(f"m{number}", complete=detail is None, detail=detail, **{**said, **calls})
            waiting += [(item, call.call_id) for item, call in calls.items()]
        elif what in ("result", "late") and waiting:
            story.result(*waiting.pop(-1 if what == "result" else 0), text=f"result {number}")
        elif what == "clear":
            view = story.ledger.view[size:]
            story.tell(
                CompactionCompleted(f"k{number}", (ViewEntry("summary", f"k{number}", "s"), *view), 0, 0, 0, 0, ())
            )
        elif what == "undo":
            story.tell(CompactionUndone(f"k{number}"))
        elif what == "start":
            story.tell(SessionStarted("/p", "m", "default", "1", environment="Date: today"))
        if looked_at:
            assert project(story.ledger) == project(story.ledger, story.ledger.view)
    messages = project(story.ledger)
    assert messages == project(story.ledger, story.ledger.view)
    check_valid(messages)


def test_a_step_makes_no_new_messages_of_what_was_said_before() -> None:
    story = Story().user("u1", "go")
    for number in range(50):
        call = ToolCallPart(f"c{number}", "search", "{}")
        story.answer(f"m{number}", **{f"t{number}": call}).result(f"t{number}", call.call_id, "found")
        project(story.ledger)
    before = project(story.ledger)
    story.answer("m99", a99=TextPart("done"))
    after = project(story.ledger)
    assert all(old is new for old, new in zip(before[:-2], after, strict=False))


def test_a_thread_that_reads_the_view_while_it_grows_hides_nothing() -> None:
    said = Said()
    said.user("one")
    ledger = said.ledger

    class Growing(list[ViewEntry]):
        """Another thread adds an entry between the end of a copy and its use."""

        def __iter__(self) -> Iterator[ViewEntry]:
            yield from super().__iter__()
            ledger._view = list(super().__iter__())
            said.user("two")

    ledger._view = Growing(ledger._view)
    assert len(ledger.view) == 1  # what the thread sees
    assert [entry.id for entry in ledger.view] == ["u1", "u2"]
    assert [message.text for message in project(ledger)] == ["one", "two"]
