"""The linear front-end on a prepared session: what is written, what typed lines do."""

from __future__ import annotations

import asyncio
import io
import queue
from pathlib import Path

import pytest

from swecli.commands.base import Offer
from swecli.core.context_management.compaction.plan import CompactionPlan
from swecli.core.context_management.instructions import INSTRUCTION_NAMES
from swecli.core.engine.services import Mentionable
from swecli.core.protocol.blocks import DiffBlock, TerminalBlock
from swecli.core.protocol.commands import Answer, Compact, Interrupt, ReplyPermission, RunShell, SetMode, Steer, Submit
from swecli.core.protocol.events import (
    Body,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    PermissionRequested,
    PermissionResolved,
    QuestionAsked,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from swecli.core.protocol.request_events import Option, Question
from swecli.core.workspace.jobs import JobInfo
from swecli.event_lines import MAX_EARLIER_LINES
from swecli.plain.front_end import GRACE, Line, LinearFrontEnd
from tests.support.fake_session import WAIT_FOR_INTERRUPT, FakeSession
from tests.support.waiting import until

EDIT = DiffBlock("shop/pricing.py", "a\n", "b\n")
ASK = PermissionRequested("p1", "t1", "edit_file", "shop/pricing.py", (EDIT,), "Edits ask.", "hash", "Edit(/shop)")
WORK: tuple[Body, ...] = (
    ItemStarted("r1", "reasoning"),
    ItemDelta("r1", "Think\x1b[31m"),
    ItemCompleted("r1", "ok", (ReasoningPart("Think\x1b[31m"),)),
    ItemStarted("t1", "tool", "edit_file"),
    ItemCheckpointed("t1", ToolCallPart("t1", "edit_file", "{}"), "shop/pricing.py"),
    ASK,
    ItemCheckpointed("t1", ToolCallPart("t1", "edit_file", "{}"), "shop/pricing.py", running=True),
    ItemCompleted("t1", "ok", (ToolResultPart("t1", "edit_file", "ok"),), (EDIT,), "+1 -1"),
    ItemStarted("t2", "tool", "run_command"),
    ItemCheckpointed("t2", ToolCallPart("t2", "run_command", "{}"), "make", running=True),
    ItemCompleted("t2", "error", (), (TerminalBlock("make", "one\ntwo\n", 2),), "exit 2"),
    ItemStarted("a1", "text"),
    ItemDelta("a1", "First li"),
    ItemDelta("a1", "ne.\nSecond"),
    ItemDelta("a1", " line."),
    ItemCompleted("a1", "ok", (TextPart("First line.\nSecond line."),)),
)


RESOURCES = (Mentionable("docs:a", "read", {}, size=4_000), Mentionable("docs:b", "read", {}))


async def play(
    typed: str,
    *turns: tuple[Body, ...],
    first: str = "",
    folder: Path = Path("/proj"),
    mentionables: tuple[Mentionable, ...] = (),
    started: int = 1,
    plan: CompactionPlan | None = None,
) -> tuple[FakeSession, list[str]]:
    session = FakeSession(*turns)
    session.view.started_seq = started
    if plan is not None:
        session.plan_compaction = lambda: plan  # type: ignore[method-assign]
    session.view.cwd, session.mentionables = folder, mentionables

    async def opened() -> FakeSession:
        return session

    target = io.StringIO()
    front_end = LinearFrontEnd(opened, opened, first_prompt=first, source=io.StringIO(typed), target=target)
    assert await front_end.run() == 0
    assert session.closed
    return session, target.getvalue().splitlines()


async def test_a_whole_task_in_lines() -> None:
    session, lines = await play("fix it\nperhaps\ny\n", WORK)
    assert [type(command) for command in session.commands] == [Submit, ReplyPermission]
    expected = [
        "New session.",
        "Ready.",
        "Reasoning:",
        "Think␛[31m",
        "Permission needed: edit file shop/pricing.py",
        "Edits ask.",
        "-a",
        "+b",
        "Answer with y once",
        "Nothing was run. Answer with y once",
        "Started: edit file shop/pricing.py",
        "Done: edit file shop/pricing.py: +1 -1",
        "Started: run command make",
        "Failed: run command make: exit 2",
        "$ make",
        "one",
        "two",
        "exit 2",
        "Answer:",
        "First line.",
        "Second line.",
        "Turn done",
        "Ready.",
    ]
    position = 0
    for line in lines:
        if position < len(expected) and line.startswith(expected[position]):
            position += 1
    assert position == len(expected), (expected[position], lines)
    assert lines.count("+b") == 1, "a change that was shown for consent is not written again"


async def test_nothing_of_it_moves_the_cursor_or_draws_boxes() -> None:
    _, lines = await play("y\n", WORK, first="go")
    text = "\n".join(lines)
    assert "\x1b" not in text
    assert "\r" not in text
    assert not any(0x2500 <= ord(char) <= 0x259F or 0x2800 <= ord(char) <= 0x28FF for char in text)


async def test_a_first_message_of_the_command_line_starts_at_once() -> None:
    session, lines = await play("no do it otherwise\n", WORK, first="go")
    assert session.commands[0] == Submit("go")
    assert session.commands[1] == ReplyPermission("p1", "reject", "do it otherwise")
    assert lines.count("You: go") <= 1


class Keyboard(io.StringIO):
    """A terminal at which somebody types a line and then waits."""

    def __init__(self, first: str) -> None:
        super().__init__()
        self.typed: queue.Queue[str] = queue.Queue()
        self.typed.put(first)

    def isatty(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> str:
        return self.typed.get()


@pytest.mark.parametrize("running", [False, True])
async def test_a_silent_model_is_told_in_a_terminal(running: bool) -> None:
    call = ToolCallPart("t1", "run_command", "{}")
    work = (ItemStarted("t1", "tool", "run_command"), ItemCheckpointed("t1", call, "make", running=True))
    session = FakeSession([*(work if running else ()), WAIT_FOR_INTERRUPT])
    keyboard, target = Keyboard("go\n"), io.StringIO()

    async def opened() -> FakeSession:
        return session

    front_end = LinearFrontEnd(opened, opened, source=keyboard, target=target, patience=(0.01, 0.02, 0.03))
    task = asyncio.create_task(front_end.run())
    said = " s. Ctrl+C interrupts."
    if running:
        await until(lambda: "Started: run command make" in target.getvalue())
        before = target.getvalue().count(said)
        await asyncio.sleep(0.1)
        assert target.getvalue().count(said) == before
    else:
        await until(lambda: target.getvalue().count(said) > 3)
    session.send(Interrupt())
    await until(lambda: target.getvalue().count("Ready.") > 1)
    keyboard.typed.put("")
    assert await task == 0


async def test_an_input_that_ends_allows_nothing() -> None:
    session, _ = await play("", WORK, first="go")
    (replied,) = [command for command in session.commands if isinstance(command, ReplyPermission)]
    assert replied.choice == "reject"


async def test_questions_are_answered_one_after_the_other() -> None:
    ask = QuestionAsked("q1", "t1", (Question("Which?", (Option("A"), Option("B"))), Question("Why?")))
    session, lines = await play("go\n7\n2\nbecause\n", (ask,))
    assert session.commands[-1] == Answer("q1", (("B",), ("because",)))
    assert any("Options are 1 to 2" in line for line in lines)
    assert "Question 2 of 2: Why?" in lines


@pytest.mark.parametrize(("typed", "said"), [("/help\n", "/help"), ("/hlp\n", "Did you mean /help?"), ("?\n", "/mode")])
async def test_slash_commands(typed: str, said: str) -> None:
    session, lines = await play(typed)
    assert session.commands == []
    assert any(said in line for line in lines)


async def test_clear_goes_on_in_a_new_session() -> None:
    old, new = FakeSession(), FakeSession(WORK[-5:])

    async def opened() -> FakeSession:
        return old

    async def fresh() -> FakeSession:
        return new

    target = io.StringIO()
    await LinearFrontEnd(opened, fresh, source=io.StringIO("/clear\ngo\n"), target=target).run()
    assert old.commands == []
    assert new.commands == [Submit("go")]
    assert "Second line." in target.getvalue()


async def test_what_is_piped_in_waits_until_the_first_message_has_begun() -> None:
    session, _ = await play("y\n", WORK, first="go")
    assert [type(command) for command in session.commands] == [Submit, ReplyPermission]


async def test_an_answer_that_goes_on_after_something_else_began_stays_in_order() -> None:
    turn: tuple[Body, ...] = (
        ItemStarted("a1", "text"),
        ItemDelta("a1", "I look at it"),
        ItemStarted("t1", "tool", "read_file"),
        ItemCompleted("a1", "ok", (TextPart("I look at it"),)),
        ItemCompleted("t1", "ok", (), (), "3 lines"),
    )
    _, lines = await play("go\n", turn)
    start = lines.index("Answer:")
    assert lines[start : start + 3] == ["Answer:", "I look at it", "Done: read file: 3 lines"]


async def test_the_end_of_a_call_is_said_once() -> None:
    turn: tuple[Body, ...] = (
        ItemStarted("t1", "tool", "write_file", "a.txt"),
        ItemCompleted("t1", "rejected", (), (), "rejected"),
        ItemStarted("t2", "tool", "write_file", "b.txt"),
        ItemCompleted("t2", "rejected", (), (), "rejected: use tabs"),
        ItemStarted("t3", "tool", "run_command", "make"),
        ItemCompleted("t3", "interrupted", (), (), "interrupted"),
        TurnEnded("interrupted"),
    )
    _, lines = await play("go\n", turn)
    start = lines.index("Rejected: write file a.txt")
    assert lines[start + 1 : start + 4] == [
        "Rejected: write file b.txt: use tabs",
        "Interrupted: run command make",
        "Turn interrupted.",
    ]


async def test_a_first_message_that_is_a_command_is_run() -> None:
    session, _ = await play("hi\n", WORK, first="/mode plan")
    assert SetMode("plan") in session.commands
    assert [command.text for command in session.commands if isinstance(command, Submit)] == ["hi"]


async def test_what_a_message_mentions_is_weighed_before_it_is_sent(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("some words\n" * 400)
    said = await play("read @notes.txt and @docs:a, @docs:b\n", (), folder=tmp_path, mentionables=RESOURCES)
    weighed = next(line for line in said[1] if line.startswith("Attached: "))
    assert "3 mentions: ~" in weighed
    assert "@docs:a ~1.0K · @docs:b size unknown until it is read · @notes.txt ~" in weighed


@pytest.mark.parametrize(("started", "shown"), [(1, 40), (10_000, MAX_EARLIER_LINES)])
async def test_long_output_of_earlier_turns_is_short(started: int, shown: int) -> None:
    ran = TerminalBlock("seq 40", "".join(f"{n}\n" for n in range(40)), 0)
    work = (ItemStarted("t9", "tool", "run_command"), ItemCompleted("t9", "ok", (), (ran,), "exit 0"))
    _, lines = await play("go\n", work, started=started)
    assert ("20" in lines) == (shown == 40)
    assert ("... 34 lines ..." in lines) == (shown < 40)
    assert {"0", "39", "exit 0"} <= set(lines)


PLAN = CompactionPlan(100_000, 30_000, 160_000, 12, 80, 15_000, 80_000, 6_400)
ASKED = "Compact from 100,000 to about 30,000 tokens?"
CHOICES = "Answer with y apply (/compact undo restores it), or n cancel (nothing changes)."


@pytest.mark.parametrize("typed", ["/compact\ny\n", "/compact the login bug\nYES\n"])
async def test_a_compaction_is_made_once_its_plan_was_accepted(typed: str) -> None:
    session, lines = await play(typed, plan=PLAN)
    focus = typed.splitlines()[0].removeprefix("/compact").strip()
    assert session.commands == [Compact(focus)]
    at = lines.index(ASKED)
    assert any("80,000" in line for line in lines[:at]), "the plan comes before the question"
    assert lines[at + 1] == CHOICES


@pytest.mark.parametrize("typed", ["/compact\nn\n", "/compact\n", "/compact\nno thanks\n", "/compact\n/compact\nn\n"])
async def test_a_plan_that_nobody_accepts_changes_nothing(typed: str) -> None:
    session, lines = await play(typed, plan=PLAN)
    assert not any(isinstance(command, Compact) for command in session.commands)
    assert "Cancelled: nothing was changed." in lines


async def test_a_line_that_was_piped_in_is_no_answer_to_a_plan() -> None:
    session, lines = await play("/compact\nfix it\ny\n", (), plan=PLAN)
    assert [command for command in session.commands if not isinstance(command, Submit)] == []
    assert session.commands[0] == Submit("fix it")
    assert "Cancelled: nothing was changed." in lines


async def test_a_compaction_can_be_made_at_once() -> None:
    session, lines = await play("/compact now the login bug\n", plan=PLAN)
    assert session.commands == [Compact("the login bug")]
    assert ASKED not in lines


class Asked(LinearFrontEnd):
    """A front-end that has just proposed a compaction to somebody at the keyboard."""

    def __init__(self, session: FakeSession) -> None:
        async def opened() -> FakeSession:
            return session

        self.said = io.StringIO()
        super().__init__(opened, opened, source=io.StringIO(), target=self.said)  # type: ignore[arg-type]
        self._session = session  # type: ignore[assignment]
        self.offer = Offer(ASKED, Compact(), ("Apply", "a"), ("Cancel", "b"))
        self._propose(self.offer)

    def type(self, text: str, later: float) -> bool:
        assert self._choice is not None
        return self._decided(self._choice, Line(text, self._asked_at + later), by_hand=True)


async def test_a_line_typed_before_the_plan_was_seen_accepts_nothing() -> None:
    session = FakeSession()
    front_end = Asked(session)
    assert front_end.type("y", GRACE / 2)
    assert session.commands == []
    assert "typed before the question appeared" in front_end.said.getvalue()
    assert front_end.type("perhaps", GRACE * 2)
    assert session.commands == []
    assert front_end.type("y", GRACE * 3)
    assert session.commands == [Compact()]


class ByHand(LinearFrontEnd):
    """A front-end with somebody at the keyboard, who types after having read."""

    def __init__(self, session: FakeSession) -> None:
        async def opened() -> FakeSession:
            return session

        self.said = io.StringIO()
        super().__init__(opened, opened, source=io.StringIO(), target=self.said)  # type: ignore[arg-type]
        self._session, self._by_hand, self._works = session, True, lambda: session.view.busy  # type: ignore[assignment]

    def lines(self) -> list[str]:
        return self.said.getvalue().splitlines()

    def happen(self, *bodies: Body) -> None:
        for number, body in enumerate(bodies):
            self._show_event(Event(number, 1.0, "fake", 1, body))

    async def type(self, text: str) -> None:
        line = Line(text, self._asked_at + 2 * GRACE)
        if (request := self._request) is not None:
            self._answer(request, line, by_hand=True)
        elif self._choice is None or not self._decided(self._choice, line, by_hand=True):
            await self._do(text)


OTHER = PermissionRequested("p2", "t2", "run_command", "rm -r /", (), "Commands ask.", "hash")
TWO = QuestionAsked("q1", "t1", (Question("Which?", (Option("A"), Option("B"))), Question("Why?")))
ONE = QuestionAsked("q2", "t2", (Question("Delete all?", (Option("keep"), Option("delete"))),))


async def test_two_open_requests_are_asked_one_after_the_other() -> None:
    session = FakeSession()
    front_end = ByHand(session)
    front_end.happen(ASK, OTHER, ONE)
    assert "Permission needed: edit file shop/pricing.py" in front_end.lines()
    assert not any("rm -r" in line for line in front_end.lines())
    await front_end.type("y")
    assert session.commands == [ReplyPermission("p1", "once")]
    assert "Permission needed: run command rm -r /" in front_end.lines()
    assert not any("Delete all?" in line for line in front_end.lines())
    await front_end.type("n")
    assert session.commands[1] == ReplyPermission("p2", "reject")
    assert "Question: Delete all?" in front_end.lines()


async def test_a_request_that_settles_itself_is_never_asked() -> None:
    session = FakeSession()
    front_end = ByHand(session)
    front_end.happen(ASK, OTHER, PermissionResolved("p2", "once", "engine"))
    await front_end.type("y")
    assert not any("rm -r" in line for line in front_end.lines())


async def test_answers_of_an_interrupted_question_answer_no_other() -> None:
    session = FakeSession()
    front_end = ByHand(session)
    front_end.happen(TWO)
    await front_end.type("2")
    front_end.happen(TurnEnded("interrupted", ""), ONE)
    assert session.commands == []
    assert front_end.lines()[-4:-1] == ["Question: Delete all?", "1. keep", "2. delete"]
    await front_end.type("1")
    assert session.commands == [Answer("q2", (("keep",),))]


async def test_ctrl_c_interrupts_a_shell_command() -> None:
    session = FakeSession()
    front_end = ByHand(session)
    session.view.busy = True
    front_end._interrupted()
    assert session.commands == [Interrupt(skip=True)]
    assert front_end.lines() == []


async def test_what_cannot_run_during_a_turn_waits_with_what_is_sent_after_it() -> None:
    session = FakeSession(())
    front_end = ByHand(session)
    front_end.happen(TurnStarted("u1"))
    await front_end.type("steer it")
    for line in ("!ls", "and then this", "/context text"):
        await front_end.type(line)
    assert session.commands == [Steer("steer it")]
    front_end.happen(TurnEnded("done"))
    await until(lambda: len(session.commands) == 3)
    assert session.commands[1:] == [RunShell("ls"), Submit("and then this")]
    assert "Waiting for the turn to end: !ls" in front_end.lines()
    assert "Waiting after that: and then this" in front_end.lines()


async def test_a_proposal_of_a_line_that_waited_is_carried_out() -> None:
    session = FakeSession()
    session.plan_compaction = lambda: PLAN  # type: ignore[method-assign]
    front_end = ByHand(session)
    front_end.happen(TurnStarted("u1"))
    await front_end.type("/compact")
    front_end.happen(TurnEnded("done"))
    await until(lambda: bool(session.commands))
    assert session.commands == [Compact()]


@pytest.mark.parametrize("interrupted", [True, False])
async def test_after_a_turn_that_failed_the_waiting_lines_are_not_run(interrupted: bool) -> None:
    session = FakeSession()
    front_end = ByHand(session)
    front_end.happen(TurnStarted("u1"))
    await front_end.type("!ls")
    await front_end.type("and this")
    if interrupted:
        front_end._interrupted()
    front_end.happen(TurnEnded("interrupted" if interrupted else "error"))
    assert [line for line in front_end.lines() if line.startswith("Not run")] == ["Not run: !ls", "Not run: and this"]
    await front_end.type("!pwd")
    await until(lambda: RunShell("pwd") in session.commands)
    assert RunShell("ls") not in session.commands


@pytest.mark.parametrize("typed", ["/clear", "/quit", "exit"])
async def test_a_session_with_jobs_is_left_after_a_yes_only(typed: str) -> None:
    session = FakeSession()
    session.view.jobs = (JobInfo("job1", "npm start", "t1", 1, 0.0),)
    front_end = ByHand(session)
    await front_end.type(typed)
    await until(lambda: bool(front_end.lines()))
    assert front_end.lines()[0] == "A job is running in the background: job1 npm start"
    await front_end.type("perhaps")
    assert front_end.lines()[-1].startswith("Nothing was changed. Answer with y")
    await front_end.type("n")
    assert not front_end._left.is_set()
    await front_end.type(typed)
    await until(lambda: front_end._choice is not None)
    await front_end.type("y")
    assert front_end._left.is_set()


async def test_a_line_with_a_number_sign_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    session = FakeSession()
    session.view.cwd = tmp_path
    front_end = ByHand(session)
    await front_end.type("# use tabs")
    assert front_end.lines()[:2] == [
        "Add to the instructions: use tabs",
        f"1. Add it to {INSTRUCTION_NAMES[0]} (this folder's instructions)",
    ]
    await front_end.type("yes")
    assert front_end.lines()[-1] == "Nothing was added. Answer with a number, or n cancel."
    await front_end.type("2")
    await until(lambda: "Added to" in front_end.said.getvalue())
    assert "- use tabs" in (tmp_path / "config" / "swecli" / INSTRUCTION_NAMES[0]).read_text()
    assert session.commands == []
    await front_end.type("# use tabs")
    await front_end.type("3")
    await until(lambda: bool(session.commands))
    assert session.commands == [Submit("# use tabs")]


async def test_a_piped_line_with_a_number_sign_is_a_message() -> None:
    session, _ = await play("# use tabs\n", ())
    assert session.commands == [Submit("# use tabs")]


async def test_a_piped_line_that_would_quit_by_hand_is_a_message() -> None:
    session, _ = await play("exit\n", ())
    assert session.commands == [Submit("exit")]


async def test_the_mode_is_shown_without_a_screen_to_pick_it() -> None:
    _, said = await play("/mode\n")
    line = "The mode is default: reads freely, asks before everything else."
    assert f"{line} /mode accept-edits or plan or auto selects another." in said
